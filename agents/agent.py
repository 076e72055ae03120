"""`Agent`: what all agents share. What differs is in their files: which advantage, which loss."""

from __future__ import annotations

import abc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor

from agents.batch import Batch, make_batch
from agents.checkpoint import load_checkpoint, save_checkpoint
from agents.evaluation import Evaluation, evaluate
from agents.interrupts import interrupts_deferred
from agents.learner import Learner, LearnerConfig
from agents.losses import Aggregation
from agents.policy import CausalLMPolicy
from agents.problems import episodes_of_step
from agents.rollouts import rollout
from agents.run import Run
from agents.types import Action, Trajectory
from rlvr_envs import Observation, Tokenizer
from verifiers import InvalidArgumentError, Outcome, unknown_name

Callback = Callable[[int, Mapping[str, float]], None]
"""Called after each step with its number, the first being 1, and its metrics."""


@dataclass(frozen=True)
class AgentConfig:
    """What every agent is told.

    Raises:
        InvalidArgumentError: If a value is out of range.
    """

    problems_per_step: int = 16
    """Different problems in the batch of one step."""
    group_size: int = 8
    """Completions for each problem."""
    epochs: int = 1
    """Optimiser steps on each batch."""
    aggregation: Aggregation = Aggregation.TOKEN_MEAN
    """How the losses of tokens become one."""
    max_tokens: int | None = None
    """The constant length that `Aggregation.SEQUENCE_MEAN_TOKEN_SUM_NORM` divides by."""
    seed: int = 0
    """Decides the order of problems and the sampling."""
    learner: LearnerConfig = field(default_factory=LearnerConfig)

    def __post_init__(self) -> None:
        for name in ("problems_per_step", "group_size", "epochs"):
            if getattr(self, name) < 1:
                raise InvalidArgumentError(f"{name} is at least 1, got {getattr(self, name)}")
        object.__setattr__(self, "aggregation", _aggregation(self.aggregation))
        if self.aggregation is Aggregation.SEQUENCE_MEAN_TOKEN_SUM_NORM and self.max_tokens is None:
            raise InvalidArgumentError(f"aggregation {self.aggregation.value!r} needs max_tokens, its constant length")


def _aggregation(value: str) -> Aggregation:
    if value not in list(Aggregation):
        raise unknown_name("aggregation", value, [str(each) for each in Aggregation])
    return Aggregation(value)


