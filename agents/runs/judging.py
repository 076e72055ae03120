"""Judges existing completions: completions that were made elsewhere, and a run's completions with another verifier."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import rlvr_envs
import verifiers
from agents.runs.at_k import count_votes
from agents.runs.completions import ExternalCompletion
from agents.runs.contamination import text_of
from agents.runs.drawing_order import cluster_by
from agents.runs.evaluation_record import Sample, recorded_completion, sample_line
from agents.runs.reading import RecordedRun, RecordLine
from verifiers import AnswerVerifier, DataError, Outcome, Problem, Verdict, Verifier

CHUNK = 64
"""Number of completions that a verifier gets at once."""


def match_problems(
    completions: Sequence[ExternalCompletion], dataset: rlvr_envs.Dataset
) -> list[tuple[int, int, ExternalCompletion]]:
    """Return for each completion the problem that it answers, and its number among that problem's samples, in order.

    Raises:
        DataError: If a completion names a problem that does not exist, or a question that several problems have; or if
            positions identify the problems, but a column holds questions of other problems.
    """
    _check_positions(completions, dataset)
    by_id: dict[str, int] | None = None
    by_question: dict[str, list[int]] | None = None
    counts: dict[int, int] = {}
    placed: list[tuple[int, int, ExternalCompletion]] = []
    for completion in completions:
        key = completion.problem
        if isinstance(key, str):
            by_id = _indices(dataset) if by_id is None else by_id
            index = by_id.get(key)
            if index is None and key.isdecimal():
                index = int(key)
            elif index is None:
                by_question = _by_question(dataset) if by_question is None else by_question
                same = by_question.get(key.strip(), [])
                if len(same) > 1:
                    listed = ", ".join(map(str, same))
                    raise DataError(
                        f"{completion.source}: problems {listed} all have this question: name them by id or index"
                    )
                index = same[0] if same else None
        else:
            index = key
        if index is None or not 0 <= index < len(dataset):
            raise DataError(
                f"{completion.source}: no problem of this split is {key!r}; it has {len(dataset)}, such as {dataset[0].id!r}"
            )
        sample = counts.get(index, 0)
        counts[index] = sample + 1
        placed.append((index, sample, completion))
    return placed


def _indices(dataset: rlvr_envs.Dataset) -> dict[str, int]:
    return {dataset[index].id: index for index in range(len(dataset))}


def _by_question(dataset: rlvr_envs.Dataset) -> dict[str, list[int]]:
    indices: dict[str, list[int]] = {}
    for index in range(len(dataset)):
        indices.setdefault(text_of(dataset[index]).strip(), []).append(index)
    return indices


def _check_positions(completions: Sequence[ExternalCompletion], dataset: rlvr_envs.Dataset) -> None:
    """Refuse completions that don't name their problems if a column of the file holds the questions in another order."""
    if not any(completion.unread for completion in completions):
        return
    by_question = _by_question(dataset)
    for completion in completions:
        for column, text in completion.unread.items():
            indices = by_question.get(text.strip()) if isinstance(text, str) else None
            if indices is not None and completion.problem not in indices:
                raise DataError(
                    f"{completion.source}: no column names the problem, and by its position it would be "
                    f"{completion.problem}, while {column!r} has the question of {indices[0]} (counted from 0): match by the "
                    f"question with --columns problem_id={column}, or give each row its problem's id"
                )


def judge(
    placed: Sequence[tuple[int, int, ExternalCompletion]],
    dataset: rlvr_envs.Dataset,
    verifier: Verifier,
) -> Iterator[tuple[Sample, RecordLine]]:
    """Judge completions, and yield each as a sample and as a line of a record."""
    for start in range(0, len(placed), CHUNK):
        chunk = placed[start : start + CHUNK]
        problems = [dataset[index] for index, _, _ in chunk]
        verdicts = verifiers.verify_batch(verifier, [completion.text for _, _, completion in chunk], problems)
        for (index, number, completion), problem, verdict in zip(chunk, problems, verdicts, strict=True):
            sample = Sample.judged(verdict, problem=index, problem_id=problem.id, sample=number, score=verdict.score)
            sample = sample.of_problem(problem)
            yield sample, sample_line(sample, completion.text, verdict, problem)


@dataclass(frozen=True)
class Flip:
    """A sample on which two verifiers disagree."""

    row: RecordLine
    """The recorded sample."""
    verdict: Verdict
    """The other verifier's verdict."""


def rejudge(
    run: RecordedRun, dataset: rlvr_envs.Dataset, verifier: Verifier, advance: Callable[[int], None] = lambda done: None
) -> tuple[list[Flip], list[Verdict]]:
    """Judge a run's completions with another verifier.

    Args:
        run: The run; its rows without a completion, because the request failed, are skipped.
        dataset: The problems of the run.
        verifier: The other verifier.
        advance: Called with the number of completions done.

    Returns:
        The samples whose outcome or score differs, and the verdicts on all completions, in the order of the run's rows.

    Raises:
        DataError: If the data set's problems are not those of the run.
    """
    flips: list[Flip] = []
    verdicts: list[Verdict] = []
    completed = [row for row in run.rows if not Sample.read(row).unanswered]
    for start in range(0, len(completed), CHUNK):
        rows = completed[start : start + CHUNK]
        problems = [_problem_of(row, dataset, run) for row in rows]
        judged = verifiers.verify_batch(verifier, [recorded_completion(row) for row in rows], problems)
        for row, verdict in zip(rows, judged, strict=True):
            verdicts.append(verdict)
            score = None if verdict.outcome is Outcome.VERIFIER_ERROR else verdict.score
            if (str(verdict.outcome), score) != (row["outcome"], row["score"]):
                flips.append(Flip(row, verdict))
        advance(start + len(rows))
    return flips, verdicts


def with_clusters(run: RecordedRun, dataset: rlvr_envs.Dataset, column: str) -> RecordedRun:
    """The run, with its problems clustered by a column of their data set.

    Raises:
        DataError: If the data set's problems are not those of the run.
        InvalidArgumentError: If a problem does not have the column.
    """
    cluster = cluster_by(column)
    rows = tuple(row | {"cluster": cluster(_problem_of(row, dataset, run))} for row in run.rows)
    return dataclasses.replace(run, rows=rows)


def recorded_votes(run: RecordedRun, dataset: rlvr_envs.Dataset, verifier: AnswerVerifier) -> list[list[int | None]]:
    """The votes of a run's samples, by problem: see `agents.runs.at_k.count_votes`.

    Raises:
        DataError: If the data set's problems are not those of the run.
    """
    for row in run.rows:
        _problem_of(row, dataset, run)
    return count_votes(run.samples(), dataset, verifier)


def _recorded_dataset(run: RecordedRun) -> str:
    """The data set that a run recorded, for an error message; empty if it recorded none."""
    environment = run.settings.get("environment")
    recorded = environment.get("dataset") if isinstance(environment, dict) else None
    return f"; its data set was {recorded}" if isinstance(recorded, str) else ""


def _problem_of(row: RecordLine, dataset: rlvr_envs.Dataset, run: RecordedRun) -> Problem:
    problem = dataset[row["problem"]] if row["problem"] < len(dataset) else None
    if problem is None or str(problem.id) != row["problem_id"]:
        now = "missing" if problem is None else repr(problem.id)
        raise DataError(
            f"{run.folder}: problem {row['problem']} was {row['problem_id']!r} and is {now} in this data set: give the run's "
            f"environment, split and arguments{_recorded_dataset(run)}"
        )
    return problem
