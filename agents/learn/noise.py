"""How many of a step's rewards are likely errors, computed from the error rates on the verifier's card.

Let ρ₀ be the rate of false positives and ρ₁ that of false negatives, and let errors not depend on the answer. If a share p of
the answers is right, the share q(p) = ρ₀ + (1 - ρ₀ - ρ₁) p is accepted. If the share a of n answers is accepted, the share p =
(a - ρ₀) / (1 - ρ₀ - ρ₁) is right, n ρ₀ (1 - p) are false positives, and n ρ₁ p are false negatives.

In a group of G answers, k of them accepted, verdicts differ only by errors if all answers are right or all are wrong. If π(θ)
is the weight of problems for which a share θ of the answers is right, the probability of this is

    Σ π(θ) [(1 - θ)^G ρ₀^k (1 - ρ₀)^(G-k) + θ^G (1 - ρ₁)^k ρ₁^(G-k)]  /  Σ π(θ) q(θ)^k (1 - q(θ))^(G-k)

where π is fitted to the groups of the step by expectation maximisation, with the weight of one additional group spread evenly
over all θ.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from agents.types import Trajectory
from verifiers import InvalidArgumentError, Outcome

if TYPE_CHECKING:
    from verifiers.audit import ReportRow

_SHARES = np.linspace(0, 1, 21, dtype=np.longdouble)  # groups of over a thousand answers underflow to 0 in a double
_ROUNDS = 50
Groups = Sequence[tuple[int, int]]
"""For each group, the number of accepted answers and the number of all answers."""


class RewardNoise:
    """Metrics of how many of a step's rewards are likely errors; their names begin with `noise/`.

    Args:
        false_positives: The card's row of all wrong answers.
        false_negatives: The card's row of all right answers.

    Raises:
        InvalidArgumentError: If the rates add up to 1 or more, so that verdicts carry no information.
    """

    def __init__(self, false_positives: ReportRow, false_negatives: ReportRow) -> None:
        self._rates = tuple(row.wrong / max(row.cases, 1) for row in (false_positives, false_negatives))
        self._bounds = (false_positives.bounds, false_negatives.bounds)
        if sum(self._rates) >= 1:
            raise InvalidArgumentError(
                f"the verifier accepts {self._rates[0]:.0%} of the wrong answers and refuses {self._rates[1]:.0%} of the right "
                "ones: its verdicts say nothing about answers, so that there is nothing to train on"
            )

    @classmethod
    def of_card(cls, card: Path) -> RewardNoise:
        """Read a card that `rlvr audit-verifier --card` or `--json` wrote.

        Raises:
            InvalidArgumentError: If the file has no error rates.
        """
        from verifiers.audit import read_card  # takes long to load, and few runs need it

        return cls(*read_card(card))

    def metrics(self, trajectories: Sequence[Trajectory]) -> dict[str, float]:
        """The metrics of a step; empty if no verdict is right or wrong."""
        verdicts: dict[int, list[bool]] = {}
        for one in trajectories:
            if one.verdict is not None and one.verdict.outcome not in (Outcome.SCORED, Outcome.VERIFIER_ERROR):
                verdicts.setdefault(one.group, []).append(one.verdict.outcome is Outcome.CORRECT)
        groups = [(sum(accepted), len(accepted)) for accepted in verdicts.values()]
        if not groups:
            return {}
        accepted, count = (sum(column) for column in zip(*groups, strict=True))
        found = expected_errors(accepted, count, *self._rates)
        corners = [
            expected_errors(accepted, count, *rates) for rates in itertools.product(*self._bounds) if sum(rates) < 1
        ] or [found]
        metrics: dict[str, float] = {}
        for at, name in enumerate(("noise/false_positives", "noise/false_negatives")):
            ends = [pair[at] for pair in corners]
            metrics |= {name: found[at], f"{name}/low": min(ends), f"{name}/high": max(ends)}
        mixed = [
            chance for (k, size), chance in zip(groups, only_errors(groups, *self._rates), strict=True) if 0 < k < size
        ]
        if mixed:
            metrics["noise/groups_by_error"] = float(np.mean([chance > 0.5 for chance in mixed]))
        return metrics


def expected_errors(accepted: int, count: int, rho0: float, rho1: float) -> tuple[float, float]:
    """The expected numbers of false positives and of false negatives among `count` verdicts."""
    right = min(max((accepted / count - rho0) / (1 - rho0 - rho1), 0.0), 1.0)
    return min(rho0 * (1 - right) * count, accepted), min(rho1 * right * count, count - accepted)


def only_errors(groups: Groups, rho0: float, rho1: float) -> list[float]:
    """For each group, the probability that its answers are all right or all wrong, so that verdicts differ only by errors."""
    rate = rho0 + (1 - rho0 - rho1) * _SHARES
    likely = np.array([rate**k * (1 - rate) ** (size - k) for k, size in groups])
    weights = np.full(len(_SHARES), 1 / len(_SHARES))
    for _ in range(_ROUNDS):
        posterior = likely * weights
        weights = (1 / len(_SHARES) + (posterior / posterior.sum(axis=1, keepdims=True)).sum(axis=0)) / (
            len(groups) + 1
        )
    chances = []
    for (k, size), row in zip(groups, likely, strict=True):
        wrong = (1 - _SHARES) ** size * rho0**k * (1 - rho0) ** (size - k)
        right = _SHARES**size * (1 - rho1) ** k * rho1 ** (size - k)
        chances.append(float(weights @ (wrong + right) / (weights @ row)))
    return chances
