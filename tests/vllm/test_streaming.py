"""Completions that are returned as they finish, in any order, and engines that share them and die."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from agents import Episode, VLLMConfig, VLLMPolicy, rollout
from agents.policies.vllm.engine import Request, SampledCompletion, Sampling
from agents.policies.vllm.engine_group import EngineGroup
from agents.policies.vllm.engine_weights import state_of
from agents.policies.vllm.launcher import own_gpu
from tests.envs.helpers import says
from tests.vllm.doubles import DelayedEngine, TorchEngine
from tests.vllm.test_policy import check_logprobs, only, shift
from tests.vllm.worlds import PROMPTS, learner, world
from verifiers import EngineDiedError, EngineError, InvalidArgumentError

EPISODES = [Episode(problem=index % len(PROMPTS), group=index, seed=1000 + index) for index in range(8)]
COMPARED = ("tokens", "policy_mask", "logprobs", "rewards", "policy_version", "action_masks")


def assert_equal(mine: Sequence[Any], theirs: Sequence[Any]) -> None:
    """Trajectories are the same, in the same order."""
    assert len(mine) == len(theirs)
    for one, other in zip(mine, theirs, strict=True):
        for name in COMPARED:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
        assert (one.group, one.seed, one.problem_id) == (other.group, other.seed, other.problem_id)
        assert (one.terminated, one.truncated, one.verdict) == (other.terminated, other.truncated, other.verdict)


def waiting(policy: Any, env: Any, like: VLLMPolicy | None = None, **settings: Any) -> list[Any]:
    """The trajectories without streaming, where each `act` returns a completion of every row, of another's version."""
    sampler = VLLMPolicy.for_env(policy, env, VLLMConfig(streaming=False), engine=TorchEngine(policy.model, **settings))
    if like is not None:
        sampler._weights.version, sampler._weights.state = like._weights.version, like._weights.state
    return rollout(env, sampler, EPISODES)


@pytest.fixture(scope="module")
def expected() -> list[Any]:
    """The trajectories of `learner()` where each `act` waits for all rows and nothing dies."""
    return waiting(learner(), world(8))


# Streaming


def test_so_it_is_with_several_turns_stop_strings_and_kept_tokens() -> None:
    policy = learner(temperature=2.0, top_k=5)
    env = world(
        4,
        stop=("3",),
        max_new_tokens=12,
        max_inserted_tokens=4,
        legal_actions=only("0123456789"),
        interaction=lambda turns, problem: says("7=") if len(turns) < 3 else None,
    )
    expected = waiting(policy, env, says_kept=True)
    assert any((~each.policy_mask[each.prompt_length :]).sum() == 4 for each in expected)
    sampler = VLLMPolicy.for_env(policy, env, engine=DelayedEngine(policy.model, says_kept=True))
    assert_equal(rollout(env, sampler, EPISODES), expected)


class Reluctant(TorchEngine):
    """Finishes the first request only once so many others were made."""

    def __init__(self, model: Any, others: int) -> None:
        super().__init__(model)
        self.left = others
        self.held: list[tuple[Request, Sampling, Future[SampledCompletion]]] = []

    def submit(self, requests: Sequence[Request], sampling: Sampling) -> list[Future[SampledCompletion]]:
        if not self.held and self.left > 0:
            self.held = [(requests[0], sampling, Future())]
            return [self.held[0][2], *super().submit(requests[1:], sampling)]
        futures = super().submit(requests, sampling)
        self.left -= len(requests)
        if self.left <= 0 and self.held and self.held[0][2].set_running_or_notify_cancel():
            self.held[0][2].set_result(self.generate([self.held[0][0]], sampling)[0])
        return futures


def test_rows_that_are_free_begin_other_episodes_while_a_slow_one_is_sampled(expected: list[Any]) -> None:
    """With an `act` that waits for all rows this would never end."""
    policy, env = learner(), world(2)
    engine = Reluctant(policy.model, others=len(EPISODES) - 2)
    ended: list[int] = []
    sampler = VLLMPolicy.for_env(policy, env, engine=engine)
    played = rollout(env, sampler, EPISODES, on_episode=lambda trajectory: ended.append(trajectory.group))
    assert ended.index(0) >= len(EPISODES) - 2  # with the last of the others, or after it
    assert sorted(ended) == list(range(len(EPISODES)))
    assert_equal(played, expected)


