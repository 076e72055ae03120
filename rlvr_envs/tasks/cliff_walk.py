"""`CliffWalk`: walk along a cliff to the goal."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar

from rlvr_envs.envs import StateEnv, TaskEnv, TaskSpec, process_task
from rlvr_envs.worlds.process import Branch, Process
from rlvr_envs.worlds.process_data import ProcessDataset
from rlvr_envs.worlds.rules import MOVES_IN_WORDS
from rlvr_envs.worlds.world import MOVES, OFFSETS
from verifiers import Between, Problem

_STEP, _FALL = -1.0, -100.0


@dataclass(frozen=True)
class CliffWalk(ProcessDataset):
    """One problem, the same in both splits: a grid with a cliff between start and goal.

    Args:
        split: `"train"` or `"test"`.
        seed: No effect, since there are no chance events.
        size: Number of problems; by default 1.
        rows: Number of rows, 2 to 10.
        columns: Number of columns, 3 to 20.
    """

    name: ClassVar[str] = "cliff_walk"
    sizes: ClassVar[Mapping[str, int]] = MappingProxyType({"train": 1, "test": 1})

    rows: Annotated[int, Between(2, 10)] = 4
    columns: Annotated[int, Between(3, 20)] = 12

    @functools.cached_property
    def process(self) -> Process:
        """The process. Its states are all cells, row by row; no move leads to a cell of the cliff."""
        names = tuple(f"{row},{column}" for row in range(self.rows) for column in range(self.columns))
        return Process(names, MOVES, tuple(self._moves()), frozenset({self._goal}))

    def in_words(self, problem: Problem) -> str:
        """The rules in words, and the start of the walk."""
        return (
            f"Walk over a grid of {self.rows} rows and {self.columns} columns from the lower left cell to the lower right one. "
            "The other cells of the lowest row are a cliff: a move into it costs 100 and leads back to the start. Any other "
            f"move costs 1. {MOVES_IN_WORDS} Each of your turns is one letter. I answer with the row and the column where you "
            "are, numbered from 0 at the top left. What is your move?"
        )

    def _moves(self) -> Iterator[tuple[tuple[Branch, ...], ...]]:
        """The branches of the moves from each cell.

        The goal, where episodes end, and the cliff, which is never reached, have none.
        """
        start, columns = self.start(0), self.columns
        for state in range(self.rows * columns):
            row, column = divmod(state, columns)
            branches = []
            for down, right in OFFSETS if state <= start else ():
                target = min(max(row + down, 0), self.rows - 1) * columns + min(max(column + right, 0), columns - 1)
                falls = start < target < self._goal
                branches.append((Branch(1.0, start if falls else target, _FALL if falls else _STEP),))
            yield tuple(branches)

    @property
    def _goal(self) -> int:
        return self.rows * self.columns - 1

    @property
    def starts(self) -> Mapping[int, float]:
        """The lower left cell, with probability 1."""
        return {(self.rows - 1) * self.columns: 1.0}

    @property
    def max_new_tokens(self) -> int:
        """The default budget: 100 moves; the shortest path takes 13 moves if there are 12 columns."""
        return 100

    def gold(self, state: int) -> str:
        """The shortest path, along the edge."""
        return "U" + "R" * (self.columns - 1) + "D"


class CliffWalkEnv(TaskEnv):
    """Walk along a cliff to the goal.

    Observation space, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    The cliff walk of Sutton & Barto 2018, example 6.6: the start is in the lower left of a grid of 4 x 12 cells, the goal in
    the lower right, and between them lies a cliff. A step into the cliff leads back to the start. The answer to a move is the
    cell that the move leads to. `rlvr_envs.exact` computes the optimal values, and the values of any policy.

    ## Action Space
    The tokens of the four moves `L`, `D`, `R` and `U`; no other token is legal. With the default tokenizer `"char"` these are
    the tokens 1 to 4. A move against the border leaves the position unchanged.

    ## Starting State
    `3,0:`: row 3 from the top and column 0 from the left. After some moves the text is `3,0:U2,0:R2,1:`.

    ## Reward
    -1 for each move, but -100 for a move into the cliff. The shortest path, along the edge, returns -13. The verdict is
    `CORRECT` if the goal is reached.

    ## Episode End
    Termination: the goal is reached. Truncation: `max_new_tokens` moves were made without reaching the goal.

    ## Arguments
    All of `rlvr_envs.Settings`, `rows` (4) and `columns` (12). Defaults: `split="train"`, `tokenizer="char"`,
    `max_new_tokens=100`, `max_inserted_tokens` as many as the answers need.
    """

    task: ClassVar[TaskSpec] = process_task(CliffWalk)


class CliffWalkStateEnv(StateEnv):
    """`rlvr/CliffWalk-v0` with numbers instead of tokens: each state is a cell.

    Spaces, information and version history are those of `rlvr_envs.StateEnv`.

    ## Description
    The grid, rewards and ends of `rlvr/CliffWalk-v0`. The states are the cells, row by row; the cells of the cliff are never
    reached.

    ## Action Space
    0 to 3: left, down, right and up.

    ## Arguments
    `split` (`"train"`), `rows` (4), `columns` (12) and `max_steps` (100).
    """

    problems: ClassVar[type[CliffWalk]] = CliffWalk
