"""Episodes of other ranks as the numbers of their rows."""

from __future__ import annotations

import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pytest

from agents import CriticConfig, Episode, Trajectory, make_batch
from agents.distributed.ranks import Ranks
from agents.distributed.rollouts import play_divided, row_of, trajectory_of
from agents.settings.choices import Gathering
from tests.agents.agent_cases import make_agent, some_batch, some_trajectory
from tests.agents.trajectories import tiny_policy
from tests.distributed.threads import on_ranks
from verifiers import InvalidArgumentError, Outcome


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

    for error in on_ranks(2, build):
        assert isinstance(error, InvalidArgumentError)
        assert reason in str(error)
    assert on_ranks(2, lambda ranks: build(ranks, "auto")) == [None, None]
