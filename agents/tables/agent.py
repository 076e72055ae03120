"""`TabularAgent`: the base class of agents that learn a table from numbered observations and actions.

Such agents need no model and no tokens. They play plain Gymnasium environments, such as `rlvr/BanditState-v0`, one action after
the other, and learn from every transition. Each agent's own file defines its choices and its learning.

    env = gymnasium.make("rlvr/BanditState-v0")
    agent = UCB1(env)
    agent.learn(env, steps=100)
    print(agent.evaluate(env, problems=100, greedy=True))

Random numbers depend only on the seed and the number of the step, so that a resumed run equals a run without a stop.
"""

from __future__ import annotations

import abc
import hashlib
import json
import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, cast, get_type_hints

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

import rlvr_envs
from agents.distributed.ranks import active_ranks
from agents.interrupts import interrupts_deferred
from agents.rollouts.evaluation import complete_samples, number_of_problems, problem_id, warn_of_equal_samples
from agents.runs.evaluation import Evaluation, summarize_evaluation
from agents.runs.evaluation_record import EvaluationRecord, Sample, SampledRow
from agents.runs.files.checkpoint_folder import recover, replacing
from agents.runs.files.integrity import check_checksums
from agents.runs.run import Run
from agents.runs.steps import Callback, check_numbers, kept_on_interrupt, take_steps
from verifiers import AtLeast, CheckpointError, InvalidArgumentError, check_types

Environment = gymnasium.Env[Any, Any]
_STATE, _TABLES = "state.json", "tables.npz"
_EVALUATION = 2**62
"""Number of the random stream of evaluations. The streams of training steps are numbered from 0."""


class Transition(NamedTuple):
    """One action and its consequences."""

    state: int
    action: int
    reward: float
    next_state: int
    terminated: bool
    truncated: bool


@dataclass(frozen=True)
class TabularConfig:
    """Settings shared by all agents that learn a table.

    Raises:
        InvalidArgumentError: If a value is out of range.
    """

    episodes_per_step: Annotated[int, AtLeast(1)] = 10
    """Number of episodes of one training step, whose metrics are logged together. This number does not change when the agent
    learns, which is at each transition or at the end of each episode."""
    seed: Annotated[int, AtLeast(0)] = 0
    """Seed of the problems and of the agent's choices."""

    def __post_init__(self) -> None:
        check_types(self)

    def check_effects(self) -> None:
        """Reject settings without effect.

        The check comes before learning instead of at construction, so that every saved agent loads.

        Raises:
            InvalidArgumentError: If a setting has no effect; the message names the setting.
        """


