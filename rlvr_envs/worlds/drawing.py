"""Worlds as drawings.

Each cell is three characters wide and shows `S` (the start), `G` (a goal), `T` (a trap) or nothing. Between cells, `|` or `---`
marks a wall, and spaces a free way:

    +---+---+---+
    |   |     G |
    +   +   +   +
    | S       T |
    +---+---+---+
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from rlvr_envs.worlds.world import Cell, World
from verifiers import InvalidArgumentError

_MARKS = {"S", "G", "T", " "}
_LETTERS = "S is the start, G a goal, T a trap, and other cells are empty"


def read_drawing(
    drawing: str, *, goal_reward: float = 1.0, trap_reward: float = 0.0, step_reward: float = 0.0
) -> World:
    """Read a world from its drawing.

    Args:
        drawing: The drawing, in the form that the module describes. All lines may have the same indentation, and trailing
            spaces may be missing.
        goal_reward: As for `World`.
        trap_reward: As for `World`.
        step_reward: As for `World`.

    Raises:
        InvalidArgumentError: If the drawing does not have this form (the message names the line), or is not a valid `World`.
    """
    lines = _lines(drawing)
    rows, columns = len(lines) // 2, len(lines[0]) // 4
    marks: dict[str, list[Cell]] = {mark: [] for mark in sorted(_MARKS)}
    for row in range(rows):
        for column in range(columns):
            marks[_mark(lines, row, column)].append((row, column))
    if len(marks["S"]) != 1:
        raise InvalidArgumentError(f"a drawing must have one start S, got {len(marks['S'])}")
    return World(
        rows=rows,
        columns=columns,
        start=marks["S"][0],
        goals=tuple(marks["G"]),
        traps=tuple(marks["T"]),
        walls=tuple(_walls(lines, rows, columns)),
        goal_reward=goal_reward,
        trap_reward=trap_reward,
        step_reward=step_reward,
    )


def draw(world: World) -> str:
    """Draw a world. `read_drawing` can read the drawing, which does not contain the rewards."""
    marks = {world.start: "S"} | dict.fromkeys(world.goals, "G") | dict.fromkeys(world.traps, "T")
    walls = {frozenset(wall) for wall in world.walls}
    border = "+" + "---+" * world.columns
    lines = [border]
    for row in range(world.rows):
        cells, below = "|", "+"
        for column in range(world.columns):
            cell, right, down = (row, column), (row, column + 1), (row + 1, column)
            cells += f" {marks.get(cell, ' ')} " + ("|" if frozenset((cell, right)) in walls else " ")
            below += ("---" if frozenset((cell, down)) in walls else "   ") + "+"
        lines += [cells[:-1] + "|", below]
    return "\n".join([*lines[:-1], border])


def _lines(drawing: str) -> list[str]:
    """The lines of a drawing, padded to the width of the first line, which is the upper border."""
    lines = textwrap.dedent(drawing).strip("\n").splitlines()
    width = len(lines[0].rstrip()) if lines else 0
    padded = [line.rstrip().ljust(width) for line in lines]
    border = "+" + "---+" * (width // 4)
    if width < 5 or len(lines) < 3 or len(lines) % 2 == 0 or padded[0] != border or padded[-1] != border:
        raise InvalidArgumentError(
            f"a drawing must begin and end with a border such as '+---+---+' and have two lines for each row of cells, where "
            f"{_LETTERS}; got {drawing!r}{_of_gymnasium(lines)}"
        )
    for number, line in enumerate(padded):
        if not (_is_row(line) if number % 2 else _is_border(line)) or len(line) != width:
            form = "'| S       T |'" if number % 2 else "'+---+   +---+'"
            raise InvalidArgumentError(
                f"line {number + 1} of the drawing must have the form {form}, where {_LETTERS}; got {line!r}"
            )
    return padded


def _of_gymnasium(lines: list[str]) -> str:
    """A hint for a map in the letters of Gymnasium's FrozenLake."""
    if not (lines and all(line and set(line.strip()) <= set("SFHG") for line in lines)):
        return ""
    return ", a map in the letters of Gymnasium: draw its holes H as traps T, and leave its frozen cells F empty"


def _is_row(line: str) -> bool:
    ends = line[0] == line[-1] == "|"
    return ends and set(line[4:-1:4]) <= {"|", " "} and set(line[2::4]) <= _MARKS and set(line[1::2]) <= {" "}


def _is_border(line: str) -> bool:
    return set(line[::4]) == {"+"} and all(line[at : at + 3] in ("---", "   ") for at in range(1, len(line) - 1, 4))


def _mark(lines: list[str], row: int, column: int) -> str:
    return lines[2 * row + 1][4 * column + 2]


def _walls(lines: list[str], rows: int, columns: int) -> Iterator[tuple[Cell, Cell]]:
    for row in range(rows):
        for column in range(columns):
            if column + 1 < columns and lines[2 * row + 1][4 * column + 4] == "|":
                yield (row, column), (row, column + 1)
            if row + 1 < rows and lines[2 * row + 2][4 * column + 1] == "-":
                yield (row, column), (row + 1, column)
