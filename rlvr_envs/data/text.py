"""Load any data set of questions and answers: from the hub, from local files, from a list of problems, or built in."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType
from typing import cast

from rlvr_envs.data import arithmetic, choices, converters, hub, local, verl
from rlvr_envs.data.contracts import with_contracts
from rlvr_envs.data.dataset import ProblemDataset
from rlvr_envs.data.rows import Row
from rlvr_envs.types import Dataset
from verifiers import (
    InvalidArgumentError,
    Message,
    MissingDataError,
    Problem,
    import_attribute,
    is_attribute_path,
    unknown_name,
)

SIZES = MappingProxyType({split: len(rows) for split, rows in arithmetic.ROWS.items()})
"""Number of problems in each split of the built-in data set."""

SPLITS = tuple(SIZES)
"""The splits of the built-in data set; other data sets have their own."""

DEFAULT_COLUMNS: Mapping[str, str] = MappingProxyType({"prompt": "question", "reference": "answer"})
"""The default columns."""

ENTRY_POINT_GROUP = "rlvr_envs.datasets"

CHOICES = "choices"
"""Name of the field and of the converter for multiple choice."""

_FIELDS = ("prompt", "reference", "id", "gold_completion", CHOICES)

LAYOUTS: Mapping[str, Mapping[str, str]] = MappingProxyType({"columns": DEFAULT_COLUMNS, "verl": verl.COLUMNS})
"""The columns of each named layout."""


def load(
    dataset: str | os.PathLike[str] | Dataset | None = None,
    *,
    split: str = "train",
    columns: Mapping[str, str] | None = None,
    convert: str | None = None,
    layout: str = "columns",
    verifiers: Mapping[str, object] | None = None,
    config: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    contracts: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Load any data set of questions and answers.

    Args:
        dataset: The data set to load:

            * None: the built-in arithmetic questions (24 train, 8 test);
            * problems, in a list or tuple; or a data set of any other kind, returned unchanged;
            * `"module:attribute"`, where the module may also be in the current folder. If the attribute is a class or function,
              its result for `split=` is loaded; any other attribute is itself the data set, as above;
            * an entry point of the group `"rlvr_envs.datasets"`, which is treated like `"module:attribute"`;
            * a `.jsonl`, `.parquet`, `.json` or `.csv` file with one split; its name does not matter;
            * a folder with `<split>.jsonl` or `<split>.parquet` in it, given by its path or by its name within `data_dir` or,
              without `data_dir`, within the folder that the environment variable `RLVR_DATA_DIR` names;
            * any other name: a data set on the hub, which `datasets.load_dataset` loads; a name that ends in `@REVISION`
              selects this branch, tag or commit.
        split: The split to load.
        columns: Which column holds the `"prompt"` (a string, or a list of messages with `role` and `content`), the
            `"reference"` (anything that the verifier accepts), and optionally the `"id"` (a string or an integer; by default
            `"name/split/index"`) and the `"gold_completion"` (by default the reference, if it is a string or a number). If
            `"choices"` names a column with a list of texts, the problem is multiple choice: the prompt ends in the lettered
            choices, and the reference is the letter, position (from 0) or text of the right choice. A name may be a path with
            dots, such as `reward_model.ground_truth` or `prompt.0.content`. A column becomes metadata unless it is named here
            as a whole. The default columns are `question` and `answer`; a layout has its own columns, each of which may be
            replaced.
        convert: Name of a converter in `rlvr_envs.data.converters` that makes the reference from the column's value: `json`,
            `json_first`, `input_output`, `livecodebench`, `test_list`, `codecontests` or `ifeval`. `choices` makes the problem
            multiple choice, with the choices in the column `choices` or in another column that `columns` names.
        layout: `"verl"` for the columns of verl's training data, in which the column `data_source` decides which verifier
            judges a row.
        verifiers: Further verifiers by `data_source` for `layout="verl"`, such as `{"my/proofs": "exact"}`; see
            `rlvr_envs.data.verl.judges_of`.
        config: The configuration of a hub data set that has several.
        data_dir: The folder in which to look for a data set's folder by its name. With `data_dir`, the hub is not used.
        contracts: File with the contract of each problem; see `rlvr_envs.data.contracts.with_contracts`.

    Returns:
        A `ProblemDataset`, or `dataset` itself if it is already a data set. If only one verifier can read the references
        (tests, instructions, choices, or references of verl's layout), the data set names this verifier.

    Raises:
        UnknownNameError: If the split, the layout, the converter or a key of `columns` is not known.
        InvalidArgumentError: If `columns` has no prompt or no reference, the file has another suffix, or a sequence
            holds anything but problems.
        MissingDataError: If the data set was found neither locally nor on the hub.
        DataError: If a file or a row is invalid; the message names the file, the line and the column.
    """
    dataset = _path_of(dataset) if isinstance(dataset, str) else dataset
    if isinstance(dataset, str) and is_attribute_path(dataset):
        named = import_attribute(dataset, "data set")
        dataset = cast(Dataset, _of_split(named, split, dataset) if callable(named) else named)
    if dataset is not None and not isinstance(dataset, str | os.PathLike):
        given = (columns, convert, verifiers, config, data_dir)
        if layout != "columns" or any(argument is not None for argument in given):
            raise InvalidArgumentError(
                "columns=, convert=, layout=, verifiers=, config= and data_dir= describe rows, but this data set already holds "
                "problems"
            )
        return with_contracts(_from_problems(dataset, split), contracts)
    reader = _reader(layout, columns, convert, verifiers)
    name, rows = _named_rows(dataset, split, config, data_dir)
    return with_contracts(reader.dataset(name, split, rows), contracts)


