"""`rlvr/Arithmetic-v0`."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.envs.spec import TaskSpec, procedural_task
from rlvr_envs.envs.task_env import TaskEnv
from rlvr_envs.procedural import Arithmetic


class ArithmeticEnv(TaskEnv):
    """Arithmetic expressions.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Evaluate a nested expression of whole numbers with `+`, `-` and `*`. Problems are generated: nothing is downloaded,
    and the train and test splits are disjoint.

    ## Starting State
    The expression, up to the equals sign.

    ## Reward
    1 when the completion is the literal value and nothing else, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, `seed` and `size` of the data set, and for the difficulty `depth` (2) of the nesting
    and `digits` (1) of the numbers. Defaults: `split="train"`, `max_new_tokens=16`.
    """

    task: ClassVar[TaskSpec] = procedural_task(Arithmetic, max_new_tokens=16)


make_vec = ArithmeticEnv.make_vec
