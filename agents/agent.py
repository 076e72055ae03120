"""`Agent`: what all agents share. What differs is in their files: which advantage, which loss."""

from __future__ import annotations

import abc
import dataclasses
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray
from torch import Tensor

from agents.batch import Batch, make_batch, require_equal_groups
from agents.config import AgentConfig
from agents.evaluation import Evaluation, evaluate
from agents.evaluation_record import EvaluationRecord
from agents.importance import Correction, importance_weights
from agents.interrupts import interrupts_deferred
from agents.kl import AdaptiveKLController, kl_estimate
from agents.policies.trainable import TokenOutputs, TrainablePolicy, check_members
from agents.policies.transformers.lora import has_adapter
from agents.rollouts.loop import Episode, rollout
from agents.rollouts.problem_order import episodes_of_step
from agents.seeding import mix
from agents.training.agent_state import agent_state, components_of, restore
from agents.training.batch_passes import state_values, token_logprobs
from agents.training.checkpoint import load_checkpoint, save_checkpoint
from agents.training.critic import make_critic
from agents.training.health import Health
from agents.training.learner import Learner, Loss
from agents.training.metrics import advantage_metrics, explained_variance, merge, sampling_metrics, summarize
from agents.training.reference import ReferencePolicy
from agents.training.run import Run
from agents.training.verifier_errors import VerifierWatch
from agents.truncation import Truncation, apply_truncation
from agents.types import Action, Policy, Sampler, Trajectory
from rlvr_envs import Observation, Tokenizer
from verifiers import InvalidArgumentError

_LOGGER = logging.getLogger(__name__)

Callback = Callable[[int, Mapping[str, float]], None]
"""Called after each step with its number, the first being 1, and its metrics."""


