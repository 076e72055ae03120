"""`rlvr/GridWorld-v0`."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.envs.spec import TaskSpec, world_task
from rlvr_envs.envs.task_env import TaskEnv
from rlvr_envs.worlds import GridWorld


class GridWorldEnv(TaskEnv):
    """From one cell of an open grid to another.

    Observation space, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Walk from a start to a goal in an open grid of n x n cells. The tokens are the four moves. Every pair of a start and
    a goal is a problem; the splits are disjoint (192 pairs for training and 48 for testing where n is 4). The optimal
    values, and those of any policy, are known: `rlvr_envs.exact`.

    ## Action Space
    The tokens of the four moves `L`, `D`, `R` and `U`; no other is legal. With the default tokenizer `"char"` these are
    the tokens 1 to 4. A move against the border leaves the walk where it is.

    ## Starting State
    `03>21:`: the start in row 0 (from the top) and column 3 (from the left), the goal in row 2 and column 1. Where the
    walk is after some moves follows from the tokens: the environment is Markov.

    ## Reward
    -0.01 (`step_reward`) for every move, and 1 on top for the move that reaches the goal: reaching it in d moves returns
    1 - 0.01 d, and its last move pays 1 + `step_reward` = 0.99. Where a textbook's grid world pays exactly 1 for the last
    move, each walk that reaches the goal returns 0.01 more than here, and the best walks are the same. `step_reward=0`
    pays 1 for reaching the goal and nothing else. The verdict is `CORRECT` when the goal is reached.

    ## Episode End
    Termination: the goal is reached. Truncation: `max_new_tokens` moves were made without reaching it.

    ## Arguments
    Those of `rlvr_envs.Settings`, `n` (4; from 2 to 10) and `step_reward` (-0.01). Defaults: `split="train"`,
    `tokenizer="char"`, `max_new_tokens` n**2.
    """

    task: ClassVar[TaskSpec] = world_task(GridWorld)


make_vec = GridWorldEnv.make_vec
