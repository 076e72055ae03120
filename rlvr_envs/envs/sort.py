"""`rlvr/Sort-v0`."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.envs.spec import TaskSpec, procedural_task
from rlvr_envs.envs.task_env import TaskEnv
from rlvr_envs.procedural import Sort


class SortEnv(TaskEnv):
    """Sort numbers.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Write a list of numbers in ascending order. Problems are generated: nothing is downloaded, and the train and test
    splits are disjoint.

    ## Starting State
    The numbers.

    ## Reward
    1 when the completion is the sorted list, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, `seed` and `size` of the data set, and for the difficulty `length` (4) and
    `max_number` (99). Defaults: `split="train"`, `max_new_tokens=32`.
    """

    task: ClassVar[TaskSpec] = procedural_task(Sort, max_new_tokens=32)


make_vec = SortEnv.make_vec
