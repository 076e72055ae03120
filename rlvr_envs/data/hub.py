"""Rows from the Hugging Face hub, through `datasets.load_dataset`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from rlvr_envs.data.rows import Row
from verifiers import DataError, InvalidArgumentError, MissingDataError
from verifiers.hub import ask_once

INSTALL = "pip install 'rlvr-envs[hub]'"
"""The command that installs the packages for access to the hub."""

PARQUET = "refs/convert/parquet"
"""The hub's branch for Parquet copies of data sets; data sets that are scripts have such copies, too."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a downloaded table; `datasets` keeps the table on disk."""

    table: Any
    position: int

    def read(self, columns: Sequence[str]) -> dict[str, object]:
        """Read these columns again; see `Stored`."""
        names = [name for name in columns if name in self.table.column_names]
        row: dict[str, object] = self.table.select_columns(names)[self.position]
        return row


def read_rows(hub_id: str, config: str | None, split: str, *, otherwise: str) -> list[Row]:
    """Read all rows of a split; see `iterate_rows`."""
    return list(iterate_rows(hub_id, config, split, otherwise=otherwise))


def iterate_rows(
    hub_id: str, config: str | None, split: str, *, otherwise: str, files: str | None = None
) -> Iterator[Row]:
    """Download a split (or take it from the cache of `datasets`) and read its rows one by one.

    Args:
        hub_id: The data set's id on the hub, such as `"openai/gsm8k"`, or `"openai/gsm8k@REVISION"`; or any other name that
            `load_dataset` accepts.
        config: The data set's configuration, None for its default.
        split: The split's name on the hub.
        otherwise: A sentence for error messages, which tells how to get the same rows without the hub.
        files: The split's Parquet files in the data set's repository, such as `"ALL/train-*.parquet"`, for data sets that still
            have a script. Without `files`, the script would be tried first.

    Raises:
        MissingDataError: If `datasets` is not installed, or the download fails for any reason; if the data set is a script, the
            message names its Parquet copy.
        InvalidArgumentError: If the name ends in `@refs/convert/parquet` and a configuration is needed but not given.
        DataError: If the split holds no rows.
    """
    name, _, revision = (hub_id, "", "") if os.path.exists(hub_id) else hub_id.partition("@")
    label = f"{hub_id} (config {config})" if config else hub_id
    try:
        import datasets  # type: ignore[import-untyped]  # ships no types
    except ModuleNotFoundError as error:
        raise MissingDataError(
            f"{label}, split {split!r}, must be downloaded from the hub, which needs the package 'datasets': {INSTALL}. "
            f"{otherwise}"
        ) from error
    try:
        if not _is_cached(name, datasets.config.HF_DATASETS_CACHE):
            ask_once(name, "dataset")
        if files is not None:
            table = datasets.load_dataset("parquet", None, split="train", data_files=f"hf://datasets/{hub_id}/{files}")
        elif revision == PARQUET:
            table = _load_copy(datasets, name, config, split)
        else:
            table = datasets.load_dataset(name, config, split=split, **({"revision": revision} if revision else {}))
    except InvalidArgumentError:
        raise
    except Exception as error:
        if _is_of_script(error):
            raise MissingDataError(
                f"{label}, split {split!r}: on the hub this data set is a script, which datasets no longer runs ({error}). The "
                f"hub keeps a Parquet copy of most on the branch {PARQUET}: name it as {name}@{PARQUET}, with the "
                f"configuration if it has several. {otherwise}"
            ) from error
        raise MissingDataError(
            f"{label}, split {split!r}, could not be downloaded from the hub: {type(error).__name__}: {error}. Where the hub "
            f"can be reached, {INSTALL} is all it needs. {otherwise}"
        ) from error
    if not len(table):
        raise DataError(f"{label}, split {split!r}: the split holds no rows")
    for index, values in enumerate(table):
        yield Row(values, index, f"{label}, split {split!r}, row {index + 1}", TableRow(table, index))


def _load_copy(datasets: Any, name: str, config: str | None, split: str) -> Any:
    """Load a split from the branch of Parquet copies, which has a folder `CONFIGURATION/SPLIT` for each split.

    On this branch `datasets` sees only folders, not configurations, and would join the rows of all configurations.

    Raises:
        InvalidArgumentError: If there are several configurations and `config` is None.
    """
    if config is None:
        files = datasets.load_dataset_builder(name, revision=PARQUET).config.data_files
        configs = sorted({PurePosixPath(file).parts[-3] for paths in files.values() for file in paths})
        if len(configs) > 1:
            raise InvalidArgumentError(
                f"{name}@{PARQUET} holds several configurations: {', '.join(configs)}. Name one with config="
            )
    return datasets.load_dataset(name, data_dir=config, split=split, revision=PARQUET)


def _is_of_script(error: Exception) -> bool:
    """Whether `load_dataset` refused to run a loading script. Version 4 and later always refuse; version 3 asks for trust."""
    return "Dataset scripts are no longer supported" in str(error) or "trust_remote_code" in str(error)


def _is_cached(hub_id: str, cache: str | os.PathLike[str]) -> bool:
    """Whether the cache of `datasets` has a data set of this name. If so, `datasets` reads the data set without the hub."""
    wanted = hub_id.replace("/", "___").lower()
    return os.path.isdir(cache) and any(entry.lower() == wanted for entry in os.listdir(cache))
