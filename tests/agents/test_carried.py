"""Partial rollouts: episodes that are interrupted and go on with other weights, and the groups that make a batch."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from agents import GRPO, Episode, Trajectory, make_batch, rollout
from agents.learn.batch_passes import token_logprobs
from agents.learn.carried import CarriedGroup, carried_metrics, fill_batch
from agents.rollouts.loop import PartialEpisode, play_on
from tests.agents.agent_cases import all_weights, make_agent, playing_policy
from tests.agents.rounding import FLOAT64, assert_equal, assert_equal_stored
from tests.agents.test_contexts import EPISODES, Cuts, reader, transformer, world
from tests.agents.test_lag import repeatable
from tests.agents.trajectories import trajectory
from tests.distributed.threads import on_ranks
from verifiers import CheckpointError, InvalidArgumentError

Change = Callable[[PartialEpisode], PartialEpisode]


def segments(env: Any, policy: Any, episodes: Sequence[Episode], tokens: int, change: Change) -> list[Trajectory]:
    """The trajectories of episodes that are interrupted after so many tokens."""
    current: dict[int, Any] = dict(enumerate(episodes))
    for _ in range(100):
        waiting = [index for index, one in current.items() if not isinstance(one, Trajectory)]
        if not waiting:
            return list(current.values())
        before = [current[index] for index in waiting]
        played = dict(play_on(env, policy, before, tokens))
        assert sorted(played) == list(range(len(waiting)))
        for index, one in played.items():
            if isinstance(one, PartialEpisode):
                assert (one.played.terminated, one.played.truncated, one.played.verdict) == (False, False, None)
                was = before[index].played.policy_mask.sum() if isinstance(before[index], PartialEpisode) else 0
                assert one.played.policy_mask.sum() == was + tokens
                one = change(one)
            current[waiting[index]] = one
    raise AssertionError("this does not end")


@FLOAT64
@pytest.mark.parametrize(
    ("tokens", "rows", "late", "deep"), [(1, 4, False, False), (4, 2, True, False), (2, 6, False, True)]
)
@pytest.mark.parametrize("lost", [False, True])
def test_an_episode_that_is_interrupted_is_the_one_that_is_not(
    tokens: int, rows: int, late: bool, deep: bool, lost: bool
) -> None:
    """Over turns, contexts, candidates and verdicts that come late, and also where the environment's states were lost."""
    policy: Any = transformer(top_k=3) if deep else reader()
    change: Change = (lambda one: dataclasses.replace(one, state=None)) if lost else (lambda one: one)
    env = world(rows, Cuts(0), verification="deferred" if late else "sync")
    mine = segments(env, policy, EPISODES, tokens, change)
    env.close()
    for one, other in zip(mine, rollout(world(4, Cuts(0)), policy, EPISODES), strict=True):
        assert (one.action_masks is not None) == deep
        assert_equal_stored(one.logprobs, other.logprobs, size=10)
        for field in dataclasses.fields(one):
            if field.name != "logprobs":
                expected = getattr(other, field.name)
                np.testing.assert_equal(getattr(one, field.name), expected, err_msg=field.name)


# Filling a batch


class Lengths:
    """Plays episodes whose lengths in segments are their seeds, as `PlayOn`."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, unfinished: Sequence[Any]) -> list[Any]:
        self.calls += 1
        played = []
        for one in unfinished:
            episode = one.episode if isinstance(one, PartialEpisode) else one
            count = 1 + (int(one.played.policy_mask.sum()) if isinstance(one, PartialEpisode) else 0)
            sofar = trajectory([False, *[True] * count], group=episode.group)
            played.append(sofar if count == episode.seed else PartialEpisode(episode, sofar))
        return played


def group_of(number: int, lengths: Sequence[int], begun: int = 0) -> CarriedGroup:
    return CarriedGroup(begun, tuple(Episode(number, number, length) for length in lengths))


def numbers(groups: Sequence[CarriedGroup]) -> list[int]:
    return [one.group for group in groups for one in group.members[:1]]


def test_the_first_groups_that_are_done_make_a_batch() -> None:
    play = Lengths()
    groups = [group_of(0, [5, 1]), group_of(1, [1, 2]), group_of(2, [2, 1]), group_of(3, [3, 3]), group_of(4, [1, 1])]
    done, rest = fill_batch(groups, 2, 0, play)
    assert (numbers(done), numbers(rest), play.calls) == ([1, 4], [0, 2, 3], 2)
    assert [len(group.unfinished) for group in rest] == [1, 0, 2]  # group 2 was done too, after group 1
    assert carried_metrics(rest[1:2], 1, 0) == {"sampling/carried_share": 0.0, "sampling/carried_steps": 1.0}


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_batches_are_those_of_the_definition(data: st.DataObject) -> None:
    """Over several steps: what is done first, with what can't be carried on; nothing is lost, doubled or carried too far."""
    wanted = data.draw(st.integers(1, 4))
    extra, most, size = data.draw(st.integers(1, wanted)), data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    lengths = data.draw(st.lists(st.lists(st.integers(1, 9), min_size=size, max_size=size), min_size=60, max_size=60))
    carried, left, seen = list[CarriedGroup](), dict[int, int](), Counter[int]()
    for step in range(8):
        first, play = step * wanted + len(carried), Lengths()
        begun = [group_of(number, lengths[number], step) for number in range(first, (step + 1) * wanted + extra)]
        left |= {number: max(lengths[number]) for number in numbers(begun)}
        required = [group.members[0].group for group in carried if step - group.begun >= most]
        done, rest = fill_batch([*carried, *begun], wanted, len(required), play)
        in_order = sorted(left, key=lambda number: (number not in required, max(left[number], 0), number))
        expected = sorted(in_order[:wanted])
        assert numbers(done) == expected
        assert play.calls == max([0, *(left[number] for number in expected)], default=0)
        assert all(step - group.begun <= most for group in done)
        assert len(rest) == extra
        seen.update(expected)
        left = {number: segments - play.calls for number, segments in left.items() if number not in expected}
        carried = rest
    assert set(seen.values()) == {1}
    assert sorted([*seen, *left]) == list(range(8 * wanted + extra))


