"""`rlvr/Addition-v0`."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.envs.spec import TaskSpec, procedural_task
from rlvr_envs.envs.task_env import TaskEnv
from rlvr_envs.procedural import Addition


class AdditionEnv(TaskEnv):
    """Sums of two numbers.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Add two whole numbers of up to `digits` digits, such as `37+58=`. Problems are generated: nothing is downloaded, and
    the train and test splits are disjoint.

    ## Starting State
    The sum's expression, up to the equals sign.

    ## Reward
    1 when the completion is the literal sum and nothing else, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, `seed` and `size` of the data set, and for the difficulty `digits` (2). Defaults:
    `split="train"`, `max_new_tokens=8`.
    """

    task: ClassVar[TaskSpec] = procedural_task(Addition, max_new_tokens=8)


make_vec = AdditionEnv.make_vec
