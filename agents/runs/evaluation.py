"""`Evaluation`: the results of an evaluation, with the uncertainty of each number."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from agents.console.counting import counted
from agents.runs.at_k import AtK, estimate_maj_at, estimate_pass_at
from agents.runs.clusters import distinct_note
from agents.runs.evaluation_record import ORACLE_NOTE, Sample, sample_clusters
from agents.runs.verdicts import shown
from agents.types import Trajectory
from verifiers import Outcome
from verifiers.statistics import Interval, rerun_error, score_interval

MOST_ERRORED = 0.01
"""Share of errored samples above which an evaluation gives a warning."""

MAX_ERROR_SHARE = 0.1
"""Share of errored samples above which an evaluation has failed: its score covers too few of the problems."""


@dataclass(frozen=True)
class Evaluation:
    """Results of an evaluation. Errored samples are counted, and excluded from every mean."""

    problems: int
    distinct: int
    """Number of distinct problems: problems with equal prompts are one cluster in every interval."""
    samples: int
    """Number of completions for each problem."""
    score: float
    """Mean over problems of each problem's mean over its completions."""
    interval: tuple[float, float]
    """95 % confidence interval of the score over problems, since completions of one problem are not independent; see
    `verifiers.statistics.share_interval`, and `mean_interval` for scores that are not all from 0 to 1."""
    approximate: bool
    """Whether too few problems make the interval approximate; see `verifiers.statistics.Interval`."""
    rerun_error: float | None
    """Standard error of the score over re-runs with other samples of the same problems; None if no problem has two samples."""
    bounds: tuple[float, float]
    """The score if all errored samples had the score 0, and if all had the score 1."""
    outcomes: dict[str, int]
    truncated: int
    verifier_errors: int
    failed_requests: int
    """Number of samples without a completion, because their request failed."""
    unsupported: int
    """Number of samples that scored 0 because their tests use the program's objects in a way the sandbox does not support."""
    error_causes: dict[str, int]
    """Number of errored samples by cause, most common first."""
    rows: tuple[Sample, ...]
    """All samples, ordered by problem and sample, including those read from a resumed record."""
    pass_at: tuple[AtK, ...] = ()
    """pass@k for each requested k."""
    applied: dict[str, int] = field(default_factory=dict)
    """Number of samples by the part of a `hybrid` or `first` verifier that decided; empty for other verifiers."""
    maj_at: tuple[AtK, ...] = ()
    """maj@k for each requested k."""
    trajectories: tuple[Trajectory, ...] = ()
    """The episodes that were played, in the same order as `rows`, without the episodes of a resumed record."""
    search: Mapping[str, Any] | None = None
    """Manifest of the search that found the samples; None if each was sampled once."""

    def __str__(self) -> str:
        low, high = self.interval
        notes = f", {self.verifier_errors} verifier errors left out" if self.verifier_errors else ""
        notes += f", {self.failed_requests} failed requests left out" if self.failed_requests else ""
        if self.errored:
            notes += f" ({self.bounds[0]:.3f} with all of them wrong, {self.bounds[1]:.3f} with all right)"
        if self.error_causes:
            cause, count = next(iter(self.error_causes.items()))
            notes += f", {count} of them: {shown(cause)}"
        if self.unsupported:
            notes += f", {self.unsupported} unsupported by the verifier"
        if self.applied:
            notes += ", decided by " + ", ".join(f"{part} {count}" for part, count in self.applied.items())
        if self.search is not None:
            method, guide = self.search["method"], self.search["guide"]
            notes += f", found by {method} with the guide {guide} and {self.search_tokens} tokens"
        if self.oracle:
            notes += f"; {ORACLE_NOTE}"
        about = ", approximately" if self.approximate else ""
        score = f"{self.score:.3f} [{low:.3f}, {high:.3f}{about}]"
        if self.rows and self.errored == len(self.rows):
            score = "unknown"
        notes = distinct_note(self.problems, self.distinct) + notes
        even = len(self.rows) in (
            0,
            self.problems * self.samples,
        )  # a file may have more completions for one problem
        of = f"{counted(self.problems, 'problem')} x {self.samples}"
        of = of if even else f"{counted(len(self.rows), 'completion')} of {counted(self.problems, 'problem')}"
        return f"{score} ({of}{notes})"

    @property
    def errored(self) -> int:
        """Number of samples that are no evidence about the policy: their verifier broke, or their request failed."""
        return self.verifier_errors + self.failed_requests

    def has_failed(self, max_error_share: float = MAX_ERROR_SHARE) -> bool:
        """Whether more than this share of the samples has no score, or no sample has a score."""
        return self.errored > max_error_share * len(self.rows) or self.errored == len(self.rows)

    @property
    def oracle(self) -> bool:
        """Whether the samples were chosen by the verdicts that score them, so that the score is not an accuracy."""
        return self.search is not None and bool(self.search["oracle"])

    @property
    def search_tokens(self) -> int:
        """Number of tokens that the searches sampled, including discarded ones."""
        return sum(row.search_tokens or 0 for row in self.rows)

    @property
    def tokens(self) -> int:
        """Number of tokens that the policy generated in all samples."""
        return sum(row.tokens for row in self.rows)

    @property
    def prompt_tokens(self) -> int | None:
        """Number of prompt tokens that a server read; None if no server was used, or it does not count tokens."""
        return _total([row.prompt_tokens for row in self.rows])

    @property
    def cost(self) -> float | None:
        """The server's charge for the samples, without repeated attempts; None without a price or counts of tokens."""
        return _total([row.cost for row in self.rows])

    @property
    def warning(self) -> str | None:
        """A warning if more than `MOST_ERRORED` of the samples have no score, else None."""
        return errored_warning(self.rows)

    def summary(self) -> dict[str, Any]:
        """The results as plain data, without the samples; numbers that are not finite are None."""
        counts = (
            "problems",
            "distinct",
            "samples",
            "outcomes",
            "truncated",
            "verifier_errors",
            "failed_requests",
            "unsupported",
        )
        return {
            "score": _finite(self.score),
            "interval": [_finite(end) for end in self.interval],
            "rerun_error": self.rerun_error,
            "bounds": [_finite(end) for end in self.bounds],
            **{name: getattr(self, name) for name in ("approximate", *counts, "error_causes")},
            **({"applied": self.applied} if self.applied else {}),
            **({"oracle": self.oracle, "search_tokens": self.search_tokens} if self.search is not None else {}),
            **({} if self.prompt_tokens is None else {"prompt_tokens": self.prompt_tokens, "tokens": self.tokens}),
            **({} if self.cost is None else {"cost": self.cost}),
            "pass_at": [result.summary() for result in self.pass_at],
            "maj_at": [result.summary() for result in self.maj_at],
        }


