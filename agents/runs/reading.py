"""Reads recorded completions: the settings with which they were made, and one row for each completion."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.runs.clusters import own_cluster
from agents.runs.evaluation_record import MANIFEST, SAMPLES, Sample, read_manifest
from agents.runs.files.json_files import read_from, read_json, read_lines
from agents.runs.rollout_log import ROLLOUTS
from verifiers import DataError, InvalidArgumentError, MissingDataError

RecordLine = dict[str, Any]
"""A line of a record; `agents.runs.evaluation_record` lists its columns."""


def check_named_once(folders: Sequence[Path]) -> None:
    """Check that runs are different folders, so that no run counts twice."""
    for folder, count in Counter(folder.resolve() for folder in folders).items():
        if count > 1:
            raise InvalidArgumentError(f"a run is named twice: name different runs, and {folder} once")


@dataclass(frozen=True)
class RecordedRun:
    """A recorded evaluation, finished or not, or the completions that a training run has logged."""

    folder: Path
    manifest: dict[str, Any]
    rows: tuple[RecordLine, ...]
    """One row for each sample, ordered by problem and sample; a repeated sample has only its last row. The rows of a training
    run are ordered by step."""

    @classmethod
    def read(cls, folder: str | Path) -> RecordedRun:
        """Read a run's folder without changing it; another process may still be writing into it.

        Raises:
            MissingDataError: If the folder holds no evaluation.
            DataError: If the evaluation is damaged.
        """
        return GrowingRun(Path(folder)).read()

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.resolve().name

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that determined the samples: environment, split, model, verifier, seed, and the environment's manifest."""
        settings: dict[str, Any] = self.manifest["settings"]
        return settings

    @property
    def oracle(self) -> bool:
        """Whether a search chose the samples by the verdicts that score them, so that the score is not an accuracy."""
        search = self.settings.get("search")
        return isinstance(search, dict) and bool(search.get("oracle"))

    @property
    def errored(self) -> int:
        """The number of samples without a score, because their verifier broke or their request failed."""
        return sum(row["score"] is None for row in self.rows)

    def samples(self) -> list[Sample]:
        """The samples of the rows, without their texts."""
        return [Sample.read(row) for row in self.rows]

    def problem_scores(self) -> dict[str, float]:
        """The mean score of each problem's samples by the problem's id; problems without any score are left out.

        Raises:
            DataError: If two problems have the same id, so that runs can't be paired by id.
        """
        indices: dict[str, int] = {}
        scores: dict[str, list[float]] = {}
        for row in self.rows:
            index = indices.setdefault(row["problem_id"], row["problem"])
            if index != row["problem"]:
                raise DataError(
                    f"{self.folder}: problems {index} and {row['problem']} have one id, {row['problem_id']!r}"
                )
            if row["score"] is not None:
                scores.setdefault(row["problem_id"], []).append(float(row["score"]))
        return {problem: float(np.mean(values)) for problem, values in scores.items()}

    def problem_clusters(self) -> dict[str, str | None]:
        """The cluster of each problem by the problem's id, None for a cluster of its own: see `agents.runs.clusters`."""
        return {row["problem_id"]: row["cluster"] for row in self.rows}


class GrowingRun:
    """An evaluation that is read repeatedly as it grows; each of its lines is read once."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._end = folder, 0
        self._rows: dict[tuple[int, int], RecordLine] = {}

    def read(self) -> RecordedRun:
        """Read the lines that were added; see `RecordedRun.read`."""
        folder = self._folder
        if not (folder / MANIFEST).is_file():
            raise MissingDataError(
                f"{folder} {'holds no evaluation' if folder.exists() else 'does not exist'}: expected a folder with {MANIFEST} "
                f"and {SAMPLES}, as rlvr eval writes"
            )
        manifest = read_manifest(folder / MANIFEST)
        added, self._end = read_from(folder / SAMPLES, _checked, self._end)
        self._rows |= {(row["problem"], row["sample"]): row for row in added}
        return RecordedRun(folder, manifest, tuple(self._rows[key] for key in sorted(self._rows)))


def paired_clusters(runs: Sequence[RecordedRun], problems: Sequence[str]) -> list[Hashable]:
    """The clusters of some problems, which are given by id; a problem's cluster comes from the first run that has it."""
    known: dict[str, str] = {}
    for run in runs:
        for problem, cluster in run.problem_clusters().items():
            if cluster is not None:
                known.setdefault(problem, cluster)
    return [known.get(problem, own_cluster(problem)) for problem in problems]


def _checked(line: object) -> RecordLine:
    sample = Sample.read(line)  # this raises an error if a column is missing or has another type
    assert isinstance(line, dict)
    return line | {"problem": sample.problem, "sample": sample.sample}


def read_run(folder: str | Path) -> RecordedRun:
    """Read an evaluation, or the logged completions of a training run in the same form.

    Raises:
        DataError: If the folder contains neither an evaluation nor a training run, or its files are damaged.
    """
    folder = Path(folder)
    if (folder / ROLLOUTS).is_file() and not (folder / MANIFEST).is_file():
        return _read_rollouts(folder)
    return RecordedRun.read(folder)


def _read_rollouts(folder: Path) -> RecordedRun:
    config = read_json(folder / "config.json")
    if not isinstance(config, dict) or not isinstance(config.get("versions"), dict):
        raise DataError(f"{folder / 'config.json'} is not that of a training run, or is damaged")
    rows = read_lines(folder / ROLLOUTS, _checked)
    settings = {name: value for name, value in config.items() if name != "versions"}
    manifest = {
        "settings": settings | {"model": folder.resolve().name, "initial_model": settings.get("model")},
        "versions": config["versions"],
        "started": _modified(folder / "config.json"),
        "finished": _modified(folder / ROLLOUTS),
    }
    return RecordedRun(folder, manifest, tuple(rows))


def _modified(path: Path) -> str:
    return datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC).isoformat()


def paired_scores(
    runs: Sequence[RecordedRun], scores: Sequence[Mapping[str, float]] | None = None, measure: str = "score"
) -> tuple[list[str], NDArray[np.float64]]:
    """Pair runs by problem.

    Args:
        runs: The runs.
        scores: For each run, a number for each problem, by the problem's id; by default the mean score of its samples.
        measure: Name of these numbers in an error message.

    Returns:
        The problems for which every run has a number, in the first run's order, and the numbers f64[r p].
    """
    scores = [run.problem_scores() for run in runs] if scores is None else scores
    shared = [problem for problem in scores[0] if all(problem in other for other in scores[1:])]
    if not shared:
        folders = " and ".join(str(run.folder) for run in runs)
        raise DataError(f"{folders} have no problem in common of which each has a {measure}")
    return shared, np.array([[of_run[problem] for problem in shared] for of_run in scores])
