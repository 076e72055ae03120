"""DAPO's dynamic sampling: which problems a step learns from."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from agents import Trajectory, rollout
from tests.agents.agent_cases import all_weights, env_with, make_agent, playing_policy, sort_env
from tests.agents.trajectories import scored

GROUP = 3


class Scripted:
    """Gives the groups that a script says, in place of playing: for each round the scores of each of 4 groups."""

    def __init__(self, script: tuple[tuple[str, ...], ...]) -> None:
        self.script = script

    def episodes(self, env: Any, number: int) -> Any:
        return number

    def play(self, env: Any, episodes: Any, policy: Any = None) -> list[Trajectory]:
        scores = {
            "flat": (1.0, 1.0, 1.0),
            "spread": (0.0, 1.0, 1.0),
            "broken": (math.nan,) * 3,
            "mixed": (math.nan, 0.0, 1.0),
        }
        return [
            scored(score, group=group, problem_id=f"{episodes}/{group}/{name}")
            for group, name in enumerate(self.script[episodes])
            for score in scores[name]
        ]


def collected(*script: tuple[str, ...], max_rounds: int = 4, first: int = 0) -> tuple[list[str], int, list[int]]:
    """The problems of the step, the rounds it took, and the groups' numbers."""
    agent = make_agent("dapo", max_rounds=max_rounds)
    trajectories, rounds = agent.sample_batch(Scripted(script), None, first)  # type: ignore[arg-type] # nothing is played
    assert len(trajectories) == 4 * GROUP
    return [one.problem_id for one in trajectories[::GROUP]], rounds, [one.group for one in trajectories]


NUMBERED = [group for group in range(4) for _ in range(GROUP)]


def test_a_round_whose_groups_all_have_spread_is_enough() -> None:
    result, rounds, groups = collected(("spread", "mixed", "spread", "spread"))
    assert result == ["0/0/spread", "0/1/mixed", "0/2/spread", "0/3/spread"]
    assert rounds == 1
    assert groups == NUMBERED


def test_groups_without_spread_are_replaced_by_those_of_later_rounds() -> None:
    result, rounds, groups = collected(
        ("flat", "spread", "broken", "flat"), ("flat", "flat", "flat", "spread"), ("spread", "spread", "spread", "flat")
    )
    assert result == ["0/1/spread", "1/3/spread", "2/0/spread", "2/1/spread"]
    assert rounds == 3
    assert groups == NUMBERED


def test_after_the_last_round_groups_without_spread_fill_the_step_up() -> None:
    result, rounds, groups = collected(("flat", "spread", "broken", "flat"), ("flat",) * 4, max_rounds=2)
    assert result == ["0/1/spread", "0/0/flat", "0/2/broken", "0/3/flat"]
    assert rounds == 2
    assert groups == NUMBERED


def test_rounds_go_on_from_where_the_last_step_stopped() -> None:
    result, rounds, _ = collected(("flat",) * 4, ("flat",) * 4, ("flat",) * 4, ("spread",) * 4, first=2)
    assert result == [f"3/{group}/spread" for group in range(4)]
    assert rounds == 2


def weights_after(case: str, change: Callable[[Any], Any] = lambda agent: None, **settings: Any) -> torch.Tensor:
    env = sort_env(case)
    agent = make_agent(case, playing_policy(env), **settings)
    change(agent)
    start = all_weights(agent)
    agent.learn(env, steps=3)
    assert not torch.equal(all_weights(agent), start)
    return all_weights(agent)


def test_with_one_round_and_equal_clip_bounds_it_is_grpo() -> None:
    assert make_agent("dapo").config.clip_high == 0.28
    assert torch.equal(weights_after("dapo", max_rounds=1, clip_high=0.2), weights_after("grpo"))


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
