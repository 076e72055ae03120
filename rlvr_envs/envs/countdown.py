"""`rlvr/Countdown-v0`."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.envs.spec import TaskSpec, procedural_task
from rlvr_envs.envs.task_env import TaskEnv
from rlvr_envs.procedural import Countdown


class CountdownEnv(TaskEnv):
    """Reach a number with given numbers.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Combine the given numbers, each used once, with `+`, `-`, `*`, `/` and parentheses so that the result is the target.
    Problems are generated: nothing is downloaded, and the train and test splits are disjoint.

    ## Starting State
    The numbers and the target.

    ## Reward
    1 when the expression is well formed, uses each number exactly once and gives the target exactly, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, `seed` and `size` of the data set, and for the difficulty `count` (4) of the numbers,
    `max_number` (25) and `max_target` (100). Defaults: `split="train"`, `max_new_tokens=48`.
    """

    task: ClassVar[TaskSpec] = procedural_task(Countdown, max_new_tokens=48)


make_vec = CountdownEnv.make_vec