def test_an_act_asks_once_for_a_completion_and_again_if_the_row_begins_another_episode() -> None:
    policy, env = learner(), world(2)
    engine = Reluctant(policy.model, others=10**6)
    sampler = VLLMPolicy.for_env(policy, env, engine=engine)
    observation, _ = env.reset(options={"problems": np.array([0, 1])})
    rows = np.array([0, 1])
    sampler.begin(rows, np.array([1, 2], dtype=np.uint64))
    assert (sampler.act(observation).counts > 0).tolist() == [False, True]
    first = engine.held[0][2]
    sampler.act(observation)
    length = int(observation["length"][1, 0])
    assert [request.prompt for request in engine.requests] == [observation["tokens"][1, :length].tolist()]
    assert not first.done()
    sampler.begin(rows[:1], np.array([3], dtype=np.uint64))
    assert first.cancelled()
    assert (sampler.act(observation).counts > 0).all()


def test_a_thread_that_waits_learns_that_another_has_stopped_sampling() -> None:
    policy, env = learner(), world(1)
    engine = Reluctant(policy.model, others=10**6)
    sampler = VLLMPolicy.for_env(policy, env, engine=engine)
    observation, _ = env.reset(options={"problems": np.array([0])})
    with ThreadPoolExecutor(1) as pool:
        acting = pool.submit(sampler.act, observation)
        while not (engine.held or acting.done()):
            time.sleep(0.01)
        sampler.engines.cancel_all()
        with pytest.raises(EngineError, match="sampling was stopped elsewhere"):
            acting.result(60)


def test_what_is_under_way_is_stopped_where_a_rollout_breaks_off_and_before_new_weights() -> None:
    policy, env = learner(), world(2)
    engine = Reluctant(policy.model, others=0)
    sampler = VLLMPolicy.for_env(policy, env, engine=engine)
    observation, _ = env.reset(options={"problems": np.array([0, 1])})

    def break_off() -> None:
        engine.left = 10**6
        sampler.at_temperature(0.0).act(observation)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), sampler.sampling():
        break_off()
    assert engine.held[0][2].cancelled()
    engine.held = []
    sampler.act(observation)
    assert not engine.held[0][2].done()
    shift(policy)
    sampler.sync()
    assert engine.held[0][2].cancelled()
    assert (sampler.act(observation).counts > 0).all()


def test_a_wrapper_that_steps_all_rows_needs_an_action_of_each() -> None:
    class Plain(gymnasium.vector.VectorWrapper[Any, Any, Any, Any, Any]):
        """Hides `step_many`."""

    policy, env = learner(), world(2, max_new_tokens=1)
    engine = Reluctant(policy.model, others=10**6)
    with pytest.raises(InvalidArgumentError, match=r"no token yet for some rows, but the outermost wrapper.* Plain,"):
        rollout(Plain(env), VLLMPolicy.for_env(policy, env, engine=engine), EPISODES)


# Several engines


class Engines:
    """A group of engines that finish in random orders, and what it was made of.

    Args:
        policy: Whose weights the engines begin with.
        dies_after: For each engine, the number of finished requests after which it dies; None if it never does.
        max_restarts: Of the group. Engines that are started again begin with other weights, until they are given some.
        again: Like `dies_after`, of those that are started again.
    """

    def __init__(
        self, policy: Any, dies_after: Sequence[int | None], *, max_restarts: int = 0, again: Sequence[int | None] = ()
    ) -> None:
        self.started: list[DelayedEngine] = []
        self._policy, self._first, self._deaths = policy, len(dies_after), [*dies_after, *again]
        self.group = EngineGroup(self._start, len(dies_after), max_restarts=max_restarts)

    def _start(self, numbers: Sequence[int]) -> list[DelayedEngine]:
        for _ in numbers:
            count = len(self.started)
            model = self._policy.model if count < self._first else learner(seed=9).model
            deaths = self._deaths[count] if count < len(self._deaths) else None
            self.started.append(DelayedEngine(model, count, dies_after=deaths))
        return self.started[-len(numbers) :]

    @property
    def finished(self) -> list[int]:
        """The seeds of all requests that were finished."""
        return sorted(request.seed for engine in self.started for request in engine.finished)


def test_a_request_goes_to_the_engine_with_the_fewest() -> None:
    policy = learner()
    slow, fast = Reluctant(policy.model, others=10**6), TorchEngine(policy.model)
    engines = EngineGroup(lambda numbers: [slow, fast], 2)
    sampling = Sampling(1.0, ())
    requests = [Request([1, 2], seed, 2) for seed in range(5)]
    first = engines.submit(requests[:1], sampling, lambda member: None)
    others = [ticket for one in requests[1:] for ticket in engines.submit([one], sampling, lambda member: None)]
    assert [ticket.member.number for ticket in first + others if ticket.member] == [0, 1, 1, 1, 1]