class Agent(abc.ABC):
    """Owns a policy and improves it from its own episodes.

    An agent is a choice of advantages and of a loss; everything else is here. A new one needs `name`, `advantages` and
    `loss`, and no more.

    Args:
        policy: The policy to train.
        config: The agent's settings, an instance of its own config class.
        sampler: The policy used for rollouts, such as a `VLLMPolicy` of `policy`; defaults to `policy`.
    """

    name: str
    compares_groups: bool = False
    """Whether advantages compare a group's scores, so that groups of one size, at least 2, are needed."""
    vanishes_without_advantage: bool = True
    """Whether `loss` has gradient 0 where the advantage is 0, so that completions without any need no pass."""

    def __init__(self, policy: TrainablePolicy, config: AgentConfig, *, sampler: Sampler | None = None) -> None:
        check_members(policy)
        self.policy = policy
        self.sampler: Sampler = sampler or policy
        self._check_use(policy, config)
        self.config = config = config.for_model(policy.model)
        self.critic = None if config.critic is None else make_critic(policy, config.critic)
        self.learner = Learner(policy, config.learner, self.critic, config.critic)
        self.reference = ReferencePolicy(policy) if config.needs_reference else None
        self.kl_controller = (
            None
            if config.kl_target is None
            else AdaptiveKLController(config.kl_coefficient, config.kl_target, config.kl_horizon)
        )
        self.steps = 0
        """Training steps done, each with one batch of episodes."""
        self.rounds = 0
        """Rounds of problems drawn; more than steps where a step takes several."""
        self.tokens = 0
        """Tokens that were generated in all steps, those of completions that were not learned from included."""
        self._generated = 0  # in the step under way
        self._verifier_watch = VerifierWatch(config.max_error_share)
        self._health = Health()
        self.tokenizer: Tokenizer | None = None
        """What the tokens mean, as the environment says; saved with the model."""

    def _check_use(self, policy: TrainablePolicy, config: AgentConfig) -> None:
        """Refuse another agent's settings, and what would have no effect."""
        wanted = get_type_hints(type(self)).get("config", AgentConfig)
        if not isinstance(config, wanted):
            raise InvalidArgumentError(
                f"{type(self).__name__} expects a {wanted.__name__}, got {type(config).__name__}"
            )
        if self.sampler.learner is not policy:
            raise InvalidArgumentError(
                "the sampler has the weights of another policy than the one that learns: make it of the agent's policy"
            )
        if config.critic is not None and type(self).value_targets is Agent.value_targets:
            raise InvalidArgumentError(f"{type(self).__name__} has no use for a critic: leave `critic` out")
        if config.reference_sync_every is not None and has_adapter(policy.model):
            raise InvalidArgumentError(
                "the reference of a model with an adapter is the model without it, which can't be synced: leave "
                "`reference_sync_every` out"
            )

    # What differs

    @abc.abstractmethod
    def advantages(self, batch: Batch) -> Tensor:
        """Weigh the tokens of a batch: f64[b l]."""

    @abc.abstractmethod
    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """Give the loss f[b t] of each token; the batch is cut to the same t positions.

        Where the advantage is 0 its gradient must be 0, as that of a loss in proportion to the advantage is: completions
        whose advantages are all 0 are left out of the passes. An agent whose loss has other terms says so by
        `vanishes_without_advantage = False`.
        """

    def value_targets(self, batch: Batch) -> Tensor | None:
        """What the critic's values should be, f64[b l]; None for an agent without one."""
        return None

    def check_episode(self, trajectory: Trajectory) -> None:  # noqa: B027 - most agents learn from any episode
        """Raise on an episode that can't be learned from; called as each ends, before the others are played."""

    def after_update(self, batch: Batch) -> None:  # noqa: B027 - most agents keep nothing
        """Called with each batch after its update, for what an agent keeps, such as a moving average."""

    def clipped(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> tuple[Tensor, Tensor] | None:
        """Where the loss is clipped from below and from above, bool[b t] each, for the metrics; None if it never is."""
        return None

    # Acting and learning

    def act(
        self,
        observation: Observation,
        *,
        action_mask: NDArray[np.int8] | None = None,
        rows: NDArray[np.bool_] | None = None,
    ) -> Action:
        """Choose tokens; see `Policy.act`.

        A plain Gymnasium loop, with the legal tokens where the environment limits them:

        ```python
        observation, info = env.reset(seed=0)
        terminated = truncated = False
        while not (terminated or truncated):
            action = agent.act(observation, action_mask=info.get("action_mask"))
            observation, reward, terminated, truncated, info = env.step(int(action.tokens[0]))
        ```
        """
        return self.policy.act(observation, action_mask=action_mask, rows=rows)

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

        Signs that training goes wrong are logged as warnings; see `agents.training.health`.

        Args:
            env: See `rollout`.
            steps: Number of the last step. Schedules without `schedule_steps` end there: set it where `learn` is called again
                and again with a greater number.
            run: Where metrics and checkpoints go.
            checkpoint_every: Steps between checkpoints; a run also gets one at the end, and when it is interrupted.
            callbacks: Called after each step.

        Raises:
            InvalidArgumentError: If the warm-up is as long as the run.
            VerifierFailureError: If the verifier broke on more episodes than `max_error_share` allows. A run then has a
                checkpoint of the steps before; where that shows only after the last step, it goes on from the checkpoint that
                it had.
        """
        self.tokenizer = getattr(env.unwrapped, "tokenizer", self.tokenizer)
        self.learner.run_steps = steps * self.config.epochs * self.config.minibatches
        self.learner.config.check_schedule(self.learner.run_steps)
        if run is not None and self._health.steps == 0:
            for row in run.rows():
                self._health.observe(row["step"], row)
        try:
            while self.steps < steps:
                metrics = self._train_step(env, run)
                for callback in callbacks:
                    callback(self.steps, metrics)
                if run is not None and checkpoint_every and self.steps % checkpoint_every == 0:
                    self._keep(run)
        except KeyboardInterrupt:
            # Between updates the agent is as it was after the last step; what was rolled out since is done again.
            if run is not None:
                with interrupts_deferred():
                    self._keep(run)
            raise
        self._verifier_watch.check(run)  # steps in which nothing could be learned are not kept as done
        if run is not None:
            self._keep(run)

    def _train_step(self, env: VectorEnv[Any, Any, Any], run: Run | None) -> dict[str, float]:
        started = time.perf_counter()
        verified = _verification_seconds(env)
        self._generated = 0
        trajectories, rounds, sampling = self._collect(env, run)
        rolled_out = time.perf_counter()
        # An interrupt waits until the step is complete: weights, counts and metrics.
        with interrupts_deferred():
            metrics = summarize(trajectories) | sampling | self.update(trajectories)
            self.rounds += rounds
            now = time.perf_counter()
            self.tokens += self._generated
            metrics |= {"rollout_s": rolled_out - started, "update_s": now - rolled_out}
            if verified is not None:
                metrics["verify_s"] = (_verification_seconds(env) or 0.0) - verified
            metrics |= {"num_tokens": float(self.tokens), "tokens_per_s": self._generated / (now - started)}
            warnings = [str(warning) for warning in self._health.observe(self.steps, metrics)]
            if run is not None:
                run.log(self.steps, metrics, warnings)
        for warning in warnings:
            _LOGGER.warning(warning)
        return metrics

    def _collect(
        self, env: VectorEnv[Any, Any, Any], run: Run | None
    ) -> tuple[list[Trajectory], int, dict[str, float]]:
        """`collect`, and the metrics of getting ready for it; if that fails, the steps that were done are kept."""
        self._verifier_watch.forget_step()
        try:
            with self.sampler.sampling() as metrics:
                trajectories, rounds = self.collect(env, self.rounds)
            self._verifier_watch.end_step(self.steps + 1, run)
            return trajectories, rounds, dict(metrics)
        except Exception:
            if run is not None and self.steps > 0:
                self._keep(run)
            raise

    def collect(self, env: VectorEnv[Any, Any, Any], first_round: int) -> tuple[list[Trajectory], int]:
        """Play the episodes of one step, and say how many rounds of problems they took."""
        return self.play(env, self.episodes(env, first_round)), 1

    def play(
        self, env: VectorEnv[Any, Any, Any], episodes: Sequence[Episode], policy: Policy | None = None
    ) -> list[Trajectory]:
        """`rollout` with this agent's sampler, or another on its weights; checks the episodes and counts their tokens."""

        def ended(trajectory: Trajectory) -> None:
            self._verifier_watch.see(trajectory)
            self.check_episode(trajectory)
            self._generated += int(trajectory.policy_mask.sum())

        return rollout(env, policy or self.sampler, episodes, on_episode=ended)

    def episodes(self, env: VectorEnv[Any, Any, Any], number: int) -> list[Episode]:
        """The episodes of round `number`: a pure function of it and the seed."""
        config = self.config
        return episodes_of_step(env, number, config.problems_per_step, config.group_size, config.seed)

    def update(self, trajectories: Sequence[Trajectory]) -> dict[str, float]:
        """Learn from trajectories and give the metrics; see `agents.training.metrics`. This is one training step.

        A batch in which every verifier broke changes no weight.

        Raises:
            InvalidArgumentError: If the trajectories can't be learned from; then nothing has changed.
        """
        batch, advantages = self.compute_advantages(trajectories)
        metrics = advantage_metrics(batch, advantages) | sampling_metrics(batch)
        if batch.values is not None and batch.value_targets is not None:
            metrics["explained_variance"] = explained_variance(batch.values, batch.value_targets, batch.loss_mask)
        metrics |= self.optimize(batch, advantages)
        self._after_update(batch, metrics)
        self.steps += 1
        return metrics

    def compute_advantages(self, trajectories: Sequence[Trajectory]) -> tuple[Batch, Tensor]:
        """The first half of `update`: the batch, with all that the loss needs, and the advantages f64[b l] of its tokens.

        Nothing is changed by it. `optimize` is the other half.

        Raises:
            InvalidArgumentError: If there are no trajectories, one can't be learned from (see `check_episode`), groups that
                are compared have one member or different sizes, or the batch can't be divided into minibatches of one size.
        """
        for trajectory in trajectories:
            self.check_episode(trajectory)
        self._check_divisible(len(trajectories))
        if self.compares_groups:
            require_equal_groups(trajectory.group for trajectory in trajectories)
        batch = self.prepare(make_batch(trajectories))
        advantages = self.advantages(batch)
        self._check_tensor("advantages", advantages, batch.tokens)
        return dataclasses.replace(batch, value_targets=self.value_targets(batch)), advantages

    def prepare(self, batch: Batch) -> Batch:
        """Add to a batch what the advantages and the loss need of the policy, the reference and the critic as they are."""
        config, size = self.config, self.config.learner.micro_batch_size
        self.policy.release_cache()  # its memory is the learner's now
        batch = self.truncated(batch)
        correction = self._correction()
        if correction is not Correction.NONE or self.policy.is_half:
            # In half precision the passes that sample and that learn round differently; ratios are taken to the latter.
            old = token_logprobs(self.policy, batch, size)
            batch = dataclasses.replace(batch, old_logprobs=old)
        if correction is not Correction.NONE:
            weights = importance_weights(
                batch.old,
                batch.logprobs,
                batch.loss_mask,
                correction,
                cap=config.importance_cap,
                floor=config.importance_floor,
            )
            batch = dataclasses.replace(batch, importance=weights)
        if self.reference is not None:
            with self.reference.switched_on():
                reference_logprobs = token_logprobs(self.reference.policy, batch, size)
            batch = dataclasses.replace(batch, reference_logprobs=reference_logprobs)
            if config.kl_placement == "reward":
                batch = batch.with_rewards(batch.rewards - self.kl_coefficient() * self._kl(batch, batch.old))
        if self.critic is not None:
            values, last = state_values(self.policy, self.critic, batch, size)
            bootstraps = config.truncation is Truncation.BOOTSTRAP
            kept = torch.where(batch.truncated & batch.valid & bootstraps, last, 0.0)
            batch = dataclasses.replace(batch, values=values, bootstrap=kept)
        return batch

    def truncated(self, batch: Batch) -> Batch:
        """A batch by the rule that the config has for truncated episodes."""
        config = self.config
        return apply_truncation(
            batch,
            config.truncation,
            reward=config.truncation_reward,
            max_tokens=config.max_tokens,
            margin=config.overlong_margin,
        )

    def _correction(self) -> Correction:
        """How samples are weighed; those of another sampler are, unless the config says that they are not."""
        if self.config.importance_correction is not None:
            return self.config.importance_correction
        return Correction.NONE if self.sampler is self.policy else Correction.TOKEN_TRUNCATE

    def optimize(self, batch: Batch, advantages: Tensor) -> dict[str, float]:
        """Make the optimiser steps of one batch: `epochs` passes over it, each in `minibatches` parts."""
        steps = []
        for rows in self._minibatches(len(batch)):
            minibatch = batch.rows(rows)
            steps.append(self.learner.step(minibatch, advantages[rows, : minibatch.tokens.shape[1]], self.batch_loss()))
        return merge(steps)

    def batch_loss(self) -> Loss:
        """What an optimiser step minimises at this training step."""
        config = self.config
        alone = not self._kl_in_loss and self.entropy_coefficient() == 0
        return Loss(
            self.terms,
            config.aggregation,
            config.max_tokens,
            self.clipped,
            vanishes_without_advantage=alone and self.vanishes_without_advantage,
        )

    def _minibatches(self, rows: int) -> list[Tensor]:
        """Row indices of each optimiser step; in a random order where an epoch takes several."""
        config = self.config
        if config.minibatches == 1:
            return [torch.arange(rows)] * config.epochs
        self._check_divisible(rows)
        origin = mix(mix(np.array([config.seed % 2**64], dtype=np.uint64)) ^ np.uint64(self.steps))
        generator = np.random.Generator(np.random.PCG64(int(origin[0])))
        orders = [generator.permutation(rows) for _ in range(config.epochs)]
        minibatches = [indices for order in orders for indices in np.split(order, config.minibatches)]
        return [torch.from_numpy(np.sort(indices)) for indices in minibatches]

    def _check_divisible(self, rows: int) -> None:
        """Refuse a batch made by hand whose minibatches would differ in size: the same completion would weigh differently."""
        minibatches = self.config.minibatches
        if rows % minibatches:
            raise InvalidArgumentError(
                f"{rows} completions can't be divided into minibatches={minibatches} of equal size: pass "
                f"{minibatches - rows % minibatches} more or {rows % minibatches} fewer, or change minibatches"
            )

    def terms(self, batch: Batch, outputs: TokenOutputs, advantages: Tensor) -> dict[str, Tensor]:
        """Everything that is added up to the loss f[b t] of each token."""
        loss = self.loss(batch, outputs.logprobs, advantages)
        self._check_tensor("loss", loss, outputs.logprobs)
        terms = {"policy": loss if batch.importance is None else batch.importance * loss}
        if self._kl_in_loss:
            terms["kl"] = self.kl_coefficient() * self._kl(batch, outputs.logprobs)
        coefficient = self.entropy_coefficient()
        if coefficient != 0:
            terms["entropy"] = -coefficient * outputs.entropy
        return terms

    def _check_tensor(self, name: str, given: object, tokens: Tensor) -> None:
        """Check what an agent's own method gave: a number for each token."""
        if not isinstance(given, Tensor) or given.shape != tokens.shape:
            came = f"one of shape {tuple(given.shape)}" if isinstance(given, Tensor) else repr(given)
            raise InvalidArgumentError(
                f"{type(self).__name__}.{name} gives a number for each token, a tensor of shape {tuple(tokens.shape)}; "
                f"got {came}"
            )

    # The regularisers

    @property
    def _kl_in_loss(self) -> bool:
        return self.reference is not None and self.config.kl_placement == "loss"

    def _kl(self, batch: Batch, logprobs: Tensor) -> Tensor:
        """The estimate f[b t] of the divergence from the reference at each token, 0 off the loss mask."""
        assert batch.reference_logprobs is not None
        divergence = kl_estimate(self.config.kl_estimator, logprobs, batch.reference_logprobs, batch.old)
        return torch.where(batch.loss_mask, divergence, 0.0)

    def kl_coefficient(self) -> float:
        """The weight of the KL term at this step."""
        if self.kl_controller is not None:
            return self.kl_controller.coefficient
        return self.config.kl_schedule(self.learner.run_steps)(self.steps)

    def entropy_coefficient(self) -> float:
        """The weight of the entropy bonus at this step."""
        return self.config.entropy_schedule(self.learner.run_steps)(self.steps)

    def _after_update(self, batch: Batch, metrics: dict[str, float]) -> None:
        config = self.config
        self.after_update(batch)
        if self.reference is not None:
            metrics["kl_coefficient"] = self.kl_coefficient()
            if config.reference_sync_every and (self.steps + 1) % config.reference_sync_every == 0:
                self.reference.sync(self.policy, config.reference_sync_mix)
        # Without a token that was learned from, or with weights that have diverged, nothing is known to steer by.
        if self.kl_controller is not None and not math.isnan(metrics.get("kl", math.nan)):
            self.kl_controller.update(metrics["kl"], int(batch.valid.sum()))
        if config.entropy_coefficient or config.entropy_coefficient_end:
            metrics["entropy_coefficient"] = self.entropy_coefficient()

    # Scoring and keeping

    def evaluate(
        self,
        env: VectorEnv[Any, Any, Any],
        *,
        problems: int | None = None,
        samples: int = 1,
        greedy: bool = False,
        record: EvaluationRecord | None = None,
    ) -> Evaluation:
        """Score the policy on the first problems of an environment's data; see `evaluate`."""
        policy = self.sampler.at_temperature(0.0) if greedy else self.sampler
        with self.sampler.sampling():
            return evaluate(env, policy, problems=problems, samples=samples, seed=self.config.seed, record=record)

    def save(self, folder: str | Path) -> None:
        """Write all that the agent is to a folder, as a whole or not at all; a checkpoint that is there is replaced.

        Raises:
            InvalidArgumentError: If the folder holds something else.
        """
        save_checkpoint(Path(folder), self.policy.model, agent_state(self), self.tokenizer)

    def _keep(self, run: Run) -> None:
        """Write the step's checkpoint of a run, unless it is there."""
        run.keep_checkpoint(self.steps, self.save)

    def load(self, folder: str | Path) -> None:
        """Become the agent that was saved.

        Raises:
            CheckpointError: If the folder holds no checkpoint, or one of another kind of agent, model, critic or reference;
                then nothing has changed.
        """
        state = load_checkpoint(Path(folder), self.policy.model, agent=self.name, components=components_of(self))
        restore(self, state)
        self._health = Health()

    def own_state(self) -> dict[str, Any]:
        """What one kind of agent carries from step to step beside what all do: tensors and plain data."""
        return {}

    def load_own_state(self, state: dict[str, Any]) -> None:  # noqa: B027 - most agents carry nothing
        """Go on from a state of `own_state`."""


def _verification_seconds(env: VectorEnv[Any, Any, Any]) -> float | None:
    """What an environment says of the time its verdicts took; None where it does not."""
    seconds = getattr(env.unwrapped, "verification_seconds", None)
    return None if seconds is None else float(seconds)
