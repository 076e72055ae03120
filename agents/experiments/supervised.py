"""Supervised learning from gold completions: a warm start for reinforcement learning.

The loss is the negative log-likelihood of the completion's tokens and its end token. This is the policy-gradient loss with
advantage 1 on given tokens, so the same learner is used.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.batch import Batch, make_batch
from agents.config import MAX_COMPLETIONS
from agents.interrupts import interrupts_deferred
from agents.losses import Aggregation, policy_gradient
from agents.policies.trainable import TokenOutputs
from agents.policies.transformers.policy import CausalLMPolicy
from agents.rollouts.problem_order import problems_of_step
from agents.training.learner import Learner, LearnerConfig, Loss
from agents.types import Trajectory
from rlvr_envs import TokenStreams
from verifiers import DataError, InvalidArgumentError, check_types

_RANDOM_STEPS = 900
_TRAINED_STEPS = 100


@dataclass(frozen=True)
class SupervisedConfig:
    """Settings of supervised learning.

    Raises:
        InvalidArgumentError: If a value is out of range.
    """

    steps: int | None = None
    """Number of optimiser steps; None takes 900 for a model with random weights, and 100 for one that was trained before
    (see `for_model`)."""
    batch_size: int = 128
    """Number of examples in each optimiser step."""
    seed: int = 0
    """Seed of the order of the examples."""
    learner: LearnerConfig = field(default_factory=lambda: LearnerConfig(micro_batch_size=512))
    """Settings of the optimiser."""

    def for_model(self, model: Any, *, trained: bool) -> SupervisedConfig:
        """Return these settings with the number of steps and the learning rate chosen for a torch model, if not set.

        Args:
            model: The model to train.
            trained: Whether the model was trained before, so that only the task is new to it.
        """
        steps = self.steps if self.steps is not None else _TRAINED_STEPS if trained else _RANDOM_STEPS
        return dataclasses.replace(self, steps=steps, learner=self.learner.for_model(model, supervised=True))

    def __post_init__(self) -> None:
        check_types(self)
        for name, least in (("steps", 1), ("batch_size", 1), ("seed", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InvalidArgumentError(f"{name} must be at least {least}, got {value}")
        if self.batch_size > MAX_COMPLETIONS:
            raise InvalidArgumentError(f"batch_size must be at most {MAX_COMPLETIONS}, got {self.batch_size}")


def demonstration(streams: TokenStreams, index: int) -> Trajectory:
    """Make the episode of a problem's gold completion, with a stop token if the environment has not ended it by then.

    Raises:
        DataError: If the problem has no gold completion.
    """
    problem = streams.dataset[index]
    gold = problem.metadata.get("gold_completion")
    if not isinstance(gold, str):
        raise DataError(f"problem {problem.id!r} has no gold completion in its metadata: it can't be trained on")
    tokenizer = streams.rules.tokenizer
    prompt = streams.prompt_tokens(index)
    tokens = np.concatenate([prompt, tokenizer.encode(gold)])
    over = streams.rules.end_condition
    if over is None or not over(tokens, len(prompt), problem):
        tokens = np.append(tokens, np.int32(tokenizer.eos_token))
    return _episode(streams, index, gold, tokens, np.arange(len(tokens)) >= len(prompt))


def spoken(streams: TokenStreams, index: int, turns: Sequence[str]) -> Trajectory:
    """Make the episode of a problem in which the policy says these turns, each with a stop token if it does not stop by itself.

    Raises:
        InvalidArgumentError: If the environment ends the episode before the last turn, or goes on after it.
    """
    rules = dataclasses.replace(streams.rules, verification="sync", verifier=None)
    alone = TokenStreams(streams.dataset, rules, 1)
    alone.reset([0], [None], [index])
    own = np.zeros(alone.buffer_tokens, dtype=bool)
    over = False
    for turn in turns:
        if over:
            raise InvalidArgumentError(
                f"the episode of problem {index} was over before the turn {turn!r} of {list(turns)}"
            )
        said = np.append(rules.tokenizer.encode(turn), np.int32(rules.tokenizer.eos_token)).astype(np.int64)
        start = int(alone.length[0])
        transition = alone.advance(said[None])
        own[start : start + int(transition.consumed[0])] = True
        over = bool(transition.terminated[0] or transition.truncated[0])
    if not over:
        raise InvalidArgumentError(f"the episode of problem {index} goes on after the turns {list(turns)}")
    length = int(alone.length[0])
    return _episode(streams, index, turns[-1], alone.tokens[0, :length].copy(), own[:length])


def _episode(
    streams: TokenStreams, index: int, completion: str, tokens: NDArray[np.int32], own: NDArray[np.bool_]
) -> Trajectory:
    """An episode to be learned from, of tokens i32[l] of which those in the mask bool[l] are the policy's own."""
    prompt_length = len(streams.prompt_tokens(index))
    return Trajectory(
        problem_id=streams.dataset[index].id,
        group=index,
        prompt_length=prompt_length,
        terminated=True,
        truncated=False,
        verdict=None,
        completion=completion,
        tokens=tokens,
        policy_mask=own,
        logprobs=np.zeros(len(tokens), dtype=np.float32),
        rewards=np.zeros(len(tokens)),
        policy_version=np.zeros(len(tokens), dtype=np.int32),
        action_masks=_legal_masks(streams, tokens, prompt_length),
    )


