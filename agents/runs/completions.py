"""Completions that were made elsewhere, read from the files that other tools write.

| format | what is read |
|---|---|
| plain JSON Lines | `completion`, a text or several, and `problem_id`, `id`, or `problem` (an index), else the line |
| the same, of several turns | also `dialogue`: the messages after the prompt, each with `role` and `content` |
| lm-evaluation-harness, `--log_samples` | `doc_id` and `resps` |
| OpenAI's batch output | `custom_id` and `response.body.choices` |
| Inspect's logs, `.eval` and `.json` | `id`, `epoch` and `output.choices` of each sample |

`docs/results.md` shows a line of each.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.runs.evaluation_record import recorded_completion
from agents.runs.files.json_files import read_json, read_lines
from verifiers import DataError, unknown_name


@dataclass(frozen=True)
class ExternalCompletion:
    """One completion, and which problem it answers."""

    problem: int | str
    """The problem's index in the data set, or its id."""
    text: str
    source: str
    """Its position in the file, for messages."""


_PARQUET = b"PAR1"
"""The first bytes of a Parquet file."""


PLAIN_COLUMNS = ("completion", "problem_id")
"""The default names of the columns in plain JSON Lines."""


def read_completions(path: Path, columns: Mapping[str, str] | None = None) -> list[ExternalCompletion]:
    """Read a file of completions; its first line shows the format.

    Args:
        path: The file.
        columns: Other names of the columns in `PLAIN_COLUMNS`, such as `{"completion": "response"}`.

    Raises:
        UnknownNameError: If `columns` names something else.
        DataError: If it is of no known format or holds no completions, or a line has no completion or no problem.
        OSError: If it can't be read.
    """
    with path.open("rb") as file:
        if file.read(len(_PARQUET)) == _PARQUET:
            raise DataError(
                f"{path} is a Parquet file: expected lines of JSON or an Inspect log (rlvr rescore RUN judges a recorded run "
                "again)"
            )
    if zipfile.is_zipfile(path):
        completions = list(_inspect_samples(path, _inspect_archive(path)))
    elif path.suffix == ".json":
        content = read_json(path)
        samples = content.get("samples") if isinstance(content, Mapping) else content
        if not isinstance(samples, list):
            raise DataError(
                f"{path} has no list of 'samples': expected an Inspect log, or lines of JSON in a file .jsonl"
            )
        completions = list(_inspect_samples(path, samples))
    else:
        completions = _from_lines(path, _renamed(path, read_lines(path, _mapping, growing=False), columns or {}))
    if not completions:
        raise DataError(f"{path} holds no completions")
    return completions


def _mapping(line: object) -> dict[str, Any]:
    if not isinstance(line, dict):
        raise ValueError(f"it is {type(line).__name__}, not an object")
    return line


def _renamed(path: Path, lines: Sequence[dict[str, Any]], columns: Mapping[str, str]) -> list[dict[str, Any]]:
    """The lines with the renamed columns under the names of plain JSON Lines."""
    for name in columns:
        if name not in PLAIN_COLUMNS:
            raise unknown_name("column of completions", name, PLAIN_COLUMNS)
    for number, line in enumerate(lines, start=1):
        if missing := [column for column in columns.values() if column not in line]:
            raise DataError(f"{path}, line {number} has no column {missing[0]!r}; it has {sorted(line)}")
    return [line | {name: line[column] for name, column in columns.items()} for line in lines]


def _from_lines(path: Path, lines: Sequence[dict[str, Any]]) -> list[ExternalCompletion]:
    completions: list[ExternalCompletion] = []
    filters: dict[int | str, object] = {}
    for number, line in enumerate(lines, start=1):
        source = f"{path}, line {number}"
        reader = next((reader for column, reader in _READERS.items() if column in line), None)
        if reader is None:
            raise DataError(
                f"{source} has the columns {sorted(line)}: expected one of {', '.join(map(repr, _READERS))}"
            )
        problem, texts = reader(line, number - 1, source)
        if reader is _lm_eval and filters.setdefault(problem, line.get("filter")) != line.get("filter"):
            continue  # lm-eval writes a document's completions once for each filter of its task
        if not texts:
            raise DataError(f"{source} holds no completion")
        completions += [ExternalCompletion(problem, text, source) for text in texts]
    return completions


