"""`Maze`: one maze with a goal and a trap."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass

from rlvr_envs.procedural.base import SPLITS
from rlvr_envs.worlds.drawing import read_drawing
from rlvr_envs.worlds.rules import alphabet, coordinates
from rlvr_envs.worlds.world import World, require_reward
from verifiers import Problem, check_types, unknown_name

LAYOUT = """
+---+---+---+
|   |     G |
+   +   +   +
| S       T |
+---+---+---+
"""
"""The default: from the start in the lower left right, up and right to the goal; the trap is under the goal."""

GOAL_REWARD = 10.0
TRAP_REWARD = -10.0


@dataclass(frozen=True)
class Maze:
    """One problem, the same in both splits: a maze is learned, there is nothing to generalise to.

    Args:
        split: `"train"` or `"test"`.
        layout: The maze as a drawing, see `rlvr_envs.worlds.drawing`; at most 10 x 10 cells.
        step_reward: What every move pays; entering a goal pays 10 on top and a trap -10.

    Raises:
        UnknownNameError: If the split is unknown.
        InvalidArgumentError: If the layout is no drawing of a world, or no walk reaches a goal.
    """

    split: str = "train"
    layout: str = LAYOUT
    step_reward: float = 0.0

    def __post_init__(self) -> None:
        if self.split not in SPLITS:
            raise unknown_name("split", str(self.split), SPLITS)
        check_types(self)
        require_reward("step_reward", self.step_reward)
        self._problem  # noqa: B018 - an unreadable layout is named here, before an environment is built

    def __len__(self) -> int:
        """Count the problems: 1."""
        return 1

    def __getitem__(self, index: int, /) -> Problem:
        """Give the problem.

        Raises:
            IndexError: If the index is not 0.
        """
        if operator.index(index) != 0:
            raise IndexError(f"maze ({self.split}) has problem 0 alone, got index {index}")
        return self._problem

    @property
    def world(self) -> World:
        """The maze."""
        return read_drawing(self.layout, goal_reward=GOAL_REWARD, trap_reward=TRAP_REWARD, step_reward=self.step_reward)

    @property
    def alphabet(self) -> str:
        """Every character of prompts and answers, the moves first."""
        world = self.world
        return alphabet(max(world.rows, world.columns))

    @property
    def max_new_tokens(self) -> int:
        """The default budget: twice as many moves as there are cells."""
        world = self.world
        return 2 * world.rows * world.columns

    @functools.cached_property
    def _problem(self) -> Problem:
        world = self.world
        return Problem(
            id=f"maze/{world.rows}x{world.columns}",
            prompt=f"{coordinates(world.start)}:",
            reference=world,
            metadata={"gold_completion": world.shortest_path()},
        )
