"""Chooses the next problems: a pure function of seed, round and observations, the same on all ranks.

A round of a mixture first shares its groups among the parts, and then chooses each part's problems as if the part were alone.

A sampler that is not uniform changes the objective of training, and nothing corrects for this. Evaluations stay uniform.
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
from agents.rollouts.problem_parts import GroupOutcome, ProblemParts
from agents.rollouts.vector_adapter import num_problems
from agents.runs.reading import RecordedRun
from agents.seeding import DRAWS, episode_seeds, mix
from verifiers import InvalidArgumentError

ProblemSamplerName = Literal["uniform", "learnability", "difficulty"]
DISCOUNT = 0.8
"""Factor that discounts a problem's earlier completions whenever another group of this problem is observed."""
UNSOLVED_GROUPS = 3
"""Number of a problem's latest groups without a right completion after which a report lists the problem."""
LEVEL_COMPLETIONS = 32
"""Number of completions of the hardest level after which the level is judged."""
LEVEL_SHARE = 0.9
"""The next level is added once at least this share of the hardest level's completions is right (RLVE: Zeng et al. 2025)."""
_LEVELS = 4
"""Number of levels that problems are drawn from: the hardest level, and the levels below it."""
_TOKEN_GROUPS = 64
"""Number of a part's latest groups from which its mean completion length is estimated."""
_GOLDEN = (5**0.5 - 1) / 2


class ProblemSampler(Protocol):
    """Chooses problems, and observes their outcomes."""

    def choose(self, parts: ProblemParts | None, number: int, count: int) -> list[int]:
        """The problems of the groups of round `number`; all -1 if the environment draws problems itself.

        The same arguments, seed and state give the same problems.
        """

    def observe(self, parts: ProblemParts | None, groups: Iterable[GroupOutcome]) -> None:
        """Observe the groups that were learned from, and those that were sampled but left out."""

    def state(self) -> dict[str, Any]:
        """The state as plain data, for `with_state`."""

    def with_state(self, state: Mapping[str, Any]) -> ProblemSampler:
        """A sampler with the same settings and a state that `state` returned."""


@dataclass
class _Seen:
    """The observations of a problem."""

    groups: int = 0
    unsolved: int = 0
    """Number of the latest groups in a row without a right completion."""
    count: float = 0.0
    """Number of completions, discounted."""
    right: float = 0.0
    """Sum of the completions' scores, discounted."""

    @property
    def rate(self) -> float:
        """The expected score; 1/2 for a problem that was not observed."""
        return (self.right + 1) / (self.count + 2)


_Dealt = tuple[tuple[float, ...], int, NDArray[np.int64]]
"""For a mixture: the weights of parts, a number of groups, and how many of these groups each part has, i64[parts]."""


