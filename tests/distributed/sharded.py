"""Weights divided among ranks, each a fork of this process; run as a program by the tests.

`python -m tests.distributed.sharded FOLDER` leaves FOLDER/SIZE-KIND-RANK.pt for each of `RUNS`, and a checkpoint of each kind
that begins with "save" in FOLDER/KIND.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agents import Agent, CausalLMPolicy, PolicyConfig, Reinforce, ReinforceConfig, make_batch
from agents.distributed.ranks import Ranks, Sharding
from agents.policies.transformers.lora import add_lora
from tests.agents.agent_cases import all_weights, flat, gradient, make_agent, playing_policy, some_batch, sort_env
from tests.agents.trajectories import tiny_policy
from tests.distributed.forks import on_forks
from verifiers import InvalidArgumentError, RankError

_SETTINGS: dict[str, dict[str, Any]] = {
    "whole": {},
    "divided": {},
    "offload": {},
    "checkpointing": {"checkpointing": "on"},
    "bfloat16": {"precision": "bfloat16"},
}
_READS = {"save-2-1": "save-2", "save-2-1-3": "save-2-1", "save-2-1-3-2": "save-2-1-3"}
"""The checkpoint that each kind begins with."""


def learned(kind: str) -> dict[str, Any]:
    """The first gradient and the weights after two updates, with the settings of a kind of pass."""

    def agent(**settings: Any) -> Agent:
        model = tiny_policy().model
        return make_agent("grpo/kl", CausalLMPolicy(model, PolicyConfig(**settings)), reference_sync_every=1)

    batch = some_batch(tiny_policy())
    first = gradient(agent(**_SETTINGS[kind]), make_batch(batch))
    learner = agent(**_SETTINGS[kind])
    for _ in range(2):
        learner.update(batch)
    assert learner.models.reference is not None
    return {
        "gradient": first.float(),
        "weights": all_weights(learner),
        "reference": flat(list(learner.models.reference.policy.model.parameters())),
        "bytes": _held(learner),
        "acting": _refusal(learner),
    }


def adapted(kind: str) -> dict[str, Any]:
    """The weights of an adapter after two updates against the model without it."""
    policy = tiny_policy()
    policy = policy.with_model(add_lora(policy.model, rank=2, alpha=4, seed=0))
    agent = make_agent("grpo/kl", policy)
    batch = some_batch(tiny_policy())
    for _ in range(2):
        agent.update(batch)
    return {"weights": all_weights(agent)}


def saved(kind: str) -> dict[str, Any]:
    """The weights after an update of an agent with a critic and a reference that was saved.

    Before, it was updated or read from another checkpoint.
    """
    agent = make_agent("ppo/separate", tiny_policy(), reference_sync_every=1)
    batch = some_batch(tiny_policy())
    if kind in _READS:
        agent.load(_folder() / _READS[kind])
    else:
        agent.update(batch)
    agent.save(_folder() / kind)
    agent.update(batch)
    return {"weights": all_weights(agent)}


def left_alone(kind: str) -> dict[str, Any]:
    """The error of a rank that is left alone in the middle of a pass."""

    class Dying(Reinforce):
        def loss(self, batch: Any, logprobs: Any, advantages: Any) -> Any:
            if self.ranks.rank == 1:
                os._exit(0)
            return super().loss(batch, logprobs, advantages)

    env = sort_env("reinforce")
    try:
        Dying(playing_policy(env), ReinforceConfig(problems_per_step=4, group_size=3)).learn(env, steps=1)
    except RankError as error:
        return {"error": str(error)}
    raise AssertionError("no error")


def _folder() -> Path:
    return Path(sys.argv[1])


def _refusal(agent: Agent) -> str:
    """What acting by itself is refused with; nothing if it is not."""
    try:
        agent.act({"tokens": np.zeros((1, 4), np.int32), "length": np.array([2])})
    except InvalidArgumentError as error:
        return str(error)
    return ""


def _held(agent: Agent) -> int:
    """Bytes of weights and of the optimiser's state that this rank holds."""
    state = agent.learner.optimizer.state
    tensors: list[Any] = [*agent.policy.parameters(), *(value for one in state.values() for value in one.values())]
    return sum((tensor.to_local() if hasattr(tensor, "to_local") else tensor).nbytes for tensor in tensors)


_WORK: dict[str, Callable[[str], dict[str, Any]]] = {
    **dict.fromkeys(_SETTINGS, learned),
    "lora": adapted,
    "left alone": left_alone,
    **dict.fromkeys(["save-2", *_READS], saved),
}
RUNS: dict[str, tuple[int, ...]] = {
    "whole": (1,),
    "divided": (2,),
    "offload": (2,),
    "checkpointing": (2,),
    "bfloat16": (1, 2),
    "lora": (1, 2),
    "left alone": (2,),
    "save-2": (2,),
    "save-2-1": (1,),
    "save-2-1-3": (3,),
    "save-2-1-3-2": (2,),
}
"""Numbers of ranks for each kind; those with several divide the weights."""


def main() -> None:
    for kind, sizes in RUNS.items():
        for size in sizes:
            on_forks(size, functools.partial(work, kind))


def work(kind: str, ranks: Ranks) -> None:
    ranks.sharding = Sharding(offload=kind == "offload") if ranks.size > 1 else None
    torch.save(_WORK[kind](kind), _folder() / f"{ranks.size}-{kind}-{ranks.rank}.pt")


if __name__ == "__main__":
    main()
