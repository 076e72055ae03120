"""`Trainer`: training steps one after the other; each samples a batch, learns from it and reports its metrics."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gymnasium.vector import VectorEnv

import rlvr_envs
from agents.distributed.weights import require_same_weights
from agents.interrupts import interrupts_deferred
from agents.learn.metrics import summarize, summarize_parts
from agents.rollouts.problem_parts import problem_parts
from agents.runs.health import Health
from agents.runs.steps import Callback, check_numbers, kept_on_interrupt, take_steps
from verifiers import RankError

if TYPE_CHECKING:
    from agents.distributed.ranks import Ranks
    from agents.learn.algorithm import Algorithm
    from agents.learn.held_out import HeldOutEvaluations
    from agents.learn.lag import BatchSource
    from agents.learn.noise import RewardNoise
    from agents.learn.progress import Progress
    from agents.learn.sampled import Sampled
    from agents.learn.saving import Saving
    from agents.learn.source import Arrived
    from agents.learn.updating import OnAdvantages, Updating
    from agents.learn.verifier_errors import VerifierWatch
    from agents.runs.run import Run
    from agents.types import Trajectory

_LOGGER = logging.getLogger(__name__)


class Trainer:
    """Makes the training steps of an agent."""

    def __init__(
        self,
        algorithm: Algorithm,
        *,
        source: BatchSource,
        updating: Updating,
        update: Callable[[Sequence[Trajectory]], dict[str, float]],
        saving: Saving,
        progress: Progress,
        watch: VerifierWatch,
        ranks: Ranks,
    ) -> None:
        self._algorithm, self._source = algorithm, source
        self._updating, self._update, self._saving = updating, update, saving
        self._progress, self._watch, self._ranks = progress, watch, ranks
        self._health = Health()
        self._noise: RewardNoise | None = None

    def forget_health(self) -> None:
        """Forget the steps observed so far; called after a checkpoint was loaded."""
        self._health = Health()

    def learn(
        self,
        env: VectorEnv[Any, Any, Any],
        *,
        steps: int,
        tokens: int | None,
        run: Run | None,
        checkpoint_every: int | None,
        callbacks: Sequence[Callback],
        held_out: HeldOutEvaluations | None,
        noise: RewardNoise | None,
    ) -> None:
        """See `Agent.learn`."""
        self._noise = noise
        check_numbers(steps=steps, tokens=tokens, checkpoint_every=checkpoint_every)
        self._algorithm.require_env(env)
        self._progress.parts = problem_parts(env)
        self._progress.problems.prepare(env)
        self._saving.tokenizer = getattr(env.unwrapped, "tokenizer", self._saving.tokenizer)
        learner, config = self._updating.learner, self._algorithm.config
        learner.run_steps = steps * config.epochs * config.minibatches
        learner.config.check_schedule(learner.run_steps)
        if run is not None and self._health.steps == 0:
            for row in run.rows():
                if "reward" in row:
                    self._health.observe(row["step"], row)
                else:  # the row has metrics of an evaluation
                    self._health.observe_held_out(row)
        require_same_weights(self._ranks, learner.policy.model)

        def keep() -> None:
            self._saving.keep(run, self._progress.steps)

        def train_step() -> dict[str, float]:
            return self._train_step(env, run) | self._evaluate(held_out, run)

        # Between updates the agent has the state after the last step; a resumed run repeats later rollouts.
        ranks, sampling = self._ranks, self._source.running(env, steps)
        with ranks.interrupts_together(), ranks.failures_named(), kept_on_interrupt(keep), sampling:
            self._evaluate(held_out, run)
            take_steps(
                self._progress,
                train_step,
                keep,
                steps=steps,
                tokens=tokens,
                checkpoint_every=checkpoint_every,
                callbacks=callbacks,
                stopped=lambda: held_out is not None and held_out.stop_reason() is not None,
            )
        self._watch.check(run)  # steps without anything to train on are not saved as done
        keep()
        if held_out is not None and ranks.from_main(run is not None):
            with ranks.interrupts_together(), ranks.failures_named():
                self._confirm_best(held_out, run)

    def _evaluate(self, held_out: HeldOutEvaluations | None, run: Run | None) -> dict[str, float]:
        """Evaluate the current weights if an evaluation is due, and checkpoint them if their score is the best so far."""
        step = self._progress.steps
        if held_out is None or not held_out.is_due(step):
            return {}
        try:
            metrics = held_out.evaluate(step)
        except Exception as error:
            self._keep_steps(run, error)
            raise
        self._health.observe_held_out(metrics)
        if run is not None:
            run.log_evaluation(step, metrics)
        if held_out.best_step == step:
            self._saving.keep(run, step)
        return metrics

    def _confirm_best(self, held_out: HeldOutEvaluations, run: Run | None) -> None:
        """Evaluate the best checkpoint on problems not used to choose it, and return to the weights of the last step."""
        step, best = self._progress.steps, held_out.best_step
        if best is None:
            return
        folders = self._ranks.from_main(None if run is None else [run.checkpoint_folder(one) for one in (best, step)])
        assert folders is not None
        try:
            if best != step:
                self._saving.load(folders[0])
            metrics = held_out.confirm(step, best)
        finally:
            if best != step:
                self._saving.load(folders[1])
        if run is not None and metrics:
            run.log_evaluation(step, metrics)

    def _train_step(self, env: VectorEnv[Any, Any, Any], run: Run | None) -> dict[str, float]:
        started = time.perf_counter()
        arrived = self._next_batch(run)
        sampled, progress = arrived.sampled, self._progress
        begun = time.perf_counter()
        # An interrupt waits until the step is complete: weights, counts and metrics.
        with interrupts_deferred():
            metrics = summarize(sampled.trajectories) | dict(sampled.metrics) | dict(arrived.metrics)
            metrics |= self._problem_metrics(sampled)
            metrics |= {} if self._noise is None else self._noise.metrics(sampled.trajectories)
            self._updating.on_advantages = self._rollout_writer(env, run)
            try:
                metrics |= self._update(sampled.trajectories)
            finally:
                self._updating.on_advantages = None  # an update outside of this run is not one of its steps
            self._source.learned(arrived)
            now = time.perf_counter()
            metrics |= {"step_s": now - started, "rollout_s": sampled.seconds, "update_s": now - begun}
            if sampled.verify_seconds is not None:
                metrics["verify_s"] = sampled.verify_seconds
            metrics |= {"num_tokens": float(progress.tokens), "tokens_per_s": sampled.tokens / (now - started)}
            warnings = [str(warning) for warning in self._health.observe(progress.steps, metrics)]
            warnings += self._watch.unsupported(sampled.trajectories)
            if run is not None:
                run.log(progress.steps, metrics, warnings)
        for warning in warnings if self._ranks.is_main else ():
            _LOGGER.warning(warning)
        return metrics

    def _problem_metrics(self, sampled: Sampled) -> dict[str, float]:
        """The shares of problems grouped by earlier observations, and the metrics of the parts of a mixture."""
        parts = self._progress.parts
        if parts is None:
            return {}
        metrics = self._progress.problems.shares([group.problem for group in sampled.outcomes])
        if parts.by == "levels":
            metrics["problems/level"] = float(self._progress.problems.level)
        return metrics | summarize_parts(sampled.trajectories, parts)

    def _next_batch(self, run: Run | None) -> Arrived:
        """The episodes of this step; if sampling fails, save the steps done so far."""
        try:
            arrived = self._source.next()
            self._watch.end_step(arrived.sampled.seen, self._progress.steps + 1, run)
            return arrived
        except Exception as error:
            self._source.sample_errored_again()
            self._keep_steps(run, error)
            raise

    def _keep_steps(self, run: Run | None, error: Exception) -> None:
        """Save the steps done so far before an error ends training."""
        step = self._progress.steps
        # Divided weights can't be saved if a rank is lost.
        if step > 0 and not (self._ranks.sharding is not None and isinstance(error, RankError)):
            self._saving.keep(run, step)

    def _rollout_writer(self, env: VectorEnv[Any, Any, Any], run: Run | None) -> OnAdvantages | None:
        """Return a function that writes some completions of the coming update; None if the run keeps none."""
        log = None if run is None else run.rollouts
        if log is None:
            return None
        world = env.unwrapped
        dataset = world.streams.dataset if isinstance(world, rlvr_envs.TokenVectorEnv) else None
        render = world.streams.rules.render_prompt if isinstance(world, rlvr_envs.TokenVectorEnv) else None
        question = getattr(render, "asked", None)  # an attribute of prompt renderers and of their mixtures
        step, tokenizer = self._progress.steps + 1, self._saving.tokenizer
        return lambda trajectories, advantages: log.write(step, trajectories, advantages, tokenizer, dataset, question)
