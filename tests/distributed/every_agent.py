"""One training step of every agent on several ranks, each a fork of this process; run as a program by the tests.

`python -m tests.distributed.every_agent FOLDER` leaves FOLDER/SIZE-KIND-RANK.pt with what each rank has for each case, for
each of `RUNS`.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

import torch

from agents import agent_classes
from agents.batch import make_batch
from agents.distributed.ranks import Ranks, Sharding
from agents.learn.agent import Agent
from tests.agents.agent_cases import (
    CASES,
    NATURAL,
    all_weights,
    gradient,
    make_agent,
    playing_policy,
    sort_env,
    timeless,
)
from tests.distributed.forks import on_forks

RUNS = [(1, "whole"), (2, "whole"), (3, "whole"), (2, "divided"), (3, "divided"), (3, "rows"), (2, "divided rows")]
"""Numbers of ranks, whether weights are divided, and whether only the numbers of rows are gathered."""
TOKEN_LEVEL = ("reinforce/value", "rloo/kl", "grpo/carried")
"""The beginnings of names of cases that need the tokens of all episodes, though their agents need not."""


def is_refused(case: str, kind: str) -> bool:
    """Whether a case can't be run so."""
    reads_tokens = case.startswith(TOKEN_LEVEL) or not agent_classes(CASES[case][0])[0].advantages_from_rewards
    return ("divided" in kind and case in NATURAL) or ("rows" in kind and reads_tokens)


def results_of(case: str) -> dict[str, Any]:
    """Rewards, the first gradient, and weights and metrics after one step. In float64, so that no sample hangs on rounding."""
    env = sort_env(CASES[case][0])
    agent = new_agent(case, env)
    sampled = agent.sampling.sample(env, 0)
    if sampled.carried:
        sampled = agent.sampling.sample(env, 1, sampled.carried)
    trajectories = sampled.trajectories
    first = gradient(new_agent(case, env), make_batch(trajectories))
    metrics = agent.update(trajectories)
    return {
        "rewards": [trajectory.score for trajectory in trajectories],
        "gradient": first,
        "weights": all_weights(agent),
        "metrics": timeless(metrics),
    }


def new_agent(case: str, env: Any) -> Agent:
    policy = playing_policy(env)
    policy.model.double()
    return make_agent(case, policy)


def work(folder: Path, kind: str, ranks: Ranks) -> None:
    ranks.sharding = Sharding() if "divided" in kind else None
    ranks.gathers = "rows" if "rows" in kind else "trajectories"
    cases = [case for case in CASES if not is_refused(case, kind)]
    torch.save({case: results_of(case) for case in cases}, folder / f"{ranks.size}-{kind}-{ranks.rank}.pt")


def main() -> None:
    folder = Path(sys.argv[1])
    for size, kind in RUNS:
        on_forks(size, functools.partial(work, folder, kind))


if __name__ == "__main__":
    main()
