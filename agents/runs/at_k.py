"""pass@k and maj@k of recorded samples, with intervals over problems."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import rlvr_envs
from agents.console.counting import counted
from agents.runs.evaluation_record import Sample, sample_clusters
from verifiers import AnswerVerifier, InvalidArgumentError, Outcome, Problem, Verifier
from verifiers.statistics import Interval, majority_at_k, pass_at_k, share_interval

_CORRECT = 0
"""The vote of every correct answer; the votes of wrong answers are numbered from 1."""


@dataclass(frozen=True)
class AtK:
    """pass@k or maj@k over the problems that have k samples."""

    name: str
    """Name of the measure, `"pass"` or `"maj"`."""
    k: int
    value: float
    interval: Interval
    problems: int
    left_out: int
    """Number of problems with fewer than k samples that were judged right or wrong."""
    scored: int = 0
    """Number of samples whose scores don't tell right from wrong, since at least one of them is neither 0 nor 1."""

    def summary(self) -> dict[str, Any]:
        """The estimate as plain data."""
        return {
            "k": self.k,
            "value": self.value if self.problems else None,
            "interval": [self.interval.low, self.interval.high] if self.problems else None,
            "approximate": self.interval.approximate,
            "problems": self.problems,
            "left_out": self.left_out,
        }

    def __str__(self) -> str:
        name = f"{self.name}@{self.k}"
        if not self.problems:
            return f"{name} unknown: no problem has {self.k} samples that are right or wrong{self._why()}"
        about = ", approximately" if self.interval.approximate else ""
        missing = f", {counted(self.left_out, 'problem')} with fewer samples left out" if self.left_out else ""
        return f"{name} {self.value:.3f} [{self.interval.low:.3f}, {self.interval.high:.3f}{about}]{missing}"

    def _why(self) -> str:
        if not self.scored:
            return ""
        said = counted(self.scored, "sample")
        return f"; of {said} with a score, not all have 0 or 1. A verifier says which are right by a bool, or 0 and 1 alone"


def check_draws(samples: int, *, pass_at: Sequence[int] = (), maj_at: Sequence[int] = ()) -> None:
    """Refuse a k for which there will be too few samples, before any sample is drawn."""
    for name, draws in (("pass", pass_at), ("maj", maj_at)):
        for k in draws:
            if not 1 <= k <= samples:
                raise InvalidArgumentError(
                    f"{name}@{k} is not possible: k must be from 1 to {samples}, the number of samples of each problem"
                )


def estimate_pass_at(rows: Sequence[Sample], k: int) -> AtK:
    """Estimate the probability that one of k samples is correct, without bias (Chen et al. 2021, arXiv:2107.03374).

    Only samples that are right or wrong count; errored samples do not. A verdict that is only a score counts as right or wrong
    if all such scores are 1 or 0; if any has another value, as from a reward model, none of them counts. Problems with fewer
    than k samples that count are left out; if no problem is left, the value is NaN.
    """
    estimate = _mean_over_problems("pass", k, problem_pass_at(rows, k), sample_clusters(rows))
    scored = _scored(rows)
    return estimate if _says_right_or_wrong(scored) else replace(estimate, scored=len(scored))


def estimate_maj_at(votes: Sequence[Sequence[int | None]], k: int, clusters: Sequence[Hashable] | None = None) -> AtK:
    """Estimate the probability that a majority vote among k samples is correct: see `verifiers.statistics.majority_at_k`.

    Problems with fewer than k votes are left out; if no problem is left, the value is NaN.

    Args:
        votes: The votes of each problem's samples; see `count_votes`.
        k: At least 1.
        clusters: The cluster of each problem, in the same order; None if each problem is its own cluster.
    """
    of_problem = dict(enumerate(range(len(votes)) if clusters is None else clusters))
    return _mean_over_problems("maj", k, _maj_at(enumerate(votes), k), of_problem)


def problem_pass_at(rows: Sequence[Sample], k: int) -> dict[int, float]:
    """pass@k, by problem index, of each problem with at least k samples that are right or wrong."""
    right = {problem: list(map(_is_right, judged)) for problem, judged in _right_or_wrong(rows).items()}
    return {
        problem: pass_at_k(len(members), sum(members), k) for problem, members in right.items() if len(members) >= k
    }


def problem_maj_at(rows: Sequence[Sample], votes: Sequence[Sequence[int | None]], k: int) -> dict[int, float]:
    """maj@k, by problem index, of each problem with at least k votes; `votes` is the result of `count_votes` for `rows`."""
    return _maj_at(zip(_right_or_wrong(rows), votes, strict=True), k)


