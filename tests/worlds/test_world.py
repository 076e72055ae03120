"""Worlds by hand: moves, walls, drawings, shortest walks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, strategies as st

from rlvr_envs.tasks import Maze
from rlvr_envs.worlds import World, draw, read_drawing
from verifiers import InvalidArgumentError

LEFT, DOWN, RIGHT, UP = range(4)

MAZE = """
    +---+---+---+
    |   |     G |
    +   +   +   +
    | S       T |
    +---+---+---+
"""


def maze() -> World:
    return read_drawing(MAZE, goal_reward=10.0, trap_reward=-10.0)


def test_the_border_and_walls_hold_from_both_sides() -> None:
    world = maze()
    assert world.after((0, 0), UP) == world.after((0, 0), LEFT) == (0, 0)
    assert world.after((0, 0), RIGHT) == (0, 0)
    assert world.after((0, 1), LEFT) == (0, 1)
    assert world.after((1, 0), RIGHT) == (1, 1)
    assert world.after((1, 1), LEFT) == (1, 0)


def test_the_default_maze_is_the_documented_drawing() -> None:
    assert Maze().world == maze()
    assert Maze().world.shortest_path() == "RUR"


def test_a_goal_out_of_reach_is_named() -> None:
    closed = "+---+---+\n| S | G |\n+---+---+"
    with pytest.raises(InvalidArgumentError, match=r"no walk leads from the start \(0, 0\) to a goal of \(\(0, 1\),\)"):
        read_drawing(closed).shortest_path()
    with pytest.raises(InvalidArgumentError, match="no walk leads"):
        Maze(layout=closed)


@st.composite
def worlds(draw_from: st.DrawFn) -> World:
    rows, columns = draw_from(st.integers(1, 4)), draw_from(st.integers(2, 4))
    cells = [(row, column) for row in range(rows) for column in range(columns)]
    start, goal, *others = draw_from(st.permutations(cells))
    traps = tuple(sorted(others[: draw_from(st.integers(0, len(others)))]))
    neighbours = [
        (cell, target)
        for cell in cells
        for target in ((cell[0], cell[1] + 1), (cell[0] + 1, cell[1]))
        if target in cells
    ]
    walls = draw_from(st.lists(st.sampled_from(neighbours), unique=True)) if neighbours else []
    return World(rows, columns, start, (goal,), traps, tuple(sorted(walls, key=neighbours.index)))


@given(worlds())
def test_a_drawing_reads_back_as_the_world_it_was_drawn_from(world: World) -> None:
    assert read_drawing(draw(world)) == world


@given(worlds(), st.lists(st.integers(0, 3), max_size=12))
def test_a_move_undone_leads_back_and_no_walk_leaves_the_world(world: World, moves: list[int]) -> None:
    cells = world.walk(moves)
    for before, after, move in zip(cells, cells[1:], moves, strict=False):
        assert 0 <= after[0] < world.rows
        assert 0 <= after[1] < world.columns
        assert abs(after[0] - before[0]) + abs(after[1] - before[1]) <= 1
        if after != before and not world.ends_at(after):
            assert world.after(after, (move + 2) % 4) == before
    assert not any(world.ends_at(cell) for cell in cells[:-1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": 0}, "rows must be from 1 to 10, got 0"),
        ({"start": (0, 2)}, r"the cell \(0, 2\) is outside a world of 2 x 2 cells"),
        ({"goals": ()}, "at least one goal"),
        ({"goals": ((0, 0),)}, "must be different cells"),
        ({"walls": (((0, 0), (1, 1)),)}, "between two neighbouring cells"),
        ({"step_reward": float("nan")}, "step_reward must be a number, got nan"),
    ],
)
def test_a_world_that_is_none_is_named(arguments: Mapping[str, Any], message: str) -> None:
    sound: dict[str, Any] = {"rows": 2, "columns": 2, "start": (0, 0), "goals": ((1, 1),)}
    World(**sound)
    with pytest.raises(InvalidArgumentError, match=message):
        World(**{**sound, **arguments})


@pytest.mark.parametrize(
    ("drawing", "message"),
    [
        ("", "must begin and end with a border"),
        ("+---+---+\n| S   X |\n+---+---+", r"line 2 of the drawing must have the form .* got '\| S   X \|'"),
        ("+---+---+\n| S   G |\n+ - +   +\n|       |\n+---+---+", r"line 3 of the drawing"),
        ("+---+---+\n| S   S |\n+---+---+", "one start S, got 2"),
        ("+---+---+\n| S     |\n+---+---+", "at least one goal"),
    ],
)
def test_a_drawing_that_is_none_is_named(drawing: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        read_drawing(drawing)
