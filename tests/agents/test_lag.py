"""Sampling beside learning: which weights sample which batch, and that nothing depends on how fast either is."""

from __future__ import annotations

import _thread
import copy
import itertools
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch

from agents import Agent, GRPOConfig, LearnerConfig, Run, TorchPolicy, Trajectory
from agents.importance import Correction
from agents.learn.lag import LaggedSampling
from agents.learn.sampling import Sampling
from agents.learn.source import OnDemand
from agents.registry import agent_classes
from agents.runs.run import step_checkpoints
from agents.types import Action
from tests.agents.agent_cases import all_weights, digits, env_with, make_agent, playing_policy, sort_env, timeless
from verifiers import CheckpointError, InvalidArgumentError, Problem, VerifierFailureError

DEADLINE_S = 60.0


def agent_for(env: Any, case: str = "grpo", **settings: Any) -> Agent:
    return make_agent(case, playing_policy(env), **{"problems_per_step": 2, **settings})


def learned(case: str, steps: int, **settings: Any) -> tuple[Agent, list[dict[str, float]]]:
    """An agent after some steps, and the metrics of each."""
    env = sort_env(case)
    agent = agent_for(env, case, **settings)
    rows: list[dict[str, float]] = []
    agent.learn(env, steps=steps, callbacks=[lambda _, metrics: rows.append(repeatable(metrics))])
    return agent, rows


def repeatable(metrics: Any) -> dict[str, float]:
    """Metrics without what is timed."""
    return {name: value for name, value in timeless(metrics).items() if name != "sampling/hidden"}


def sampling_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "sampling"]


def checksum(policy: TorchPolicy) -> float:
    return sum(float(weight.detach().double().sum()) for weight in policy.parameters())


class Recorded(agent_classes("grpo")[0]):  # type: ignore[misc] # a class that is found by name
    """GRPO that keeps the versions of the tokens of each batch it learns from."""

    versions: list[set[int]]

    def update(self, trajectories: Sequence[Trajectory]) -> dict[str, float]:
        self.versions.append({int(one) for each in trajectories for one in each.policy_version[each.policy_mask]})
        metrics: dict[str, float] = super().update(trajectories)
        return metrics


@pytest.mark.parametrize("lag", [0, 1, 3])
def test_batch_n_is_sampled_with_the_weights_after_update_n_minus_lag(lag: int) -> None:
    steps, epochs, acted = 5, 2, set[tuple[int, float]]()
    act = TorchPolicy.act

    def recording(policy: TorchPolicy, *arguments: Any, **keywords: Any) -> Action:
        acted.add((policy.version, checksum(policy)))
        return act(policy, *arguments, **keywords)

    env = sort_env("grpo")
    torch.manual_seed(0)
    size = int(env.single_action_space.n)
    policy = TorchPolicy(torch.nn.Embedding(size, 4), torch.nn.Linear(4, size))
    learner = LearnerConfig(learning_rate=1e-2)
    agent = Recorded(policy, GRPOConfig(problems_per_step=2, group_size=3, epochs=epochs, lag=lag, learner=learner))
    agent.versions = []
    weights, ages = [checksum(policy)], []

    def after(_: int, metrics: Any) -> None:
        weights.append(checksum(policy))
        ages.append(metrics.get("sampling/age", 0))

    with mock.patch.object(TorchPolicy, "act", recording):
        agent.learn(env, steps=steps, callbacks=[after])
    expected = [max(0, number - lag) for number in range(steps)]
    assert agent.versions == [{epochs * updates} for updates in expected]
    assert ages == [min(lag, number) for number in range(steps)]
    assert len(set(weights)) == steps + 1
    assert acted == {(epochs * updates, weights[updates]) for updates in expected}


def one_after_the_other(case: str, steps: int, lag: int) -> Agent:
    """What a lag means, in one thread: every batch is played with weights that were kept for it."""
    env = sort_env(case)
    agent = agent_for(env, case, lag=lag)
    kept = [copy.deepcopy(agent.policy.model)]
    for number in range(steps):
        policy = agent.policy.with_model(kept[max(0, number - lag)])
        policy.version = max(0, number - lag)
        sampling = Sampling(agent, policy, agent.ranks, lambda: agent.progress.problems)
        sampled = sampling.sample(env, agent.progress.rounds)
        agent.update(sampled.trajectories)
        agent.progress.count(sampled)
        kept.append(copy.deepcopy(agent.policy.model))
    return agent


