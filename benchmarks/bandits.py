"""The regret of the agents for bandits, side by side: a figure and a table.

    .venv/bin/python benchmarks/bandits.py

Each agent has its default settings, in `rlvr/BanditState-v0` and `rlvr/ContextualBanditState-v0` with theirs, and each run
other seeds of problems and choices. The table gives the mean over runs with its 95 % interval (Student's t); for the bandit
also the bound of UCB1 (Auer et al. 2002, theorem 1) and Lai and Robbins' asymptotic lower bound.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gymnasium
import numpy as np

from agents import TABULAR_AGENTS, tabular_classes
from agents.runs.plots import TrainingCurve, bands, plot
from rlvr_envs import StateEnv, exact
from verifiers.statistics import mean_interval

ENVIRONMENTS = ("BanditState", "ContextualBanditState")
BANDITS = ("epsilon-greedy", "gradient-bandit", "ucb1", "thompson", "linucb")


def curve(environment: str, name: str, seed: int, steps: int) -> TrainingCurve:
    """The regret of one run after each step of ten pulls."""
    env = gymnasium.make(f"rlvr/{environment}-v0", seed=seed)
    cls, config = tabular_classes(name)
    regret: list[float] = []
    cls(env, config(seed=seed)).learn(
        env, steps=steps, callbacks=[lambda _, metrics: regret.append(metrics["total_regret"])]
    )
    numbers = np.arange(1, steps + 1)
    return TrainingCurve(Path(f"{environment}-{name}-{seed}"), name, name, numbers, np.array(regret))


def bounds(pulls: int) -> str:
    """The two bounds of the default bandit."""
    world = gymnasium.make("rlvr/BanditState-v0").unwrapped
    assert isinstance(world, StateEnv)
    means = exact.state_mdp(world).reward[0]
    return (
        f"bound of UCB1 {exact.ucb1_bound(means, pulls):.0f}, slope of Lai and Robbins times ln n "
        f"{exact.lai_robbins_slope(means) * np.log(pulls):.1f}"
    )


def main() -> None:
    """Play, draw and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parents[1] / "docs")
    options = parser.parse_args()
    assert set(BANDITS) <= set(TABULAR_AGENTS)
    for environment in ENVIRONMENTS:
        print(f"\n{environment}, {10 * options.steps} pulls\n\n| agent | regret |\n|---|---|")
        curves = []
        for name in BANDITS:
            curves += [curve(environment, name, seed, options.steps) for seed in range(options.runs)]
            last = [one.values[-1] for one in curves[-options.runs :]]
            interval = mean_interval(last)
            print(f"| `{name}` | {np.mean(last):.0f} [{interval.low:.0f}, {interval.high:.0f}] |", flush=True)
        path = options.folder / f"regret-{environment.removesuffix('State').lower()}"
        for file in plot(bands(curves, smooth=1), path, metric="regret"):
            if file.suffix == ".png":
                file.unlink()
    print("\n" + bounds(10 * options.steps))


if __name__ == "__main__":
    main()
