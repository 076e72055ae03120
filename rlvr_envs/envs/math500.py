"""`rlvr/MATH500-v0`."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.envs.spec import TaskSpec, benchmark_task
from rlvr_envs.envs.task_env import TaskEnv
from rlvr_envs.tasks import math500 as data


class MATH500Env(TaskEnv):
    """500 problems of MATH's test split.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    The 500 test problems that Lightman et al. 2023 (arXiv:2305.20050) held out of MATH.

    ## Starting State
    A problem. Default prompt `minerva_math_4shot`: four worked examples that end in a final-answer line.

    ## Reward
    1 when the final answer equals the gold answer mathematically, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, and `data_dir`: a local folder of the data. Defaults: `split="test"`,
    `max_new_tokens=1024`, `verifier="math"`.
    """

    task: ClassVar[TaskSpec] = benchmark_task(
        data.SOURCE,
        default_split="test",
        verifier=("math", {}),
        prompt="minerva_math_4shot",
        max_new_tokens=1024,
    )


make_vec = MATH500Env.make_vec
