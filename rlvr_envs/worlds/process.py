"""`Process`: a finite decision process with a table of the possible outcomes of each action.

Token environments and plain Gymnasium environments draw outcomes from this table, and `rlvr_envs.exact` sums over them.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from rlvr_envs.worlds.world import MOVES, Cell, World
from verifiers import InvalidArgumentError

_ROUNDING = 1e-12
_NORMAL = statistics.NormalDist()


class Branch(NamedTuple):
    """One possible outcome of an action."""

    probability: float
    state: int
    """The next state."""
    reward: float = 0.0
    """The reward; if there is noise, the mean reward."""
    noise: float = 0.0
    """Standard deviation of normally distributed noise on the reward."""


@dataclass(frozen=True)
class Process:
    """States and actions by number, with their names, and the possible outcomes of each action.

    Raises:
        InvalidArgumentError: If the table's shape does not fit, or the probabilities of an action's branches do not sum to 1.
    """

    states: tuple[str, ...]
    """The text of each state."""
    actions: str
    """The character of each action."""
    branches: tuple[tuple[tuple[Branch, ...], ...], ...]
    """The branches of each state and action. A state in which the episode is over has none."""
    goals: frozenset[int] = frozenset()
    """The final states that count as success."""
    bandit: bool = False
    """Whether an action never changes the rewards of later actions, so that each action has a regret."""

    def __post_init__(self) -> None:
        if len(self.branches) != len(self.states):
            raise InvalidArgumentError(
                f"expected the branches of {len(self.states)} states, got the branches of {len(self.branches)}"
            )
        for name, actions in zip(self.states, self.branches, strict=True):
            if actions and len(actions) != len(self.actions):
                raise InvalidArgumentError(
                    f"state {name!r} must have the {len(self.actions)} actions {self.actions!r} or none, got {len(actions)}"
                )
            for action, branches in zip(self.actions, actions, strict=False):
                total = sum(branch.probability for branch in branches)
                if abs(total - 1) > _ROUNDING or min(branch.probability for branch in branches) < 0:
                    raise InvalidArgumentError(
                        f"the probabilities of action {action!r} in state {name!r} must sum to 1, got {total!r}"
                    )

    def ends_at(self, state: int) -> bool:
        """Whether the episode is over in this state."""
        return not self.branches[state]

    @functools.cached_property
    def index(self) -> dict[str, int]:
        """The number of each state, by its text."""
        return {name: state for state, name in enumerate(self.states)}

    @functools.cached_property
    def shown(self) -> tuple[str, ...]:
        """The texts of the states in which the episode goes on."""
        return tuple(name for state, name in enumerate(self.states) if not self.ends_at(state))

    @functools.cached_property
    def one_action(self) -> bool:
        """Whether every action ends the episode."""
        ways = (branch for actions in self.branches for branches in actions for branch in branches)
        return all(self.ends_at(branch.state) for branch in ways)

    def mean(self, state: int, action: int) -> float:
        """The expected reward of an action."""
        return sum(branch.probability * branch.reward for branch in self.branches[state][action])

    def regret(self, state: int, action: int) -> float:
        """The highest expected reward of an action in a state, minus the expected reward of this action."""
        return max(self.mean(state, other) for other in range(len(self.actions))) - self.mean(state, action)

    def draw(self, state: int, action: int, luck: int, step: int) -> tuple[int, float]:
        """Draw the next state and the reward of an action.

        Args:
            state: The state.
            action: The action, as an index of `actions`.
            luck: Seed of the episode's outcomes.
            step: Number of earlier actions. Outcomes of different steps and actions are independent.
        """
        branches = self.branches[state][action]
        if len(branches) == 1 and not branches[0].noise:
            return branches[0].state, branches[0].reward
        chance, other = uniforms(luck, step, action)
        chosen = branches[-1]
        for branch in branches:
            if chance < branch.probability:
                chosen = branch
                break
            chance -= branch.probability
        noise = chosen.noise * _NORMAL.inv_cdf(other) if chosen.noise else 0.0
        return chosen.state, chosen.reward + noise


def uniforms(luck: int, step: int, action: int) -> tuple[float, float]:
    """Two numbers in (0, 1), as a pure function of the arguments. The numbers are the same on every machine."""
    digest = blake2b(f"{luck}:{step}:{action}".encode(), digest_size=16).digest()
    halves = (int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big"))
    # The sum of 52 bits and one half is exact in float64, and the result is never 0 or 1.
    one, other = (((half >> 12) + 0.5) / 2**52 for half in halves)
    return one, other


def world_process(worlds: Sequence[World], names: Iterable[str], *, slip: float = 0.0) -> Process:
    """The process of several separate worlds. The states are the cells of the worlds, row by row.

    Args:
        worlds: The worlds; their starts do not matter.
        names: The texts of the cells of all worlds, in the order of the states.
        slip: Probability that a move leads sideways instead: to the left or the right of its direction, with equal probability.
    """
    table: list[tuple[tuple[Branch, ...], ...]] = []
    goals: set[int] = set()
    for world in worlds:
        first, number = len(table), {cell: at for at, cell in enumerate(world.cells)}
        goals |= {first + number[cell] for cell in world.goals}
        for cell in world.cells:
            moves = range(0 if world.ends_at(cell) else len(MOVES))
            table.append(tuple(_move(world, cell, move, slip, first, number) for move in moves))
    return Process(tuple(names), MOVES, tuple(table), frozenset(goals))


def _move(
    world: World, cell: Cell, move: int, slip: float, first: int, number: Mapping[Cell, int]
) -> tuple[Branch, ...]:
    """The branches of a move. Moves next to each other in `MOVES` are at right angles."""
    ways = ((move, 1 - slip), ((move - 1) % len(MOVES), slip / 2), ((move + 1) % len(MOVES), slip / 2))
    reached: dict[Cell, float] = {}
    for way, probability in ways:
        target = world.after(cell, way)
        reached[target] = reached.get(target, 0.0) + probability
    return tuple(
        Branch(probability, first + number[target], world.step_reward + world.end_reward(target))
        for target, probability in reached.items()
        if probability
    )
