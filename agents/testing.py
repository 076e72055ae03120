"""Checks that try out your own agents and policies, and the checks of `rlvr_envs.testing`, for the tests of your package.

Checks of agents and policies are not in `rlvr_envs.testing`, since `rlvr_envs` imports neither `agents` nor torch.
"""

from __future__ import annotations

import dataclasses
import math
import tempfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from agents.batch import Batch
from agents.learn.agent import Agent
from agents.policies.check import check_policy
from agents.policies.transformers.loading import tiny_model
from agents.policies.transformers.policy import CausalLMPolicy
from agents.registry import agent_classes, config_class, require_agent
from agents.settings.agent import AgentConfig
from agents.types import Trajectory
from rlvr_envs.testing import check_dataset, check_token_env, check_verifier
from verifiers import InvalidArgumentError, Outcome, Problem, Verdict

__all__ = ["check_agent", "check_dataset", "check_policy", "check_token_env", "check_verifier"]

_PROBLEMS, _GROUP = 4, 4


def check_agent(agent: str | type[Agent], config: AgentConfig | None = None, *, seed: int = 0) -> None:
    """Train an agent for two steps on a tiny policy, and check the properties that training relies on.

    The loss must fall if a token with a positive advantage becomes more probable, and must have no gradient if the advantage is
    0. An episode whose verifier broke must leave all advantages finite. Training must be repeatable, and a checkpoint must hold
    everything that the next step depends on.

    Args:
        agent: A class of agents, or a name as for `agents.agent_classes`.
        config: Settings of the agent, by default the defaults of its config class; the batch has 4 problems, with 4 completions
            of each, or 1 if `group_size` is 1.
        seed: Seed of the weights and of sampling.

    Raises:
        InvalidArgumentError: If a check fails; the message says what was expected, what happened instead, and the usual cause.
    """
    if isinstance(agent, str):
        cls, config_cls = agent_classes(agent)
    else:
        cls = require_agent(agent, getattr(agent, "__qualname__", repr(agent)))
        config_cls = config_class(cls)
    chosen = config_cls() if config is None else config
    group = 1 if chosen.group_size == 1 else _GROUP
    checker = _AgentChecker(cls, dataclasses.replace(chosen, problems_per_step=_PROBLEMS, group_size=group, seed=seed))
    try:
        checker.check()
    finally:
        checker.env.close()