def _legal_masks(streams: TokenStreams, tokens: NDArray[np.int32], prompt_length: int) -> NDArray[np.uint8] | None:
    """The legal tokens at each position, packed; None if every token is legal."""
    legal = streams.rules.legal_actions
    if legal is None:
        return None
    masks = np.ones((len(tokens), streams.vocab_size), dtype=bool)
    for position in range(prompt_length, len(tokens)):
        masks[position] = legal(tokens[:position], prompt_length).astype(bool)
    return np.packbits(masks, axis=1)


def train_supervised(
    policy: CausalLMPolicy,
    streams: TokenStreams,
    config: SupervisedConfig,
    *,
    seconds: float | None = None,
    on_step: Callable[[int, float], None] | None = None,
    demonstrate: Callable[[TokenStreams, int], Trajectory] = demonstration,
) -> int:
    """Fit a policy to gold completions, or to other demonstrations.

    Args:
        policy: The policy to train.
        streams: Source of the problems, their prompts and the tokenizer.
        config: Settings of the training.
        seconds: Number of seconds after which to stop, in place of `config.steps`.
        on_step: Called with the number of each step and its mean loss per token, in nats.
        demonstrate: Makes the episode of a problem that is learned from, such as one of several turns (`spoken`).

    Returns:
        The number of steps done.

    Raises:
        InvalidArgumentError: If neither `config.steps` nor `seconds` is set.
    """
    if seconds is None and config.steps is None:
        raise InvalidArgumentError(
            "no number of steps is set: set `steps` or `seconds`, or let `config.for_model` choose"
        )
    learner = Learner(policy, config.learner.for_model(policy.model, supervised=True))
    learner.run_steps = config.steps if seconds is None else None
    started = time.perf_counter()
    step = 0
    while (time.perf_counter() - started < seconds) if seconds is not None else step < (config.steps or 0):
        indices = problems_of_step(len(streams.dataset), step, config.batch_size, config.seed)
        demonstrations = [demonstrate(streams, index) for index in indices]
        with interrupts_deferred():  # weights never change by a partial step
            metrics = _fit(learner, demonstrations)
            step += 1
            if on_step is not None:
                on_step(step, metrics["loss"])
    return step


def _fit(learner: Learner, demonstrations: Sequence[Trajectory]) -> dict[str, float]:
    batch = make_batch(demonstrations)
    ones = torch.ones(batch.tokens.shape, dtype=torch.float64)
    return learner.step(batch, ones, Loss(_likelihood, aggregation=Aggregation.TOKEN_MEAN))


def _likelihood(batch: Batch, outputs: TokenOutputs, advantages: Tensor) -> dict[str, Tensor]:
    return {"likelihood": policy_gradient(outputs.logprobs, advantages)}
