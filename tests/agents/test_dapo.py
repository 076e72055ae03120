"""DAPO's dynamic sampling: which problems a step learns from."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from agents import Trajectory, rollout
from tests.agents.agent_cases import all_weights, env_with, make_agent, playing_policy, sort_env
from tests.agents.trajectories import scored

GROUP = 3


SCORES = {"flat": (1.0, 1.0, 1.0), "spread": (0.0, 1.0, 1.0), "broken": (math.nan,) * 3, "mixed": (math.nan, 0.0, 1.0)}


def scripted(script: list[tuple[str, ...]]) -> Any:
    """Gives the groups that a script says, in place of playing: for each round the kind of each of 4 groups."""

    def play(env: object, number: int, policy: object = None) -> list[Trajectory]:
        return [
            scored(score, group=group, problem_id=f"{number}/{group}/{name}")
            for group, name in enumerate(script[number])
            for score in SCORES[name]
        ]

    return SimpleNamespace(episodes=lambda env, number: number, play=play)


FLAT = ("flat",) * 4


@pytest.mark.parametrize(
    ("script", "max_rounds", "expected", "rounds"),
    [
        # A round whose groups all have spread is enough.
        ([("spread", "mixed", "spread", "spread")], 4, "0/0/spread 0/1/mixed 0/2/spread 0/3/spread", 1),
        # Groups without spread are replaced by those of later rounds.
        (
            [
                ("flat", "spread", "broken", "flat"),
                ("flat", "flat", "flat", "spread"),
                ("spread", "spread", "spread", "flat"),
            ],
            4,
            "0/1/spread 1/3/spread 2/0/spread 2/1/spread",
            3,
        ),
        # After the last round they fill the step up.
        ([("flat", "spread", "broken", "flat"), FLAT], 2, "0/1/spread 0/0/flat 0/2/broken 0/3/flat", 2),
        # Rounds go on from where the last step stopped.
        ([FLAT, FLAT, ("spread",) * 4], 4, "2/0/spread 2/1/spread 2/2/spread 2/3/spread", 2),
    ],
)
def test_steps_learn_from_groups_with_spread(
    script: list[tuple[str, ...]], max_rounds: int, expected: str, rounds: int
) -> None:
    agent: Any = make_agent("dapo", max_rounds=max_rounds)
    first = len(script) - rounds
    trajectories, took = agent.sample_batch(scripted(script), None, first)
    assert [one.problem_id for one in trajectories] == [name for name in expected.split() for _ in range(GROUP)]
    assert [one.group for one in trajectories] == [group for group in range(4) for _ in range(GROUP)]
    assert took == rounds


def test_with_one_round_and_equal_clip_bounds_it_is_grpo() -> None:
    assert make_agent("dapo").config.clip_high == 0.28
    results = []
    for case, settings in (("dapo", {"max_rounds": 1, "clip_high": 0.2}), ("grpo", {})):
        env = sort_env(case)
        agent = make_agent(case, playing_policy(env), **settings)
        start = all_weights(agent)
        agent.learn(env, steps=3)
        assert not torch.equal(all_weights(agent), start)
        results.append(all_weights(agent))
    assert torch.equal(*results)


def test_what_is_learned_from_has_spread_and_what_was_played_for_it_is_counted() -> None:
    env = env_with(lambda completion, problem: completion[:1].isdigit())
    agent = make_agent("dapo", playing_policy(env), problems_per_step=4, group_size=2, max_rounds=3)
    trajectories, rounds = agent.collect(env, 0)
    played = [
        one for number in range(rounds) for one in rollout(env, agent.policy, agent.sampling.episodes(env, number))
    ]
    flat = sum(one.score == other.score for one, other in zip(played[::2], played[1::2], strict=True))
    spread = len(played) // 2 - flat
    assert flat > 0
    pairs = zip(trajectories[::2], trajectories[1::2], strict=True)
    assert sum(one.score != other.score for one, other in pairs) == min(4, spread)
    agent.learn(env, steps=1)
    assert agent.progress.rounds == rounds
    assert agent.tokens == sum(int(one.policy_mask.sum()) for one in played)
