"""Which problems come next: the same for all ranks, and a pure function of the seed, the round and the observations.

A round of a mixture first shares its groups among the parts, and then chooses each part's problems as if it were alone.

A sampler that is not uniform changes the objective, and nothing corrects for that: evaluations stay uniform.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

import rlvr_envs
from agents.rollouts.problem_order import pass_positions
from agents.rollouts.vector_adapter import num_problems
from agents.runs.reading import RecordedRun
from agents.seeding import DRAWS, episode_seeds, mix
from agents.types import Trajectory
from verifiers import InvalidArgumentError, Outcome

ProblemSamplerName = Literal["uniform", "learnability", "difficulty"]
DISCOUNT = 0.8
"""Discount of the completions of a problem's earlier groups whenever another group of it is observed."""
UNSOLVED_GROUPS = 3
"""Number of groups in a row without a right completion after which a report lists a problem."""
LEVEL_COMPLETIONS = 32
"""Number of completions of the hardest level after which it is judged."""
LEVEL_SHARE = 0.9
"""Share of right completions of the hardest level from which on the next one is added (RLVE: Zeng et al. 2025)."""
_LEVELS = 4
"""Number of levels, up to the hardest one, that problems are drawn from."""
_TOKEN_GROUPS = 64
"""Number of the latest groups of a part that its mean completion length is estimated from."""
_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class GroupOutcome:
    """The outcome of a group."""

    problem: int
    scores: tuple[float, ...]
    """From 0, wrong, to 1, right, for each completion whose verifier did not break."""
    tokens: int
    """Number of tokens that the policy sampled."""


@dataclass(frozen=True)
class ProblemParts:
    """The problems of an environment, in several parts if it is a mixture."""

    ranges: tuple[range, ...]
    weights: tuple[float, ...] = (1.0,)
    by: Literal["problems", "tokens", "levels"] = "problems"
    """The unit of the weights: see `rlvr_envs.mix`."""
    names: tuple[str, ...] = ("",)

    def part_of(self, problem: int) -> int:
        """The number of a problem's part."""
        return next(number for number, indices in enumerate(self.ranges) if problem in indices)


def problem_parts(env: VectorEnv[Any, Any, Any]) -> ProblemParts | None:
    """The parts of an environment's problems; None if it draws problems itself."""
    size, world = num_problems(env), env.unwrapped
    data = world.streams.dataset if isinstance(world, rlvr_envs.TokenVectorEnv) else None
    if isinstance(data, rlvr_envs.MixedDataset):
        ranges = tuple(range(*ends) for ends in zip(data.starts, data.starts[1:], strict=False))
        return ProblemParts(ranges, data.weights, data.by, data.names)
    return None if size is None else ProblemParts((range(size),))


class ProblemSampler(Protocol):
    """Chooses problems, and takes note of their outcomes."""

    def choose(self, parts: ProblemParts | None, number: int, count: int) -> list[int]:
        """The problems of the groups of round `number`, -1 if the environment draws them itself.

        The same arguments, seed and state give the same problems.
        """
        ...

    def observe(self, parts: ProblemParts | None, groups: Iterable[GroupOutcome]) -> None:
        """Take note of groups that were learned from, or were sampled and left out."""
        ...

    def state(self) -> dict[str, Any]:
        """Plain data for `with_state`."""
        ...

    def with_state(self, state: Mapping[str, Any]) -> ProblemSampler:
        """A sampler with the same settings and a state of `state`."""
        ...


@dataclass
class _Seen:
    """The observations of a problem."""

    groups: int = 0
    unsolved: int = 0
    """Number of the latest groups in a row without a right completion."""
    count: float = 0.0
    """Number of completions, discounted."""
    right: float = 0.0
    """Sum of their scores, discounted."""

    @property
    def rate(self) -> float:
        """The expected score; 1/2 for a problem that was not observed."""
        return (self.right + 1) / (self.count + 2)