# Learning


def unequal_env(rows: int = 6, **settings: Any) -> Any:
    """Completions of 1 to 12 tokens, scored by how many different characters they have."""
    return gymnasium.make_vec(
        "rlvr/Sort-v0", num_envs=rows, tokenizer="char", max_new_tokens=12, copy=False, stop=tuple("012"),
        **{"verifier": lambda completion, problem: len(set(completion)) / 12, **settings},
    )  # fmt: skip


class Recorded(GRPO):
    """GRPO that keeps what it learns from, and its weights before each step."""

    batches: list[list[Trajectory]]
    weights: list[dict[str, Any]]

    def update(self, trajectories: Sequence[Trajectory]) -> dict[str, float]:
        self.batches.append(list(trajectories))
        metrics = super().update(trajectories)
        self.weights.append({name: weight.clone() for name, weight in self.policy.model.state_dict().items()})
        return metrics


def recorded(
    env: Any, steps: int = 6, *, policy: Any = None, **changes: Any
) -> tuple[Recorded, list[dict[str, float]]]:
    """An agent after some steps with partial rollouts, and the metrics of each."""
    agent = recorder(env, policy, **changes)
    rows: list[dict[str, float]] = []
    agent.learn(env, steps=steps, callbacks=[lambda _, metrics: rows.append(repeatable(metrics))])
    return agent, rows


def recorder(env: Any, policy: Any = None, **changes: Any) -> Recorded:
    chosen = {"problems_per_step": 3, "carried_groups": 2, "segment_tokens": 2, "max_carried_steps": 2, **changes}
    if not chosen["carried_groups"]:
        del chosen["segment_tokens"], chosen["max_carried_steps"]
    template = make_agent("grpo", playing_policy(env) if policy is None else policy, **chosen)
    agent = Recorded(template.policy, template.config)
    agent.batches = []
    agent.weights = [{name: weight.clone() for name, weight in agent.policy.model.state_dict().items()}]
    return agent


@FLOAT64
@pytest.mark.parametrize("lag", [0, 2])
def test_every_token_was_sampled_with_the_weights_of_its_version(lag: int) -> None:
    agent, rows = recorded(unequal_env(), lag=lag)
    mixed = 0
    for step, batch in enumerate(agent.batches):
        versions = [np.unique(one.policy_version[one.policy_mask]) for one in batch]
        assert max(each.max() for each in versions) == max(0, step - lag)
        assert min(each.min() for each in versions) >= max(0, step - lag - 2)
        mixed += sum(len(each) > 1 for each in versions)
        older = np.concatenate([one.policy_version[one.policy_mask] for one in batch]) < max(0, step - lag)
        assert rows[step]["sampling/carried_share"] == pytest.approx(older.mean())
        for version in range(step + 1):
            agent.policy.model.load_state_dict(agent.weights[version])
            agent.policy.weights_changed()
            with torch.no_grad():
                recomputed = token_logprobs(agent.policy, make_batch(batch), 8)
            for one, expected in zip(batch, recomputed, strict=True):
                sampled = one.policy_mask & (one.policy_version == version)
                assert_equal_stored(one.logprobs[sampled], expected[: len(sampled)][sampled], size=10)
    assert mixed >= 5
    assert max(row["sampling/carried_steps"] for row in rows) in (1, 2)


