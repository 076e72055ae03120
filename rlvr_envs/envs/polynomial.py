"""`rlvr/Polynomial-v0`."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.envs.spec import TaskSpec, procedural_task
from rlvr_envs.envs.task_env import TaskEnv
from rlvr_envs.procedural import Polynomial


class PolynomialEnv(TaskEnv):
    """Expand or factor polynomials.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Expand a product of linear factors, or factor the polynomial that it makes. Problems are generated: nothing is
    downloaded, and the train and test splits are disjoint.

    ## Starting State
    The polynomial and what to do with it.

    ## Reward
    1 when the answer equals the polynomial up to algebra and has the form that is asked for, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, `seed` and `size` of the data set, and for the difficulty `degree` (2), `max_leading`
    (3), `max_constant` (9) and `task` (`"mixed"`, `"expand"` or `"factor"`). Defaults: `split="train"`,
    `max_new_tokens=64`.
    """

    task: ClassVar[TaskSpec] = procedural_task(Polynomial, max_new_tokens=64)


make_vec = PolynomialEnv.make_vec