def _maj_at(votes: Iterable[tuple[int, Sequence[int | None]]], k: int) -> dict[int, float]:
    return {problem: majority_at_k(members, _CORRECT, k) for problem, members in votes if len(members) >= k}


def _mean_over_problems(name: str, k: int, values: Mapping[int, float], clusters: Mapping[int, Hashable]) -> AtK:
    """The mean of the values of some problems; `clusters` also has the problems without a value."""
    if not values:
        return AtK(name, k, math.nan, Interval(math.nan, math.nan, approximate=True), 0, len(clusters))
    shares = list(values.values())
    interval = share_interval(shares, [clusters[problem] for problem in values])
    return AtK(name, k, sum(shares) / len(shares), interval, len(shares), len(clusters) - len(shares))


def _right_or_wrong(rows: Sequence[Sample]) -> dict[int, list[Sample]]:
    """The samples of each problem that were judged right or wrong."""
    unjudged = (None,) if _says_right_or_wrong(_scored(rows)) else (None, Outcome.SCORED)
    judged: dict[int, list[Sample]] = {}
    for row in rows:
        members = judged.setdefault(row.problem, [])
        if not row.errored and row.outcome not in unjudged:
            members.append(row)
    return judged


def _is_right(row: Sample) -> bool:
    """Whether a sample is right, given that it was judged right or wrong."""
    return row.outcome == Outcome.CORRECT or (row.outcome == Outcome.SCORED and row.score == 1)


def _scored(rows: Sequence[Sample]) -> list[Sample]:
    return [row for row in rows if row.outcome == Outcome.SCORED]


def _says_right_or_wrong(scored: Sequence[Sample]) -> bool:
    """Whether all scores are 1 for right or 0 for wrong; sums and shares have other values, too."""
    return all(row.score in (0, 1) for row in scored)


# Votes


def answer_verifier(verifier: Verifier | None) -> AnswerVerifier:
    """Return an environment's verifier if it can compare answers with each other, which maj@k needs."""
    if isinstance(verifier, AnswerVerifier):
        return verifier
    raise InvalidArgumentError(
        f"maj@k needs a verifier that compares answers with each other (a method same_answer, as exact, numeric, choice and "
        f"math have), got {type(verifier).__name__}: leave maj@k out, or choose another verifier"
    )


def count_votes(
    rows: Sequence[Sample], problems: rlvr_envs.Dataset, verifier: AnswerVerifier
) -> list[list[int | None]]:
    """Return each problem's votes, one for each sample that was judged right or wrong; equal answers have equal numbers.

    All correct answers have the same vote, which no wrong answer has. The verifier compares each wrong answer with the first
    answer of every vote so far. A sample without an answer does not vote: its vote is None.
    """
    return [
        _votes(members, problems[index], verifier) if members else []
        for index, members in _right_or_wrong(rows).items()
    ]


def _votes(members: Sequence[Sample], problem: Problem, verifier: AnswerVerifier) -> list[int | None]:
    right = list(map(_is_right, members))
    answers = [
        None if correct or row.outcome == Outcome.NO_ANSWER else row.answer
        for row, correct in zip(members, right, strict=True)
    ]
    classes = answer_classes(answers, problem, verifier)
    return [
        _CORRECT if correct else None if number is None else _CORRECT + 1 + number
        for correct, number in zip(right, classes, strict=True)
    ]


def answer_classes(answers: Sequence[str | None], problem: Problem, verifier: AnswerVerifier) -> list[int | None]:
    """The number of each answer's class, from 0 in order of appearance; None for an answer that is None.

    An answer belongs to the first class whose first answer the verifier considers equal to it. Answers that have an
    `answer_key`, such as plain numbers with the math verifier, are compared by that key.
    """
    key_of: Callable[[str], Hashable | None] = getattr(verifier, "answer_key", lambda answer: None)
    firsts: list[tuple[str, Hashable | None]] = []
    known: dict[str, int] = {}
    for answer in answers:
        if answer is None or answer in known:
            continue
        key = key_of(answer)
        same = (
            number
            for number, (first, other) in enumerate(firsts)
            if (key == other if key is not None and other is not None else verifier.same_answer(answer, first, problem))
        )
        known[answer] = next(same, len(firsts))
        if known[answer] == len(firsts):
            firsts.append((answer, key))
    return [None if answer is None else known[answer] for answer in answers]
