"""What ranks exchange, on ranks that are threads; whole runs of processes are in `test_command`."""

from __future__ import annotations

import dataclasses
import datetime
import math
import pickle
import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from torch.distributed import HashStore  # type: ignore[attr-defined] # torch names it nowhere else
from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

from agents import GRPO, CriticConfig, Episode, GRPOConfig, TorchPolicy, Trajectory, VLLMPolicy, make_batch
from agents.commands.train import AGENT_COMMANDS
from agents.distributed import heartbeat
from agents.distributed.heartbeat import EXIT_CODE
from agents.distributed.launch import exit_code_of
from agents.distributed.ranks import Ranks, Sharding
from agents.distributed.rollouts import owners_of, play_divided, row_of, trajectory_of
from agents.distributed.weights import require_same_weights, sum_gradients
from agents.learn.batch_passes import own_micro_batches
from agents.policies.vllm.config import VLLMConfig
from agents.settings.choices import Gathering
from tests.agents.agent_cases import (
    all_weights,
    gradient,
    make_agent,
    playing_policy,
    some_batch,
    some_trajectory,
    sort_env,
)
from tests.agents.trajectories import tiny_policy
from tests.distributed.threads import on_ranks
from tests.vllm.doubles import TorchEngine
from verifiers import CheckpointError, EngineError, InvalidArgumentError, Outcome, RankError

