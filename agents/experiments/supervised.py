"""Supervised learning from gold completions: a warm start for reinforcement learning.

The loss is the negative log-likelihood of the completion's tokens and its end token. This is the policy-gradient loss with
advantage 1 on given tokens, so the same learner is used.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import rlvr_envs
from agents import learn, policies
from agents.batch import Batch, make_batch
from agents.deferred import torch
from agents.interrupts import interrupts_deferred
from agents.learn.learner import Loss
from agents.losses import Aggregation, policy_gradient
from agents.policies.trainable import TokenOutputs
from agents.rollouts.given import given_episode, given_turns
from agents.rollouts.problem_order import problems_of_step
from agents.settings.agent import MAX_COMPLETIONS
from agents.settings.learner import LearnerConfig
from agents.types import Trajectory
from verifiers import AtLeast, Between, DataError, InvalidArgumentError, Problem, check_types

if TYPE_CHECKING:
    from torch import Tensor


_RANDOM_STEPS = 900
_TRAINED_STEPS = 100


@dataclass(frozen=True)
class SupervisedConfig:
    """Settings of supervised learning.

    Raises:
        InvalidArgumentError: If a value is out of range.
    """

    steps: Annotated[int | None, AtLeast(1)] = None
    """Number of optimiser steps. None means 900 for a model with random weights, and 100 for a trained model (see
    `for_model`)."""
    batch_size: Annotated[int, Between(1, MAX_COMPLETIONS)] = 128
    """Number of examples in each optimiser step."""
    seed: Annotated[int, AtLeast(0)] = 0
    """Seed of the order of the examples."""
    learner: LearnerConfig = field(default_factory=lambda: LearnerConfig(micro_batch_size=512))
    """Settings of the optimiser."""

    def for_model(self, model: Any, *, trained: bool) -> SupervisedConfig:
        """Return these settings, with the number of steps and the learning rate chosen for a torch model if they are not set.

        Args:
            model: The model to train.
            trained: Whether the model has been trained before, so that only the task is new.
        """
        steps = self.steps if self.steps is not None else _TRAINED_STEPS if trained else _RANDOM_STEPS
        return dataclasses.replace(self, steps=steps, learner=self.learner.for_model(model, supervised=True))

    def __post_init__(self) -> None:
        check_types(self)


def demonstration(streams: rlvr_envs.TokenStreams, index: int) -> Trajectory:
    """Make the episode of a problem's gold completion, with a stop token if the environment did not end the episode.

    If the data set has a method `gold_turns`, the episode consists of the turns that this method returns for the problem, and
    is played in the first stream. Each turn must be a text that depends only on the prompt and the answers to earlier turns.

    Raises:
        DataError: If the problem has no gold completion, or is a game without gold turns.
    """
    problem = streams.dataset[index]
    gold_turns = getattr(streams.dataset, "gold_turns", None)
    if gold_turns is not None:
        return given_turns(streams, index, gold_turns(problem))
    gold, render = _gold_completion(streams, problem), streams.rules.render_prompt
    gold = render.answered(problem, gold) if isinstance(render, rlvr_envs.PromptRenderer) else gold
    return given_episode(streams, problem, streams.prompt_tokens(index), gold, group=index)


def _gold_completion(streams: rlvr_envs.TokenStreams, problem: Problem) -> str:
    gold = problem.metadata.get("gold_completion")
    if not isinstance(gold, str):
        raise DataError(f"problem {problem.id!r} has no gold completion in its metadata: it can't be trained on")
    if hasattr(streams.rules.interaction, "game"):
        raise DataError(
            f"problem {problem.id!r} is a game whose gold completion is known from its answers alone: a model that learns it "
            "learns to guess. Give the data set a method gold_turns(problem) with the turns of a good player, or start from "
            "another model"
        )
    return gold


def supervised_learner(policy: policies.CausalLMPolicy, config: SupervisedConfig) -> learn.Learner:
    """The learner for supervised training, before its first step."""
    return learn.Learner(policy, config.learner.for_model(policy.model, supervised=True))


def train_supervised(
    policy: policies.CausalLMPolicy,
    streams: rlvr_envs.TokenStreams,
    config: SupervisedConfig,
    *,
    seconds: float | None = None,
    on_step: Callable[[int, float], None] | None = None,
    learner: learn.Learner | None = None,
    demonstrate: Callable[[rlvr_envs.TokenStreams, int], Trajectory] = demonstration,
) -> int:
    """Fit a policy to gold completions, or to other demonstrations.

    Args:
        policy: The policy to train.
        streams: Source of the problems, their prompts and the tokenizer.
        config: Settings of the training.
        seconds: Number of seconds after which training stops, in place of `config.steps`.
        on_step: Called with the number of each step and its mean loss per token, in nats.
        learner: The learner to use, whose earlier steps count; by default a new learner from `supervised_learner`.
        demonstrate: Makes the demonstration of a problem, which is an episode of one or several turns (`given_turns`).

    Returns:
        The number of steps so far, including the learner's earlier steps.

    Raises:
        InvalidArgumentError: If neither `config.steps` nor `seconds` is set.
    """
    if seconds is None and config.steps is None:
        raise InvalidArgumentError(
            "no number of steps is set: set `steps` or `seconds`, or let `config.for_model` choose"
        )
    learner = learner or supervised_learner(policy, config)
    learner.run_steps = config.steps if seconds is None else None
    started = time.perf_counter()
    step = learner.steps
    while (time.perf_counter() - started < seconds) if seconds is not None else step < (config.steps or 0):
        indices = problems_of_step(len(streams.dataset), step, config.batch_size, config.seed)
        demonstrations = [demonstrate(streams, index) for index in indices]
        with interrupts_deferred():  # an interrupt never leaves a partial step
            metrics = _fit(learner, demonstrations)
            step += 1
            if on_step is not None:
                on_step(step, metrics["loss"])
    return step


def _fit(learner: learn.Learner, demonstrations: Sequence[Trajectory]) -> dict[str, float]:
    batch = make_batch(demonstrations)
    ones = torch.ones(batch.tokens.shape, dtype=torch.float64)
    return learner.step(batch, ones, Loss(_likelihood, aggregation=Aggregation.TOKEN_MEAN))


def _likelihood(batch: Batch, outputs: TokenOutputs, advantages: Tensor) -> dict[str, Tensor]:
    return {"likelihood": policy_gradient(outputs.logprobs, advantages)}
