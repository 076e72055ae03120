"""`rlvr/LinearEquation-v0`."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.envs.spec import TaskSpec, procedural_task
from rlvr_envs.envs.task_env import TaskEnv
from rlvr_envs.procedural import LinearEquation


class LinearEquationEnv(TaskEnv):
    """Linear equations in one unknown.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Solve `a x + b = c` for x. Problems are generated: nothing is downloaded, and the train and test splits are
    disjoint.

    ## Starting State
    The equation.

    ## Reward
    1 when the completion gives the solution exactly, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, `seed` and `size` of the data set, and for the difficulty `max_coefficient` (9) and
    `solution` (`"integer"` or `"rational"`). Defaults: `split="train"`, `max_new_tokens=16`.
    """

    task: ClassVar[TaskSpec] = procedural_task(LinearEquation, max_new_tokens=16)


make_vec = LinearEquationEnv.make_vec
