"""`Agent`: the base class of all agents. Each agent's own file defines its advantages and its loss."""

from __future__ import annotations

import abc
import contextlib
import copy
import dataclasses
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast, get_type_hints

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

import rlvr_envs
from agents import distributed, policies, training
from agents.batch import Batch, make_batch, require_equal_groups
from agents.deferred import torch
from agents.distributed.ranks import MOST_GATHERING, Ranks, Sharding, active_ranks
from agents.distributed.requirements import check_sharding, objection_to_rows
from agents.distributed.rollouts import play_divided
from agents.distributed.weights import require_same_weights
from agents.evaluation import Evaluation, evaluate
from agents.importance import Correction, importance_weights
from agents.interrupts import interrupts_deferred
from agents.kl import AdaptiveKLController, kl_estimate
from agents.policies.trainable import TokenOutputs, TrainablePolicy, check_members
from agents.results.evaluation_record import EvaluationRecord
from agents.rollouts.loop import Episode, PartialEpisode, play_on, rollout
from agents.rollouts.problem_order import episodes_of_step
from agents.seeding import mix
from agents.settings.agent import AgentConfig, no_effect
from agents.settings.learning_rate import has_adapter
from agents.training.agent_state import agent_state, components_of, restore
from agents.training.carried import CarriedGroup, Unfinished, collect_carried, num_policy_tokens
from agents.training.health import Health
from agents.training.loss import Loss
from agents.training.metrics import advantage_metrics, explained_variance, merge, sampling_metrics, summarize
from agents.training.run import Run
from agents.training.sampled import Sampled
from agents.training.steps import Callback, check_numbers, kept_on_interrupt, take_steps
from agents.training.verifier_errors import SeenEpisodes, VerifierWatch
from agents.truncation import Truncation, apply_truncation
from agents.types import Action, Policy, Sampler, Trajectory
from verifiers import InvalidArgumentError, RankError

if TYPE_CHECKING:
    from torch import Tensor

    from agents.distributed.sharding import ShardedModule

_LOGGER = logging.getLogger(__name__)


