"""`check_agent`: agents of this distribution pass, and each kind of mistake is named."""

from __future__ import annotations

import itertools
from collections.abc import Callable
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


@pytest.mark.parametrize("name", ["reinforce", "remax", "gdpo"])
def test_agents_of_this_distribution_pass(name: str) -> None:
    check_agent(name, agent_classes(name)[1](**NEEDED.get(name, {})))


class Sound(Agent):
    """Scores minus the mean of the valid ones."""

    name = "sound"

    def advantages(self, batch: Batch) -> Tensor:
        scores = torch.where(batch.valid, batch.scores, 0.0)
        mean = scores.sum() / batch.valid.sum()
        return torch.where(batch.valid, scores - mean, 0.0)[:, None].expand(batch.tokens.shape)

    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        return clipped_surrogate(logprobs, batch.old, advantages, 0.2, 0.2)


def advantages(change: Callable[[Tensor, Any], Tensor]) -> dict[str, Any]:
    """Changed advantages of `Sound`, of which the agent is given, too."""
    return {"advantages": lambda self, batch: change(Sound.advantages(self, batch), self)}


def loss(change: Callable[[Tensor, Tensor], Tensor]) -> dict[str, Any]:
    """A changed loss of `Sound`, of which the log-probabilities are given, too."""
    return {"loss": lambda self, batch, logprobs, own: change(Sound.loss(self, batch, logprobs, own), logprobs)}


class MaxDeviation(GRPO):
    name = "max-deviation"


def test_an_agent_of_ones_own_passes_and_has_the_settings_of_the_class_that_it_extends() -> None:
    check_agent(Sound)
    check_agent(f"{__name__}:Sound", AgentConfig(group_size=1))
    for cls in (MaxDeviation, type("HalfDeviation", (MaxDeviation,), {"name": "half-deviation"})):
        assert config_class(cls) is GRPOConfig
        check_agent(cls)


numbers = itertools.count(1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (loss(lambda own, _: -own), r"agent Changed .*Expected: a loss that falls .*; got a gradient of .*minus sign"),
        (
            {"advantages": lambda _, batch: (batch.scores - batch.scores.mean())[:, None].expand(batch.tokens.shape)},
            "finite advantages beside an episode whose verifier broke; got .*batch.valid",
        ),
        (advantages(lambda own, _: own * torch.nan), "finite advantages of the policy's tokens; got .*small number"),
        (advantages(lambda own, _: own.clone().requires_grad_()), "advantages without a gradient; got .*in the loss"),
        (loss(lambda own, _: own.mean()), r"a loss of each token, of shape \(16, \d+\); got \(\).*return no mean"),
        (loss(lambda own, _: own.detach()), "gradient with respect to the log-probabilities; got one without"),
        (loss(lambda own, logprobs: own - 0.01 * logprobs), r"advantage is 0; got .* 0\.01.*vanishes_without_"),
        (advantages(lambda own, _: own * 0), "other weights after a step with different scores; got the same"),
        (advantages(lambda own, _: own * next(numbers)), "same weights after the same step; .*by config.seed"),
        (advantages(lambda own, _: own.long()), "must return a floating-point number .*; got one of torch.int64"),
        (  # weights each step by the number of those before it, and does not save that
            {"updates": 1, "after_update": lambda self, batch: setattr(self, "updates", self.updates + 1)}
            | advantages(lambda own, agent: own * agent.updates),
            r"the same second step after loading the checkpoint .*own_state\(\)",
        ),
        ({"name": None}, "'Changed' has no name"),
        ({"name": "grpo"}, "has the name 'grpo' of a built-in agent"),
    ],
)
def test_a_mistake_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        check_agent(type("Changed", (Sound,), changes))


def test_what_is_no_agent_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match="'Agent' does not define advantages, loss"):
        check_agent(Agent)
    with pytest.raises(InvalidArgumentError, match=r"'dict' is not a subclass of agents.Agent"):
        check_agent(dict)  # type: ignore[arg-type]