def _path_of(name: str) -> str:
    """The target of the entry point of this name.

    The name itself if there is no such entry point, or a file or folder has this name.
    """
    for point in entry_points(group=ENTRY_POINT_GROUP):
        if point.name == name and not Path(name).exists():
            return f"{point.module}:{point.attr}"
    return name


def _of_split(function: Callable[..., object], split: str, name: str) -> object:
    try:
        inspect.signature(function).bind(split=split)
    except TypeError as error:
        raise InvalidArgumentError(
            f"{name!r} is called as {name.partition(':')[2]}(split={split!r}): {error}"
        ) from error
    except ValueError:
        pass  # the function's signature is unknown
    return function(split=split)


def _from_problems(problems: Dataset, split: str) -> Dataset:
    if isinstance(problems, Mapping) or not (hasattr(problems, "__len__") and hasattr(problems, "__getitem__")):
        raise InvalidArgumentError(
            f"expected a data set's name, path or sequence of problems, got {type(problems).__name__}"
        )
    if len(problems) == 0:
        raise InvalidArgumentError("expected at least one problem, got an empty sequence")
    if isinstance(problems, list | tuple):
        return ProblemDataset(
            "problems", split, tuple(_checked(problem, index) for index, problem in enumerate(problems))
        )
    _checked(problems[0], 0)  # only the first problem: the data set may make problems on request
    return problems


def _checked(problem: object, index: int) -> Problem:
    if not isinstance(problem, Problem):
        raise InvalidArgumentError(
            f"expected a sequence of Problem, got {type(problem).__name__} at {index} (counted from 0)"
        )
    if not isinstance(problem.prompt, str | tuple):
        raise InvalidArgumentError(
            f"a prompt must be a string or a tuple of messages; problem {problem.id!r} has {problem.prompt!r}"
        )
    return problem


def _named_rows(
    dataset: str | os.PathLike[str] | None, split: str, config: str | None, data_dir: str | os.PathLike[str] | None
) -> tuple[str, Sequence[Row]]:
    if dataset is None:
        if data_dir is not None or config is not None:
            raise InvalidArgumentError("data_dir= and config= need a data set: name it with dataset=")
        return "arithmetic", _built_in_rows(split)
    path = Path(dataset).expanduser()
    if path.is_file() or path.suffix in local.FILE_SUFFIXES:
        return path.stem, _file_rows(path)
    named = _named_folder(dataset, data_dir)
    folder = path if path.is_dir() else named
    if folder is not None and folder.is_dir():
        return folder.name, _folder_rows(folder, split)
    if not isinstance(dataset, str) or data_dir is not None:
        raise MissingDataError(f"no data set at {path}" + (f" nor at {named}" if named else "") + f"; {_ADVICE}")
    return dataset, hub.read_rows(dataset, config, split, otherwise=f"Locally, {_ADVICE}")


_ADVICE = (
    "give a .jsonl, .parquet, .json or .csv file, or a folder with <split>.jsonl in it, by its path or by its name below the "
    f"folder that data_dir= or {local.DATA_DIR_VARIABLE} names"
)


def _named_folder(name: str | os.PathLike[str], data_dir: str | os.PathLike[str] | None) -> Path | None:
    root = local.data_folder(data_dir)
    return root / name if root is not None else None


def _built_in_rows(split: str) -> list[Row]:
    if split not in arithmetic.ROWS:
        raise unknown_name("split", split, arithmetic.ROWS)
    rows = enumerate(arithmetic.ROWS[split])
    return [Row(values, index, f"built-in {split!r}, row {index + 1}") for index, values in rows]


def _file_rows(path: Path) -> list[Row]:
    if not path.is_file():
        raise MissingDataError(f"there is no file {path}; {_ADVICE}")
    return local.read_rows(path)


def _folder_rows(folder: Path, split: str) -> list[Row]:
    path = local.find_split(folder, split)
    if path is None:
        splits = {file.stem for file in folder.iterdir() if file.suffix in local.SUFFIXES}
        if splits:
            raise unknown_name("split", split, splits)
        raise MissingDataError(f"the folder {folder} holds no data: expected {folder / split}.jsonl (or .parquet)")
    return local.read_rows(path)


