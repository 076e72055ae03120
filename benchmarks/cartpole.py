"""Agents on CartPole-v1 with the defaults for environments with vectors: returns by environment steps, over several seeds.

    benchmarks/cartpole.py --seeds 5 --out docs/cartpole.svg

Each agent plays episodes until a number of environment steps of its own, with one thread. Reported for each seed are the mean
return of 100 greedy episodes after that, and the processor time of training alone. A return of 500 is the highest: there the
environment's time limit ends an episode.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import gymnasium
import torch
from gymnasium.vector import AutoresetMode, VectorEnv

from agents import Agent, MLPPolicy, agent_classes

TOKENS = {"ppo": 60_000, "a2c": 120_000, "reinforce": 120_000, "reinforce/whole": 120_000, "dqn": 50_000}
SETTINGS: dict[str, dict[str, Any]] = {"reinforce/whole": {"credit": "whole"}}

NETWORKS: dict[str, dict[str, Any]] = {"dqn": {"hidden": (256, 256), "activation": "relu"}}


def run(name: str, seed: int) -> tuple[list[tuple[float, float]], float, float]:
    """Train once; return the curve of steps and returns, the final greedy return, and the seconds of processor time."""
    cls, config_cls = agent_classes(name.partition("/")[0])
    config = config_cls.for_control(seed=seed, **SETTINGS.get(name, {}))
    env: VectorEnv[Any, Any, Any] = gymnasium.make_vec(
        "CartPole-v1",
        num_envs=config.problems_per_step,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": AutoresetMode.DISABLED},
    )
    policy = MLPPolicy.for_env(env, seed=seed, **NETWORKS.get(name, {}))
    agent: Agent = cls(policy, config)
    curve: list[tuple[float, float]] = []
    started = time.process_time()
    agent.learn(
        env,
        steps=10_000,
        tokens=TOKENS[name],
        callbacks=[lambda _, metrics: curve.append((metrics["num_tokens"], metrics["reward"]))],
    )
    seconds = time.process_time() - started
    score = agent.evaluate(env, problems=100, greedy=True).score
    env.close()
    return curve, score, seconds


def draw(curves: dict[str, list[list[tuple[float, float]]]], path: Path) -> None:
    """Draw every run, one colour for each agent."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    for index, (name, runs) in enumerate(curves.items()):
        for number, curve in enumerate(runs):
            label = name if number == 0 else None
            axes.plot(*zip(*curve, strict=True), color=f"C{index}", alpha=0.7, linewidth=1, label=label)
    axes.set(xlabel="environment steps", ylabel="mean return of a training step's episodes", ylim=(0, 510))
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Print a table, and draw the curves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", nargs="+", default=list(TOKENS), choices=TOKENS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="file of the figure")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    curves: dict[str, list[list[tuple[float, float]]]] = {}
    print("agent, seed, environment steps, greedy return, seconds of processor time")
    for name in arguments.agents:
        for seed in range(arguments.seeds):
            curve, score, seconds = run(name, seed)
            curves.setdefault(name, []).append(curve)
            print(f"{name}, {seed}, {curve[-1][0]:.0f}, {score:.1f}, {seconds:.1f}", flush=True)
    if arguments.out is not None:
        draw(curves, arguments.out)


if __name__ == "__main__":
    main()