def test_groups_stay_whole_and_none_is_lost_or_doubled() -> None:
    env = unequal_env()
    agent, _ = recorded(env, steps=8)
    groups = [one.group for batch in agent.batches for one in batch]
    assert set(Counter(groups).values()) == {agent.config.group_size}
    assert all(len({one.group for one in batch}) == 3 for batch in agent.batches)
    rest = [one.group for group in agent.progress.carried for one in group.members]
    assert sorted({*groups, *rest}) == list(range(8 * 3 + 2))
    assert not {*groups} & {*rest}
    begun = [one for number in range(9) for one in agent.sampling.episodes(env, number)]
    by_seed = {one.seed: one.problem for one in begun}
    assert all(by_seed[one.seed] == one.problem for batch in agent.batches for one in batch)
    carried = [getattr(one, "played", one) for group in agent.progress.carried for one in group.members]
    played = [one for one in [*itertools.chain(*agent.batches), *carried] if isinstance(one, Trajectory)]
    assert agent.tokens == sum(int(one.policy_mask.sum()) for one in played)


@FLOAT64
def test_tokens_of_older_weights_are_weighted_by_their_importance() -> None:
    env = unequal_env()
    agent, _ = recorded(env, steps=3)
    sampled = agent.sampling.sample(env, 3, agent.progress.carried)
    batch: Any = agent.prepare(make_batch(sampled.trajectories))
    now = token_logprobs(agent.policy, batch, 8)
    expected = torch.exp(now.double() - batch.logprobs.double()).clamp(max=agent.config.importance_cap)
    mask = batch.loss_mask
    assert_equal_stored(batch.importance[mask], expected[mask], size=10)
    older = torch.from_numpy(np.concatenate([one.policy_version[one.policy_mask] < 3 for one in sampled.trajectories]))
    assert older.any()
    assert not older.all()
    on_policy = batch.importance[mask][~older]
    assert_equal_stored(on_policy, torch.ones_like(on_policy), size=10)


@FLOAT64
def test_a_run_does_not_depend_on_rows_or_ranks() -> None:
    """Ranks are threads here."""

    def learned(rows: int) -> Callable[[Any], Any]:
        def run(_: Any) -> Any:
            agent, metrics = recorded(unequal_env(rows), policy=policies.pop())
            seeds = [[one.seed for one in batch] for batch in agent.batches]
            return seeds, [row["reward"] for row in metrics], all_weights(agent)

        return run

    policies = [playing_policy(unequal_env()) for _ in range(7)]
    (seeds, rewards, weights), *others = [
        result for ranks, rows in ((1, 6), (1, 1), (2, 3), (3, 20)) for result in on_ranks(ranks, learned(rows))
    ]
    assert len(others) == 6
    for its_seeds, its_rewards, its_weights in others:
        assert its_seeds == seeds
        assert_equal(its_rewards, rewards)
        assert_equal(its_weights, weights)


@FLOAT64
@pytest.mark.parametrize("lag", [0, 1])
def test_a_run_that_is_resumed_is_the_run_that_never_stopped(lag: int, tmp_path: Path) -> None:
    """From a checkpoint after the first step that carries an interrupted episode over its update."""
    whole, rows = recorded(unequal_env(), steps=6, lag=lag)
    first, saved = recorder(unequal_env(), lag=lag), list[int]()

    def save(step: int, _: object) -> None:
        partial = any(isinstance(one, PartialEpisode) for group in first.progress.carried for one in group.members)
        if partial and not saved:
            saved.append(step)
            first.save(tmp_path / "saved")

    first.learn(unequal_env(), steps=6, callbacks=[save])
    assert saved[0] < 6
    resumed = recorder(unequal_env(), lag=lag)
    resumed.load(tmp_path / "saved")
    more: list[dict[str, float]] = []
    resumed.learn(unequal_env(), steps=6, callbacks=[lambda _, metrics: more.append(repeatable(metrics))])
    # What is carried is read again, in a batch of another width.
    for ours, theirs in zip(more, rows[saved[0] :], strict=True):
        assert ours.keys() == theirs.keys()
        assert_equal_stored(list(ours.values()), list(theirs.values()))
    assert_equal_stored(all_weights(resumed), all_weights(whole))
    assert (resumed.progress.rounds, resumed.tokens) == (whole.progress.rounds, whole.tokens)


def test_environments_without_states_and_checkpoints_of_other_settings_are_refused(tmp_path: Path) -> None:
    env = unequal_env()
    for mine, other in ((2, 0), (0, 2), (1, 2)):
        recorder(env, carried_groups=mine).save(tmp_path / f"{mine}")
        with pytest.raises(CheckpointError, match="carried groups"):
            recorder(env, carried_groups=other).load(tmp_path / f"{mine}")
    for changed in ({"problems_per_step": 2}, {"group_size": 2}):
        with pytest.raises(CheckpointError, match="carried groups of"):
            recorder(env, **changed).load(tmp_path / "2")
    cart_pole, agent = gymnasium.make_vec("CartPole-v1", num_envs=2), recorder(env)
    expected = "environments with tokens can go on with, and [A-Za-z]*VectorEnv is none: leave `carried_groups` out"
    with pytest.raises(InvalidArgumentError, match=expected):
        agent.learn(cart_pole, steps=1)
    with pytest.raises(InvalidArgumentError, match="TokenVectorEnv alone"):
        list(play_on(cart_pole, agent.policy, [], 1))
