"""Evaluation on held-out problems while an agent trains; it changes nothing in training.

```
agent.learn(env, steps=200, run=run, held_out=HeldOut({"GSM8K": test_env}, every=20, stop_when=StopWhen(stale=5)))
```

Problems and sampling seeds are the same each time, so that scores are compared problem by problem. An evaluation uses the
agent's weights, but its own environments, caches and seeds. The checkpoint with the highest score is kept, and evaluated once
more at the end, on problems that were not used to choose it.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from gymnasium.vector import VectorEnv

import rlvr_envs
from agents.distributed.ranks import Ranks
from agents.learn.lag import BatchSource
from agents.learn.random_state import random_state, set_random_state
from agents.rollouts.evaluation import number_of_problems, sampled_rows
from agents.rollouts.vector_adapter import num_problems, with_token_info
from agents.runs.evaluation import Evaluation, summarize_evaluation
from agents.runs.evaluation_record import Sample
from agents.runs.held_out import HeldOutHistory, StopWhen
from agents.runs.run import Run
from agents.types import Sampler
from verifiers import AtLeast, InvalidArgumentError, check_types

_COMPARED = 20
"""Number of problems that are compared to distinguish two data sets."""

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class HeldOut:
    """Plan of the evaluations during training: problems, frequency, and when training stops.

    Raises:
        InvalidArgumentError: If there is no environment, a number is out of range, or several samples would be the same.
    """

    envs: Mapping[str, VectorEnv[Any, Any, Any]]
    """The environments by their names in metrics, such as one with the test split of the training environment's data set. They
    share nothing with the training environment, not even a verifier with state."""
    every: Annotated[int, AtLeast(1)] = 20
    """Number of training steps between evaluations; the first evaluation is before any training."""
    problems: Annotated[int, AtLeast(1)] = 200
    """Number of problems of each environment, beginning with the first. At most half of an environment's problems are used, so
    that the other half can confirm the choice of the best checkpoint."""
    samples: Annotated[int, AtLeast(1)] = 1
    """Number of completions for each problem."""
    temperature: Annotated[float, AtLeast(0)] = 0.0
    """Sampling temperature; 0 chooses the likeliest token."""
    stop_when: StopWhen | None = None
    """The conditions under which training ends before its last step; None for no such condition."""

    def __post_init__(self) -> None:
        check_types(self)
        if not self.envs:
            raise InvalidArgumentError("held_out has no environment: name at least one, such as envs={'test': env}")
        if self.samples > 1 and self.temperature == 0:
            raise InvalidArgumentError(
                f"all {self.samples} samples of a problem are the same at temperature 0: choose a higher one, or take 1 sample"
            )

    def evaluations(
        self, sampler: Sampler, source: BatchSource, ranks: Ranks, seed: int, run: Run | None
    ) -> HeldOutEvaluations:
        """The evaluations of one call of `learn`, which go on with the run's history."""
        return HeldOutEvaluations(self, sampler, source, ranks, seed, HeldOutHistory() if run is None else run.held_out)

    def problems_of(self, env: VectorEnv[Any, Any, Any]) -> int:
        """The number of an environment's problems that are used to choose the best checkpoint."""
        available = num_problems(env)
        wanted = self.problems if available is None else min(self.problems, max(1, available // 2))
        return number_of_problems(available, wanted, self.samples)

    def confirming(self, env: VectorEnv[Any, Any, Any]) -> range:
        """The problems that confirm the best checkpoint: those that follow the problems used to choose it, at most as many."""
        chosen, available = self.problems_of(env), num_problems(env)
        return range(chosen, 2 * chosen if available is None else min(2 * chosen, available))

    def require_apart(self, training: VectorEnv[Any, Any, Any]) -> None:
        """Check that no evaluation uses the training environment or a part of it.

        Raises:
            InvalidArgumentError: If an evaluation uses it.
        """
        used = _worlds(training)
        for name, env in self.envs.items():
            if any(world is other for world in _worlds(env) for other in used):
                raise InvalidArgumentError(
                    f"held_out evaluates {name!r} in the environment of training or a part of it, and episodes of both would "
                    "mix: make another environment, such as of the split 'test'"
                )

    def of_training(self, training: VectorEnv[Any, Any, Any]) -> list[str]:
        """The names of the environments that have the training problems: equally many problems, and equal first prompts.

        Environments with a single prompt, such as a fixed maze, are not compared.
        """
        used = [data for world in _worlds(training) if (data := getattr(world, "dataset", None)) is not None]
        held = {name: getattr(_worlds(env)[0], "dataset", None) for name, env in self.envs.items()}
        return [
            name for name, data in held.items() if data is not None and any(_same_problems(data, each) for each in used)
        ]


def _same_problems(first: rlvr_envs.Dataset, second: rlvr_envs.Dataset) -> bool:
    if len(first) != len(second):
        return False
    prompts, others = ([data[index].prompt for index in range(min(len(first), _COMPARED))] for data in (first, second))
    return prompts == others and any(prompt != prompts[0] for prompt in prompts)


def _worlds(env: VectorEnv[Any, Any, Any]) -> list[object]:
    """An environment's streams and, in a mixture, the streams of its parts; the environment itself if it has no streams."""
    world = env.unwrapped
    if not isinstance(world, rlvr_envs.TokenVectorEnv):
        return [world]
    return [world.streams, *getattr(world.streams, "parts", ())]


class HeldOutEvaluations:
    """Makes the evaluations of a plan; with several ranks, each rank evaluates its own problems."""

    def __init__(
        self, plan: HeldOut, sampler: Sampler, source: BatchSource, ranks: Ranks, seed: int, history: HeldOutHistory
    ) -> None:
        self._plan, self._sampler, self._source = plan, sampler, source
        self._ranks, self._seed, self._history = ranks, seed, history
        self._envs = {name: with_token_info(env) for name, env in plan.envs.items()}

    def is_due(self, step: int) -> bool:
        """Whether the weights after a number of steps have yet to be evaluated."""
        return step % self._plan.every == 0 and self._ranks.from_main(not self._history.of_step(step))

    def evaluate(self, step: int) -> dict[str, float]:
        """Evaluate the current weights and return the metrics, on all ranks."""
        problems = {name: range(self._plan.problems_of(env)) for name, env in self._envs.items()}
        return self._record(step, problems, None)

    def confirm(self, step: int, best: int) -> dict[str, float]:
        """Evaluate the current weights, which are those of the best step, on problems that were not used to choose the step.

        Returns:
            The metrics; empty if no environment has further problems, or if the step was confirmed before.
        """
        problems = {name: left for name, env in self._envs.items() if (left := self._plan.confirming(env))}
        if not problems or self._ranks.from_main(bool(self._history.of_step(step, confirms=best))):
            return {}
        return self._record(step, problems, best)

    @property
    def best_step(self) -> int | None:
        """The step with the highest score."""
        return self._ranks.from_main(self._history.best_step)

    def stop_reason(self) -> str | None:
        """The reason why training ends; None if training goes on."""
        when = self._plan.stop_when
        return None if when is None else self._ranks.from_main(self._history.stop_reason(when))

    def _record(self, step: int, problems: Mapping[str, range], best: int | None) -> dict[str, float]:
        results = {name: self._evaluated(self._envs[name], asked) for name, asked in problems.items()}
        for name, result in results.items():
            if self._ranks.is_main and result.warning is not None:
                _LOGGER.warning("evaluation of %s: %s", name, result.warning)
        first = {name: asked.start for name, asked in problems.items()}
        metrics = self._ranks.on_main(lambda: self._history.add(step, results, first=first, confirms=best))
        return self._ranks.from_main(metrics or {})

    def _evaluated(self, env: VectorEnv[Any, Any, Any], problems: range) -> Evaluation:
        rows = [
            row for part in self._ranks.gather(self._ranks.together(lambda: self._play(env, problems))) for row in part
        ]
        return summarize_evaluation(sorted(rows, key=lambda row: row.key), len(problems), self._plan.samples)

    def _play(self, env: VectorEnv[Any, Any, Any], problems: range) -> list[Sample]:
        """The samples of this rank's problems."""
        keys = [(index, number) for index in self._ranks.divide(problems) for number in range(self._plan.samples)]
        policy = self._sampler.at_temperature(self._plan.temperature)  # this policy has its own cache
        # A lag samples with a copy of the policy, but with the same engine.
        paused = self._source.paused() if self._sampler.learner is not self._sampler else contextlib.nullcontext()
        state = random_state()
        try:
            with paused, self._sampler.sampling():
                made = sampled_rows(env, policy, keys, self._seed, (problems.stop, self._plan.samples))
                world = env.unwrapped
                dataset = world.streams.dataset if isinstance(world, rlvr_envs.TokenVectorEnv) else None
                return [
                    row.sample if dataset is None else row.sample.of_problem(dataset[row.sample.problem])
                    for row in made
                ]
        finally:
            set_random_state(state)
