"""Two algorithms from one start, compared: curves, and test scores problem by problem.

    rlvr sft --env Addition --out runs/start
    python examples/compare_agents.py --model runs/start --steps 100

One seed says how two models compare, not two algorithms: train several of each (`--seed`) before you say more.
"""

import argparse
import subprocess
import sys
from pathlib import Path


def rlvr(*arguments: object) -> None:
    """Run a command as a user types it."""
    start = [sys.executable, "-c", "from rlvr_envs.console import main; main()"]
    subprocess.run([*start, *map(str, arguments)], check=True)


def main(arguments: list[str] | None = None) -> None:
    """Train, evaluate, compare and draw."""
    parser = argparse.ArgumentParser(description="Compare two agents")
    parser.add_argument("--agents", nargs=2, default=["grpo", "rloo"])
    parser.add_argument("--env", default="Addition")
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--problems", type=int, default=500)
    parser.add_argument("--folder", type=Path, default=Path("runs/compared"))
    options = parser.parse_args(arguments)

    runs = [options.folder / agent for agent in options.agents]
    scores = [options.folder / f"{agent}-scores" for agent in options.agents]
    for agent, run, score in zip(options.agents, runs, scores, strict=True):
        common = ["--env", options.env, "--seed", options.seed]
        rlvr("train", agent, *common, "--model", options.model, "--steps", options.steps, "--run-folder", run)
        rlvr("eval", *common, "--model", run, "--problems", options.problems, "--out", score)
    rlvr("compare", *scores)
    rlvr("plot", *runs, "--out", options.folder / "curves")


if __name__ == "__main__":
    main()