@pytest.mark.parametrize(("case", "lag"), [("grpo/kl", 1), ("dapo", 2)])
def test_a_lag_is_the_same_as_one_thread_that_keeps_old_weights(case: str, lag: int) -> None:
    agent, rows = learned(case, 4, lag=lag)
    assert torch.equal(all_weights(agent), all_weights(one_after_the_other(case, 4, lag)))
    again, same = learned(case, 4, lag=lag)
    assert torch.equal(all_weights(agent), all_weights(again))
    np.testing.assert_equal(same, rows)  # NaN equals itself
    assert rows[-1]["sampling/age"] == lag
    assert not sampling_threads()


def test_without_a_lag_nothing_is_weighted_and_no_thread_is_started() -> None:
    agent, rows = learned("grpo", 1)
    assert isinstance(agent.source, OnDemand)
    assert not {"sampling/age", "sampling/importance_sampling_ratio/max"} & rows[0].keys()
    agent = agent_for(sort_env("grpo"), lag=1, importance_correction="none")
    assert agent.updating.enrich.correction is Correction.NONE


def wait_until_sampled(agent: Agent) -> None:
    """Wait until everything that the thread was asked for is there."""
    deadline = time.monotonic() + DEADLINE_S
    assert isinstance(agent.source, LaggedSampling)
    while any(batch["sampled"] is None for batch in agent.source.state()["ahead"]):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(("case", "sampled"), [("dapo", True), ("grpo/kl", False)])
def test_a_run_that_is_resumed_is_the_run_that_never_stopped(case: str, sampled: bool, tmp_path: Path) -> None:
    """From a checkpoint with the batches, and from one with the weights that are to sample them."""
    whole, rows = learned(case, 5, lag=2)
    env = sort_env(case)
    first = agent_for(env, case, lag=2)

    def save(step: int, _: object) -> None:
        if step == 2 and sampled:
            wait_until_sampled(first)
            first.save(tmp_path / "saved")

    first.learn(env, steps=4 if sampled else 2, callbacks=[save])
    if not sampled:
        first.save(tmp_path / "saved")
    resumed = agent_for(sort_env(case), case, lag=2)
    resumed.load(tmp_path / "saved")
    assert isinstance(resumed.source, LaggedSampling)
    assert [batch["sampled"] is not None for batch in resumed.source.state()["ahead"]] == [sampled] * 2
    more: list[dict[str, float]] = []
    resumed.learn(sort_env(case), steps=5, callbacks=[lambda _, metrics: more.append(repeatable(metrics))])
    np.testing.assert_equal(more, rows[2:])
    assert torch.equal(all_weights(resumed), all_weights(whole))
    assert (resumed.progress.rounds, resumed.tokens) == (whole.progress.rounds, whole.tokens)


def test_a_checkpoint_of_another_lag_is_refused(tmp_path: Path) -> None:
    env = sort_env("grpo")
    for lag, other in ((0, 1), (2, 0), (2, 1)):
        agent_for(env, lag=lag).save(tmp_path / f"{lag}")
        with pytest.raises(CheckpointError, match=r"(no|a) lag of [12], and this agent has (no|a) lag of"):
            agent_for(env, lag=other).load(tmp_path / f"{lag}")


def test_an_exception_while_sampling_is_raised_where_the_batch_is_wanted(tmp_path: Path) -> None:
    env = sort_env("grpo")
    agent = Recorded(playing_policy(env), GRPOConfig(problems_per_step=2, group_size=3, lag=1))
    agent.versions = []

    def check(trajectory: Trajectory) -> None:
        if threading.current_thread().name == "sampling" and int(trajectory.policy_version.max()) == 1:
            raise ValueError("this episode can't be trained on")

    with Run(tmp_path / "run", {}, loggers=()) as run, mock.patch.object(agent, "check_episode", check):
        with pytest.raises(ValueError, match="this episode can't be trained on"):
            agent.learn(env, steps=9, run=run)
        assert [path.name for path in step_checkpoints(run.folder)] == ["step-000002"]
    assert (agent.steps, agent.versions) == (2, [{0}, {0}])
    assert not sampling_threads()
    agent.learn(env, steps=4)
    assert agent.versions == [{0}, {0}, {1}, {2}]