class UniformSampler:
    """Every problem of a part once before any comes again, in a new random order each time.

    If weights count tokens, or parts are levels, the number of a part's problems that were chosen before depends on
    observations, and the problems of a round are drawn at random.

    Args:
        seed: Seed of orders and draws.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._seen: dict[int, _Seen] = {}
        self._tokens: dict[int, list[int]] = {}
        self._level, self._tried, self._solved = 0, 0, 0.0  # the hardest level, and its completions since it was judged

    def choose(self, parts: ProblemParts | None, number: int, count: int) -> list[int]:
        """See `ProblemSampler.choose`."""
        if parts is None:
            return [-1] * count
        first = number * count
        if len(parts.ranges) == 1:
            return [int(problem) for problem in self._pick(parts.ranges[0], number, first, count)]
        by_state = parts.by != "problems"
        owners = self._owners(parts, count if by_state else first + count, number)
        slots = owners[-count:]
        chosen = np.zeros(count, dtype=np.int64)
        for part, problems in enumerate(parts.ranges):
            mine = np.flatnonzero(slots == part)
            before = None if by_state else int((owners[:first] == part).sum())
            if len(mine):
                chosen[mine] = self._pick(problems, number, before, len(mine))
        return [int(problem) for problem in chosen]

    def _owners(self, parts: ProblemParts, count: int, number: int) -> NDArray[np.int64]:
        """The part i64[count] of each of the first groups of the run, or, if it depends on observations, of a round.

        Groups are dealt out in proportion to the weights by a sequence that is equidistributed, so that the shares of any
        stretch of groups are close to the weights.
        """
        weights = np.array(parts.weights)
        start = 0 if parts.by == "problems" else number * count
        if parts.by == "levels":
            weights = weights * (
                (np.arange(len(weights)) <= self._level) & (np.arange(len(weights)) > self._level - _LEVELS)
            )
        elif parts.by == "tokens":
            lengths = {part: float(np.mean(tokens)) for part, tokens in self._tokens.items()}
            usual = float(np.mean(list(lengths.values()))) if lengths else 1.0
            weights = weights / np.array([max(lengths.get(part, usual), 1.0) for part in range(len(weights))])
        ends = np.cumsum(weights) / weights.sum()
        origin = float(mix(np.array([self.seed % 2**64], dtype=np.uint64))[0]) / 2.0**64
        positions = (origin + np.arange(start, start + count) * _GOLDEN) % 1.0
        return np.minimum(np.searchsorted(ends, positions, side="right"), len(weights) - 1)

    def _pick(self, problems: range, number: int, before: int | None, count: int) -> NDArray[np.int64]:
        """Choose problems of one part after `before` chosen in earlier rounds; None if that number is unknown."""
        if before is None:
            return self._draw(problems, number, count, None)
        return problems.start + pass_positions(len(problems), range(before, before + count), self.seed)

    def _draw(
        self, problems: range, number: int, count: int, probabilities: NDArray[np.float64] | None
    ) -> NDArray[np.int64]:
        """Draw different problems of a part, as far as there are enough."""
        entropy = int(mix(episode_seeds(self.seed, DRAWS + number, 1) ^ mix(np.array([problems.start], np.uint64)))[0])
        generator = np.random.Generator(np.random.PCG64(entropy))
        enough = count <= (len(problems) if probabilities is None else int(np.count_nonzero(probabilities)))
        drawn = generator.choice(len(problems), count, replace=not enough, p=probabilities)
        return problems.start + drawn

    def prepare(self, env: VectorEnv[Any, Any, Any]) -> None:
        """Called with the environment before training."""

    def observe(self, parts: ProblemParts | None, groups: Iterable[GroupOutcome]) -> None:
        """See `ProblemSampler.observe`."""
        for group in groups if parts is not None else ():
            assert parts is not None
            latest = self._tokens.setdefault(parts.part_of(group.problem), [])
            latest.append(group.tokens)
            del latest[:-_TOKEN_GROUPS]
            if not group.scores:  # the verifier broke on all of them
                continue
            if parts.by == "levels" and parts.part_of(group.problem) == self._level:
                self._judge_level(group, len(parts.ranges))
            seen = self._seen.setdefault(group.problem, _Seen())
            seen.groups += 1
            seen.unsolved = 0 if max(group.scores) >= 1 else seen.unsolved + 1
            seen.count = DISCOUNT * seen.count + len(group.scores)
            seen.right = DISCOUNT * seen.right + float(np.sum(group.scores))

    def _judge_level(self, group: GroupOutcome, levels: int) -> None:
        """Go on to the next level once enough completions of the hardest are known, and enough of them right."""
        self._tried += len(group.scores)
        self._solved += float(np.sum(group.scores))
        if self._tried >= LEVEL_COMPLETIONS:
            raised = self._solved >= LEVEL_SHARE * self._tried and self._level + 1 < levels
            self._level, self._tried, self._solved = self._level + raised, 0, 0.0

    @property
    def level(self) -> int:
        """Index of the hardest level that problems are drawn from."""
        return self._level

    @property
    def never_solved(self) -> list[int]:
        """The problems without a right completion in their last `UNSOLVED_GROUPS` groups."""
        return sorted(problem for problem, seen in self._seen.items() if seen.unsolved >= UNSOLVED_GROUPS)

    def shares(self, problems: Sequence[int]) -> dict[str, float]:
        """The shares of some problems that are new, hard, of middling difficulty and easy, by the observations of them."""
        kinds = [_kind(self._seen.get(problem)) for problem in problems]
        return {f"problems/{kind}": kinds.count(kind) / len(kinds) for kind in _KINDS} if kinds else {}

    def state(self) -> dict[str, Any]:
        """See `ProblemSampler.state`."""
        return {
            "seen": {problem: (one.groups, one.unsolved, one.count, one.right) for problem, one in self._seen.items()},
            "tokens": {part: list(tokens) for part, tokens in self._tokens.items()},
            "level": (self._level, self._tried, self._solved),
        }

    def with_state(self, state: Mapping[str, Any]) -> Self:
        """See `ProblemSampler.with_state`."""
        other = self._copy()
        other._seen = {problem: _Seen(*values) for problem, values in state["seen"].items()}
        other._tokens = {part: list(tokens) for part, tokens in state["tokens"].items()}
        other._level, other._tried, other._solved = state.get("level", (0, 0, 0.0))
        return other

    def _copy(self) -> Self:
        return type(self)(self.seed)


class LearnabilitySampler(UniformSampler):
    """Prefers problems that the policy solves sometimes: in proportion to p(1 - p), the variance of a completion's score.

    p is the discounted share of a problem's right completions, with one right and one wrong one added, so that problems that
    were never tried come first (Foster et al. 2025, arXiv:2502.12272, have p(1 - p) of fresh rollouts).

    Args:
        seed: Seed of draws.
        floor: Share of the draws that stays uniform.
    """

    def __init__(self, seed: int, floor: float) -> None:
        super().__init__(seed)
        self.floor = floor

    def _pick(self, problems: range, number: int, before: int | None, count: int) -> NDArray[np.int64]:
        unseen = _Seen().rate
        weights = np.full(len(problems), unseen * (1 - unseen))
        for problem, seen in self._known().items():
            if problem in problems:
                weights[problem - problems.start] = seen.rate * (1 - seen.rate)
        probabilities = self.floor / len(problems) + (1 - self.floor) * weights / weights.sum()
        return self._draw(problems, number, count, probabilities / probabilities.sum())

    def _known(self) -> Mapping[int, _Seen]:
        """The observations that decide the weights, by problem."""
        return self._seen

    def _copy(self) -> Self:
        return type(self)(self.seed, self.floor)


class DifficultySampler(LearnabilitySampler):
    """Prefers problems by p(1 - p) as `LearnabilitySampler` does, where p always comes from a recorded evaluation.

    Args:
        seed: Seed of draws.
        floor: Share of the draws that stays uniform.
        recorded: The scores of each problem's completions by the problem's id.
    """

    def __init__(self, seed: int, floor: float, recorded: Mapping[str, Sequence[float]]) -> None:
        super().__init__(seed, floor)
        self._recorded, self._rates = recorded, dict[int, _Seen]()

    def prepare(self, env: VectorEnv[Any, Any, Any]) -> None:
        """Find the recorded problems among those of an environment.

        Raises:
            InvalidArgumentError: If the environment has none of the recorded problems.
        """
        world = env.unwrapped
        data = world.streams.dataset if isinstance(world, rlvr_envs.TokenVectorEnv) else ()
        for index in range(len(data)):
            name = data[index].id
            scores = self._recorded.get(name) or self._recorded.get(name.partition("/")[2])
            if scores:
                self._rates[index] = _Seen(count=len(scores), right=float(np.sum(scores)))
        if not self._rates:
            raise InvalidArgumentError(
                f"none of the {len(self._recorded)} problems of the recorded evaluation, such as "
                f"{next(iter(self._recorded), None)!r}, is one of the environment: evaluate on the split that is learned "
                "(rlvr eval --split train)"
            )

    def _known(self) -> Mapping[int, _Seen]:
        return self._rates

    def _copy(self) -> Self:
        other = type(self)(self.seed, self.floor, self._recorded)
        other._rates = self._rates
        return other


_KINDS = ("new", "hard", "middling", "easy")


def _kind(seen: _Seen | None) -> str:
    if seen is None:
        return "new"
    share = seen.right / seen.count
    return "hard" if share < 0.2 else "easy" if share > 0.8 else "middling"


def make_problem_sampler(
    name: ProblemSamplerName, seed: int, floor: float, difficulty: str | None = None
) -> UniformSampler:
    """Make the sampler of an agent's settings.

    Args:
        name: Its name.
        seed: Seed of orders and draws.
        floor: Share of the draws that stays uniform.
        difficulty: Folder of the evaluation that determines the problems' difficulty.

    Raises:
        MissingDataError: If the folder holds no evaluation.
        DataError: If the evaluation is damaged.
    """
    if name == "difficulty":
        assert difficulty is not None
        scores: dict[str, list[float]] = {}
        for sample in RecordedRun.read(difficulty).samples():
            if sample.score is not None:
                scores.setdefault(sample.problem_id, []).append(min(max(sample.score, 0.0), 1.0))
        return DifficultySampler(seed, floor, scores)
    return LearnabilitySampler(seed, floor) if name == "learnability" else UniformSampler(seed)


def group_outcomes(trajectories: Sequence[Trajectory]) -> list[GroupOutcome]:
    """The outcomes of the groups of some episodes."""
    groups: dict[int, list[Trajectory]] = {}
    for trajectory in trajectories:
        groups.setdefault(trajectory.group, []).append(trajectory)
    return [
        GroupOutcome(
            members[0].problem,
            tuple(_right(member) for member in members if not member.errored),
            sum(int(member.policy_mask.sum()) for member in members),
        )
        for members in groups.values()
        if members[0].problem >= 0
    ]


def _right(trajectory: Trajectory) -> float:
    """How right a completion is, from 0 to 1."""
    outcome = None if trajectory.verdict is None else trajectory.verdict.outcome
    if outcome in (None, Outcome.SCORED):
        return min(max(trajectory.score, 0.0), 1.0)
    return float(outcome is Outcome.CORRECT)


def require_indices(name: str, env: VectorEnv[Any, Any, Any]) -> None:
    """Check that the problems of an environment can be chosen.

    Raises:
        InvalidArgumentError: If the environment draws them itself.
    """
    if name != "uniform" and num_problems(env) is None:
        raise InvalidArgumentError(
            f"problem_sampler={name!r} chooses problems by their index, and {type(env.unwrapped).__name__} draws them itself: "
            "leave it out"
        )
