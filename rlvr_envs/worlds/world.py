"""`World`: a grid of cells with walls, a start, and goals and traps that end a walk."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from verifiers import FINITE, Between, InvalidArgumentError, check_types

Cell = tuple[int, int]
"""A cell: its row from the top and its column from the left, both counted from 0."""

MOVES = "LDRU"
"""The characters of the four moves left, down, right and up, in the order of Gymnasium's FrozenLake."""
OFFSETS = ((0, -1), (1, 0), (0, 1), (-1, 0))
"""The change of the row and the column by each move."""

MAX_SIDE = 10
"""Maximum number of rows and columns, so that a coordinate is one digit."""


@dataclass(frozen=True)
class World:
    """A deterministic grid world.

    A move leads to the neighbouring cell, or has no effect if the border or a wall is in the way. A walk ends at the first goal
    or trap that it enters. Every move earns `step_reward`, and the move that ends the walk earns `goal_reward` or `trap_reward`
    in addition.

    Raises:
        InvalidArgumentError: If the sides are not from 1 to 10, a cell lies outside the grid, the start is a goal or a trap,
            there is no goal, a cell is both a goal and a trap, a wall is not between neighbours, or a reward is not finite.
    """

    rows: Annotated[int, Between(1, MAX_SIDE)]
    columns: Annotated[int, Between(1, MAX_SIDE)]
    start: Cell
    goals: tuple[Cell, ...]
    traps: tuple[Cell, ...] = ()
    walls: tuple[tuple[Cell, Cell], ...] = ()
    """Pairs of neighbouring cells with a wall in between, which stops moves in both directions."""
    goal_reward: Annotated[float, FINITE] = 1.0
    trap_reward: Annotated[float, FINITE] = 0.0
    step_reward: Annotated[float, FINITE] = 0.0

    def __post_init__(self) -> None:
        check_types(self)
        self._check_cells()

    def _check_cells(self) -> None:
        for cell in (self.start, *self.goals, *self.traps, *(cell for wall in self.walls for cell in wall)):
            if not self._inside(cell):
                raise InvalidArgumentError(f"the cell {cell} is outside a world of {self.rows} x {self.columns} cells")
        if not self.goals:
            raise InvalidArgumentError("a world must have at least one goal, got none")
        if len({self.start, *self.goals, *self.traps}) != 1 + len(self.goals) + len(self.traps):
            raise InvalidArgumentError(
                f"the start, the goals and the traps must be different cells, got start {self.start}, goals {self.goals}, "
                f"traps {self.traps}"
            )
        for one, other in self.walls:
            if abs(one[0] - other[0]) + abs(one[1] - other[1]) != 1:
                raise InvalidArgumentError(f"a wall must stand between two neighbouring cells, got {one} and {other}")

    def _inside(self, cell: Cell) -> bool:
        return 0 <= cell[0] < self.rows and 0 <= cell[1] < self.columns

    @functools.cached_property
    def _successors(self) -> dict[Cell, tuple[Cell, ...]]:
        """The cells that the moves lead to, from each cell at which a walk continues."""
        blocked = {*self.walls, *((other, one) for one, other in self.walls)}
        table = {}
        for cell in self.cells:
            targets = ((cell[0] + down, cell[1] + right) for down, right in OFFSETS)
            table[cell] = tuple(
                target if self._inside(target) and (cell, target) not in blocked else cell for target in targets
            )
        return {cell: targets for cell, targets in table.items() if not self.ends_at(cell)}

    @functools.cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, row by row."""
        return tuple((row, column) for row in range(self.rows) for column in range(self.columns))

    def ends_at(self, cell: Cell) -> bool:
        """Whether a walk is over at this cell."""
        return cell in self.goals or cell in self.traps

    @property
    def states(self) -> tuple[Cell, ...]:
        """The cells at which a walk continues, row by row."""
        return tuple(self._successors)

    def after(self, cell: Cell, move: int) -> Cell:
        """The cell that a move (an index of `MOVES`) leads to. From a goal or a trap, this is the same cell."""
        targets = self._successors.get(cell)
        return cell if targets is None else targets[move]

    def end_reward(self, cell: Cell) -> float:
        """The reward for entering a cell, in addition to `step_reward`; 0 if the walk continues."""
        if cell in self.goals:
            return self.goal_reward
        return self.trap_reward if cell in self.traps else 0.0

    def walk(self, moves: Iterable[int]) -> list[Cell]:
        """The cells of a walk from the start, given its moves (indices of `MOVES`). Moves after the walk's end are ignored."""
        cells = [self.start]
        for move in moves:
            targets = self._successors.get(cells[-1])
            if targets is None:
                break
            cells.append(targets[move])
        return cells

    def shortest_path(self) -> str:
        """A shortest walk from the start to a goal, in characters of `MOVES`. Among several, the first in the order of `MOVES`.

        Raises:
            InvalidArgumentError: If no walk reaches a goal.
        """
        paths = {self.start: ""}
        waiting = deque([self.start])
        while waiting:
            cell = waiting.popleft()
            if cell in self.goals:
                return paths[cell]
            for move, target in zip(MOVES, self._successors.get(cell, ()), strict=False):
                if target not in paths:
                    paths[target] = paths[cell] + move
                    waiting.append(target)
        raise InvalidArgumentError(f"no walk leads from the start {self.start} to a goal of {self.goals}")


def moves_of(text: str) -> list[int]:
    """The moves in a text, as indices of `MOVES`; other characters are ignored."""
    return [MOVES.index(character) for character in text if character in MOVES]
