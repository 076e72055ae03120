"""Measures how well scores agree with preferences: accuracy, and calibration of the probabilities that scores imply.

Scores r imply that the first of two completions is preferred with the probability sigmoid(r_1 - r_2) (Bradley and Terry 1952).
The order within a pair has no meaning, so scores imply a confidence of sigmoid(|r_1 - r_2|), from 0.5 to 1, that the completion
with the higher score is preferred. In a bin of confidences, the share of pairs in which this completion is preferred should
equal the mean confidence. The expected calibration error (Guo et al. 2017, arXiv:1706.04599, equation 3) is the mean difference
over the bins, weighted by the number of pairs. Pairs of equal scores count as half right.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from verifiers import InvalidArgumentError
from verifiers.statistics import Interval, share_interval

BINS = 10


@dataclass(frozen=True)
class ReliabilityBin:
    """The pairs with a confidence from `low` to `high`."""

    low: float
    high: float
    pairs: int
    confidence: float
    """Mean confidence of the pairs."""
    accuracy: float
    """Share of the pairs whose preferred completion has the higher score."""


@dataclass(frozen=True)
class PreferenceReport:
    """The agreement of scores with preferences."""

    pairs: int
    accuracy: float
    """Share of pairs whose preferred completion has the higher score."""
    interval: Interval
    """95 % interval of the accuracy, over prompts."""
    log_loss: float
    """Mean of -log sigmoid(r_chosen - r_rejected), in nats. Without any knowledge it is log 2 = 0.693."""
    calibration_error: float
    """Expected calibration error."""
    mean_score: float
    """Mean score of all completions."""
    reliability: tuple[ReliabilityBin, ...]
    """The bins that hold pairs, out of ten bins of equal width."""

    def __str__(self) -> str:
        return (
            f"accuracy {self.accuracy:.3f} [{self.interval.low:.3f}, {self.interval.high:.3f}], log loss {self.log_loss:.3f}, "
            f"expected calibration error {self.calibration_error:.3f} over {self.pairs} held-out pairs"
        )


def preference_report(chosen: ArrayLike, rejected: ArrayLike, prompts: Sequence[Hashable]) -> PreferenceReport:
    """Report how well scores agree with preferences.

    Args:
        chosen: f64[n], scores of the preferred completions.
        rejected: f64[n], scores of the rejected completions.
        prompts: A key for each pair, equal for pairs of one prompt, which are not independent.
    """
    better, worse = np.asarray(chosen, dtype=np.float64), np.asarray(rejected, dtype=np.float64)
    if not len(better) == len(worse) == len(prompts) or not len(better):
        raise InvalidArgumentError(
            f"expected scores of both completions of at least one pair, got {len(better)} and {len(worse)} for {len(prompts)}"
        )
    margins = better - worse
    right = np.where(margins == 0, 0.5, margins > 0)
    confidence = 1 / (1 + np.exp(-np.abs(margins)))
    index = np.minimum(((confidence - 0.5) * 2 * BINS).astype(np.int64), BINS - 1)
    bins = tuple(
        ReliabilityBin(
            0.5 + number / (2 * BINS),
            0.5 + (number + 1) / (2 * BINS),
            int((index == number).sum()),
            float(confidence[index == number].mean()),
            float(right[index == number].mean()),
        )
        for number in np.unique(index).tolist()
    )
    return PreferenceReport(
        pairs=len(margins),
        accuracy=float(right.mean()),
        interval=share_interval(right, prompts),
        log_loss=float(np.logaddexp(0.0, -margins).mean()),
        calibration_error=sum(one.pairs * abs(one.accuracy - one.confidence) for one in bins) / len(margins),
        mean_score=float(np.concatenate([better, worse]).mean()),
        reliability=bins,
    )