def test_new_weights_reach_every_engine_and_each_is_compared() -> None:
    policy, env = learner(), world(6)
    engines = Engines(policy, [None, None])
    sampler = VLLMPolicy.for_env(policy, env, engine=engines.group)
    rollout(env, sampler, EPISODES)
    shift(policy)
    assert sampler.sync()["sampling/probe_difference"] < 1e-6
    assert_equal(rollout(env, sampler, EPISODES), waiting(policy, env, sampler))
    shift(policy)
    engines.started[1].rpc = lambda method, *arguments: [None]  # type: ignore[method-assign] # keeps its old weights
    with pytest.raises(EngineError, match="off the learner's"):
        sampler.sync()


@pytest.mark.parametrize(
    ("device", "ranks", "visible", "expected"),
    [
        ("cpu", 2, "", None),
        ("cuda:1", 1, "", None),
        ("cuda:1", 2, "", "1"),
        ("cuda:1", 2, "4,6", "6"),
        ("cuda:0", 2, "GPU-8f,GPU-9a", "GPU-8f"),
    ],
)
def test_the_engine_of_a_rank_has_the_gpu_of_its_rank(
    device: str, ranks: int, visible: str, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert own_gpu(torch.device(device), ranks) == expected


# Engines that die


@pytest.mark.parametrize(
    ("rows", "dies_after"),
    [
        *((rows, [None]) for rows in (1, 3, 8)),
        (6, [None, None, None]),
        *((5, dies_after) for dies_after in ([0, None], [None, 2], [1, 1, None], [2, 2, 2])),
    ],
)
def test_trajectories_depend_neither_on_the_order_of_completions_nor_on_engines_and_their_deaths(
    rows: int, dies_after: list[int | None], expected: list[Any]
) -> None:
    policy, env = learner(), world(rows)
    engines = Engines(policy, dies_after, max_restarts=3)
    sampler = VLLMPolicy.for_env(policy, env, engine=engines.group)
    sampler._weights.state = state_of(policy)  # as after a sync, whose requests would count
    ended: list[int] = []
    played = rollout(env, sampler, EPISODES, on_episode=lambda trajectory: ended.append(trajectory.group))
    assert_equal(played, expected)
    assert sorted(ended) == list(range(len(EPISODES)))
    if not any(isinstance(count, int) for count in dies_after):
        assert len(engines.finished) == len(EPISODES)  # none is sampled twice
        assert all(len(engine.submitted) >= rows // len(dies_after) for engine in engines.started)


class Silent(TorchEngine):
    """Finishes nothing by itself, and may cancel it when it is closed, as the connection to a server does."""

    def __init__(self, model: Any, *, cancels: bool) -> None:
        super().__init__(model)
        self.cancels = cancels
        self.futures: list[Future[SampledCompletion]] = []

    def submit(self, requests: Sequence[Request], sampling: Sampling) -> list[Future[SampledCompletion]]:
        self.futures += (made := [Future() for _ in requests])
        return made

    def close(self) -> None:
        super().close()
        for future in self.futures if self.cancels else ():
            future.cancel()


@pytest.mark.parametrize("cancels", [False, True])
def test_all_requests_of_an_engine_that_died_are_made_again_whichever_says_so(cancels: bool) -> None:
    policy = learner()
    engines = iter([Silent(policy.model, cancels=cancels), TorchEngine(policy.model)])
    group = EngineGroup(lambda numbers: [next(engines)], max_restarts=1)
    tickets = group.submit([Request([1, 2], seed, 2) for seed in range(3)], Sampling(1.0, ()), lambda member: None)
    late = tickets[1].future
    tickets[0].future.set_exception(EngineDiedError("the engine died"))
    assert group.wait(tickets, lambda member: None) == [True] * 3
    if not late.cancelled():
        late.set_exception(EngineDiedError("the engine died"))  # which says nothing of its successor
    assert group.wait(tickets, lambda member: None) == [True] * 3
    assert [len(group.take(ticket).tokens) for ticket in tickets] == [2] * 3
    assert group.restarts == 1
    assert group.living


def test_a_completion_that_arrived_too_late_is_not_taken_for_one_of_new_weights() -> None:
    policy, env = learner(), world(2)
    engine = Reluctant(policy.model, others=10**6)
    sampler = VLLMPolicy.for_env(policy, env, engine=engine)
    observation, _ = env.reset(options={"problems": np.array([0, 1])})
    sampler.begin(np.array([0, 1]), np.array([1, 2], dtype=np.uint64))
    assert (sampler.act(observation).counts > 0).tolist() == [False, True]
    engine.held[0][2].set_result(SampledCompletion([1], [-99.0]))
    shift(policy)
    sampler.sync()
    action = sampler.act(observation, rows=np.array([True, False]))
    assert action.counts[0] > 0
    assert action.logprobs[0, 0] > -50


@pytest.mark.parametrize("rows", [2, 8])
def test_the_only_engine_is_started_again_with_the_weights_that_it_had(rows: int, expected: list[Any]) -> None:
    policy, env = learner(), world(rows)
    engines = Engines(policy, [8], max_restarts=2, again=[6])
    sampler = VLLMPolicy.for_env(policy, env, engine=engines.group)
    with sampler.sampling() as metrics:
        assert metrics["sampling/engine_restarts"] == 0
        played = rollout(env, sampler, EPISODES)
    assert_equal(played, expected)
    assert len(engines.started) == 3
    assert [engine.reported[:2] for engine in engines.started] == [["load", "reset"]] * 3
    check_logprobs(played, policy)


def test_deaths_are_an_error_once_there_were_too_many() -> None:
    policy, env = learner(), world(4)
    engines = Engines(policy, [6], max_restarts=2, again=[6, 6, 6])
    sampler = VLLMPolicy.for_env(policy, env, engine=engines.group)
    with pytest.raises(EngineDiedError, match="the engine died"), sampler.sampling():
        rollout(env, sampler, EPISODES)
    assert len(engines.started) == 3
    with pytest.raises(EngineDiedError, match="the engine died"):
        sampler.sync()


def test_an_engine_that_is_not_started_again_is_an_error_too() -> None:
    policy, env = learner(), world(4)
    engine = DelayedEngine(policy.model, dies_after=6)
    refusals: list[int] = []

    def start(numbers: Sequence[int]) -> list[DelayedEngine]:
        if engine.reported:
            refusals.extend(numbers)
            raise EngineError("no memory")
        return [engine]

    sampler = VLLMPolicy.for_env(policy, env, engine=EngineGroup(start, max_restarts=2))
    with pytest.raises(EngineError, match="no memory"), sampler.sampling():
        rollout(env, sampler, EPISODES)
    assert refusals == [0, 0]


@pytest.mark.parametrize(("refusals", "max_restarts", "living"), [(2, 3, [1, 1, 1, 2]), (9, 2, [1, 1, 1, 1])])
def test_an_engine_that_can_not_be_started_is_tried_again_before_the_next_weights_while_others_sample(
    refusals: int, max_restarts: int, living: list[int]
) -> None:
    policy, env = learner(), world(4)
    refused: list[EngineError] = []

    def start(numbers: Sequence[int]) -> list[TorchEngine]:
        if len(numbers) == 2:
            return [TorchEngine(policy.model), DelayedEngine(policy.model, dies_after=5)]
        if len(refused) < refusals:
            refused.append(EngineError("no memory"))
            raise refused[-1]
        return [TorchEngine(policy.model)]

    engines = EngineGroup(start, 2, max_restarts=max_restarts)
    sampler = VLLMPolicy.for_env(policy, env, engine=engines)
    for count in living:
        with sampler.sampling():
            rollout(env, sampler, EPISODES)
        assert len(engines.living) == count
        shift(policy)
    assert (engines.restarts, engines.restartable) == (max_restarts, False)
    with sampler.sampling() as metrics:
        assert metrics
    with sampler.sampling() as metrics:
        assert not metrics  # a dead engine is no reason to send weights that the others have


def test_weights_that_are_not_known_any_more_are_not_made_up() -> None:
    policy, env = learner(), world(4)
    engines = Engines(policy, [7], max_restarts=1)
    sampler = VLLMPolicy.for_env(policy, env, engine=engines.group)
    sampler.sync()
    shift(policy)
    with pytest.raises(EngineError, match="the weights have changed since the engine that died got them"):
        rollout(env, sampler, EPISODES)


def test_each_engine_is_started_with_its_own_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, started = learner(top_p=0.9), []

    def start(folder: Any, settings: Any, *, python: str, environment: dict[str, str]) -> TorchEngine:
        assert settings["return_sampling_mask"]
        started.append(environment)
        return TorchEngine(policy.model)

    monkeypatch.setattr("agents.policies.vllm.launcher.ProcessEngine", start)
    config = VLLMConfig(engines=2, devices=["1", "2,3"], python="/other/bin/python", environment={"A": "b"})
    sampler = VLLMPolicy.for_env(policy, world(1), config)
    assert sorted(started, key=str) == [
        {"CUDA_VISIBLE_DEVICES": "1", "A": "b"},
        {"CUDA_VISIBLE_DEVICES": "2,3", "A": "b"},
    ]
    assert len(sampler.engines.members) == 2
