"""`Source`: the origin of a benchmark's rows, and their conversion to problems."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rlvr_envs.data import hub, local
from rlvr_envs.data.contracts import with_contracts
from rlvr_envs.data.dataset import ProblemDataset
from rlvr_envs.data.rows import Row
from verifiers import DataError, MissingDataError, Problem, UnknownNameError, unknown_name


class ToProblem(Protocol):
    """Turns a row into a problem."""

    def __call__(self, row: Row, default_id: str) -> Problem:
        """Make the problem.

        If the source has no ids of its own, the problem's id is `default_id`, which is `"name/split/index"`.

        Raises:
            DataError: If a column is missing or has an invalid value.
        """
        ...


# Sources are compared by identity, so that they can be keys of the caches below.
@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """The origin of a benchmark's rows, and their conversion to problems."""

    name: str
    """Name of the benchmark, and of its folder in the local data folder."""
    hub_id: str
    """Id of the data set on the hub."""
    hub_config: str | None
    """The configuration to load from the hub; None if there is only one."""
    sizes: Mapping[str, int]
    """The number of rows of each split, as published."""
    to_problem: ToProblem
    """Turns a row into a problem."""
    hub_splits: Mapping[str, str] = field(default_factory=dict)
    """The hub's name of each split that has another name here, by the name used here."""
    hub_parts: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """The hub's configurations and splits, in order, for each split here that joins several splits of the hub."""
    hub_files: Mapping[str, str] = field(default_factory=dict)
    """The Parquet files of each split, such as `{"train": "ALL/train-*.parquet"}`, if the data set on the hub is a script."""
    combined_split: str | None = None
    """The split whose local file may hold the rows of all splits. This file is read for a split without a file of its own."""
    belongs: Callable[[Row, str], bool] | None = None
    """Returns whether a row belongs to a split, for sources in which a file may hold several splits or rows that can't be
    judged. None if every row belongs to its file's split."""

    used: str = ""
    """The condition of `belongs` in words, such as "has an answer", for the error if no row meets the condition. Empty if rows
    only have to belong to the split."""

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits."""
        return tuple(self.sizes)

    def load(
        self,
        split: str,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        contracts: str | os.PathLike[str] | None = None,
    ) -> ProblemDataset:
        """Load a split. A second call returns the same object, unless the file has changed.

        Args:
            split: One of `splits`.
            data_dir: A folder with `<name>/<split>.jsonl` (or `.parquet`, with the same columns) in it; by default the folder
                named by the environment variable `RLVR_DATA_DIR`. If `data_dir` or the variable names a folder, the rows come
                only from this folder; otherwise they come from the hub.
            contracts: File with the contract of each problem; see `rlvr_envs.data.contracts.with_contracts`.

        Raises:
            UnknownNameError: If there is no such split.
            MissingDataError: If the rows are not in the named folder, or can't be downloaded from the hub.
            DataError: If a file or a row is invalid; the message names the file, the line and the column.
        """
        if split not in self.sizes:
            raise self._unknown_split(split)
        return with_contracts(self._as_published(split, local.data_folder(data_dir)), contracts)

    def _as_published(self, split: str, folder: Path | None) -> ProblemDataset:
        if folder is None:
            return _load_from_hub(self, split)
        path = self._find(folder, split)
        status = path.stat()
        return _load_from_file(self, split, path, status.st_mtime_ns, status.st_size)

    def _unknown_split(self, split: str) -> UnknownNameError:
        error = unknown_name("split", split, self.splits)
        if split != "train":
            return error
        return UnknownNameError(
            f"{error} {self.name} is published for evaluation alone. To learn from it all the same, name a split (split=, "
            "--split), and evaluate elsewhere"
        )

    def _find(self, folder: Path, split: str) -> Path:
        path = local.find_split(folder / self.name, split)
        if path is None and self.combined_split is not None:
            path = local.find_split(folder / self.name, self.combined_split)
        if path is None:
            raise MissingDataError(
                f"{self.name}, split {split!r}, was not found at {self._layout(folder, split)}. Put it there, name another "
                f"folder with data_dir= or {local.DATA_DIR_VARIABLE}, or name no folder, so that {self.hub_id} is "
                f"downloaded from the hub ({hub.INSTALL})"
            )
        return path

    def _layout(self, folder: str | Path, split: str) -> str:
        return f"{Path(folder) / self.name / split}.jsonl (or .parquet)"

    def _problems(self, rows: Iterable[Row], split: str, origin: str) -> ProblemDataset:
        problems: list[Problem] = []
        count = 0
        for row in rows:
            count += 1
            if self.belongs is None or self.belongs(row, split):
                problem = self.to_problem(row, f"{self.name}/{split}/{row.index}")
                if problem.prompt in ("", ()):
                    empty = ", ".join(repr(column) for column, value in row.values.items() if value == "")
                    raise row.error(
                        f"the prompt that the row makes is empty (columns that hold an empty text: {empty or 'none'}), where a "
                        "question was expected: write it, or leave the row out"
                    )
                problems.append(problem)
        if not problems:
            raise DataError(
                f"{origin}: none of its {count} rows {self.used or f'belongs to split {split!r} of {self.name}'}"
            )
        return ProblemDataset(self.name, split, tuple(problems))

    def _hub_rows(self, split: str, otherwise: str) -> Iterable[Row]:
        parts = self.hub_parts.get(split) or ((self.hub_config, self.hub_splits.get(split, split)),)
        rows = (
            hub.iterate_rows(self.hub_id, config, name, otherwise=otherwise, files=self.hub_files.get(split))
            for config, name in parts
        )
        return (dataclasses.replace(row, index=index) for index, row in enumerate(itertools.chain.from_iterable(rows)))


# Vector environments load the same data set many times. With these caches, all of them share the problems.
@functools.lru_cache(maxsize=16)
def _load_from_file(source: Source, split: str, path: Path, mtime_ns: int, size: int) -> ProblemDataset:
    return source._problems(local.iterate_rows(path), split, str(path))


@functools.lru_cache(maxsize=16)
def _load_from_hub(source: Source, split: str) -> ProblemDataset:
    layout = source._layout(f"${local.DATA_DIR_VARIABLE}", split)
    otherwise = (
        f"Without the hub, put the rows at {layout} and set {local.DATA_DIR_VARIABLE}, or pass that folder as data_dir="
    )
    return source._problems(source._hub_rows(split, otherwise), split, source.hub_id)


def clear_cache() -> None:
    """Forget the data sets loaded so far, so that the next `load` reads them again."""
    _load_from_file.cache_clear()
    _load_from_hub.cache_clear()
