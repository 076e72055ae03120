"""Sampling beside learning on several ranks, which are threads here; processes are in `test_command`."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest
import torch

from agents import GRPO, GRPOConfig, VLLMPolicy
from agents.distributed.ranks import Ranks, Sharding
from tests.agents.agent_cases import all_weights, make_agent, playing_policy, sort_env
from tests.distributed.threads import on_ranks
from tests.vllm.doubles import TorchEngine
from verifiers import InvalidArgumentError

_BUILDING = threading.Lock()
"""Weights are drawn with torch's global generator."""


def learned(ranks: Ranks, steps: int = 4, tokens: int | None = None) -> tuple[list[dict[str, float]], torch.Tensor]:
    env = sort_env("grpo")
    with _BUILDING:
        policy = playing_policy(env)
    policy.model.double()  # so that no sample hangs on rounding
    agent = make_agent("grpo", policy, lag=2)
    rows: list[dict[str, float]] = []
    agent.learn(env, steps=steps, tokens=tokens, callbacks=[lambda step, metrics: rows.append(dict(metrics))])
    return rows, all_weights(agent)


def test_ranks_with_a_lag_learn_what_one_does() -> None:
    (alone,) = on_ranks(1, learned)
    results: Any = on_ranks(3, learned)
    for rows, weights in results:
        assert [row["sampling/age"] for row in rows] == [0, 1, 2, 2]
        assert [row["reward"] for row in rows] == [row["reward"] for row in alone[0]]  # type: ignore[index] # no error
        assert torch.equal(weights, results[0][1])
        torch.testing.assert_close(weights, alone[1], rtol=1e-5, atol=1e-6)  # type: ignore[index]


def test_ranks_that_end_early_leave_no_thread_waiting_for_another() -> None:
    results: Any = on_ranks(2, lambda ranks: learned(ranks, steps=100, tokens=1))
    assert [len(rows) for rows, _ in results] == [1, 1]
    assert not [thread for thread in threading.enumerate() if thread.name == "sampling"]


def test_a_rank_that_fails_ends_the_others() -> None:
    def fail(ranks: Ranks) -> None:
        def stop(step: int, metrics: Any) -> None:
            if step == 2:
                raise ZeroDivisionError

        env = sort_env("grpo")
        with _BUILDING:
            agent = make_agent("grpo", playing_policy(env), lag=1)
        agent.learn(env, steps=4, callbacks=[stop])

    assert [type(error) for error in on_ranks(2, fail)] == [ZeroDivisionError] * 2


@pytest.mark.parametrize(
    ("lag", "sampler", "message"),
    [
        (1, None, "lag=1 .* without an engine that takes all weights on every rank"),
        (2, "engine", "lag=2 makes .* set lag=1"),
    ],
)
def test_divided_weights_refuse_a_lag_without_an_engine_or_of_several_updates(
    lag: int, sampler: str | None, message: str
) -> None:
    def build(ranks: Ranks) -> None:
        ranks.sharding = Sharding()
        env = sort_env("grpo")
        with _BUILDING:
            policy = playing_policy(env)
        engine = None if sampler is None else VLLMPolicy.for_env(policy, env, engine=TorchEngine(policy.model))
        GRPO(policy, GRPOConfig(lag=lag), sampler=engine)

    for error in on_ranks(2, build):
        assert isinstance(error, InvalidArgumentError)
        assert re.search(message, str(error))
