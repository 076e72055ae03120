"""`rlvr/Maze-v0`."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.envs.spec import TaskSpec, world_task
from rlvr_envs.envs.task_env import TaskEnv
from rlvr_envs.worlds import Maze


class MazeEnv(TaskEnv):
    """A maze of 2 x 3 cells with a goal and a trap.

    Observation space, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Walk from the start to the goal, past the trap. The tokens are the four moves. There is one problem, the same in both
    splits. The optimal values, and those of any policy, are known: `rlvr_envs.exact`.

        +---+---+---+
        |   |     G |
        +   +   +   +
        | S       T |
        +---+---+---+

    ## Action Space
    The tokens of the four moves `L`, `D`, `R` and `U`; no other is legal. With the default tokenizer `"char"` these are
    the tokens 1 to 4. A move against a wall or the border leaves the walk where it is.

    ## Starting State
    `10:`: the start in row 1 (from the top) and column 0 (from the left). Where the walk is after some moves follows from
    the tokens: the environment is Markov.

    ## Reward
    10 for the move that reaches the goal, -10 for the one that enters the trap, 0 (`step_reward`) for every other; a
    `step_reward` is paid for those two as well, on top. The verdict is `CORRECT` when the goal is reached.

    ## Episode End
    Termination: the goal or the trap is reached. Truncation: `max_new_tokens` moves were made without reaching either.

    ## Arguments
    Those of `rlvr_envs.Settings`, `layout` (a drawing such as the one above, see `rlvr_envs.worlds.drawing`) and
    `step_reward` (0). Defaults: `split="train"`, `tokenizer="char"`, `max_new_tokens` twice the number of cells.
    """

    task: ClassVar[TaskSpec] = world_task(Maze)


make_vec = MazeEnv.make_vec