@dataclass(frozen=True)
class _Reader:
    """Turns rows into problems."""

    columns: Mapping[str, str]
    convert: str | None
    by_source: bool
    """Whether the column `data_source` decides which verifier judges a row."""
    verifiers: Mapping[str, object]

    def dataset(self, name: str, split: str, rows: Sequence[Row]) -> ProblemDataset:
        judges = verl.judges_of(rows, self.verifiers) if self.by_source else {}
        problems = tuple(self._problem(row, f"{name}/{split}/{row.index}", judges) for row in rows)
        if not judges:
            verifier = "choice" if CHOICES in self.columns else converters.VERIFIERS.get(self.convert or "")
            return ProblemDataset(name, split, problems, None if verifier is None else (verifier, {}))
        parts = {source: judge.verifier for source, judge in judges.items()}
        return ProblemDataset(name, split, problems, ("by_metadata", {"key": verl.SOURCE_COLUMN, "parts": parts}))

    def _problem(self, row: Row, default_id: str, judges: Mapping[str, verl.Judge]) -> Problem:
        named = judges[row.text(verl.SOURCE_COLUMN)].convert if judges else None
        prompt = _prompt(row, self.columns["prompt"])
        metadata = row.without(*self.columns.values())
        if CHOICES in self.columns:
            options = choices.read_choices(row, self.columns[CHOICES])
            reference: object = choices.answer_letter(row, self.columns["reference"], options)
            prompt = _with_choices(prompt, options)
            metadata[CHOICES] = options
        else:
            reference = _reference(row, self.columns["reference"], self.convert or named)
        if "gold_completion" in self.columns:
            metadata["gold_completion"] = row.text(self.columns["gold_completion"])
        elif isinstance(reference, str | int | float):
            metadata.setdefault("gold_completion", str(reference))
        identifier = _identifier(row, self.columns["id"]) if "id" in self.columns else default_id
        return Problem(identifier, prompt, reference, metadata)


def _reader(
    layout: str, columns: Mapping[str, str] | None, convert: str | None, verifiers: Mapping[str, object] | None
) -> _Reader:
    if layout not in tuple(LAYOUTS):
        raise unknown_name("layout", layout, LAYOUTS)
    if columns is not None and not _names_columns(columns):
        raise InvalidArgumentError(
            f"columns must map fields to names of columns, such as {dict(DEFAULT_COLUMNS)}, got {columns!r}"
        )
    for field in columns or {}:
        if field not in _FIELDS:
            raise unknown_name("key of columns", field, _FIELDS)
    by_source = layout == "verl"
    named = LAYOUTS[layout] if columns is None else {**(LAYOUTS[layout] if by_source else {}), **columns}
    missing = [field for field in DEFAULT_COLUMNS if field not in named]
    if missing:
        raise InvalidArgumentError(f"columns names no column for {missing}, got {dict(named)}")
    if convert == CHOICES:
        named, convert = {CHOICES: CHOICES, **named}, None
    elif convert is not None and convert not in tuple(converters.CONVERTERS):
        raise unknown_name("converter", convert, (*converters.CONVERTERS, CHOICES))
    elif convert is not None and CHOICES in named:
        raise InvalidArgumentError("convert= and a column of choices both define the reference: give only one of them")
    if verifiers is not None and not (by_source and isinstance(verifiers, Mapping)):
        raise InvalidArgumentError(
            f"verifiers= maps a data_source to a verifier, and needs layout='verl'; got {verifiers!r} with layout={layout!r}"
        )
    return _Reader(named, convert, by_source, verifiers or {})


def _names_columns(columns: object) -> bool:
    return isinstance(columns, Mapping) and all(isinstance(column, str) for column in columns.values())


def _reference(row: Row, column: str, convert: str | None) -> object:
    if convert is not None:
        return converters.convert(converters.find_converter(convert), row, column)
    reference = row.value(column)
    if reference is None:
        raise row.error(f"column {column!r} holds nothing, where a reference should be")
    row.check_characters(reference, column)
    return reference


def _with_choices(prompt: str | tuple[Message, ...], options: Sequence[str]) -> str | tuple[Message, ...]:
    if isinstance(prompt, str):
        return choices.question_text(prompt, options)
    *before, last = prompt
    return (*before, Message(last.role, choices.question_text(last.content, options)))


def _identifier(row: Row, column: str) -> str:
    value = row.value(column)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise row.wrong_type("a string or an integer", value, column)
    row.check_characters(value, column)
    return str(value)


def _prompt(row: Row, column: str) -> str | tuple[Message, ...]:
    value = row.value(column)
    if not isinstance(value, str):
        if not isinstance(value, list) or not value or not all(map(_is_message, value)):
            raise row.wrong_type("a string, or a list of messages {'role': ..., 'content': ...}", value, column)
        value = tuple(Message(message["role"], message["content"]) for message in value)
    row.check_prompt(value, column)
    return value


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str) and isinstance(value.get("content"), str)
