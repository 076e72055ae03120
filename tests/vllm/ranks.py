"""GRPO with vLLM itself, in one process and on two ranks that divide the weights; run as a program by test_ranks.

`python -m tests.vllm.ranks FOLDER KIND [SERVER]` leaves FOLDER/KIND-SIZE-RANK.pt. Each rank starts an engine of its own, unless
there is a server.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import torch

from agents import GRPO, CausalLMPolicy, GRPOConfig, LearnerConfig, PolicyConfig, VLLMConfig, VLLMPolicy, add_lora
from agents.distributed.ranks import Ranks, Sharding
from tests.agents.agent_cases import all_weights
from tests.distributed.forks import on_forks
from tests.vllm.conftest import ENGINE_ARGS, ENVIRONMENT
from tests.vllm.worlds import learner, world


def work(folder: Path, kind: str, server: str | None, ranks: Ranks) -> None:
    """Three steps; those of the kind "lag" with one, those of the kind "adapter" of an adapter that is sent alone."""
    ranks.sharding = Sharding() if ranks.size > 1 else None
    policy, env = learner(temperature=1.0), world(16)
    if kind == "adapter":
        model = add_lora(policy.model, rank=4, alpha=8, seed=0)
        policy = CausalLMPolicy(model, PolicyConfig(temperature=1.0, vocab_size=policy.vocab_size))
    config = (
        VLLMConfig(engine_args=ENGINE_ARGS, environment=ENVIRONMENT, lora="adapter" if kind == "adapter" else "merged")
        if server is None
        else VLLMConfig(server=server)
    )
    settings = GRPOConfig(
        problems_per_step=4, group_size=8, lag=int(kind == "lag"), learner=LearnerConfig(learning_rate=1e-3)
    )
    rows: list[dict[str, float]] = []
    with VLLMPolicy.for_env(policy, env, config) as sampler:
        agent = GRPO(policy, settings, sampler=sampler)
        before = all_weights(agent)
        agent.learn(env, steps=3, callbacks=[lambda step, metrics: rows.append(dict(metrics))])
        after = all_weights(agent)
    result = {"rows": rows, "weights": after, "moved": float((after - before).abs().max())}
    torch.save(result, folder / f"{kind}-{ranks.size}-{ranks.rank}.pt")


def main() -> None:
    folder, kind, server = Path(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None
    for size in (1, 2):
        on_forks(size, functools.partial(work, folder, kind, server))


if __name__ == "__main__":
    main()