class Agent(abc.ABC):
    """Owns a policy and improves it from its own episodes.

    Args:
        policy: Who acts and learns.
        config: The agent's own kind of config.
    """

    name: str

    def __init__(self, policy: CausalLMPolicy, config: AgentConfig) -> None:
        self.policy = policy
        self.config = config
        self.learner = Learner(policy, config.learner)
        self.steps = 0
        """Training steps done, each with one batch of episodes."""
        self.tokenizer: Tokenizer | None = None
        """What the tokens mean, as the environment says; saved with the model."""

    @abc.abstractmethod
    def advantages(self, batch: Batch) -> Tensor:
        """Weigh the tokens of a batch: f64[b l]."""

    @abc.abstractmethod
    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """Give the loss f[b t] of each token; the batch is cut to the same t positions."""

    def act(self, observation: Observation) -> Action:
        """Choose tokens; see `Policy.act`."""
        return self.policy.act(observation)

    def learn(
        self,
        env: VectorEnv[Any, Any, Any],
        *,
        steps: int,
        run: Run | None = None,
        checkpoint_every: int | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        """Train until `steps` steps are done in all, those before a resume included.

        Args:
            env: See `rollout`.
            steps: Number of the last step.
            run: Where metrics and checkpoints go.
            checkpoint_every: Steps between checkpoints; a run also gets one at the end, and when it is interrupted.
            callbacks: Called after each step.
        """
        self.tokenizer = getattr(env.unwrapped, "tokenizer", self.tokenizer)
        try:
            while self.steps < steps:
                metrics = self._train_step(env, run)
                for callback in callbacks:
                    callback(self.steps, metrics)
                if run is not None and checkpoint_every and self.steps % checkpoint_every == 0:
                    self.save(run.checkpoint_folder(self.steps))
        except KeyboardInterrupt:
            # Between updates the agent is as it was after the last step; what was rolled out since is done again.
            if run is not None:
                self.save(run.checkpoint_folder(self.steps))
            raise
        if run is not None:
            self.save(run.checkpoint_folder(self.steps))

    def _train_step(self, env: VectorEnv[Any, Any, Any], run: Run | None) -> dict[str, float]:
        started = time.perf_counter()
        config = self.config
        episodes = episodes_of_step(env, self.steps, config.problems_per_step, config.group_size, config.seed)
        trajectories = rollout(env, self.policy, episodes)
        rolled_out = time.perf_counter()
        # An interrupt waits until the step is complete: weights, count and metrics.
        with interrupts_deferred():
            metrics = summarize(trajectories) | self.update(trajectories)
            self.steps += 1
            now = time.perf_counter()
            tokens = sum(int(trajectory.policy_mask.sum()) for trajectory in trajectories)
            metrics |= {"rollout_s": rolled_out - started, "update_s": now - rolled_out}
            metrics["tokens_per_s"] = tokens / (now - started)
            if run is not None:
                run.log(self.steps, metrics)
        return metrics

    def update(self, trajectories: Sequence[Trajectory]) -> dict[str, float]:
        """Learn from trajectories and give the metrics of the last optimiser step.

        A batch in which every verifier broke changes nothing.
        """
        batch = make_batch(trajectories)
        advantages = self.advantages(batch)
        metrics: dict[str, float] = {}
        for _ in range(self.config.epochs):
            metrics = self.learner.step(
                batch,
                advantages,
                self.loss,
                aggregation=self.config.aggregation,
                max_tokens=self.config.max_tokens,
            )
        return metrics

    def evaluate(
        self, env: VectorEnv[Any, Any, Any], *, problems: int | None = None, samples: int = 1, greedy: bool = False
    ) -> Evaluation:
        """Score the policy on the first problems of an environment's data; see `evaluate`."""
        policy = self.policy.at_temperature(0.0) if greedy else self.policy
        return evaluate(env, policy, problems=problems, samples=samples, seed=self.config.seed)

    def save(self, folder: Path) -> None:
        """Write all that the agent is to a folder, as a whole or not at all."""
        save_checkpoint(folder, self.policy.model, self._state(), self.tokenizer)

    def load(self, folder: Path) -> None:
        """Become the agent that was saved.

        Raises:
            CheckpointError: If the folder holds no checkpoint, or one of another kind of agent.
        """
        state = load_checkpoint(folder, self.policy.model, agent=self.name)
        self.steps = state["steps"]
        self.learner.load_state_dict(state["learner"])
        torch.set_rng_state(state["torch_rng"])

    def _state(self) -> dict[str, Any]:
        return {
            "agent": self.name,
            "steps": self.steps,
            "learner": self.learner.state_dict(),
            "torch_rng": torch.get_rng_state(),
        }


def summarize(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """What a batch of episodes looks like: reward, lengths, outcomes; broken verifiers are counted and left out of means."""
    valid = [trajectory for trajectory in trajectories if not trajectory.broken]
    scores = np.array([trajectory.score for trajectory in valid])
    lengths = np.array([int(trajectory.policy_mask.sum()) for trajectory in trajectories])
    outcomes = [trajectory.verdict.outcome for trajectory in trajectories if trajectory.verdict is not None]
    groups: dict[int, list[float]] = {}
    for trajectory in valid:
        groups.setdefault(trajectory.group, []).append(trajectory.score)
    flat = [max(group) == min(group) for group in groups.values()]
    return {
        "reward": float(scores.mean()) if len(valid) else float("nan"),
        "reward_std": float(scores.std(ddof=1)) if len(valid) > 1 else 0.0,
        "groups_without_spread": float(np.mean(flat)) if flat else 0.0,
        "completion_tokens": float(lengths.mean()),
        "truncated": float(np.mean([trajectory.truncated for trajectory in trajectories])),
        "no_answer": sum(outcome is Outcome.NO_ANSWER for outcome in outcomes) / len(trajectories),
        "verifier_errors": float(len(trajectories) - len(valid)),
    }
