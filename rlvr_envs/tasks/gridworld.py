"""`GridWorld`: walk from one cell of an open grid to another."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, ClassVar

from rlvr_envs.envs import StateEnv, TaskEnv, TaskSpec, world_task
from rlvr_envs.procedural.base import GeneratedDataset
from rlvr_envs.worlds.process import Process, world_process
from rlvr_envs.worlds.rules import MOVES_IN_WORDS, alphabet, coordinates
from rlvr_envs.worlds.world import MAX_SIDE, Cell, World
from verifiers import FINITE, Between, Problem

TEST_SHARE = 5
"""One out of this number of pairs of start and goal, rounded up, belongs to the test split."""


@dataclass(frozen=True)
class GridWorld(GeneratedDataset):
    """All pairs of a start and a different goal in an open grid of n x n cells.

    A stable hash determines the order of the pairs. The first fifth is the test split, and the other pairs are the train split.
    So the splits are disjoint, and the first problems of each split are a fair sample.

    Args:
        split: `"train"` or `"test"`.
        n: Number of rows and of columns, from 2 to 10.
        step_reward: Reward of every move. The move that reaches the goal gets an additional reward of 1.

    Raises:
        UnknownNameError: If the split is unknown.
        InvalidArgumentError: If another argument is out of range.
    """

    name: ClassVar[str] = "gridworld"

    n: Annotated[int, Between(2, MAX_SIDE)] = 4
    step_reward: Annotated[float, FINITE] = -0.01

    def __len__(self) -> int:
        return len(self._pairs)

    def _problem_at(self, index: int) -> Problem:
        if index not in self._problems:
            self._problems[index] = self._problem(*self._pairs[index])
        return self._problems[index]

    def in_words(self, problem: Problem) -> str:
        """The rules in words, and the start of the walk."""
        start, goal = str(problem.prompt).removesuffix(":").split(">")
        return (
            f"Walk over a grid of {self.n} rows and {self.n} columns, numbered from 0 at the top left, from row {start[0]} and "
            f"column {start[1]} to row {goal[0]} and column {goal[1]}, in as few moves as you can. {MOVES_IN_WORDS} Write the "
            "letters of the moves alone, without spaces."
        )

    @property
    def alphabet(self) -> str:
        """Every character of prompts and answers, the moves first."""
        return alphabet(self.n)

    @property
    def max_new_tokens(self) -> int:
        """The default budget, n**2 moves, one for each cell. The longest of all shortest paths takes 2n - 2 moves."""
        return self.n**2

    @functools.cached_property
    def process(self) -> Process:
        """The process of all problems. The state is `goal * n**2 + cell`, with cells and goals numbered row by row."""
        cells = [(row, column) for row in range(self.n) for column in range(self.n)]
        # The start does not matter here, since a process has all cells as states; any cell other than the goal will do.
        worlds = [self._world(cells[goal == cells[0]], goal) for goal in cells]
        return world_process(worlds, (_written(cell, goal) for goal in cells for cell in cells))

    @property
    def starts(self) -> Mapping[int, float]:
        """The probability of starting in each state, which is the same for the start of each problem."""
        return {self.start(index): 1 / len(self) for index in range(len(self))}

    def start(self, index: int) -> int:
        """The state in which a problem starts."""
        start, goal = self._pairs[index]
        cell, aim = (row * self.n + column for row, column in (start, goal))
        return aim * self.n**2 + cell

    def luck(self, index: int) -> int:
        """Always 0, since there are no chance events."""
        return 0

    @functools.cached_property
    def _problems(self) -> dict[int, Problem]:
        # Streams ask for a row's problem at every token, and a world computes neighbours only once, so problems are cached.
        return {}

    @functools.cached_property
    def _pairs(self) -> list[tuple[Cell, Cell]]:
        cells = [(row, column) for row in range(self.n) for column in range(self.n)]
        pairs = sorted(itertools.permutations(cells, 2), key=self._rank)
        cut = -(-len(pairs) // TEST_SHARE)
        return pairs[:cut] if self.split == "test" else pairs[cut:]

    def _rank(self, pair: tuple[Cell, Cell]) -> bytes:
        return blake2b(f"gridworld:{self.n}:{pair}".encode(), digest_size=16).digest()

    def _problem(self, start: Cell, goal: Cell) -> Problem:
        text = _written(start, goal)
        down, right = goal[0] - start[0], goal[1] - start[1]
        path = ("D" * down or "U" * -down) + ("R" * right or "L" * -right)
        return Problem(
            id=f"gridworld/{self.n}x{self.n}/{text}",
            prompt=f"{text}:",
            reference=self._world(start, goal),
            metadata={"gold_completion": path},
        )

    def _world(self, start: Cell, goal: Cell) -> World:
        return World(self.n, self.n, start, (goal,), step_reward=self.step_reward)


def _written(cell: Cell, goal: Cell) -> str:
    return f"{coordinates(cell)}>{coordinates(goal)}"


class GridWorldEnv(TaskEnv):
    """Walk from one cell of an open grid to another.

    Observation space, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Walk from a start to a goal in an open grid of n x n cells. The tokens are the four moves. Every pair of a start and a goal
    is a problem; the splits are disjoint (192 pairs for training and 48 for testing if n is 4). `rlvr_envs.exact` computes the
    optimal values, and the values of any policy.

    ## Action Space
    The tokens of the four moves `L`, `D`, `R` and `U`; no other token is legal. With the default tokenizer `"char"` these are
    the tokens 1 to 4. A move against the border leaves the position unchanged.

    ## Starting State
    `03>21:`: the start is in row 0 (from the top) and column 3 (from the left), and the goal in row 2 and column 1. The
    position after some moves follows from the tokens, so the environment is Markov.

    ## Reward
    -0.01 (`step_reward`) for every move, and an additional 1 for the move that reaches the goal. So a walk that reaches the
    goal in d moves returns 1 - 0.01 d, and its last move earns 1 + `step_reward` = 0.99. In a textbook's grid world, where the
    last move earns exactly 1, each such walk returns 0.01 more than here, and the best walks are the same. With
    `step_reward=0`, only the move that reaches the goal has a reward, 1. The verdict is `CORRECT` if the goal is reached.

    ## Episode End
    Termination: the goal is reached. Truncation: `max_new_tokens` moves were made without reaching the goal.

    ## Arguments
    All of `rlvr_envs.Settings`, `n` (4; from 2 to 10) and `step_reward` (-0.01). Defaults: `split="train"`,
    `tokenizer="char"`, `max_new_tokens` n**2.
    """

    task: ClassVar[TaskSpec] = world_task(GridWorld, sizes={"train": 192, "test": 48})


class GridWorldStateEnv(StateEnv):
    """`rlvr/GridWorld-v0` with numbers instead of tokens: each state is a goal with a cell.

    Spaces, information and version history are those of `rlvr_envs.StateEnv`.

    ## Description
    The problems, rewards and ends of `rlvr/GridWorld-v0`. The state is `goal * n**2 + cell`, with goals and cells numbered row
    by row; if n is 4, there are 256 states, and in 16 of them the goal is reached.

    ## Action Space
    0 to 3: left, down, right and up.

    ## Arguments
    `split` (`"train"`), `n` (4; from 2 to 10), `step_reward` (-0.01) and `max_steps` (n**2).
    """

    problems: ClassVar[type[GridWorld]] = GridWorld
