"""`rlvr/Function-v0`."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.envs.spec import TaskSpec, procedural_task
from rlvr_envs.envs.task_env import TaskEnv
from rlvr_envs.procedural import Function


class FunctionEnv(TaskEnv):
    """Small Python functions.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Write a Python function from a signature and a description in words. Problems are generated: nothing is downloaded,
    and the train and test splits are disjoint.

    ## Starting State
    The signature and the description.

    ## Reward
    1 when the function passes every generated test in the sandbox, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, `seed` and `size` of the data set, and for the difficulty `level` (1). Defaults:
    `split="train"`, `max_new_tokens=160`.
    """

    task: ClassVar[TaskSpec] = procedural_task(Function, max_new_tokens=160)


make_vec = FunctionEnv.make_vec