@pytest.mark.filterwarnings("ignore:the verifier broke")
def test_a_verifier_that_is_mended_judges_again_what_it_broke_on() -> None:
    whole, _ = learned("grpo", 4, lag=1, problems_per_step=11)  # with 33 episodes one step is enough to tell
    broken = threading.Event()

    def flaky(completion: str, problem: Problem) -> float:
        if broken.is_set():
            raise ConnectionError("the judge is away")
        return digits(completion, problem)

    env = env_with(flaky)
    agent = agent_for(env, lag=1, problems_per_step=11)
    # The first batches are sampled with the verifier that works.
    away = [lambda *_: wait_until_sampled(agent), lambda *_: broken.set()]
    with pytest.raises(VerifierFailureError, match="the judge is away"):
        agent.learn(env, steps=40, callbacks=away)
    assert agent.steps == 2
    broken.clear()
    agent.learn(env, steps=4)
    assert torch.equal(all_weights(agent), all_weights(whole))


def test_an_interrupt_ends_both_and_keeps_the_steps_done(tmp_path: Path) -> None:
    """One that arrives while learning waits for a batch that is not finished."""
    whole, _ = learned("grpo", 4, lag=1)
    calls = itertools.count()

    def interrupting(completion: str, problem: Problem) -> float:
        if next(calls) == 2 * 2 * 3:  # the first episode of the third batch
            _thread.interrupt_main()
        return digits(completion, problem)

    env = env_with(interrupting)
    agent = agent_for(env, lag=1)
    with Run(tmp_path / "run", {}, loggers=()) as run:
        with pytest.raises(KeyboardInterrupt):
            agent.learn(env, steps=100, run=run)
        (saved,) = step_checkpoints(run.folder)
    assert not sampling_threads()
    assert agent.steps < 4
    resumed = agent_for(sort_env("grpo"), lag=1)
    resumed.load(saved)
    resumed.learn(sort_env("grpo"), steps=4)
    assert torch.equal(all_weights(resumed), all_weights(whole))


def test_sampling_goes_on_while_the_agent_learns() -> None:
    """Each waits for the other, which only works if both go on at the same time."""
    learning, sampling, judged = threading.Event(), threading.Event(), itertools.count()

    def judged_beside_learning(completion: str, problem: Problem) -> float:
        if next(judged) >= 6:  # in the second batch
            assert learning.wait(DEADLINE_S)
            sampling.set()
        return digits(completion, problem)

    def update_beside_sampling(trajectories: Sequence[Trajectory]) -> dict[str, float]:
        batches.append(len(trajectories))
        learning.set()
        assert sampling.wait(DEADLINE_S)
        return update(trajectories)

    env, batches = env_with(judged_beside_learning), list[int]()
    agent = agent_for(env, lag=1)
    update = agent.update
    agent.update = update_beside_sampling  # type: ignore[method-assign]
    agent.learn(env, steps=2)
    assert batches == [6, 6]


def test_an_evaluation_waits_for_the_batch_that_is_being_sampled() -> None:
    env = sort_env("grpo")
    agent = agent_for(env, lag=1)
    agent.learn(env, steps=3, callbacks=[lambda *_: agent.evaluate(env, problems=2)])
    assert torch.equal(all_weights(agent), all_weights(learned("grpo", 3, lag=1)[0]))


def test_weights_that_are_not_trained_are_shared() -> None:
    env = sort_env("grpo")
    policy = playing_policy(env)
    frozen = next(policy.model.parameters()).requires_grad_(False)
    agent = make_agent("grpo", policy, problems_per_step=2, lag=1)
    agent.learn(env, steps=2)
    assert isinstance(agent.source, LaggedSampling)
    assert agent.source._copy is not None
    mine = list(agent.source._copy.model.parameters())
    assert mine[0] is frozen
    assert not any(one is other for one, other in zip(mine[1:], list(policy.model.parameters())[1:], strict=True))


def test_what_would_be_wrong_is_refused() -> None:
    for name in ("npg", "trpo", "opo"):  # need batches of the current weights
        with pytest.raises(InvalidArgumentError, match="lag must be 0, got 1"):
            agent_classes(name)[1](lag=1)
    with pytest.raises(InvalidArgumentError, match=r"has no ratio .* with lag=2, leave out importance_correction"):
        agent_classes("rloo")[1](lag=2, importance_correction="none")
    policy, engine = playing_policy(sort_env("grpo")), type("Engine", (), {})()
    engine.learner = policy
    with pytest.raises(InvalidArgumentError, match=r"takes weights from a copy of the policy.*Engine has none"):
        agent_classes("grpo")[0](policy, GRPOConfig(lag=1), sampler=engine)
