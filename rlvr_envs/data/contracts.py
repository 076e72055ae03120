"""Read the contracts of programming problems from a file, such as the file that `rlvr check-dataset --contract auto` writes."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TypeVar, cast

from rlvr_envs.data.dataset import ProblemDataset
from rlvr_envs.data.local import read_rows
from rlvr_envs.types import Dataset
from verifiers import DataError, InvalidArgumentError, MissingDataError, Problem

_Dataset = TypeVar("_Dataset", bound=Dataset)


def with_contracts(dataset: _Dataset, path: str | os.PathLike[str] | None) -> _Dataset:
    """Set each problem's contract from a file: its tests run separately from the program, or together with the program.

    A verifier refuses tests that run together with the program, unless the verifier has `allow_together=True`.

    Args:
        dataset: The problems.
        path: A `.jsonl` or `.parquet` file with the columns `id` and `contract` (`"separate"` or `"together"`). The file may
            name problems of other splits. Problems that are not in the file stay unchanged; without a file (None), all do.

    Raises:
        InvalidArgumentError: If the data set does not hold a list of problems, so that problems can't be replaced.
        MissingDataError: If there is no such file.
        DataError: If a row is invalid, a problem's tests can't run as the contract says, or the file names no problem of the
            data set.
    """
    if path is None:
        return dataset
    if not isinstance(dataset, ProblemDataset) or not isinstance(path, str | os.PathLike):
        raise InvalidArgumentError(
            f"contracts= is the path of a file for problems that are read from rows or given in a list, got {path!r} for a "
            f"{type(dataset).__name__}"
        )
    contracts = _read(Path(path).expanduser())
    if not any(problem.id in contracts for problem in dataset):
        raise DataError(
            f"{path}: none of its {len(contracts)} ids is of {dataset.name}, split {dataset.split!r}, whose first problem is "
            f"{dataset[0].id!r}"
        )
    problems = tuple(_under(problem, contracts.get(problem.id), path) for problem in dataset)
    return cast(_Dataset, dataclasses.replace(dataset, problems=problems))


def _read(path: Path) -> dict[str, str]:
    if not path.is_file():
        raise MissingDataError(f"there is no file {path}; `rlvr check-dataset --contract auto` writes one")
    contracts: dict[str, str] = {}
    for row in read_rows(path):
        name, contract = row.text("id"), row.text("contract")
        if contracts.setdefault(name, contract) != contract:
            raise row.error(f"{name!r} has two different contracts, here {contract!r}: leave one of the rows out")
    return contracts


def _under(problem: Problem, contract: str | None, path: str | os.PathLike[str]) -> Problem:
    if contract is None:
        return problem
    from verifiers.unit_tests import with_contract

    try:
        return dataclasses.replace(problem, reference=with_contract(problem.reference, contract))
    except InvalidArgumentError as error:
        raise DataError(f"{path}, problem {problem.id!r}: {error}") from error
