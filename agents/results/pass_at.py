"""pass@k of recorded samples, with an interval over problems."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.evaluation_record import Sample
from verifiers import InvalidArgumentError, Outcome
from verifiers.statistics import Interval, pass_at_k, share_interval


@dataclass(frozen=True)
class PassAt:
    """pass@k over the problems that have k samples."""

    k: int
    value: float
    interval: Interval
    problems: int
    left_out: int
    """Problems with fewer than k samples that are right or wrong."""

    def summary(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "k": self.k,
            "value": self.value if self.problems else None,
            "interval": [self.interval.low, self.interval.high] if self.problems else None,
            "approximate": self.interval.approximate,
            "problems": self.problems,
            "left_out": self.left_out,
        }

    def __str__(self) -> str:
        if not self.problems:
            return f"pass@{self.k} unknown: no problem has {self.k} samples that are right or wrong"
        about = ", approximately" if self.interval.approximate else ""
        missing = f", {self.left_out} problems with fewer samples left out" if self.left_out else ""
        return f"pass@{self.k} {self.value:.3f} [{self.interval.low:.3f}, {self.interval.high:.3f}{about}]{missing}"


def check_draws(draws: Sequence[int], samples: int) -> None:
    """Refuse a k for which there will not be samples enough, before any is made.

    Raises:
        InvalidArgumentError: If a k is less than 1 or more than the samples of each problem.
    """
    for k in draws:
        if not 1 <= k <= samples:
            raise InvalidArgumentError(
                f"pass@{k} takes {k} samples of each problem, and there will be {samples}: ask for more samples"
            )


def estimate_pass_at(rows: Sequence[Sample], k: int) -> PassAt:
    """Estimate the probability that one of k samples is correct, without bias (Chen et al. 2021, arXiv:2107.03374).

    Only samples that are right or wrong count: not those whose verifier broke, and not those that have a score alone, as reward
    models give. Problems with fewer than k are left out; where none has as many, the value is NaN.

    Args:
        rows: Samples of an evaluation.
        k: At least 1.
    """
    counts: dict[int, list[bool]] = {}
    for row in rows:
        judged = counts.setdefault(row.problem, [])
        if not row.errored and row.outcome not in (None, str(Outcome.SCORED)):
            judged.append(row.outcome == Outcome.CORRECT)
    values = [pass_at_k(len(judged), sum(judged), k) for judged in counts.values() if len(judged) >= k]
    if not values:
        return PassAt(k, math.nan, Interval(math.nan, math.nan, approximate=True), 0, len(counts))
    return PassAt(k, sum(values) / len(values), share_interval(values), len(values), len(counts) - len(values))