class UniformSampler:
    """Chooses every problem of a part once before any comes again, in a new random order each time.

    If weights count tokens, or parts are levels, observations determine how many problems of a part were chosen before, so the
    problems of a round are drawn at random.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._seen: dict[int, _Seen] = {}
        self._tokens: dict[int, list[int]] = {}
        self._errored: dict[
            int, int
        ] = {}  # the number of a problem's latest groups in a row on which the verifier broke
        self._before: _Dealt = ((), 0, np.zeros(0, dtype=np.int64))
        self._level, self._tried, self._solved = 0, 0, 0.0  # the hardest level, and its completions since it was judged

    def choose(self, parts: ProblemParts | None, number: int, count: int) -> list[int]:
        """See `ProblemSampler.choose`."""
        if parts is None:
            return [-1] * count
        first = number * count
        if len(parts.ranges) == 1:
            return [int(problem) for problem in self._pick(parts.ranges[0], number, first, count)]
        owners = self._owners(parts, range(first, first + count))
        dealt = self._dealt(parts, first) if parts.by == "problems" else None
        chosen = np.zeros(count, dtype=np.int64)
        for part, problems in enumerate(parts.ranges):
            mine = np.flatnonzero(owners == part)
            if len(mine):
                chosen[mine] = self._pick(problems, number, None if dealt is None else int(dealt[part]), len(mine))
        return [int(problem) for problem in chosen]

    def _dealt(self, parts: ProblemParts, first: int) -> NDArray[np.int64]:
        """The number i64[parts] of groups of each part before group `first`; counts of an earlier round are reused."""
        weights, known, dealt = self._before
        if weights != parts.weights or known > first:
            known, dealt = 0, np.zeros(len(parts.ranges), dtype=np.int64)
        dealt = dealt + np.bincount(self._owners(parts, range(known, first)), minlength=len(parts.ranges))
        self._before = (parts.weights, first, dealt)
        return dealt

    def _owners(self, parts: ProblemParts, groups: range) -> NDArray[np.int64]:
        """The part i64[n] of each of some groups of the run.

        An equidistributed sequence assigns groups to parts in proportion to the weights, so the shares in any stretch of groups
        are close to the weights.
        """
        weights = np.array(parts.weights)
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
        positions = (origin + np.arange(groups.start, groups.stop) * _GOLDEN) % 1.0
        return np.minimum(np.searchsorted(ends, positions, side="right"), len(weights) - 1)

    def _pick(self, problems: range, number: int, before: int | None, count: int) -> NDArray[np.int64]:
        """Choose problems of one part, from which `before` problems were chosen earlier; None if this number is unknown."""
        if before is None:
            return self._draw(problems, number, count, None)
        return problems.start + pass_positions(len(problems), range(before, before + count), self.seed)

    def _draw(
        self, problems: range, number: int, count: int, probabilities: NDArray[np.float64] | None
    ) -> NDArray[np.int64]:
        """Draw problems of a part, all different if there are enough."""
        entropy = int(mix(episode_seeds(self.seed, DRAWS + number, 1) ^ mix(np.array([problems.start], np.uint64)))[0])
        generator = np.random.Generator(np.random.PCG64(entropy))
        enough = count <= (len(problems) if probabilities is None else int(np.count_nonzero(probabilities)))
        drawn = generator.choice(len(problems), count, replace=not enough, p=probabilities)
        return problems.start + drawn

    def prepare(self, env: VectorEnv[Any, Any, Any]) -> None:
        """Adapt to the environment; called before training."""

    def observe(self, parts: ProblemParts | None, groups: Iterable[GroupOutcome]) -> None:
        """See `ProblemSampler.observe`."""
        for group in groups if parts is not None else ():
            assert parts is not None
            latest = self._tokens.setdefault(parts.part_of(group.problem), [])
            latest.append(group.tokens)
            del latest[:-_TOKEN_GROUPS]
            if not group.scores:  # the verifier broke on all completions
                self._errored[group.problem] = self._errored.get(group.problem, 0) + 1
                continue
            self._errored.pop(group.problem, None)
            if parts.by == "levels" and parts.part_of(group.problem) == self._level:
                self._judge_level(group, len(parts.ranges))
            seen = self._seen.setdefault(group.problem, _Seen())
            seen.groups += 1
            seen.unsolved = 0 if max(group.scores) >= 1 else seen.unsolved + 1
            seen.count = DISCOUNT * seen.count + len(group.scores)
            seen.right = DISCOUNT * seen.right + float(np.sum(group.scores))

    def _judge_level(self, group: GroupOutcome, levels: int) -> None:
        """Add the next level once enough completions of the hardest level have been seen and enough of them are right."""
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
        """The problems whose last `UNSOLVED_GROUPS` groups have no right completion.

        There are none if scores are above 0 but never 1, as from a reward model: then no score says that a completion is right.
        """
        seen = self._seen.values()
        if any(one.right > 0 for one in seen) and all(one.unsolved == one.groups for one in seen):
            return []
        return sorted(problem for problem, seen in self._seen.items() if seen.unsolved >= UNSOLVED_GROUPS)

    def shares(self, problems: Sequence[int]) -> dict[str, float]:
        """The shares of new, hard, middling and easy problems among some problems, judged by earlier observations."""
        kinds = [_kind(self._seen.get(problem)) for problem in problems]
        return {f"problems/{kind}": kinds.count(kind) / len(kinds) for kind in _KINDS} if kinds else {}

    def state(self) -> dict[str, Any]:
        """See `ProblemSampler.state`."""
        return {
            "seen": {problem: (one.groups, one.unsolved, one.count, one.right) for problem, one in self._seen.items()},
            "errored": dict(self._errored),
            "tokens": {part: list(tokens) for part, tokens in self._tokens.items()},
            "level": (self._level, self._tried, self._solved),
        }

    def with_state(self, state: Mapping[str, Any]) -> Self:
        """See `ProblemSampler.with_state`."""
        other = self._copy()
        other._seen = {problem: _Seen(*values) for problem, values in state["seen"].items()}
        other._errored = dict(state.get("errored", {}))
        other._tokens = {part: list(tokens) for part, tokens in state["tokens"].items()}
        other._before = self._before
        other._level, other._tried, other._solved = state.get("level", (0, 0, 0.0))
        return other

    def _copy(self) -> Self:
        return type(self)(self.seed)


class LearnabilitySampler(UniformSampler):
    """Prefers problems that the policy solves sometimes: in proportion to p(1 - p), the variance of a completion's score.

    p is the discounted share of right completions, with one right and one wrong completion added so that untried problems come
    first. Foster et al. 2025 (arXiv:2502.12272) instead compute p(1 - p) from fresh rollouts.
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
        for problem, groups in self._errored.items():
            if problem in problems:
                weights[problem - problems.start] *= 0.5**groups
        probabilities = self.floor / len(problems) + (1 - self.floor) * weights / weights.sum()
        return self._draw(problems, number, count, probabilities / probabilities.sum())

    def _known(self) -> Mapping[int, _Seen]:
        """The observations that determine the weights, by problem."""
        return self._seen

    def _copy(self) -> Self:
        return type(self)(self.seed, self.floor)


