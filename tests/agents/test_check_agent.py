"""`check_agent`: agents of this distribution pass, and each kind of mistake is named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from agents import GRPO, Agent, AgentConfig, Batch, GRPOConfig, agent_classes
from agents.losses import clipped_surrogate
from agents.registry import config_class
from agents.testing import check_agent
from tests.agents.agent_cases import NEEDED
from verifiers import InvalidArgumentError


def check(name: str) -> None:
    check_agent(name, agent_classes(name)[1](**NEEDED.get(name, {})))


@pytest.mark.parametrize("name", ["reinforce", "remax", "gdpo"])
def test_agents_of_this_distribution_pass(name: str) -> None:
    check(name)


class Sound(Agent):
    """Scores minus the mean of the valid ones."""

    name = "sound"

    def advantages(self, batch: Batch) -> Tensor:
        scores = torch.where(batch.valid, batch.scores, 0.0)
        mean = scores.sum() / batch.valid.sum()
        return torch.where(batch.valid, scores - mean, 0.0)[:, None].expand(batch.tokens.shape)

    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        return clipped_surrogate(logprobs, batch.old, advantages, 0.2, 0.2)


class WrongSign(Sound):
    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        return -super().loss(batch, logprobs, advantages)


class Spoiled(Sound):
    def advantages(self, batch: Batch) -> Tensor:
        return (batch.scores - batch.scores.mean())[:, None].expand(batch.tokens.shape)


class Undefined(Sound):
    def advantages(self, batch: Batch) -> Tensor:
        return super().advantages(batch) * torch.nan


class WithGradient(Sound):
    def advantages(self, batch: Batch) -> Tensor:
        return super().advantages(batch).detach().clone().requires_grad_()


class Averaged(Sound):
    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        return super().loss(batch, logprobs, advantages).mean()


class Detached(Sound):
    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        return super().loss(batch, logprobs.detach(), advantages)


class Restless(Sound):
    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        return super().loss(batch, logprobs, advantages) - 0.01 * logprobs


class Idle(Sound):
    def advantages(self, batch: Batch) -> Tensor:
        return super().advantages(batch) * 0


class Forgetful(Sound):
    """Weights each step by the number of those before it, and does not save that."""

    updates = 0

    def advantages(self, batch: Batch) -> Tensor:
        return super().advantages(batch) * (1 + self.updates)

    def after_update(self, batch: Batch) -> None:
        self.updates += 1


_numbers: Iterator[int] = iter(range(1, 10**6))


class Unseeded(Sound):
    def advantages(self, batch: Batch) -> Tensor:
        return super().advantages(batch) * next(_numbers)


class Rounded(Sound):
    def advantages(self, batch: Batch) -> Tensor:
        return super().advantages(batch).long()


class Namesake(Sound):
    name = "grpo"


class MaxDeviation(GRPO):
    name = "max-deviation"


class HalfDeviation(MaxDeviation):
    name = "half-deviation"


class Nameless(Agent):
    advantages = Sound.advantages
    loss = Sound.loss


def test_an_agent_of_ones_own_passes() -> None:
    check_agent(Sound)
    check_agent(f"{__name__}:Sound", AgentConfig(group_size=1))


@pytest.mark.parametrize("cls", [MaxDeviation, HalfDeviation])
def test_a_subclass_has_the_settings_of_the_class_that_it_extends(cls: type[Agent]) -> None:
    assert config_class(cls) is GRPOConfig
    check_agent(cls)


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (WrongSign, r"agent WrongSign .*Expected: a loss that falls .*; got a gradient of .*minus sign"),
        (Spoiled, "finite advantages beside an episode whose verifier broke; got .*batch.valid"),
        (Undefined, "Expected: finite advantages of the policy's tokens; got .*add a small number"),
        (WithGradient, "advantages without a gradient; got .*constants in the loss"),
        (Averaged, r"a loss of each token, of shape \(16, \d+\); got \(\).*return no mean"),
        (Detached, "a loss with a gradient with respect to the log-probabilities; got one without"),
        (Restless, r"no gradient where the advantage is 0; got one of up to 0\.01.*vanishes_without_advantage"),
        (Idle, "other weights after a step with different scores; got the same"),
        (Unseeded, "the same weights after the same step; got others.*seeded by config.seed"),
        (Forgetful, r"the same second step after loading the checkpoint .*own_state\(\)"),
        (Rounded, r"advantages must return a floating-point number .*; got one of torch.int64"),
        (Nameless, "'Nameless' has no name"),
        (Namesake, "has the name 'grpo' of a built-in agent"),
        (Agent, "'Agent' does not define advantages, loss"),
        (dict, "'dict' is not a subclass of agents.Agent"),
    ],
)
def test_a_mistake_is_named(cls: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        check_agent(cls)
