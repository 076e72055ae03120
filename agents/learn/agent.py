"""`Agent`: an algorithm, its policy and the code that trains it. The file of each agent defines its advantages and its loss."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from agents.batch import Batch, make_batch
from agents.distributed.ranks import Ranks, active_ranks
from agents.learn.algorithm import Algorithm, require_per_token
from agents.learn.checks import check_use, correction_of
from agents.learn.lag import BatchSource, LaggedSampling
from agents.learn.learner import Learner
from agents.learn.metrics import batch_metrics
from agents.learn.models import Models
from agents.learn.progress import Progress
from agents.learn.sampling import Sampling
from agents.learn.saving import Saving
from agents.learn.source import OnDemand
from agents.learn.trainer import Trainer
from agents.learn.updating import Updating
from agents.learn.verifier_errors import VerifierWatch
from agents.rollouts.problem_samplers import make_problem_sampler
from agents.settings.agent import AgentConfig as AgentConfig  # the config of an agent that has none of its own
from verifiers import InvalidArgumentError

if TYPE_CHECKING:
    from torch import Tensor

    import rlvr_envs
    from agents.learn.held_out import HeldOut
    from agents.learn.noise import RewardNoise
    from agents.policies.trainable import TrainablePolicy
    from agents.runs.evaluation import Evaluation
    from agents.runs.evaluation_record import EvaluationRecord
    from agents.runs.run import Run
    from agents.runs.steps import Callback
    from agents.types import Action, Sampler, Trajectory


class Agent(Algorithm):
    """Owns a policy and trains it on its own episodes.

    A subclass defines `name`, `advantages` and `loss`; everything else is implemented here.

    Args:
        policy: The policy to train.
        config: The agent's settings, an instance of its own config class.
        sampler: The policy used for rollouts, such as a `VLLMPolicy` of `policy`; defaults to `policy`.
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if cls.collect is not Agent.collect:
            raise InvalidArgumentError(
                f"{cls.__name__}.collect would not be called by learn: define sample_batch(sampling, env, first_round), which "
                "plays by sampling.play(env, sampling.episodes(env, first_round))"
            )

    def __init__(self, policy: TrainablePolicy, config: AgentConfig, *, sampler: Sampler | None = None) -> None:
        self.ranks: Ranks = active_ranks()
        """The processes that train this agent together."""
        self.policy, self.sampler = policy, sampler or policy
        self.config = config
        check_use(self, self.policy, self.sampler, self.ranks)
        self.config = config = config.for_model(policy.model)
        chosen_by = make_problem_sampler(config.problem_sampler, config.seed, config.floor, config.difficulty)
        self.progress = Progress(problems=chosen_by)
        """The counts of steps, rounds and tokens so far."""
        watch = VerifierWatch(config.max_error_share)
        self.sampling = Sampling(self, self.sampler, self.ranks, lambda: self.progress.problems, on_errored=watch.warn)
        """Plays episodes with the current weights."""
        self.source: BatchSource = (
            LaggedSampling(self.sampling, policy, self.progress, config.lag)
            if config.lag
            else OnDemand(self.sampling, self.progress)
        )
        """The source of the training steps' batches."""
        self.models = Models.beside(policy, config)
        """The policy, its critic and its reference."""
        if self.ranks.sharding is not None:
            self.models.shard(self.ranks.sharding)
        self.learner = Learner(policy, config.learner, self.models.critic, config.critic)
        self.updating = Updating(
            self,
            self.models,
            self.learner,
            self.progress,
            correction=correction_of(config, policy, self.sampler),
            one_gradient=type(self).optimize is Agent.optimize,
        )
        """Turns batches into updates of the weights."""
        self.saving = Saving(self, self.models, [self.progress, self.updating, self.source], self.ranks)
        """Writes and reads checkpoints."""
        self._trainer = Trainer(
            self,
            source=self.source,
            updating=self.updating,
            update=lambda trajectories: self.update(trajectories),  # a lambda, since a user may wrap `self.update`
            saving=self.saving,
            progress=self.progress,
            watch=watch,
            ranks=self.ranks,
        )

    @property
    def steps(self) -> int:
        """Number of training steps done, each on one batch of episodes."""
        return self.progress.steps

    @property
    def tokens(self) -> int:
        """Number of tokens generated so far, including completions that were not trained on."""
        return self.progress.tokens

    # Acting and learning

    def act(
        self,
        observation: rlvr_envs.Observation,
        *,
        action_mask: NDArray[np.int8] | None = None,
        rows: NDArray[np.bool_] | None = None,
    ) -> Action:
        """Choose tokens; see `Policy.act`.

        A plain Gymnasium loop, with the legal tokens if the environment limits them:

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
        held_out: HeldOut | None = None,
        noise: RewardNoise | None = None,
    ) -> None:
        """Train until `steps` steps are done in total, including those before a resume.

        Signs of failing training are logged as warnings; see `agents.runs.health`. With several ranks, all ranks call
        this, with the same arguments except for `run`, which only rank 0 has.

        Args:
            env: The environment to train in; see `rollout`.
            steps: Number of the last step. Schedules without `schedule_steps` end there: set `schedule_steps` if `learn` is
                called repeatedly with increasing numbers.
            tokens: Number of sampled tokens after which training ends, even before `steps`; the step that reaches it is
                completed.
            run: The run that records metrics and checkpoints.
            checkpoint_every: Number of steps between checkpoints; a run also writes one at the end and on interruption.
            callbacks: Called after each step.
            held_out: The evaluations during training; None for no evaluation.
            noise: The verifier's error rates, for metrics that say how much of the rewards is likely error.

        Raises:
            InvalidArgumentError: If the warm-up is as long as the run, a number is negative, or `held_out` evaluates in `env`.
            VerifierFailureError: If the verifier broke on more episodes than `max_error_share` allows. The run then has a
                checkpoint of the preceding steps; if the failure is detected only after the last step, the run keeps its
                previous checkpoint.
        """
        if held_out is not None:
            held_out.require_apart(env)
        self._trainer.learn(
            env,
            steps=steps,
            tokens=tokens,
            run=run,
            checkpoint_every=checkpoint_every,
            callbacks=callbacks,
            noise=noise,
            held_out=None
            if held_out is None
            else held_out.evaluations(self.sampler, self.source, self.ranks, self.config.seed, run),
        )

    def collect(self, env: VectorEnv[Any, Any, Any], first_round: int) -> tuple[list[Trajectory], int]:
        """Play the episodes of one step; return them and the number of rounds of problems drawn."""
        return self.sample_batch(self.sampling, env, first_round)

    def update(self, trajectories: Sequence[Trajectory]) -> dict[str, float]:
        """Train on trajectories and return the metrics; see `agents.learn.metrics`. This is one training step.

        A batch in which every verifier broke changes no weight.

        Raises:
            InvalidArgumentError: If the trajectories can't be trained on; the agent is then unchanged.
        """
        batch, advantages = self.compute_advantages(trajectories)
        if self.updating.on_advantages is not None:
            self.updating.on_advantages(trajectories, advantages)
        metrics = batch_metrics(batch, advantages) | self.optimize(batch, advantages)
        self.updating.finish(batch, metrics)
        self.progress.steps += 1
        return metrics

    def compute_advantages(self, trajectories: Sequence[Trajectory]) -> tuple[Batch, Tensor]:
        """The first half of `update`: return the batch, with all inputs of the loss, and its advantages f64[b l].

        In half precision, a batch with a single optimiser step has no `old_logprobs`; its loss uses the log-probabilities of
        the update itself. The agent is not changed. `optimize` is the other half.

        Raises:
            InvalidArgumentError: If there are no trajectories, or the trajectories can't be trained on together; see
                `check_batch`.
        """
        self.check_batch(trajectories)
        batch = self.prepare(make_batch(trajectories))
        advantages = self.advantages(batch)
        require_per_token(self, "advantages", advantages, batch.tokens)
        return dataclasses.replace(batch, value_targets=self.value_targets(batch)), advantages

    def prepare(self, batch: Batch) -> Batch:
        """Add to a batch the current outputs of policy, reference and critic that the advantages and the loss need."""
        return self.updating.prepare(batch)

    def optimize(self, batch: Batch, advantages: Tensor) -> dict[str, float]:
        """Take the optimiser steps of one batch: `epochs` passes over it, each divided into `minibatches`."""
        return self.updating.optimize(batch, advantages)

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
        from agents.rollouts.evaluation import evaluate  # here, since training does without it

        policy = self.sampler.at_temperature(0.0) if greedy else self.sampler
        with self.source.paused(), self.sampler.sampling():
            return evaluate(env, policy, problems=problems, samples=samples, seed=self.config.seed, record=record)

    def save(self, folder: str | Path) -> None:
        """Save the agent's complete state to a folder, atomically; an existing checkpoint is replaced.

        If weights are divided among ranks, all ranks call this: the weights are put together, and rank 0 writes.

        Raises:
            InvalidArgumentError: If the folder contains anything else.
        """
        self.saving.save(Path(folder))

    def load(self, folder: str | Path) -> None:
        """Restore the state of a saved agent.

        Raises:
            CheckpointError: If the folder holds no checkpoint, or one of another kind of agent, model, critic or reference;
                the agent is then unchanged.
        """
        self.saving.load(Path(folder))
        self._trainer.forget_health()
