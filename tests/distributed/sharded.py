"""Weights divided among ranks, each a fork of this process; run as a program by the tests.

`python -m tests.distributed.sharded FOLDER` leaves FOLDER/SIZE-KIND-RANK.pt for each of `RUNS`, and a checkpoint of each kind
that begins with "save" in FOLDER/KIND.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from agents import (
    GRPO,
    Agent,
    CausalLMPolicy,
    GRPOConfig,
    LearnerConfig,
    PolicyConfig,
    Reinforce,
    ReinforceConfig,
    Run,
    VLLMConfig,
    VLLMPolicy,
    make_batch,
)
from agents.distributed import sharding
from agents.distributed.parts import whole
from agents.distributed.ranks import Ranks, Sharding, active_ranks
from agents.learn.sampling import Sampling
from agents.policies.transformers.loading import load_model, save_model
from agents.policies.transformers.lora import add_lora, merged, without_adapter
from agents.policies.vllm import weight_transfer
from tests.agents.agent_cases import all_weights, flat, gradient, make_agent, playing_policy, some_batch, sort_env
from tests.agents.trajectories import tiny_policy
from tests.distributed.forks import on_forks
from tests.vllm.doubles import DelayedEngine, TorchEngine
from verifiers import EngineDiedError, EngineError, InvalidArgumentError, RankError

_SETTINGS: dict[str, dict[str, Any]] = {
    "whole": {},
    "divided": {},
    "offload": {},
    "checkpointing": {"checkpointing": "on"},
    "bfloat16": {"precision": "bfloat16"},
}
_READS = {"save-2-1": "save-2", "save-2-1-3": "save-2-1", "save-2-1-3-2": "save-2-1-3"}
"""The checkpoint that each kind begins with."""
_HANGS_S = 300
"""Seconds after which ranks that wait for each other for ever are an error."""


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


def sampled_by_engine(kind: str) -> dict[str, Any]:
    """The weights after three steps whose completions an engine samples, and the most bytes of whole weights at any time."""
    env = sort_env("grpo")
    policy = playing_policy(env, layers=3)
    if kind != "engine":
        policy = policy.with_model(add_lora(policy.model, rank=2, alpha=4, seed=0))
    alone = kind == "engine adapter"
    engine = TorchEngine((without_adapter if alone else merged)(policy.model))
    sampler = VLLMPolicy.for_env(policy, env, VLLMConfig(lora="adapter" if alone else "merged"), engine=engine)
    config = GRPOConfig(problems_per_step=4, group_size=3, learner=LearnerConfig(learning_rate=1e-2))
    agent = GRPO(policy, config, sampler=sampler)
    differences: list[float] = []
    with _whole_bytes() as at_any_time:
        agent.learn(
            env, steps=3, callbacks=[lambda _, metrics: differences.append(metrics["sampling/probe_difference"])]
        )
    total = sum(weight.nbytes for weight in policy.model.state_dict().values())
    return {
        "weights": all_weights(agent),
        "differences": differences,
        "loads": engine.reported.count("adapter" if alone else "load"),
        "whole": max(at_any_time, default=0) / total,
    }


def sampled_beside_learning(kind: str) -> dict[str, Any]:
    """The weights after four steps with a lag; with a stop after two; and from the checkpoint of two ranks at that stop."""
    rows: list[dict[str, float]] = []

    def after(step: int, metrics: Any) -> None:
        rows.append(dict(metrics))
        if step == 2:  # the learner's weights go to the engine while it has a batch of older ones to sample
            agent.evaluate(env, problems=2)

    env, agent = _with_engine(DelayedEngine, lag=1)
    agent.learn(env, steps=4, callbacks=[after])
    env, stopped = _with_engine(DelayedEngine, lag=1)
    stopped.learn(env, steps=2)
    if active_ranks().size > 1:
        stopped.save(_folder() / kind)
    stopped.learn(env, steps=4)
    env, resumed = _with_engine(DelayedEngine, lag=1)
    resumed.load(_folder() / kind)
    resumed.learn(env, steps=4)
    return {
        "rows": rows,
        "weights": all_weights(agent),
        "stopped": all_weights(stopped),
        "resumed": all_weights(resumed),
    }


def saved_beside_learning(kind: str) -> dict[str, Any]:
    """The weights after three steps, and those from a checkpoint when one rank had sampled a batch and the other had not."""
    ranks = active_ranks()
    ranks.set_timeout(_HANGS_S)
    saved, sample, number = threading.Event(), Sampling.sample, itertools.count()

    def sampled(*arguments: Any) -> Any:
        batch = sample(*arguments)
        if next(number) == 1 and ranks.rank == 1:
            saved.wait()
        return batch

    def after(step: int, metrics: Any) -> None:
        if step == 1:
            with agent.source.paused() if ranks.rank == 0 else contextlib.nullcontext():
                agent.save(_folder() / kind)
            saved.set()

    env, agent = _with_engine(DelayedEngine, lag=1)
    with mock.patch.object(Sampling, "sample", sampled):
        agent.learn(env, steps=3, callbacks=[after])
    env, resumed = _with_engine(DelayedEngine, lag=1)
    resumed.load(_folder() / kind)
    resumed.learn(env, steps=3)
    return {"weights": all_weights(agent), "resumed": all_weights(resumed)}


def interrupted_beside_learning(kind: str) -> dict[str, Any]:
    """The weights after three steps from the checkpoint of an interrupt between two steps, on one rank; and without a stop."""
    ranks = active_ranks()
    ranks.set_timeout(_HANGS_S)

    def after(step: int, metrics: Any) -> None:
        if step == 1 and ranks.rank == 1:
            os.kill(os.getpid(), signal.SIGINT)

    env, agent = _with_engine(DelayedEngine, lag=1)
    run = Run(_folder() / kind, {}, loggers=[]) if ranks.is_main else None
    with contextlib.suppress(KeyboardInterrupt):
        agent.learn(env, steps=3, run=run, callbacks=[after])
    stopped_at = agent.steps
    env, resumed = _with_engine(DelayedEngine, lag=1)
    resumed.load(ranks.from_main(None if run is None else run.checkpoint_folder(1)))
    resumed.learn(env, steps=3)
    env, agent = _with_engine(DelayedEngine, lag=1)
    agent.learn(env, steps=3)
    return {"weights": all_weights(agent), "resumed": all_weights(resumed), "stopped": stopped_at}


def interrupted(kind: str) -> dict[str, Any]:
    """The weights after three steps, of which two broke off: in the middle of a transfer, and within completions.

    The engine of the second rank fails; after its death all ranks go on from a checkpoint, with other engines.
    """
    rank, errors = active_ranks().rank, []

    def fail(env: Any, agent: Agent) -> None:
        try:
            agent.learn(env, steps=3)
        except EngineError as error:
            errors.append(str(error))

    dies_after = 4 + 6 + 4 + 1  # a probe and its share of each step
    env, agent = _with_engine(functools.partial(DelayedEngine, dies_after=dies_after) if rank else TorchEngine)
    fail(env, agent)
    steps = agent.steps
    agent.save(_folder() / kind)
    env, agent = _with_engine(Halfway if rank else TorchEngine)
    agent.load(_folder() / kind)
    fail(env, agent)
    agent.learn(env, steps=3)
    return {"weights": all_weights(agent), "errors": errors, "steps": steps}


class Halfway(TorchEngine):
    """Fails once, after a part of the weights has arrived."""

    failed = False

    def rpc(self, method: str, *arguments: str) -> list[Any]:
        if method == "load_shared_weights" and self._arrived and not self.failed:
            self.failed = True
            raise EngineError("half of a transfer")
        return super().rpc(method, *arguments)


def _with_engine(engine: Callable[[Any], TorchEngine], lag: int = 0) -> tuple[Any, Agent]:
    """An environment, and an agent for whose model an engine samples."""
    env = sort_env("grpo")
    policy = playing_policy(env, layers=3)
    config = GRPOConfig(problems_per_step=4, group_size=3, lag=lag, learner=LearnerConfig(learning_rate=1e-2))
    return env, GRPO(policy, config, sampler=VLLMPolicy.for_env(policy, env, engine=engine(policy.model)))


def engine_dies(kind: str) -> dict[str, Any]:
    """The error of a rank if the engine of the second dies of its first completions while others learn."""
    dies_after = 6 if active_ranks().rank else None  # the probe has four
    env, agent = _with_engine(functools.partial(DelayedEngine, dies_after=dies_after), lag=1)
    try:
        agent.learn(env, steps=1)
    except EngineDiedError as error:
        return {"error": str(error)}
    raise AssertionError("no error")


@contextlib.contextmanager
def _whole_bytes() -> Iterator[list[int]]:
    """Within the block, the bytes of divided weights that were put together and are still there, after each of them."""
    living: list[weakref.ref[torch.Tensor]] = []
    at_any_time: list[int] = []

    def counted(tensor: torch.Tensor, **settings: Any) -> torch.Tensor | None:
        together = whole(tensor, **settings)
        assert together is not None
        living.append(weakref.ref(together))
        at_any_time.append(sum(weight.nbytes for weight in (one() for one in living) if weight is not None))
        return together

    with contextlib.ExitStack() as patched:
        for module in (sharding, weight_transfer):
            patched.enter_context(mock.patch.object(module, "whole", counted))
        yield at_any_time


def written(kind: str) -> dict[str, Any]:
    """The difference between a model and what each rank finds in a folder to which it wrote it."""
    model, folder = tiny_policy().model, _folder() / f"{kind}-{active_ranks().rank}"
    save_model(folder, model, None)
    return {"saved_bits": flat(list(load_model(folder).parameters())), "bits": flat(list(model.parameters()))}


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
    **dict.fromkeys(["engine", "engine lora", "engine adapter"], sampled_by_engine),
    "engine dies lag": engine_dies,
    "interrupted": interrupted,
    "lag": sampled_beside_learning,
    "lag saved": saved_beside_learning,
    "lag interrupted": interrupted_beside_learning,
    "left alone": left_alone,
    "written": written,
    **dict.fromkeys(["save-2", *_READS], saved),
}
RUNS: dict[str, tuple[int, ...]] = {
    "whole": (1,),
    "divided": (2,),
    "offload": (2,),
    "checkpointing": (2,),
    "bfloat16": (1, 2),
    "lora": (1, 2),
    "engine": (1, 2),
    "engine lora": (1, 2),
    "engine adapter": (1, 2),
    "engine dies lag": (2,),
    "interrupted": (2,),
    "lag": (2, 1),
    "lag saved": (2,),
    "lag interrupted": (2,),
    "left alone": (2,),
    "written": (2,),
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
