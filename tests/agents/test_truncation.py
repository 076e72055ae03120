"""What a truncated episode counts, each rule by numbers worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from agents import Batch, Truncation, make_batch
from agents.truncation import apply_truncation
from tests.agents.agent_cases import make_agent
from tests.agents.trajectories import scored, trajectory
from verifiers import InvalidArgumentError


def batch() -> Batch:
    """An episode that ended, one that was cut off, and one that was cut off and whose verifier broke."""
    return make_batch(
        [
            trajectory([0, 1, 1, 1], rewards=[0, 1, 0, 2]),
            trajectory([0, 1, 0, 1, 1], rewards=[0, 1, 0, 0, 4], terminated=False, truncated=True),
            scored(math.nan, truncated=True),
        ]
    )


PAID = [[0, 1, 0, 2, 0], [0, 1, 0, 0, 4], [0, 0, 0, 0, 0]]


def applied(rule: Truncation, reward: float = 0.0, max_tokens: int | None = None, margin: int | None = None) -> Batch:
    return apply_truncation(batch(), rule, reward=reward, max_tokens=max_tokens, margin=margin)


@pytest.mark.parametrize("rule", [Truncation.SCORE, Truncation.BOOTSTRAP, Truncation.MASK, Truncation.FIXED_REWARD])
def test_what_each_rule_pays_and_learns_from(rule: Truncation) -> None:
    """A masked episode is compared with; a fixed reward takes the place of all that was paid."""
    before, after = batch(), applied(rule, reward=-1.5)
    second = [0, 0, 0, 0, -1.5] if rule is Truncation.FIXED_REWARD else PAID[1]
    assert after.rewards.tolist() == [PAID[0], second, PAID[2]]
    assert after.scores[:2].tolist() == [3, sum(second)]
    assert after.valid.tolist() == [True, True, False]
    learned = before.loss_mask & torch.tensor([[True], [rule is not Truncation.MASK], [rule is not Truncation.MASK]])
    assert torch.equal(after.loss_mask, learned)


@pytest.mark.parametrize(
    ("max_tokens", "margin", "penalty"), [(3, 2, -1), (4, 2, -0.5), (5, 4, -0.5), (5, 2, 0), (2, 2, -1)]
)
def test_the_soft_penalty_is_paid_with_the_last_token_and_by_all(max_tokens: int, margin: int, penalty: float) -> None:
    """Both have 3 tokens of their own; the environment's do not count."""
    after = applied(Truncation.SOFT_OVERLONG, max_tokens=max_tokens, margin=margin)
    assert after.rewards.tolist() == [[0, 1, 0, 2 + penalty, 0], [0, 1, 0, 0, 4 + penalty], [0, 0, 0, 0, 0]]
    assert after.scores[:2].tolist() == [3 + penalty, 5 + penalty]
    with pytest.raises(InvalidArgumentError, match="needs max_tokens and overlong_margin"):
        applied(Truncation.SOFT_OVERLONG, max_tokens=max_tokens)


def test_the_rule_reaches_advantages_and_denominators() -> None:
    """GRPO without scale on the two: 3 and 5, or 3 and -1; masked, the first stands alone in the mean over tokens."""

    def result(rule: str, **settings: Any) -> list[float]:
        agent = make_agent("grpo", scale="none", truncation=rule, **settings)
        return agent.advantages(agent.prepare(batch()))[:, -1].tolist()

    assert result("score") == [-1, 1, 0]
    assert result("mask") == [-1, 1, 0]
    assert result("fixed-reward", truncation_reward=-1.0) == [2, -2, 0]
    assert result("soft-overlong", max_tokens=4, overlong_margin=2) == [-1, 1, 0]
    agent = make_agent("grpo", scale="none", truncation="mask")
    assert agent.update([scored(1.0, length=4), scored(0.0, length=9, truncated=True)])["tokens"] == 3


def test_a_penalty_that_is_paid_on_a_token_of_the_environment_counts_for_the_decision_before_it() -> None:
    one = trajectory([0, 1, 1, 0], rewards=[0, 0, 0, 0], truncated=True)
    agent = make_agent("reinforce/none", truncation="fixed-reward", truncation_reward=2.0, gamma=0.5)
    assert agent.advantages(agent.prepare(make_batch([one]))).tolist() == [[0, 1, 2, 0]]
