"""`Maze`: one maze with a goal and a trap."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from rlvr_envs.envs import StateEnv, TaskEnv, TaskSpec, world_task
from rlvr_envs.procedural.base import GeneratedDataset
from rlvr_envs.worlds.drawing import draw, read_drawing
from rlvr_envs.worlds.process import Process, world_process
from rlvr_envs.worlds.rules import MOVES_IN_WORDS, alphabet, coordinates
from rlvr_envs.worlds.world import World
from verifiers import FINITE, Problem

LAYOUT = """
+---+---+---+
|   |     G |
+   +   +   +
| S       T |
+---+---+---+
"""
"""The default layout. From the start in the lower left, the way to the goal leads right, up and right, above the trap."""

GOAL_REWARD = 10.0
TRAP_REWARD = -10.0


@dataclass(frozen=True)
class Maze(GeneratedDataset):
    """One problem, which is the same in both splits. The policy learns this one maze, and there is nothing to generalise to.

    Args:
        split: `"train"` or `"test"`.
        layout: A drawing of the maze, of at most 10 x 10 cells; see `rlvr_envs.worlds.drawing`.
        step_reward: Reward of every move. A move into a goal gets an additional 10, and a move into a trap an additional -10.

    Raises:
        UnknownNameError: If the split is unknown.
        InvalidArgumentError: If the layout is not a drawing of a world, or no walk reaches a goal.
    """

    name: ClassVar[str] = "maze"

    layout: str = LAYOUT
    step_reward: Annotated[float, FINITE] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._problem  # noqa: B018 - an unreadable layout is reported here, before an environment is built

    def __len__(self) -> int:
        return 1

    def _problem_at(self, index: int) -> Problem:
        return self._problem

    @property
    def world(self) -> World:
        """The maze."""
        return read_drawing(self.layout, goal_reward=GOAL_REWARD, trap_reward=TRAP_REWARD, step_reward=self.step_reward)

    def in_words(self, problem: Problem) -> str:
        """The rules in words, and the start of the walk."""
        return (
            f"Walk through this maze from S to G, and not over T, in as few moves as you can:\n\n{draw(self.world)}\n\n"
            f"{MOVES_IN_WORDS} Write the letters of the moves alone, without spaces."
        )

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
    def process(self) -> Process:
        """The process of the maze; its states are the cells, row by row."""
        return world_process([self.world], map(coordinates, self.world.cells))

    @property
    def starts(self) -> Mapping[int, float]:
        """The maze's start, with probability 1."""
        return {self.start(0): 1.0}

    def start(self, index: int) -> int:
        """The state in which the problem starts."""
        return self.world.cells.index(self.world.start)

    def luck(self, index: int) -> int:
        """Always 0, since there are no chance events."""
        return 0

    @functools.cached_property
    def _problem(self) -> Problem:
        world = self.world
        return Problem(
            id=f"maze/{world.rows}x{world.columns}",
            prompt=f"{coordinates(world.start)}:",
            reference=world,
            metadata={"gold_completion": world.shortest_path()},
        )


class MazeEnv(TaskEnv):
    """A maze of 2 x 3 cells with a goal and a trap.

    Observation space, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Walk from the start to the goal, past the trap. The tokens are the four moves. There is one problem, which is the same in
    both splits. `rlvr_envs.exact` computes the optimal values, and the values of any policy.

        +---+---+---+
        |   |     G |
        +   +   +   +
        | S       T |
        +---+---+---+

    ## Action Space
    The tokens of the four moves `L`, `D`, `R` and `U`; no other token is legal. With the default tokenizer `"char"` these are
    the tokens 1 to 4. A move against a wall or the border leaves the position unchanged.

    ## Starting State
    `10:`: the start is in row 1 (from the top) and column 0 (from the left). The position after some moves follows from the
    tokens, so the environment is Markov.

    ## Reward
    10 for the move that reaches the goal, -10 for the move that enters the trap, and in addition `step_reward` (0) for every
    move, including these two. The verdict is `CORRECT` if the goal is reached.

    ## Episode End
    Termination: the goal or the trap is reached. Truncation: `max_new_tokens` moves were made without reaching either.

    ## Arguments
    All of `rlvr_envs.Settings`, `layout` (a drawing such as the one above; see `rlvr_envs.worlds.drawing`) and `step_reward`
    (0). Defaults: `split="train"`, `tokenizer="char"`, `max_new_tokens` twice the number of cells.
    """

    task: ClassVar[TaskSpec] = world_task(Maze, sizes={"train": 1, "test": 1})


class MazeStateEnv(StateEnv):
    """`rlvr/Maze-v0` with numbers instead of tokens: each state is a cell.

    Spaces, information and version history are those of `rlvr_envs.StateEnv`.

    ## Description
    The maze, rewards and ends of `rlvr/Maze-v0`. The states are the cells, row by row.

    ## Action Space
    0 to 3: left, down, right and up.

    ## Arguments
    `split` (`"train"`), `layout` and `step_reward` (0) as for `rlvr/Maze-v0`, and `max_steps` (twice the number of cells).
    """

    problems: ClassVar[type[Maze]] = Maze