class Agent(abc.ABC):
    """Owns a policy and trains it on its own episodes.

    A subclass defines `name`, `advantages` and `loss`; everything else is implemented here.

    Args:
        policy: The policy to train.
        config: The agent's settings, an instance of its own config class.
        sampler: The policy used for rollouts, such as a `VLLMPolicy` of `policy`; defaults to `policy`.
    """

    name: str
    compares_groups: bool = False
    """Whether advantages compare scores within a group, which requires groups of equal size, at least 2."""
    vanishes_without_advantage: bool = True
    """Whether the gradient of `loss` is 0 where the advantage is 0, so that completions without advantages can be skipped."""
    advantages_from_rewards: bool = False
    """Whether the advantages of a batch follow from its rewards, masks, groups and verdicts alone. A rank then needs no tokens
    of the episodes of others."""
    needs_whole_weights: bool = False
    """Whether an update needs all weights on every rank, so that they can't be divided (`--shard`)."""

    def __init__(self, policy: TrainablePolicy, config: AgentConfig, *, sampler: Sampler | None = None) -> None:
        check_members(policy)
        self.ranks: Ranks = active_ranks()
        """The processes that train this agent together."""
        self.policy = policy
        self.sampler: Sampler = sampler or policy
        self.config = config
        self._check_use(policy, config)
        self.config = config = config.for_model(policy.model)
        self.lagged = training.LaggedSampling(self, config.lag) if config.lag else None
        """The batches that are sampled ahead; None without a lag."""
        self.critic = None if config.critic is None else training.make_critic(policy, config.critic)
        self.reference = training.ReferencePolicy(policy) if config.needs_reference else None
        if self.ranks.sharding is not None:
            self._shard(self.ranks.sharding)
        self.learner = training.Learner(policy, config.learner, self.critic, config.critic)
        self.kl_controller = (
            None
            if config.kl_target is None
            else AdaptiveKLController(config.kl_coefficient, config.kl_target, config.kl_horizon)
        )
        self.steps = 0
        """Number of training steps done, each on one batch of episodes."""
        self.rounds = 0
        """Number of rounds of problems drawn; more than `steps` if a step draws several."""
        self.carried: tuple[CarriedGroup, ...] = ()
        """The groups that were begun, and that the next step plays on (`carried_groups`)."""
        self.tokens = 0
        """Number of tokens generated so far, including those of completions that were not trained on."""
        self._generated = 0  # in the current step
        self._log_rollouts: Callable[[Sequence[Trajectory], Tensor], None] | None = None
        self._verifier_watch = VerifierWatch(config.max_error_share)
        self._seen: SeenEpisodes | None = None  # of a copy that only samples
        self._stopped: threading.Event | None = None
        self._health = Health()
        self.tokenizer: rlvr_envs.Tokenizer | None = None
        """The environment's tokenizer, which is saved with the model."""

    def _check_use(self, policy: TrainablePolicy, config: AgentConfig) -> None:
        """Reject settings of another agent, and settings that would have no effect."""
        wanted = get_type_hints(type(self)).get("config", AgentConfig)
        if not isinstance(config, wanted):
            raise InvalidArgumentError(
                f"{type(self).__name__} expects a {wanted.__name__}, got {type(config).__name__}"
            )
        if self.sampler.learner is not policy:
            raise InvalidArgumentError(
                "the sampler uses the weights of another policy than the one that learns: build it from the agent's policy"
            )
        if config.problems_per_step < self.ranks.size:
            raise InvalidArgumentError(
                f"rank {config.problems_per_step} would have nothing to play: a step has "
                f"problems_per_step={config.problems_per_step} groups of completions for {self.ranks.size} ranks, and each "
                "rank plays whole groups; raise problems_per_step, or use fewer processes"
            )
        if config.critic is not None and type(self).value_targets is Agent.value_targets:
            raise InvalidArgumentError(f"{type(self).__name__} does not use a critic: leave `critic` out")
        if config.reference_sync_every is not None and has_adapter(policy.model):
            raise InvalidArgumentError(
                "the reference of a model with an adapter is the model without the adapter, which can't be synced: leave "
                "`reference_sync_every` out"
            )
        if config.carried_groups and type(self).collect is not Agent.collect:
            raise InvalidArgumentError(
                f"carried_groups={config.carried_groups} interrupts the episodes of a step, and {type(self).__name__} plays a "
                "step in a way of its own: leave `carried_groups` out"
            )
        for name in ("importance_cap", "importance_floor"):
            default = getattr(type(config), name)
            if getattr(config, name) != default and self._correction() is Correction.NONE:
                raise no_effect(
                    name,
                    getattr(config, name),
                    "the policy itself samples, with the weights that learn: set importance_correction, or a lag",
                )
        objection = objection_to_rows(self) if self.ranks.gathers == "rows" else None
        if objection is not None:
            raise InvalidArgumentError(
                f"only the numbers of rows are to be gathered, and {objection}: gather trajectories instead"
            )
        check_sharding(self)

    def _shard(self, sharding: Sharding) -> None:
        """Divide all weights among the ranks: after they were copied, and before the optimiser is made for them."""
        cast(policies.CausalLMPolicy, self.policy).shard(sharding)
        if self.critic is not None:
            self.critic.shard(sharding)
        if self.reference is not None and self.reference.policy.model is not self.policy.model:
            cast(policies.CausalLMPolicy, self.reference.policy).shard(sharding)

    @property
    def _gathers_rows(self) -> bool:
        """Whether each rank trains on the episodes that it played, and gets only the numbers of the others' rows."""
        wanted = self.ranks.gathers
        if wanted == "auto":
            return self.ranks.size > MOST_GATHERING and objection_to_rows(self) is None
        return wanted == "rows" and self.ranks.size > 1

    # Defined by each agent

    @abc.abstractmethod
    def advantages(self, batch: Batch) -> Tensor:
        """Return the advantage of each token of a batch, f64[b l]."""

    @abc.abstractmethod
    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """Return the loss f[b t] of each token; the batch is cut to the same t positions.

        The gradient must be 0 where the advantage is 0, as it is for any loss proportional to the advantage: completions
        whose advantages are all 0 are skipped. An agent whose loss has other terms sets
        `vanishes_without_advantage = False`.
        """

    def value_targets(self, batch: Batch) -> Tensor | None:
        """Return the targets of the critic's values, f64[b l]; None for an agent without a critic."""
        return None

    def check_env(self, env: VectorEnv[Any, Any, Any]) -> None:  # noqa: B027 - most agents learn in any
        """Raise if the agent can't learn in an environment; called before training begins."""

    def require_env(self, env: VectorEnv[Any, Any, Any]) -> None:
        """Raise if the agent can't learn in an environment with its settings.

        Raises:
            InvalidArgumentError: If it can't.
        """
        self.check_env(env)
        if self.config.carried_groups and not isinstance(env.unwrapped, rlvr_envs.TokenVectorEnv):
            raise InvalidArgumentError(
                f"carried_groups={self.config.carried_groups} interrupts episodes, which only environments with tokens can go "
                f"on with, and {type(env.unwrapped).__name__} is none: leave `carried_groups` out"
            )

    def check_episode(self, trajectory: Trajectory) -> None:  # noqa: B027 - most agents learn from any episode
        """Raise if an episode can't be trained on; called as soon as each episode ends."""

    def after_update(self, batch: Batch) -> None:  # noqa: B027 - most agents keep nothing
        """Called with each batch after its update, to update an agent's own state, such as a moving average."""

    def clipped(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return where the loss is clipped from below and from above, bool[b t] each, for metrics; None if it never is."""
        return None

    # Acting and learning

    def act(
        self,
        observation: rlvr_envs.Observation,
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
        tokens: int | None = None,
        run: Run | None = None,
        checkpoint_every: int | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        """Train until `steps` steps are done in total, including those before a resume.

        Signs of failing training are logged as warnings; see `agents.training.health`. With several ranks all of them call
        this, with the same arguments except for `run`, which only rank 0 has.

        Args:
            env: The environment to train in; see `rollout`.
            steps: Number of the last step. Schedules without `schedule_steps` end there: set `schedule_steps` if `learn` is
                called repeatedly with increasing numbers.
            tokens: Number of sampled tokens after which training ends, with the step that reaches it, even before `steps`.
            run: The run that records metrics and checkpoints.
            checkpoint_every: Number of steps between checkpoints; a run also writes one at the end and on interruption.
            callbacks: Called after each step.

        Raises:
            InvalidArgumentError: If the warm-up is as long as the run, or a number is negative.
            VerifierFailureError: If the verifier broke on more episodes than `max_error_share` allows. The run then has a
                checkpoint of the steps before; if this is detected only after the last step, it keeps its previous one.
        """
        check_numbers(steps=steps, tokens=tokens, checkpoint_every=checkpoint_every)
        self.require_env(env)
        self.tokenizer = getattr(env.unwrapped, "tokenizer", self.tokenizer)
        self.learner.run_steps = steps * self.config.epochs * self.config.minibatches
        self.learner.config.check_schedule(self.learner.run_steps)
        if run is not None and self._health.steps == 0:
            for row in run.rows():
                self._health.observe(row["step"], row)
        require_same_weights(self.ranks, self.policy.model)
        sampling = contextlib.nullcontext() if self.lagged is None else self.lagged.running(env, steps)

        def keep() -> None:
            self._keep(run)

        # Between updates the agent's state is that after the last step; rollouts since then are repeated on resume.
        with self.ranks.interrupts_together(), self.ranks.failures_named(), kept_on_interrupt(keep), sampling:
            take_steps(
                self,
                lambda: self._train_step(env, run),
                keep,
                steps=steps,
                tokens=tokens,
                checkpoint_every=checkpoint_every,
                callbacks=callbacks,
            )
        self._verifier_watch.check(run)  # steps without anything to train on are not saved as done
        self._keep(run)

    def _train_step(self, env: VectorEnv[Any, Any, Any], run: Run | None) -> dict[str, float]:
        started = time.perf_counter()
        arrived = self._next_batch(env, run)
        sampled = arrived.sampled
        begun = time.perf_counter()
        # An interrupt waits until the step is complete: weights, counts and metrics.
        with interrupts_deferred():
            self._log_rollouts = self._rollout_writer(env, run)
            metrics = summarize(sampled.trajectories) | dict(sampled.metrics) | self.update(sampled.trajectories)
            if self.lagged is None:
                self.rounds += sampled.rounds
                self.carried = sampled.carried
            else:
                self.lagged.learned()
                metrics |= arrived.metrics()
            now = time.perf_counter()
            self.tokens += sampled.tokens
            metrics |= {"step_s": now - started, "rollout_s": sampled.seconds, "update_s": now - begun}
            if sampled.verify_seconds is not None:
                metrics["verify_s"] = sampled.verify_seconds
            metrics |= {"num_tokens": float(self.tokens), "tokens_per_s": sampled.tokens / (now - started)}
            warnings = [str(warning) for warning in self._health.observe(self.steps, metrics)]
            warnings += self._verifier_watch.unsupported(sampled.trajectories)
            if run is not None:
                run.log(self.steps, metrics, warnings)
        for warning in warnings if self.ranks.is_main else ():
            _LOGGER.warning(warning)
        return metrics

    def _rollout_writer(
        self, env: VectorEnv[Any, Any, Any], run: Run | None
    ) -> Callable[[Sequence[Trajectory], Tensor], None] | None:
        """What writes some completions of the coming update; None if none are to be written."""
        log = None if run is None else run.rollouts
        if log is None:
            return None
        world = env.unwrapped
        dataset = world.streams.dataset if isinstance(world, rlvr_envs.TokenVectorEnv) else None
        render = world.streams.rules.render_prompt if isinstance(world, rlvr_envs.TokenVectorEnv) else None
        question = render.asked if isinstance(render, rlvr_envs.PromptRenderer) else None
        return lambda trajectories, advantages: log.write(
            self.steps + 1, trajectories, advantages, self.tokenizer, dataset, question
        )

    def _next_batch(self, env: VectorEnv[Any, Any, Any], run: Run | None) -> training.Arrived:
        """The episodes of this step, sampled now or ahead; on failure, save the steps done so far."""
        self._verifier_watch.forget_step()
        try:
            lagged = self.lagged
            arrived = (
                self.ranks.together(lagged.next)
                if lagged
                else training.Arrived(self.sample(env, self.rounds, self.carried), age=0, waited_s=0.0)
            )
            if arrived.sampled.seen is not None:
                self._verifier_watch.see_all(arrived.sampled.seen)
            self._verifier_watch.end_step(self.steps + 1, run)
            return arrived
        except Exception as error:
            if self.lagged is not None:
                self.lagged.sample_errored_again()
            # Divided weights can't be saved without a rank that is lost.
            if self.steps > 0 and not (self._sharded is not None and isinstance(error, RankError)):
                self._keep(run)
            raise

    def sample(self, env: VectorEnv[Any, Any, Any], first_round: int, carried: Sequence[CarriedGroup] = ()) -> Sampled:
        """Sample a batch with the sampler's current weights, and measure it.

        Args:
            env: The environment.
            first_round: Number of the first round of problems.
            carried: The groups that earlier steps have begun.
        """
        started, verified = time.perf_counter(), _verification_seconds(env)
        self._generated = 0
        with self.sampler.sampling() as metrics:
            if self.config.carried_groups:
                collected = collect_carried(self, env, first_round, carried)
                trajectories, rounds, rest = collected.trajectories, 1, collected.carried
                metrics = {**metrics, **collected.metrics}
            else:
                (trajectories, rounds), rest = self.collect(env, first_round), ()
        return Sampled(
            trajectories,
            rounds,
            self._generated,
            self._seen,
            dict(metrics),
            time.perf_counter() - started,
            None if verified is None else (_verification_seconds(env) or 0.0) - verified,
            rest,
        )

    def sampling_copy(self, policy: TrainablePolicy, sampler: Sampler, ranks: Ranks, stopped: threading.Event) -> Self:
        """Return a copy that only samples: with another policy, sampler and ranks, until the event is set."""
        other = copy.copy(self)
        other.policy, other.sampler, other.ranks = policy, sampler, ranks
        other._seen, other._stopped = SeenEpisodes(), stopped
        return other

    def collect(self, env: VectorEnv[Any, Any, Any], first_round: int) -> tuple[list[Trajectory], int]:
        """Play the episodes of one step; return them and the number of rounds of problems drawn."""
        return self.play(env, self.episodes(env, first_round)), 1

    def play(
        self, env: VectorEnv[Any, Any, Any], episodes: Sequence[Episode], policy: Policy | None = None
    ) -> list[Trajectory]:
        """Call `rollout` with the agent's sampler, or another policy on its weights; check episodes and count tokens.

        Each rank plays its own groups, and all return all trajectories, in the order of `episodes`.
        """
        acting = self._stoppable(policy or self.sampler)

        def play_own(mine: Sequence[Episode]) -> list[Trajectory]:
            return rollout(env, acting, mine, on_episode=self._ended)

        played = play_divided(self.ranks, episodes, play_own, seen=self._see, rows=self._gathers_rows)
        self._generated += num_policy_tokens(played)
        return played

    def play_on(
        self, env: VectorEnv[Any, Any, Any], episodes: Sequence[Unfinished], policy: Policy, tokens: int
    ) -> list[Trajectory | PartialEpisode]:
        """Play episodes as `play` does, and interrupt each when it has `tokens` more of the policy."""
        acting = self._stoppable(policy)

        def play_own(mine: Sequence[Unfinished]) -> list[Trajectory | PartialEpisode]:
            done: dict[int, Trajectory | PartialEpisode] = {}
            for index, played in play_on(env, acting, mine, tokens):
                done[index] = played
                if isinstance(played, Trajectory):
                    self._ended(played)
            return [done[index] for index in range(len(mine))]

        played = play_divided(self.ranks, episodes, play_own, seen=self._see)
        self._generated += num_policy_tokens(played) - num_policy_tokens(episodes)
        return played

    def _stoppable(self, policy: Policy) -> Policy:
        return policy if self._stopped is None else training.StoppablePolicy(policy, self._stopped)

    def _ended(self, trajectory: Trajectory) -> None:
        """Count and check an episode that this rank has played."""
        self._see(trajectory)
        self.check_episode(trajectory)

    def _see(self, played: Trajectory | PartialEpisode) -> None:
        if isinstance(played, Trajectory):
            (self._verifier_watch if self._seen is None else self._seen).see(played)

    def episodes(self, env: VectorEnv[Any, Any, Any], number: int) -> list[Episode]:
        """Return the episodes of round `number`, a pure function of the number and the seed."""
        config = self.config
        return episodes_of_step(env, number, config.problems_per_step, config.group_size, config.seed)

    def update(self, trajectories: Sequence[Trajectory]) -> dict[str, float]:
        """Train on trajectories and return the metrics; see `agents.training.metrics`. This is one training step.

        A batch in which every verifier broke changes no weight.

        Raises:
            InvalidArgumentError: If the trajectories can't be trained on; the agent is then unchanged.
        """
        batch, advantages = self.compute_advantages(trajectories)
        if self._log_rollouts is not None:
            self._log_rollouts(trajectories, advantages)
        metrics = advantage_metrics(batch, advantages) | sampling_metrics(batch)
        if batch.values is not None and batch.value_targets is not None:
            metrics["explained_variance"] = explained_variance(batch.values, batch.value_targets, batch.loss_mask)
        metrics |= self.optimize(batch, advantages)
        self._after_update(batch, metrics)
        self.steps += 1
        return metrics

    def compute_advantages(self, trajectories: Sequence[Trajectory]) -> tuple[Batch, Tensor]:
        """The first half of `update`: return the batch, with all inputs of the loss, and its advantages f64[b l].

        In half precision, a batch with a single optimiser step has no `old_logprobs`; its loss takes those of the update.
        The agent is not changed. `optimize` is the other half.

        Raises:
            InvalidArgumentError: If there are no trajectories, one can't be trained on (see `check_episode`), groups that
                are compared have one member or different sizes, or the batch can't be divided into equal minibatches.
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
        """Add to a batch the current outputs of policy, reference and critic that the advantages and the loss need."""
        config, size = self.config, self.config.learner.micro_batch_size
        self.policy.release_cache()  # the learner needs its memory
        batch = self.truncated(batch)
        correction = self._correction()
        if correction is not Correction.NONE or (self.policy.is_half and not self._ratios_are_one):
            # In half precision, sampling and training passes round differently; ratios are relative to the latter.
            old = training.token_logprobs(self.policy, batch, size)
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
                reference_logprobs = training.token_logprobs(self.reference.policy, batch, size)
            batch = dataclasses.replace(batch, reference_logprobs=reference_logprobs)
            if config.has_kl_term and config.kl_placement == "reward":
                batch = batch.with_rewards(batch.rewards - self.kl_coefficient() * self._kl(batch, batch.old))
        if self.critic is not None:
            values, last = training.state_values(self.policy, self.critic, batch, size)
            bootstraps = config.truncation is Truncation.BOOTSTRAP
            kept = torch.where(batch.truncated & batch.valid & bootstraps, last, 0.0)
            batch = dataclasses.replace(batch, values=values, bootstrap=kept)
        return batch

    def truncated(self, batch: Batch) -> Batch:
        """Apply the config's rule for truncated episodes to a batch."""
        config = self.config
        return apply_truncation(
            batch,
            config.truncation,
            reward=config.truncation_reward,
            max_tokens=config.max_tokens,
            margin=config.overlong_margin,
        )

    def _correction(self) -> Correction:
        """The importance correction: samples of another sampler or of older weights are weighted unless the config objects."""
        if self.config.importance_correction is not None:
            return self.config.importance_correction
        on_policy = self.sampler is self.policy and self.config.older_weights is None
        return Correction.NONE if on_policy else Correction.TOKEN_TRUNCATE

    def optimize(self, batch: Batch, advantages: Tensor) -> dict[str, float]:
        """Take the optimiser steps of one batch: `epochs` passes over it, each divided into `minibatches`."""
        steps = []
        for rows in self._minibatches(len(batch)):
            minibatch = batch.rows(rows)
            steps.append(self.learner.step(minibatch, advantages[rows, : minibatch.tokens.shape[1]], self.batch_loss()))
        return merge(steps)

    def batch_loss(self) -> Loss:
        """The loss that optimiser steps minimise in this training step."""
        config = self.config
        alone = not self._kl_in_loss and self.entropy_coefficient() == 0
        return Loss(
            self.terms,
            config.aggregation,
            config.max_tokens,
            self.clipped,
            vanishes_without_advantage=alone and self.vanishes_without_advantage,
            ratios_are_one=self.policy.is_half and self._ratios_are_one,
        )

    @property
    def _ratios_are_one(self) -> bool:
        """Whether the one pass that computes the loss is made with the weights before the update, so that every ratio is 1."""
        config = self.config
        once = config.epochs == config.minibatches == 1 and type(self).optimize is Agent.optimize
        return once and not (config.has_kl_term and config.kl_placement == "reward")

    def _minibatches(self, rows: int) -> list[Tensor]:
        """Row indices of each optimiser step, shuffled if an epoch has several."""
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
        """Reject a batch whose minibatches would differ in size, since completions would have different weights."""
        minibatches = self.config.minibatches
        if rows % minibatches:
            raise InvalidArgumentError(
                f"{rows} completions can't be divided into minibatches={minibatches} of equal size: pass "
                f"{minibatches - rows % minibatches} more or {rows % minibatches} fewer, or change minibatches"
            )

    def terms(self, batch: Batch, outputs: TokenOutputs, advantages: Tensor) -> dict[str, Tensor]:
        """The named terms whose sum is the loss f[b t] of each token."""
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
        """Check that an agent's own method returned a number for each token."""
        if not isinstance(given, torch.Tensor) or given.shape != tokens.shape:
            came = f"one of shape {tuple(given.shape)}" if isinstance(given, torch.Tensor) else repr(given)
            raise InvalidArgumentError(
                f"{type(self).__name__}.{name} must return a number for each token, a tensor of shape "
                f"{tuple(tokens.shape)}; got {came}"
            )

    # The regularisers

    @property
    def _kl_in_loss(self) -> bool:
        return self.config.has_kl_term and self.config.kl_placement == "loss"

    def _kl(self, batch: Batch, logprobs: Tensor) -> Tensor:
        """The estimate f[b t] of the divergence from the reference at each token, 0 outside the loss mask."""
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
            if config.has_kl_term:
                metrics["kl_coefficient"] = self.kl_coefficient()
            if config.reference_sync_every and (self.steps + 1) % config.reference_sync_every == 0:
                self.reference.sync(self.policy, config.reference_sync_mix)
        # Without a trained token, or with diverged weights, there is no divergence to control.
        if self.kl_controller is not None and not math.isnan(metrics.get("kl", math.nan)):
            self.kl_controller.update(metrics["kl"], int(batch.valid.sum()))
        if config.entropy_coefficient or config.entropy_coefficient_end:
            metrics["entropy_coefficient"] = self.entropy_coefficient()

    # Evaluating and saving

    def evaluate(
        self,
        env: VectorEnv[Any, Any, Any],
        *,
        problems: int | None = None,
        samples: int = 1,
        greedy: bool = False,
        record: EvaluationRecord | None = None,
    ) -> Evaluation:
        """Evaluate the policy on the first problems of an environment's data set; see `evaluate`."""
        policy = self.sampler.at_temperature(0.0) if greedy else self.sampler
        with contextlib.nullcontext() if self.lagged is None else self.lagged.paused(), self.sampler.sampling():
            return evaluate(env, policy, problems=problems, samples=samples, seed=self.config.seed, record=record)

    def save(self, folder: str | Path) -> None:
        """Save the agent's complete state to a folder, atomically; an existing checkpoint is replaced.

        Weights that are divided among ranks are put together: all ranks call this, and rank 0 writes.

        Raises:
            InvalidArgumentError: If the folder contains anything else.
        """
        model, state = self._whole()
        if self._sharded is None:
            self._save(Path(folder), model, state)
        else:
            self.ranks.on_main(lambda: self._save(Path(folder), model, state))

    def _save(self, folder: Path, model: Any, state: dict[str, Any]) -> None:
        dtype = self.policy.saved_dtype if isinstance(self.policy, policies.CausalLMPolicy) else None
        training.save_checkpoint(folder, model, state, self.tokenizer, dtype=dtype)

    def _whole(self) -> tuple[Any, dict[str, Any]]:
        """The model and the agent's state, put together on rank 0 if weights are divided; all ranks then call this."""
        sharded = self._sharded
        if sharded is None:
            return self.policy.model, agent_state(self)
        return sharded.whole_module(), distributed.whole_state(agent_state(self))

    @property
    def _sharded(self) -> ShardedModule | None:
        return self.policy.sharded if isinstance(self.policy, policies.CausalLMPolicy) else None

    def _keep(self, run: Run | None) -> None:
        """Write a run's checkpoint of this step, unless it exists or there is no run."""
        if self._sharded is None:
            if run is not None:
                run.keep_checkpoint(self.steps, self.save)
            return
        if not self.ranks.from_main(run is not None and not run.checkpoint_folder(self.steps).exists()):
            return
        model, state = self._whole()
        self.ranks.together(
            lambda: None if run is None else run.keep_checkpoint(self.steps, lambda to: self._save(to, model, state))
        )

    def load(self, folder: str | Path) -> None:
        """Restore the state of a saved agent.

        Raises:
            CheckpointError: If the folder holds no checkpoint, or one of another kind of agent, model, critic or reference;
                the agent is then unchanged.
        """
        sharded = self._sharded
        model = self.policy.model if sharded is None else sharded.whole_module(everywhere=True)
        state = training.load_checkpoint(Path(folder), model, agent=self.name, components=components_of(self))
        if sharded is not None:
            sharded.take(model)
        restore(self, state)
        self._health = Health()

    def own_state(self) -> dict[str, Any]:
        """Return state that this agent has in addition to that of all agents, as tensors and plain data."""
        return {}

    def load_own_state(self, state: dict[str, Any]) -> None:  # noqa: B027 - most agents carry nothing
        """Restore the state returned by `own_state`."""


def _verification_seconds(env: VectorEnv[Any, Any, Any]) -> float | None:
    """The seconds that an environment reports for verification; None if it reports none."""
    seconds = getattr(env.unwrapped, "verification_seconds", None)
    return None if seconds is None else float(seconds)