class DifficultySampler(LearnabilitySampler):
    """Prefers problems by p(1 - p) as `LearnabilitySampler` does, but always takes p from a recorded evaluation.

    Args:
        seed: Seed of draws.
        floor: Share of the draws that stays uniform.
        recorded: The scores of each problem's completions by the problem's id.
        env: The environment that was evaluated, which may be one part of a mixture; None if that is unknown.
    """

    def __init__(
        self, seed: int, floor: float, recorded: Mapping[str, Sequence[float]], env: str | None = None
    ) -> None:
        super().__init__(seed, floor)
        self._recorded, self._env, self._rates = recorded, env, dict[int, _Seen]()

    def prepare(self, env: VectorEnv[Any, Any, Any]) -> None:
        """Find the recorded problems among an environment's problems."""
        world = env.unwrapped
        data = world.streams.dataset if isinstance(world, rlvr_envs.TokenVectorEnv) else ()
        parts: dict[str, set[str]] = {}
        for index in range(len(data)):
            name = data[index].id
            if isinstance(data, rlvr_envs.MixedDataset) and name not in self._recorded:
                part = data.part_of(data[index])
                if self._evaluated(data.names) in (None, part):
                    name = name.removeprefix(f"{part}/")
                    parts.setdefault(name, set()).add(part)
            if scores := self._recorded.get(name):
                self._rates[index] = _Seen(count=len(scores), right=float(np.sum(scores)))
                if len(parts.get(name, ())) > 1:
                    raise InvalidArgumentError(
                        f"the recorded evaluation says of problem {name!r} not which of the parts {sorted(parts[name])} it is "
                        "of: give their problems ids that differ, or evaluate the mixture"
                    )
        if not self._rates:
            raise InvalidArgumentError(
                f"none of the {len(self._recorded)} problems of the recorded evaluation, such as "
                f"{next(iter(self._recorded), None)!r}, belongs to the environment: evaluate on the split that is learned "
                "(rlvr eval --split train)"
            )

    def _evaluated(self, parts: Sequence[str]) -> str | None:
        """The part that was evaluated; None if it is unknown."""
        evaluated = rlvr_envs.short_name(self._env or "")
        return next((part for part in parts if rlvr_envs.short_name(part) == evaluated), None)

    def _known(self) -> Mapping[int, _Seen]:
        return self._rates

    def _copy(self) -> Self:
        other = type(self)(self.seed, self.floor, self._recorded, self._env)
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

    Raises:
        MissingDataError: If the folder holds no evaluation.
        DataError: If the evaluation is damaged.
    """
    if name == "difficulty":
        assert difficulty is not None
        scores: dict[str, list[float]] = {}
        run = RecordedRun.read(difficulty)
        for sample in run.samples():
            if sample.score is not None:
                scores.setdefault(sample.problem_id, []).append(min(max(sample.score, 0.0), 1.0))
        return DifficultySampler(seed, floor, scores, run.settings.get("env"))
    return LearnabilitySampler(seed, floor) if name == "learnability" else UniformSampler(seed)


def require_indices(name: str, env: VectorEnv[Any, Any, Any]) -> None:
    """Check that the problems of an environment can be chosen."""
    if name != "uniform" and num_problems(env) is None:
        raise InvalidArgumentError(
            f"problem_sampler={name!r} chooses problems by their index, and {type(env.unwrapped).__name__} draws them itself: "
            "leave it out"
        )
