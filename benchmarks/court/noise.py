"""What a verifier's errors do to the expected gradient of each algorithm, by enumeration.

    python benchmarks/court/noise.py

writes the tables of docs/how-to/noisy-verifiers.md. A world's episodes are right or wrong, and the verifier accepts each with a
chance of its own, so that each stands twice among the episodes that are enumerated, once with each verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from agents.experiments.court import Estimator, of_agent
from agents.experiments.court.cases import Case
from agents.experiments.court.tables import Tables
from agents.experiments.court.trial import batches, gradient_of
from agents.experiments.court.worlds import World, one_turn

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "noisy-verifiers.md"
GROUP_SIZE = 4
WORLDS = {
    "easier": one_turn({"1": 0.0, "01": 1.0, "001": 0.0, "000": 1.0}),
    "harder": one_turn({"1": 0.0, "00": 0.0, "010": 0.0, "0110": 1.0, "0111": 0.0}),
}
"""Problems by name, of which 19 and 4 % of the episodes are right."""
RATES = ((0.0, 0.1), (0.0, 0.2), (0.1, 0.0), (0.2, 0.0), (0.2, 0.2))
"""Pairs of the rates of false positives and false negatives."""
SYSTEMATIC = 0.1
"""Rate of false positives that are all of one episode, the likeliest of the wrong ones."""
_SUM = {"aggregation": "sequence-mean-token-sum"}
ESTIMATORS = (
    of_agent("reinforce", "`reinforce`"),
    of_agent("rloo", "`rloo`"),
    of_agent("grpo", "`grpo`, scale=none", scale="none"),
    of_agent("grpo", "`grpo`"),
    of_agent("reinforce++", "`reinforce++`"),
    of_agent("ppo", "`ppo`, whiten=False", whiten=False, gae_lambda=1.0, **_SUM),
    of_agent("ppo", "`ppo`"),
    of_agent("maxrl", "`maxrl`", **_SUM),
    of_agent("pass-at-k", "`pass-at-k`, k=2", k=2),
    of_agent("rft", "`rft`"),
)


class NoisyTables(Tables):
    """Tables of a world whose episodes each stand twice, refused and accepted, with the chance of each verdict.

    Args:
        noiseless: A case of one world.
        accepted: The chance of each episode that it is accepted.
        rewards: The rewards of an episode that is refused, and of one that is accepted.
    """

    def __init__(self, noiseless: Case, accepted: Tensor, rewards: Sequence[float] = (0.0, 1.0)) -> None:
        (world,) = noiseless.worlds
        self._chances = torch.stack([1 - accepted, accepted], dim=1).flatten().log()
        twice: World = tuple(
            type(one)(one.tokens, one.own, (*one.rewards[:-1], reward)) for one in world for reward in rewards
        )
        super().__init__(Case(noiseless.name, (twice,), noiseless.group_size))

    def log_probabilities(self, logits: Tensor) -> Tensor:
        """f64[c], of every episode with its verdict."""
        return super().log_probabilities(logits) + self._chances


def case_of(world: str) -> Case:
    return Case(world, (WORLDS[world],), GROUP_SIZE)


def independent(noiseless: Case, rho0: float, rho1: float) -> Tensor:
    """The chances of being accepted when errors do not depend on the episode: of wrong ones rho0, of right ones 1 - rho1."""
    (world,) = noiseless.worlds
    return torch.tensor([1 - rho1 if one.score else rho0 for one in world], dtype=torch.float64)


def systematic(noiseless: Case, rho0: float) -> Tensor:
    """The same rate of false positives, all of which are one wrong episode."""
    tables = Tables(noiseless)
    likely = tables.log_probabilities(tables.theta.detach()).exp()
    wrong = likely * (tables.scores == 0)
    accepted = tables.scores.clone()
    accepted[wrong.argmax()] = rho0 * wrong.sum() / wrong.max()
    return accepted


def expected(estimator: Estimator, tables: Tables) -> Tensor:
    """The expected gradient f64[s v] of what an estimator maximises."""
    total = torch.zeros_like(tables.theta)
    for rows, weight in batches(tables, ordered=False):
        if weight:
            total -= weight * gradient_of(estimator, tables, rows)
    return total


def compared(noisy: Tensor, clean: Tensor) -> tuple[float, float]:
    """The component of a gradient along another, relative to its norm, and the cosine between both."""
    scale = float((noisy * clean).sum() / clean.square().sum())
    return scale, float((noisy * clean).sum() / noisy.norm() / clean.norm())


def line(estimator: Estimator, world: str) -> list[str]:
    """For each pair of rates what noise leaves of the gradient without it."""
    noiseless = case_of(world)
    clean = expected(estimator, NoisyTables(noiseless, independent(noiseless, 0.0, 0.0)))
    cells = [estimator.name]
    for accepted in (*(independent(noiseless, *rates) for rates in RATES), systematic(noiseless, SYSTEMATIC)):
        scale, cosine = compared(expected(estimator, NoisyTables(noiseless, accepted)), clean)
        cells.append(f"{scale:.3f}" if cosine > 0.99995 else f"{scale:.3f}, cosine {cosine:.4f}")
    return cells


def corrected_line(estimator: Estimator, world: str, rates: tuple[float, float]) -> list[str]:
    """The same with the verdict as the reward, and with the backward and the forward correction of it."""
    noiseless, (rho0, rho1) = case_of(world), rates
    clean = expected(estimator, NoisyTables(noiseless, independent(noiseless, 0.0, 0.0)))
    backward = [(verdict - rho0) / (1 - rho0 - rho1) for verdict in (0.0, 1.0)]
    forward = [rho1 - 1, rho1]
    gradients = [
        expected(estimator, NoisyTables(noiseless, independent(noiseless, *rates), rewards))
        for rewards in ((0.0, 1.0), backward, forward)
    ]
    noisy, *corrected = (gradient / gradient.norm() for gradient in gradients)
    change = max(float((direction - noisy).norm()) for direction in corrected)
    return [estimator.name, *(f"{compared(one, clean)[0]:.3f}" for one in gradients), f"{change:.0e}"]


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(["| " + " | ".join(cells) + " |" for cells in (heads, ["---"] * len(heads), *lines)])


def main() -> None:
    """Write the tables."""
    rates = [f"{100 * rho0:.0f} % / {100 * rho1:.0f} %" for rho0, rho1 in RATES]
    heads = ["algorithm", *rates, f"{100 * SYSTEMATIC:.0f} %, one answer"]
    made = {world: table(heads, [line(estimator, world) for estimator in ESTIMATORS]) for world in WORLDS}
    rewards_from_0_to_1 = ("`maxrl`", "`rft`")
    of_correction = [
        corrected_line(estimator, "easier", (0.1, 0.2))
        for estimator in ESTIMATORS
        if estimator.name not in rewards_from_0_to_1
    ]
    made["correction"] = table(["algorithm", "verdict", "backward", "forward", "change of direction"], of_correction)
    text = PAGE.read_text(encoding="utf-8")
    for name, tables in made.items():
        print(name, tables, sep="\n", flush=True)
        before, start, rest = text.partition(f"<!-- noise {name} -->\n")
        assert start, f"{PAGE} has no tables of {name}"
        text = f"{before}{start}{tables}\n{rest[rest.index('<!-- end noise -->') :]}"
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
