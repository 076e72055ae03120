"""`FrozenLake`: walk across slippery ice to the goal."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from rlvr_envs.envs import StateEnv, TaskEnv, TaskSpec, process_task
from rlvr_envs.worlds.drawing import draw, read_drawing
from rlvr_envs.worlds.process import Process, world_process
from rlvr_envs.worlds.process_data import ProcessDataset
from rlvr_envs.worlds.rules import MOVES_IN_WORDS, coordinates
from rlvr_envs.worlds.world import World
from verifiers import Between, Problem

LAYOUT = """
+---+---+---+---+
| S             |
+   +   +   +   +
|     T       T |
+   +   +   +   +
|             T |
+   +   +   +   +
| T           G |
+---+---+---+---+
"""
"""The default layout: the map of 4 x 4 cells of Gymnasium's FrozenLake, with its holes as traps."""


@dataclass(frozen=True)
class FrozenLake(ProcessDataset):
    """Walks over one lake. A problem is a walk with the problem's own chance events.

    Args:
        split: `"train"` or `"test"`: the same lake, with different chance events.
        seed: Seed of the chance events.
        size: Number of problems; by default 100 000 for train and 1 000 for test.
        layout: A drawing of the lake, of at most 10 x 10 cells, with holes as traps; see `rlvr_envs.worlds.drawing`.
        slip: Probability that a move leads sideways instead: to the left or the right of its direction, with equal probability.

    Raises:
        InvalidArgumentError: If the layout is not a drawing of a world, or the probability is out of range.
    """

    name: ClassVar[str] = "frozen_lake"

    layout: str = LAYOUT
    slip: Annotated[float, Between(0, 1)] = 2 / 3

    @functools.cached_property
    def process(self) -> Process:
        """The process; its states are the cells, row by row."""
        return world_process([self.world], map(coordinates, self.world.cells), slip=self.slip)

    @functools.cached_property
    def world(self) -> World:
        """The lake without slipping."""
        return read_drawing(self.layout)

    def in_words(self, problem: Problem) -> str:
        """The rules in words, and the start of the walk."""
        return (
            f"Walk over this frozen lake from S to G, and not into a hole, T:\n\n{draw(self.world)}\n\n{MOVES_IN_WORDS} The "
            f"ice is slippery: with probability {self.slip:.3g}, a move leads to one of its two sides instead. Each of your "
            "turns is one letter. I answer with the row and the column where you are, numbered from 0 at the top left. What is "
            "your move?"
        )

    @property
    def starts(self) -> Mapping[int, float]:
        """The lake's start, with probability 1."""
        return {self.world.cells.index(self.world.start): 1.0}

    @property
    def max_new_tokens(self) -> int:
        """The default budget: 100 moves."""
        return 100


class FrozenLakeEnv(TaskEnv):
    """Walk across slippery ice to the goal, past the holes.

    Observation space, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Walk from the start to the goal over ice: with probability `slip` = 2/3, a move leads to the left or the right of its
    direction instead. The answer to a move is the cell that the move leads to. The transitions are the same as in Gymnasium's
    `FrozenLake-v1` with 4 x 4 cells. `rlvr_envs.exact` computes the optimal values, and the values of any policy.

        +---+---+---+---+
        | S             |
        +   +   +   +   +
        |     T       T |
        +   +   +   +   +
        |             T |
        +   +   +   +   +
        | T           G |
        +---+---+---+---+

    `S` is the start, `G` the goal, and `T` a trap, which is a hole in the ice; all other cells are ice. Gymnasium's map writes
    a hole as `H` and ice as `F`. A `layout` is drawn with the letters above, and with `|` and `---` for walls between cells.

    ## Action Space
    The tokens of the four moves `L`, `D`, `R` and `U`; no other token is legal. With the default tokenizer `"char"` these are
    the tokens 1 to 4. A move against the border leaves the position unchanged.

    ## Starting State
    `00:`: row 0 from the top and column 0 from the left. After some moves the text may be `00:R10:R11:`. Problems differ only
    in their chance events, which are never shown. Chance events are drawn from the problem's seed, independently for each step
    and move, so the same moves in the same problem always lead along the same path.

    ## Reward
    1 for the move that reaches the goal, 0 for any other move. The verdict is `CORRECT` if the goal is reached.

    ## Episode End
    Termination: the goal or a hole is reached. Truncation: `max_new_tokens` moves were made without reaching either.

    ## Arguments
    All of `rlvr_envs.Settings`, `layout` (a drawing such as the one above; see `rlvr_envs.worlds.drawing`), `slip` (2/3),
    `seed` (of the chance events) and `size` of the data set. Defaults: `split="train"`, `tokenizer="char"`,
    `max_new_tokens=100`, `max_inserted_tokens` as many as the answers need.
    """

    task: ClassVar[TaskSpec] = process_task(FrozenLake)


class FrozenLakeStateEnv(StateEnv):
    """`rlvr/FrozenLake-v0` with numbers instead of tokens: each state is a cell.

    Spaces, information and version history are those of `rlvr_envs.StateEnv`.

    ## Description
    The lake, chance events, rewards and ends of `rlvr/FrozenLake-v0`. The states are the cells, row by row.

    ## Action Space
    0 to 3: left, down, right and up.

    ## Arguments
    `split` (`"train"`), `layout`, `slip` (2/3), `seed` and `size` as for `rlvr/FrozenLake-v0`, and `max_steps` (100).
    """

    problems: ClassVar[type[FrozenLake]] = FrozenLake
