"""One training step of every agent on several ranks, each a fork of this process; run as a program by the tests.

`python -m tests.distributed.every_agent SIZE FOLDER` leaves FOLDER/RANK.pt with what each rank has for each case.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

import torch

from agents.batch import make_batch
from agents.distributed.processes import join, leave
from tests.agents.agent_cases import CASES, all_weights, gradient, make_agent, playing_policy, sort_env, timeless


def results_of(case: str) -> dict[str, Any]:
    """Rewards, the first gradient, and weights and metrics after one step. In float64, so that no sample hangs on rounding."""
    env = sort_env(CASES[case][0])
    policy = playing_policy(env)
    policy.model.double()
    agent = make_agent(case, policy)
    trajectories, _ = agent.collect(env, 0)
    first = gradient(make_agent(case, policy), make_batch(trajectories))
    metrics = agent.update(trajectories)
    return {
        "rewards": [trajectory.score for trajectory in trajectories],
        "gradient": first,
        "weights": all_weights(agent),
        "metrics": timeless(metrics),
    }


def main() -> None:
    size, folder = int(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = []
    for rank in range(size):
        if size > 1 and (child := os.fork()):
            children.append(child)
            continue
        if size > 1:
            os.environ |= {
                "RANK": str(rank),
                "WORLD_SIZE": str(size),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
            }
        join()
        torch.save({case: results_of(case) for case in CASES}, folder / f"{rank}.pt")
        leave()
        os._exit(0) if size > 1 else None
    if any(os.waitpid(child, 0)[1] for child in children):
        sys.exit(1)


if __name__ == "__main__":
    main()