def _own(line: dict[str, Any], number: int, source: str) -> tuple[int | str, list[str]]:
    given = line["completion"]
    texts = given if isinstance(given, list) else [given]
    name = next((name for name in ("problem_id", "id", "problem") if line.get(name) is not None), None)
    texts = [_text(text, source) for text in texts]
    if line.get("dialogue") is not None and len(texts) == 1:
        texts = [recorded_completion({"problem_id": source, **line, "completion": texts[0]})]
    return (number if name is None else _key(line[name], source)), texts


def _lm_eval(line: dict[str, Any], number: int, source: str) -> tuple[int | str, list[str]]:
    del number
    if "doc_id" not in line:
        raise DataError(f"{source} has 'resps' and no 'doc_id'")
    texts = [text for response in _list(line["resps"], source) for text in _list(response, source)]
    return _key(line["doc_id"], source), [_text(text, source) for text in texts]


def _openai_batch(line: dict[str, Any], number: int, source: str) -> tuple[int | str, list[str]]:
    del number
    response = line.get("response")
    if not isinstance(response, Mapping) or response.get("status_code", 200) != 200:
        raise DataError(
            f"{source} is a failed request ({line.get('error') or response!r}): remove such lines, or request them again"
        )
    body = response.get("body")
    choices = body.get("choices") if isinstance(body, Mapping) else None
    return _key(line["custom_id"], source), [message_text(choice, source) for choice in _list(choices, source)]


_READERS: dict[str, Callable[[dict[str, Any], int, str], tuple[int | str, list[str]]]] = {
    "completion": _own,
    "resps": _lm_eval,
    "custom_id": _openai_batch,
}
"""The readers by the column that identifies their format."""


def _inspect_archive(path: Path) -> Iterator[dict[str, Any]]:
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.startswith("samples/") and name.endswith(".json")]
        for name in sorted(names):
            try:
                yield _mapping(json.loads(archive.read(name)))
            except ValueError as error:
                raise DataError(f"{path}, {name} is damaged: {error}") from error


def _inspect_samples(path: Path, samples: Iterator[Any] | Sequence[Any]) -> Iterator[ExternalCompletion]:
    epochs: list[tuple[int, int | str, list[str], str]] = []
    for number, sample in enumerate(samples, start=1):
        source = f"{path}, sample {number}"
        if not isinstance(sample, Mapping) or "id" not in sample or not isinstance(sample.get("output"), Mapping):
            raise DataError(f"{source} has no 'id' and 'output', as the samples of an Inspect log have")
        texts = [message_text(choice, source) for choice in _list(sample["output"].get("choices"), source)]
        epochs.append((int(sample.get("epoch", 1)), _key(sample["id"], source), texts, source))
    for _, key, texts, source in sorted(epochs, key=lambda item: item[0]):
        for text in texts:
            yield ExternalCompletion(key, text, source)


def message_text(choice: object, source: str) -> str:
    """The text of a choice's message, as OpenAI's protocol has it.

    Raises:
        DataError: If the choice has no text.
    """
    message = choice.get("message") if isinstance(choice, Mapping) else None
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, list):  # parts, whose text is the answer
        content = "".join(part["text"] for part in content if isinstance(part, Mapping) and part.get("type") == "text")
    return _text(content, source)


def _key(value: object, source: str) -> int | str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise DataError(f"{source}: a problem must be named by its id or index, got {value!r}")
    return value


def _list(value: object, source: str) -> list[Any]:
    if not isinstance(value, list):
        raise DataError(f"{source}: expected a list of completions, got {value!r}")
    return value


def _text(value: object, source: str) -> str:
    if not isinstance(value, str):
        raise DataError(f"{source}: a completion must be text, got {value!r}")
    return value
