"""Games of marks in a row, such as tic-tac-toe and connect four, and scripted players."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from verifiers import InvalidArgumentError

MAX_SOLVED_CELLS = 16
"""Maximum number of cells of a board that can be solved. Larger boards have too many positions."""


@dataclass(frozen=True)
class InARow:
    """A board on which two sides mark cells in turn; the first side with `connect` marks in a row, column or diagonal wins.

    A move is the number of a cell, counted row by row from 1; if marks drop, a move is the number of a column, and the lowest
    free cell of this column is marked. The moves so far define a position.
    """

    name: str
    columns: int
    rows: int
    connect: int
    drops: bool = False

    @property
    def moves(self) -> int:
        """The largest number that a move can have."""
        return self.columns if self.drops else self.columns * self.rows

    def legal(self, played: Sequence[int]) -> list[int]:
        """The legal moves; empty once the game is over."""
        return _legal(self, *self.marks(played))

    def outcome(self, played: Sequence[int]) -> float | None:
        """The first side's score: 1 for a win, 0 for a loss, 1/2 for a draw; None while the game goes on."""
        worth = _over(self, *self.marks(played))
        return worth if worth is None or len(played) % 2 == 0 else 1 - worth

    def marks(self, played: Sequence[int]) -> tuple[int, int]:
        """The cells of the side to move and the cells of the other side, each set as the bits of a number."""
        sides = (0, 0)
        for move in played:
            sides = (sides[1], sides[0] | _bit(self, sides[0] | sides[1], move))
        return sides

    def draw(self, played: Sequence[int]) -> str:
        """The board as text, with `X` for the side that moved first and `O` for the other side."""
        first, second = self.marks(played) if len(played) % 2 == 0 else self.marks(played)[::-1]
        cells = ["X" if first >> at & 1 else "O" if second >> at & 1 else "." for at in range(self.columns * self.rows)]
        rows = [" ".join(cells[at : at + self.columns]) for at in range(0, len(cells), self.columns)]
        return "\n".join(reversed(rows) if self.drops else rows)

    def best(self, played: Sequence[int]) -> list[int]:
        """The best moves for the side to move, if both sides play optimally.

        Raises:
            InvalidArgumentError: If the board is too large to be solved.
        """
        if self.columns * self.rows > MAX_SOLVED_CELLS:
            raise InvalidArgumentError(
                f"a board of {self.columns} x {self.rows} cells can't be solved: at most {MAX_SOLVED_CELLS} cells, please"
            )
        mine, theirs = self.marks(played)
        worth = {
            move: 1 - _value(self, theirs, mine | _bit(self, mine | theirs, move))
            for move in _legal(self, mine, theirs)
        }
        return [move for move, value in worth.items() if value == max(worth.values())]


def _bit(board: InARow, taken: int, move: int) -> int:
    """The cell that a move marks."""
    cell = move - 1
    while board.drops and taken >> cell & 1:
        cell += board.columns
    return 1 << cell


def _legal(board: InARow, mine: int, theirs: int) -> list[int]:
    if _over(board, mine, theirs) is not None:
        return []
    taken = mine | theirs
    # If marks drop, a column is full when its topmost cell is taken.
    last = (board.rows - 1) * board.columns if board.drops else 0
    return [move for move in range(1, board.moves + 1) if not taken >> (last + move - 1) & 1]


def _over(board: InARow, mine: int, theirs: int) -> float | None:
    """The value of a final position for the side to move; None if the game goes on. Only the other side can have just won."""
    if any(theirs & line == line for line in _lines(board)):
        return 0.0
    return 0.5 if (mine | theirs).bit_count() == board.columns * board.rows else None


@functools.cache
def _lines(board: InARow) -> tuple[int, ...]:
    """The winning lines, each as a number whose bits are the line's cells."""
    lines = []
    for row in range(board.rows):
        for column in range(board.columns):
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                cells = [(row + down * step, column + right * step) for step in range(board.connect)]
                if all(0 <= r < board.rows and 0 <= c < board.columns for r, c in cells):
                    lines.append(sum(1 << (r * board.columns + c) for r, c in cells))
    return tuple(lines)


@functools.cache
def _value(board: InARow, mine: int, theirs: int) -> float:
    """The value of a position for the side to move, if both sides play optimally."""
    worth = _over(board, mine, theirs)
    if worth is not None:
        return worth
    best = 0.0
    for move in _legal(board, mine, theirs):
        best = max(best, 1 - _value(board, theirs, mine | _bit(board, mine | theirs, move)))
        if best == 1.0:
            break
    return best


def random_move(board: InARow, played: Sequence[int], rng: np.random.Generator) -> int:
    """Return any legal move."""
    return int(rng.choice(board.legal(played)))


def greedy_move(board: InARow, played: Sequence[int], rng: np.random.Generator) -> int:
    """Return a move that wins at once, or else a move that blocks the other side's win, or else any legal move."""
    mine, theirs = board.marks(played)
    legal = board.legal(played)
    for side, other in ((mine, theirs), (theirs, mine)):
        wins = [move for move in legal if _over(board, other, side | _bit(board, mine | theirs, move)) == 0.0]
        if wins:
            return int(rng.choice(wins))
    return int(rng.choice(legal))


def optimal_move(board: InARow, played: Sequence[int], rng: np.random.Generator) -> int:
    """Return one of the best moves."""
    return int(rng.choice(board.best(played)))
