"""pass@k of recorded samples, with an interval over problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    """Problems with fewer than k samples whose verifier did not break."""

    def __str__(self) -> str:
        about = ", approximately" if self.interval.approximate else ""
        missing = f", {self.left_out} problems with fewer samples left out" if self.left_out else ""
        return f"pass@{self.k} {self.value:.3f} [{self.interval.low:.3f}, {self.interval.high:.3f}{about}]{missing}"


def pass_at(rows: Sequence[Sample], k: int) -> PassAt:
    """Estimate the probability that one of k samples is correct, without bias (Chen et al. 2021, arXiv:2107.03374).

    Args:
        rows: Samples of an evaluation.
        k: At least 1.

    Raises:
        InvalidArgumentError: If no problem has k samples, or a sample is neither right nor wrong, as those of reward models.
    """
    counts: dict[int, tuple[int, int]] = {}
    for row in rows:
        if row.outcome in (None, str(Outcome.SCORED)):
            raise InvalidArgumentError(f"pass@k counts samples that are right; these have scores, such as {row.score}")
        samples, correct = counts.get(row.problem, (0, 0))
        if not row.errored:
            counts[row.problem] = samples + 1, correct + (row.outcome == Outcome.CORRECT)
        else:
            counts[row.problem] = samples, correct
    values = [pass_at_k(samples, correct, k) for samples, correct in counts.values() if samples >= k]
    if not values:
        raise InvalidArgumentError(f"pass@{k} takes {k} samples of a problem, and none has as many")
    return PassAt(k, sum(values) / len(values), share_interval(values), len(values), len(counts) - len(values))