class _AgentChecker:
    def __init__(self, cls: type[Agent], config: AgentConfig) -> None:
        self.cls = cls
        self.config = config
        self.env: Any = gymnasium.make_vec(
            "rlvr/Sort-v0", num_envs=8, tokenizer="char", max_new_tokens=4, copy=False, verifier=_SCORES
        )

    def check(self) -> None:
        agent = self._new()
        trajectories, _ = agent.collect(self.env, 0)
        batch, advantages = agent.compute_advantages(trajectories)
        self._advantages(batch, advantages)
        self._loss(agent, batch, advantages)
        self._errored(trajectories)
        self._training()

    def _new(self) -> Agent:
        model = tiny_model(
            int(self.env.single_action_space.n),
            seed=self.config.seed,
            layers=1,
            hidden_size=16,
            heads=2,
            intermediate_size=16,
            max_tokens=64,
        )
        return self.cls(CausalLMPolicy(model), self.config)

    def _expect(self, holds: bool, expected: str, came: object, hint: str) -> None:
        if not holds:
            raise InvalidArgumentError(
                f"the agent {self.cls.__name__} fails its check. Expected: {expected}; got {came}. {hint}"
            )

    def _advantages(self, batch: Batch, advantages: Tensor) -> None:
        used = advantages[batch.loss_mask]
        self._expect(
            bool(torch.isfinite(used).all()),
            "finite advantages of the policy's tokens",
            f"{int((~used.isfinite()).sum())} of {used.numel()} that are not",
            "A standard deviation may be 0: add a small number before dividing",
        )
        self._expect(
            not advantages.requires_grad,
            "advantages without a gradient",
            "some that require one",
            "They are constants in the loss: compute them under torch.no_grad(), or detach() them",
        )

    def _loss(self, agent: Agent, batch: Batch, advantages: Tensor) -> None:
        tail = batch.positions_from(batch.first)
        mask = tail.loss_mask
        losses, gradient = self._gradient(agent, tail, advantages[:, batch.first :])
        self._expect(
            bool(torch.isfinite(losses[mask]).all() and torch.isfinite(gradient[mask]).all()),
            "a finite loss with a finite gradient at the policy's tokens",
            losses[mask].tolist(),
            "Tokens outside the loss mask may hold anything, but must not spoil others",
        )
        _, rising = self._gradient(agent, tail, torch.ones_like(advantages[:, batch.first :]))
        self._expect(
            float(rising[mask].sum()) < 0,
            "a loss that falls as tokens with a positive advantage become more probable",
            f"a gradient of {float(rising[mask].sum()):.3g} with respect to their log-probabilities",
            "The loss is minimised: it has a minus sign before the advantage",
        )
        if agent.vanishes_without_advantage:
            _, none = self._gradient(agent, tail, torch.zeros_like(advantages[:, batch.first :]))
            self._expect(
                bool((none == 0).all()),
                "no gradient where the advantage is 0",
                f"one of up to {float(none.abs().max()):.3g}",
                "Completions without advantages are skipped; set vanishes_without_advantage = False if they should not be",
            )

    def _gradient(self, agent: Agent, batch: Batch, advantages: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of each token, and the gradient of the losses of the policy's own tokens by the log-probabilities."""
        logprobs = batch.old.detach().clone().requires_grad_()
        losses: Any = agent.loss(batch, logprobs, advantages)
        shape = tuple(losses.shape) if isinstance(losses, Tensor) else losses
        self._expect(
            shape == tuple(logprobs.shape),
            f"a loss of each token, of shape {tuple(logprobs.shape)}",
            shape,
            "The learner averages it by `aggregation`: return no mean",
        )
        self._expect(
            losses.requires_grad,
            "a loss with a gradient with respect to the log-probabilities",
            "one without",
            "Use the argument `logprobs`, which is the current policy's, and do not detach it",
        )
        (gradient,) = torch.autograd.grad(losses[batch.loss_mask].sum(), logprobs)
        return losses.detach(), gradient

    def _errored(self, trajectories: list[Trajectory]) -> None:
        batch, advantages = self._new().compute_advantages([_errored(trajectories[0]), *trajectories[1:]])
        used = advantages[batch.loss_mask]
        self._expect(
            bool(torch.isfinite(used).all()),
            "finite advantages beside an episode whose verifier broke",
            f"{int((~used.isfinite()).sum())} of {used.numel()} that are not",
            "Its score is NaN: leave out rows where batch.valid is False, with torch.where rather than by multiplying with 0",
        )

    def _training(self) -> None:
        first, second = self._new(), self._new()
        before = _weights(first)
        with tempfile.TemporaryDirectory() as folder:
            for agent in (first, second):
                agent.learn(self.env, steps=1)
            self._expect(
                not torch.equal(before, _weights(first)),
                "other weights after a step with different scores",
                "the same",
                "The advantages or the gradient of the loss are all 0",
            )
            self._expect(
                torch.equal(_weights(first), _weights(second)),
                "the same weights after the same step",
                "others",
                "Draw what is random from a generator that is seeded by config.seed and the step",
            )
            first.save(Path(folder) / "checkpoint")
            resumed = self._new()
            resumed.load(Path(folder) / "checkpoint")
        for agent in (first, resumed):
            agent.learn(self.env, steps=2)
        self._expect(
            torch.equal(_weights(first), _weights(resumed)),
            "the same second step after loading the checkpoint of the first",
            "another",
            "What an agent keeps between steps belongs in own_state() and load_own_state()",
        )


def _share_of_digits(completion: str, problem: Problem) -> float:
    return sum(map(str.isdigit, completion)) / 4


def _variety(completion: str, problem: Problem) -> float:
    return len(set(completion)) / 4


_SCORES = ("weighted_sum", {"parts": {"digits": _share_of_digits, "variety": _variety}})
"""Scores that vary under a policy with random weights, in two parts for agents that look at parts."""


def _errored(trajectory: Trajectory) -> Trajectory:
    rewards = np.zeros_like(trajectory.rewards)
    rewards[-1] = math.nan
    verdict = Verdict.of(Outcome.VERIFIER_ERROR, detail={"error": "broken on purpose by check_agent"})
    return dataclasses.replace(trajectory, rewards=rewards, verdict=verdict, terminated=False, truncated=True)


def _weights(agent: Agent) -> Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in agent.policy.parameters()]).clone()