class TabularAgent(abc.ABC):
    """Chooses actions by its tables, and learns from its own transitions.

    A subclass defines `name`, `choose`, `acting_values`, `observe` and `tables`. This class implements everything else.

    Args:
        env: The environment to learn in, or an environment with the same spaces. Both spaces must be `Discrete`.
        config: The agent's settings, an instance of the agent's config class; None for the defaults.

    Raises:
        InvalidArgumentError: If the agent can't learn in the environment, or the config belongs to another agent.
    """

    name: ClassVar[str]
    config: TabularConfig

    def __init__(self, env: Environment, config: TabularConfig | None = None) -> None:
        wanted = get_type_hints(type(self))["config"]
        self.config = wanted() if config is None else config
        if not isinstance(self.config, wanted):
            raise InvalidArgumentError(
                f"{type(self).__name__} expects a {wanted.__name__}, got {type(config).__name__}"
            )
        self.ranks = active_ranks()
        if self.ranks.size > 1:
            raise InvalidArgumentError(f"{self.name} learns in one process, got {self.ranks.size}: start one")
        self.num_states, self.num_actions = table_shape(env, self.name)
        self.check_env(env)
        self.steps = 0
        """Number of training steps so far, each of several episodes."""
        self.tokens = 0
        """Number of actions in learning so far. In the token environments, an action is a token."""
        self.regret = 0.0
        """Sum of the regret that the environment reported in learning so far; 0 if the environment reports no regret."""
        self._acting = np.random.default_rng(self.config.seed)

    # Defined by each agent

    @abc.abstractmethod
    def choose(self, state: int, rng: np.random.Generator) -> int:
        """Choose an action in a state, for learning."""

    @abc.abstractmethod
    def acting_values(self, state: int) -> NDArray[np.float64]:
        """Return numbers f64[a], such as action values.

        The highest number belongs to the best action as far as the agent knows.
        """

    @abc.abstractmethod
    def observe(self, transition: Transition) -> None:
        """Learn from a transition, right after the transition."""

    @abc.abstractmethod
    def tables(self) -> dict[str, NDArray[Any]]:
        """Return by name the arrays that hold everything learned.

        They must not be copies, since `load` writes into these arrays.
        """

    def begin_episode(self, state: int) -> None:  # noqa: B027 - most agents keep nothing of an episode
        """Prepare for a learning episode; called at its start."""

    def end_episode(self, transitions: Sequence[Transition]) -> None:  # noqa: B027 - most agents learn on the way
        """Learn from a whole episode, after `observe` got the last transition."""

    def check_env(self, env: Environment) -> None:  # noqa: B027 - most agents learn in any
        """Raise if the agent can't learn in an environment with discrete spaces."""

    # Acting and learning

    def greedy_action(self, state: int) -> int:
        """The best action in a state as far as the agent knows; the first of several best actions."""
        return int(self.acting_values(state).argmax())

    def act(self, state: int, *, greedy: bool = False) -> int:
        """Choose an action as in learning or, with `greedy`, the best action as far as the agent knows.

        A plain Gymnasium loop:

        ```python
        state, info = env.reset(seed=0)
        terminated = truncated = False
        while not (terminated or truncated):
            state, reward, terminated, truncated, info = env.step(agent.act(state, greedy=True))
        ```
        """
        return self.greedy_action(int(state)) if greedy else self.choose(int(state), self._acting)

    def learn(
        self,
        env: Environment,
        *,
        steps: int,
        tokens: int | None = None,
        run: Run | None = None,
        checkpoint_every: int | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        """Learn until the total number of steps is `steps`, including steps before a resume.

        Args:
            env: The environment to learn in.
            steps: Number of the last step; each has `episodes_per_step` episodes.
            tokens: Number of actions after which learning ends, even before `steps`. The current step is completed first.
            run: The run that records metrics and checkpoints.
            checkpoint_every: Number of steps between checkpoints; a run also writes one at the end and on interruption.
            callbacks: Called after each step with its number, from 1, and its metrics.

        Raises:
            InvalidArgumentError: If the agent can't learn in the environment, if the environment has other spaces than the
                agent, if a number is negative, or if a setting has no effect.
        """
        check_numbers(steps=steps, tokens=tokens, checkpoint_every=checkpoint_every)
        self.config.check_effects()
        self._check_spaces(env)

        def keep() -> None:
            if run is not None:
                run.keep_checkpoint(self.steps, self.save)

        with kept_on_interrupt(keep):
            take_steps(
                self,
                lambda: self._train_step(env, run),
                keep,
                steps=steps,
                tokens=tokens,
                checkpoint_every=checkpoint_every,
                callbacks=callbacks,
            )
        keep()

    def _train_step(self, env: Environment, run: Run | None) -> dict[str, float]:
        # An interrupt waits for the end of the step, so that no checkpoint contains half a step.
        with interrupts_deferred():
            metrics = self._learn_episodes(env)
            if run is not None:
                run.log(self.steps, metrics)
        return metrics

    def _learn_episodes(self, env: Environment) -> dict[str, float]:
        started, count = time.perf_counter(), self.config.episodes_per_step
        rng, env_seed = _step_random(self.config.seed, self.steps)
        returns, lengths, truncated, regret = 0.0, 0, 0, 0.0
        for number in range(count):
            episode = list(self._episode(env, rng, env_seed if number == 0 else None))
            self.end_episode([transition for transition, _ in episode])
            returns += sum(transition.reward for transition, _ in episode)
            lengths += len(episode)
            truncated += episode[-1][0].truncated
            regret += sum(info.get("regret", 0.0) for _, info in episode)
        self.steps += 1
        self.tokens += lengths
        self.regret += regret
        metrics = {"reward": returns / count, "length": lengths / count, "truncated": truncated / count}
        if any("regret" in info for _, info in episode):
            metrics |= {"regret": regret / count, "total_regret": self.regret}
        return metrics | {"num_tokens": float(self.tokens), "step_s": time.perf_counter() - started}

    def _episode(
        self, env: Environment, rng: np.random.Generator, seed: int | None
    ) -> Iterator[tuple[Transition, Mapping[str, Any]]]:
        """Play an episode, and learn from it while it is played."""
        state = int(env.reset(seed=seed)[0])
        self.begin_episode(state)
        for transition, info in _transitions(env, state, lambda state: self.choose(state, rng)):
            self.observe(transition)
            yield transition, info

    # Evaluating and saving

    def evaluate(
        self,
        env: Environment,
        *,
        problems: int | None = None,
        samples: int = 1,
        greedy: bool = False,
        seed: int | None = None,
        record: EvaluationRecord | None = None,
        on_sample: Callable[[Sample], None] | None = None,
    ) -> Evaluation:
        """Evaluate the agent without learning. The score is the mean return.

        Args:
            env: The environment. An environment with `num_problems` plays its first problems. Any other environment draws each
                problem from a seed.
            problems: Number of problems; None for all, if the environment has `num_problems`.
            samples: Number of episodes of each problem.
            greedy: Whether to choose the best action as far as the agent knows, instead of an action as in learning.
            seed: Seed of drawn problems and of the agent's choices; None uses the seed in the agent's settings.
            record: Record to which each sample is written. Samples of a resumed record are not repeated.
            on_sample: Called with each sample.

        Raises:
            InvalidArgumentError: If the environment has other spaces or fewer problems, or the number of problems is unknown.
        """
        self._check_spaces(env)
        known = getattr(env.unwrapped, "num_problems", None)
        count = number_of_problems(known, problems, samples)
        warn_of_equal_samples(samples, greedy=greedy)
        seed = self.config.seed if seed is None else seed
        settings = {
            **{"problems": count, "samples": samples, "seed": seed, "greedy": greedy},
            **{"agent": self.name, "tables": tables_fingerprint(self.tables())},
            "environment": getattr(env.unwrapped, "manifest", {}),
        }

        def make(keys: Sequence[tuple[int, int]]) -> Generator[SampledRow]:
            for problem, sample in keys:
                yield self._sample(env, problem, sample, seed, indexed=known is not None, greedy=greedy)

        keys = [(index, number) for index in range(count) for number in range(samples)]
        rows, _ = complete_samples(keys, make, settings=settings, record=record, on_sample=on_sample)
        result = summarize_evaluation(rows, count, samples)
        if record is not None:
            record.finish(result.summary())
        return result

    def _sample(
        self, env: Environment, problem: int, sample: int, seed: int, *, indexed: bool, greedy: bool
    ) -> SampledRow:
        """Play an episode; the sample's completion is the numbers of the actions."""
        rng, _ = _step_random(seed, _EVALUATION + problem, sample)
        _, env_seed = _step_random(seed, _EVALUATION + problem)
        state, info = env.reset(seed=env_seed, options={"problem": problem} if indexed else None)
        choose = self.greedy_action if greedy else lambda state: self.choose(state, rng)
        played = [transition for transition, _ in _transitions(env, int(state), choose)]
        made = Sample.judged(
            None,
            problem=problem,
            problem_id=problem_id(info.get("problem_id", ""), problem, seed, drawn=not indexed),
            sample=sample,
            score=sum(transition.reward for transition in played),
            seed=env_seed,
            tokens=len(played),
            truncated=played[-1].truncated,
        )
        return SampledRow(made, " ".join(str(transition.action) for transition in played), None)

    def save(self, folder: str | Path) -> None:
        """Save the agent's complete state to a folder, atomically; an existing checkpoint is replaced.

        Raises:
            InvalidArgumentError: If the folder contains anything but a checkpoint.
        """
        counts = {"steps": self.steps, "tokens": self.tokens, "regret": self.regret}
        with replacing(Path(folder), _STATE) as partial:
            text = json.dumps({"agent": self.name, "config": asdict(self.config), **counts})
            (partial / _STATE).write_text(text + "\n", encoding="utf-8")
            np.savez(partial / _TABLES, allow_pickle=False, **self.tables())

    def load(self, folder: str | Path) -> None:
        """Restore the state of a saved agent.

        Raises:
            CheckpointError: If the folder holds no checkpoint, or another agent's checkpoint. The agent is then unchanged.
            InvalidArgumentError: If the checkpoint belongs to an environment with other spaces. The agent is then unchanged.
        """
        folder = Path(folder)
        recover(folder)
        if not (folder / _STATE).is_file():
            raise CheckpointError(f"no checkpoint at {folder}: expected a folder with {_STATE} and {_TABLES}")
        check_checksums(folder)
        state = json.loads((folder / _STATE).read_text(encoding="utf-8"))
        if state["agent"] != self.name:
            raise CheckpointError(f"the checkpoint at {folder} is of agent {state['agent']!r}, not of {self.name!r}")
        own = self.tables()
        with np.load(folder / _TABLES, allow_pickle=False) as saved:
            shapes = {name: saved[name].shape for name in saved.files}
            if shapes != {name: table.shape for name, table in own.items()}:
                raise InvalidArgumentError(
                    f"the checkpoint at {folder} is of an environment with other spaces: it has tables of shapes "
                    f"{shapes}, and this agent has { {name: table.shape for name, table in own.items()} }"
                )
            for name, table in own.items():
                table[...] = saved[name]
        self.steps, self.tokens, self.regret = state["steps"], state["tokens"], state["regret"]

    def _check_spaces(self, env: Environment) -> None:
        shape = table_shape(env, self.name)
        if shape != (self.num_states, self.num_actions):
            raise InvalidArgumentError(
                f"this {self.name} agent has tables of {self.num_states} states and {self.num_actions} actions, and the "
                f"environment has {shape[0]} and {shape[1]}: make another agent"
            )
        self.check_env(env)


def _transitions(
    env: Environment, state: int, choose: Callable[[int], int]
) -> Iterator[tuple[Transition, Mapping[str, Any]]]:
    """Play an episode from a state, and yield each transition with its `info`."""
    over = False
    while not over:
        action = choose(state)
        observation, reward, terminated, truncated, info = env.step(action)
        yield Transition(state, action, float(reward), int(observation), bool(terminated), bool(truncated)), info
        state, over = int(observation), bool(terminated or truncated)


def tables_fingerprint(tables: Mapping[str, NDArray[Any]]) -> str:
    """Hexadecimal sha256 over the names, dtypes, shapes and bytes of tables."""
    digest = hashlib.sha256()
    for name, table in tables.items():
        digest.update(f"{name} {table.dtype} {table.shape}\n".encode())
        digest.update(np.ascontiguousarray(table).tobytes())
    return digest.hexdigest()


def table_shape(env: Environment, name: str) -> tuple[int, int]:
    """The numbers of observations and actions of an environment in which both are numbered from 0."""
    if not isinstance(env, gymnasium.Env):
        raise InvalidArgumentError(
            f"{name} plays one gymnasium.Env, got {type(env).__name__}: make it by gymnasium.make"
        )
    shape = _size(env.observation_space), _size(env.action_space)
    tokens = isinstance(env.unwrapped, rlvr_envs.TokenEnv)
    if tokens or None in shape:
        said = "has tokens" if tokens else f"has the spaces {env.observation_space} and {env.action_space}"
        if not tokens and isinstance(env.observation_space, spaces.Box) and shape[1] is not None:
            size = math.prod(env.observation_space.shape)
            said = f"shows vectors of {size} numbers: use an agent that trains a perceptron there, such as dqn or ppo"
        raise InvalidArgumentError(
            f"{name} learns a table, which needs numbered observations and actions, Discrete(n) each, as in "
            f"rlvr/BanditState-v0 or rlvr/MazeState-v0; {type(env.unwrapped).__name__} {said}"
        )
    return cast("tuple[int, int]", shape)


def _size(space: spaces.Space[Any]) -> int | None:
    """The number of elements of a space whose elements are numbered from 0; None for any other space."""
    return int(space.n) if isinstance(space, spaces.Discrete) and space.start == 0 else None


def _step_random(seed: int, *stream: int) -> tuple[np.random.Generator, int]:
    """A generator for an agent's choices and a seed for its environment, both pure functions of the arguments."""
    choices, problems = np.random.SeedSequence([seed, *stream]).spawn(2)
    # The seed has 31 bits, since not every environment accepts more.
    return np.random.Generator(np.random.PCG64(choices)), int(problems.generate_state(1)[0] >> 1)