_BUILDING = threading.Lock()
"""Weights are drawn with torch's global generator."""


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("largest", [1, 3, 5, 64])
def test_every_row_is_passed_by_one_rank_and_all_have_about_as_many(size: int, largest: int) -> None:
    batch = make_agent("grpo").prepare(batch_of(12))

    def rows(ranks: Ranks) -> list[int]:
        own = own_micro_batches(batch, largest)
        assert all(len(indices) <= largest for indices in own)
        return [row for indices in own for row in indices.tolist()]

    by_rank: Any = on_ranks(size, rows)
    assert sorted(row for own in by_rank for row in own) == list(range(12))
    assert max(map(len, by_rank)) - min(map(len, by_rank)) <= min(largest, 12 // size)


def batch_of(rows: int) -> Any:
    agent = make_agent("grpo")
    return make_batch(some_batch(agent.policy, groups=rows // 3))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (CheckpointError("no room"), CheckpointError("rank 1: no room")),
        (OSError(28, "No space left"), RankError("rank 1: OSError: [Errno 28] No space left")),  # of a library
        (KeyboardInterrupt(), KeyboardInterrupt()),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_on_one_rank_is_raised_on_all_and_names_the_rank(error: BaseException, told: BaseException) -> None:
    zero, one, two = on_ranks(3, lambda ranks: ranks.together(lambda: _raise(error) if ranks.rank == 1 else None))
    assert one is error
    for other in (zero, two):
        assert (type(other), str(other)) == (type(told), str(told))


def _raise(error: BaseException) -> None:
    raise error


def test_gradients_are_summed_and_absent_only_where_no_rank_has_one() -> None:
    def summed(ranks: Ranks) -> list[Any]:
        first, second, third, half = (torch.nn.Parameter(torch.zeros(2)) for _ in range(4))
        half.data = half.data.half()
        first.grad = torch.tensor([1.0, ranks.rank])
        second.grad = None if ranks.rank else torch.ones(2)
        half.grad = torch.ones(2).half()
        sum_gradients(ranks, [first, second, third, half])
        return [None if one.grad is None else one.grad.tolist() for one in (first, second, third, half)]

    results = on_ranks(3, summed)
    assert results == [[[3.0, 3.0], [1.0, 1.0], None, [3.0, 3.0]]] * 3


def test_what_differs_is_named_with_its_rank() -> None:
    def check(ranks: Ranks) -> None:
        ranks.require_same("versions", {"torch": "2.13", "numpy": "2.3" if ranks.rank == 2 else "2.2"})

    for error in on_ranks(3, check):
        assert isinstance(error, RankError)
        assert "rank 2 differs from rank 0: versions.numpy is '2.2' on rank 0 and '2.3' on rank 2" in str(error)


def test_weights_that_differ_in_one_bit_are_found() -> None:
    def check(ranks: Ranks) -> None:
        layer = torch.nn.Linear(3, 2)
        with torch.no_grad():
            layer.weight.fill_(0.5)
            layer.bias.zero_()
        require_same_weights(ranks, layer)
        with torch.no_grad():
            layer.bias[1] = -0.0 if ranks.rank else 0.0
        require_same_weights(ranks, layer)

    for error in on_ranks(2, check):
        assert isinstance(error, RankError)
        assert "hash.bias" in str(error)


def test_groups_are_played_whole_and_come_back_in_order() -> None:
    episodes = [Episode(0, group, seed) for seed, group in enumerate([7, 7, 3, 3, 7, 9, 9, 5])]
    assert owners_of(episodes, 3) == [0, 0, 1, 1, 0, 2, 2, 0]

    def played(ranks: Ranks) -> tuple[list[int], list[int]]:
        foreign: list[int] = []
        play: Any = lambda mine: [episode.seed for episode in mine]  # noqa: E731 - stands for trajectories
        return play_divided(ranks, episodes, play, seen=foreign.append), foreign  # type: ignore[arg-type]

    results: Any = on_ranks(3, played)
    assert [order for order, _ in results] == [list(range(8))] * 3
    assert [foreign for _, foreign in results] == [[2, 3, 5, 6], [0, 1, 4, 5, 6, 7], [0, 1, 2, 3, 4, 7]]


@pytest.mark.parametrize("case", ["grpo/kl", "ppo/separate"])
def test_two_ranks_have_the_gradient_of_one(case: str) -> None:
    def step(ranks: Ranks) -> tuple[torch.Tensor, torch.Tensor]:
        with _BUILDING:
            agent = make_agent(case)
        trajectories = some_batch(agent.policy)
        first = gradient(agent, make_batch(trajectories))
        agent.update(trajectories)
        return first, all_weights(agent)

    (alone,) = on_ranks(1, step)
    zero, one = on_ranks(2, step)
    torch.testing.assert_close(zero[0], alone[0], rtol=1e-5, atol=1e-5 * float(alone[0].abs().max()))
    assert torch.equal(zero[1], one[1])


def check_refused(build: Callable[[Ranks], object], message: str, size: int = 2) -> None:
    """Check that every rank refuses to build something."""
    for error in on_ranks(size, build):
        assert isinstance(error, InvalidArgumentError)
        assert re.search(message, str(error))


def test_fewer_groups_than_ranks_are_refused() -> None:
    message = "rank 2 would have nothing to play: a step has problems_per_step=2"
    check_refused(lambda ranks: make_agent("reinforce", problems_per_step=2), message, 3)


def test_options_of_divided_weights_are_refused_where_nothing_is_divided() -> None:
    options = AGENT_COMMANDS.load("grpo")
    with pytest.raises(InvalidArgumentError, match="--offload needs --shard fsdp"):
        options(env="Sort", offload=True)
    alone: Any = options(env="Sort", shard="fsdp")
    with pytest.raises(InvalidArgumentError, match="add --nproc with at least 2"):
        alone.run(Console())


def test_a_policy_that_is_no_transformers_model_is_not_divided() -> None:
    def build(ranks: Ranks) -> None:
        ranks.sharding = Sharding()
        body, head = torch.nn.Embedding(5, 4), torch.nn.Linear(4, 5)
        make_agent("reinforce", TorchPolicy(body, head))  # type: ignore[arg-type] # another policy

    check_refused(build, "weights of a TorchPolicy can't be divided")


def test_a_server_of_all_ranks_gets_weights_once_and_each_rank_compares_them() -> None:
    policies = [tiny_policy(), tiny_policy()]
    engine = TorchEngine(tiny_policy().model)

    def learn(ranks: Ranks) -> tuple[float, float]:
        policy = policies[ranks.rank]
        sampler = VLLMPolicy(policy, VLLMConfig(server="http://localhost:1"), stop_tokens=[0], engine=engine)  # type: ignore[arg-type]
        differences = []
        for step in range(2):
            with torch.no_grad():
                policy.model.lm_head.weight.add_(0.1 * step)
            policy.weights_changed()
            differences.append(sampler.sync()["sampling/probe_difference"])
        return differences[0], differences[1]

    for differences in on_ranks(2, learn):
        assert isinstance(differences, tuple)
        assert max(differences) < 1e-5
    assert engine.reported == ["load", "reset"] * 2


def test_a_server_that_refuses_weights_is_an_error_of_all_ranks() -> None:
    class Refusing(TorchEngine):
        def rpc(self, method: str, *arguments: str) -> list[Any]:
            if method == "finish_weights":
                raise EngineError("2 weights have not arrived")
            return super().rpc(method, *arguments)

    engine = Refusing(tiny_policy().model)

    def sync(ranks: Ranks) -> None:
        policy = tiny_policy()
        VLLMPolicy(policy, VLLMConfig(server="http://localhost:1"), stop_tokens=[0], engine=engine).sync()  # type: ignore[arg-type]

    zero, one = on_ranks(2, sync)
    assert (type(zero), type(one)) == (EngineError, EngineError)
    assert (str(zero), str(one)) == ("2 weights have not arrived", "rank 0: 2 weights have not arrived")


def test_two_that_ask_the_same_rank_never_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """One asks just as the other, which has seen an answer, is about to read it."""
    monkeypatch.setattr(heartbeat, "_ANSWER_S", 0.0)

    class Between(HashStore):
        asks_in_between = True

        def get(self, key: str) -> bytes:
            if self.asks_in_between and key.startswith("answer/"):
                self.asks_in_between = False
                heartbeat.whereabouts(self, [1])
            return super().get(key)

        def set(self, key: str, value: str) -> None:
            super().set(key, value)
            if key.startswith("asked/") and self.asks_in_between:
                super().set("answer/1", "line 3")

    store = Between()  # type: ignore[no-untyped-call]
    store.set_timeout(datetime.timedelta(milliseconds=50))
    assert heartbeat.whereabouts(store, [1]) == ""


def failure(rank: int, code: int) -> ProcessFailure:
    return ProcessFailure(local_rank=rank, pid=100 + rank, exitcode=code, error_file="none")


def test_the_launcher_names_the_rank_that_was_killed_and_not_those_it_stopped_itself() -> None:
    with pytest.raises(RankError, match=r"rank 1 \(process 101\) was killed by SIGKILL, perhaps for lack of memory"):
        exit_code_of({0: failure(0, -15), 1: failure(1, -9)})
    assert exit_code_of({0: failure(0, -15), 1: failure(1, 2)}) == 2
    assert exit_code_of({0: failure(0, EXIT_CODE), 1: failure(1, -9)}) == 1


# Sampling beside learning


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

    check_refused(build, message)


# Episodes of other ranks as the numbers of their rows


@pytest.mark.parametrize("score", [0.0, 0.75, math.nan])
def test_a_row_has_everything_but_tokens(score: float) -> None:
    played = some_trajectory(np.random.default_rng(0), score=score, group=2)
    back = trajectory_of(pickle.loads(pickle.dumps(row_of(played))))
    for field in dataclasses.fields(Trajectory):
        if field.name not in ("tokens", "logprobs", "policy_version", "completion"):
            expected = getattr(played, field.name)
            # By text where it is not an array: NaN is not equal to itself.
            of = np.asarray if isinstance(expected, np.ndarray) else repr
            np.testing.assert_array_equal(of(getattr(back, field.name)), of(expected), field.name)
    assert len(back.tokens) == len(played.tokens)
    assert (back.tokens == -1).all()
    assert np.isnan(back.logprobs).all()
    assert (back.completion == played.completion) == (
        played.verdict.outcome is Outcome.VERIFIER_ERROR or not played.completion
    )


def test_a_row_of_a_long_completion_is_small() -> None:
    short = some_trajectory(np.random.default_rng(0), score=1.0, group=0)
    length = 16_000
    mask, rewards = np.arange(length) >= 100, np.zeros(length)
    rewards[-1] = 1
    numbers = {
        "tokens": np.ones(length, "i4"),
        "logprobs": np.zeros(length, "f4"),
        "policy_version": np.zeros(length, "i4"),
    }
    long = dataclasses.replace(short, policy_mask=mask, rewards=rewards, completion="x" * length, **numbers)
    assert len(pickle.dumps(long)) > 21 * length
    assert len(pickle.dumps(row_of(long))) < 2000


def test_each_rank_keeps_its_own_episodes_and_knows_the_rows_of_others() -> None:
    trajectories = some_batch(tiny_policy(), groups=1)
    episodes = [Episode(0, trajectory.group, number) for number, trajectory in enumerate(trajectories)]

    def play(ranks: Ranks) -> Any:
        return play_divided(
            ranks, episodes, lambda mine: [trajectories[one.seed] for one in mine], seen=lambda one: None, rows=True
        )

    (alone,) = on_ranks(1, play)
    assert make_batch(alone).here is None  # type: ignore[arg-type] # not an error
    for rank, played in enumerate(on_ranks(2, play)):
        batch = make_batch(played)  # type: ignore[arg-type] # not an error
        assert batch.here is None or batch.here.tolist() == [one.group % 2 == rank for one in trajectories]
        whole = make_batch(trajectories)
        for name in ("lengths", "loss_mask", "rewards", "scores", "valid", "groups", "truncated"):
            np.testing.assert_array_equal(getattr(batch, name), getattr(whole, name))


@pytest.mark.parametrize(
    ("case", "settings", "reason"),
    [
        ("ppo", {}, "over the critic's values"),
        ("reinforce", {"baseline": "value", "critic": CriticConfig()}, "over the critic's values"),
        ("reinforce++", {"kl_coefficient": 0.1}, "kl_placement='reward'"),
    ],
)
def test_an_agent_that_needs_tokens_of_all_ranks_says_why(case: str, settings: dict[str, Any], reason: str) -> None:
    def build(ranks: Ranks, gathers: Gathering = "rows") -> None:
        ranks.gathers = gathers
        make_agent(case, **settings)

    check_refused(build, reason)
    assert on_ranks(2, lambda ranks: build(ranks, "auto")) == [None, None]