def errored_warning(rows: Sequence[Sample]) -> str | None:
    """A warning if more than `MOST_ERRORED` of the samples have no score, else None."""
    total, errored = len(rows), sum(row.errored for row in rows)
    if errored <= MOST_ERRORED * total:
        return None
    if errored == total:
        return f"none of the {total} samples has a score, since their verifier broke or their request failed"
    return (
        f"{errored} of {total} samples ({errored / total:.1%}) have no score, since their verifier broke or their request "
        "failed: the score is that of the others, which may be easier"
    )


def summarize_evaluation(
    rows: Sequence[Sample],
    problems: int,
    samples: int,
    *,
    trajectories: Sequence[Trajectory] = (),
    pass_at: Sequence[int] = (),
    maj_at: Sequence[int] = (),
    votes: Sequence[Sequence[int | None]] = (),
    search: Mapping[str, Any] | None = None,
) -> Evaluation:
    """Summarise `samples` samples for each of `problems` problems; maj@k needs the samples' votes, see `count_votes`."""
    means, clusters = problem_means(rows), sample_clusters(rows)
    interval = _interval(means, clusters)
    outcomes = Counter(row.outcome for row in rows if row.outcome is not None)
    causes = Counter(row.error for row in rows if row.error is not None)
    return Evaluation(
        problems=problems,
        distinct=problems - len(clusters) + len(set(clusters.values())),
        samples=samples,
        score=_mean(means),
        interval=(interval.low, interval.high),
        approximate=interval.approximate,
        rerun_error=_rerun_error(rows),
        bounds=(_mean(problem_means(rows, errored=0.0)), _mean(problem_means(rows, errored=1.0))),
        outcomes=dict(sorted(outcomes.items())),
        truncated=sum(row.truncated and not row.errored for row in rows),
        verifier_errors=outcomes[str(Outcome.VERIFIER_ERROR)],
        failed_requests=sum(row.unanswered for row in rows),
        unsupported=sum(row.unsupported for row in rows),
        error_causes=dict(causes.most_common()),
        rows=tuple(rows),
        pass_at=tuple(estimate_pass_at(rows, k) for k in pass_at),
        applied=dict(sorted(Counter(row.applied for row in rows if row.applied is not None).items())),
        maj_at=tuple(estimate_maj_at(votes, k, list(clusters.values())) for k in maj_at),
        trajectories=tuple(trajectories),
        search=search,
    )


_Number = TypeVar("_Number", int, float)


def _total(amounts: Sequence[_Number | None]) -> _Number | None:
    """The sum of amounts; None if one is unknown, or there are no amounts."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known and len(known) == len(amounts) else None


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _rerun_error(rows: Sequence[Sample]) -> float | None:
    by_problem: dict[int, list[float]] = {}
    for row in rows:
        if row.score is not None:
            by_problem.setdefault(row.problem, []).append(row.score)
    return rerun_error(list(by_problem.values()))


def problem_means(rows: Sequence[Sample], errored: float | None = None) -> dict[int, float]:
    """The mean score of each problem's samples; a sample without a score counts as `errored`, or not at all if that is None."""
    by_problem: dict[int, list[float]] = {}
    for row in rows:
        score = errored if row.score is None else row.score
        if score is not None:
            by_problem.setdefault(row.problem, []).append(score)
    return {problem: float(np.mean(scores)) for problem, scores in by_problem.items()}


def _mean(means: Mapping[int, float]) -> float:
    return float(np.mean(list(means.values()))) if means else math.nan


def _interval(means: Mapping[int, float], clusters: Mapping[int, Hashable]) -> Interval:
    if not means:
        return Interval(math.nan, math.nan, approximate=True)
    return score_interval(list(means.values()), [clusters[problem] for problem in means])
