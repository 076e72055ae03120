"""`rlvr/Reverse-v0`."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.envs.spec import TaskSpec, procedural_task
from rlvr_envs.envs.task_env import TaskEnv
from rlvr_envs.procedural import Reverse


class ReverseEnv(TaskEnv):
    """Reverse a word.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Write the letters of a word in the opposite order. Problems are generated: nothing is downloaded, and the train and
    test splits are disjoint.

    ## Starting State
    The word.

    ## Reward
    1 when the completion is the reversed word, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, `seed` and `size` of the data set, and for the difficulty `length` (5). Defaults:
    `split="train"`, `max_new_tokens=16`.
    """

    task: ClassVar[TaskSpec] = procedural_task(Reverse, max_new_tokens=16)


make_vec = ReverseEnv.make_vec
