"""`rlvr/MATH-v0`."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.envs.spec import TaskSpec, benchmark_task
from rlvr_envs.envs.task_env import TaskEnv
from rlvr_envs.tasks import math as data


class MATHEnv(TaskEnv):
    """Competition mathematics.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Competition problems in seven subjects and five levels (Hendrycks et al. 2021, arXiv:2103.03874): 7500 for training, 5000
    for testing. Gold answers are LaTeX: numbers, expressions, sets, intervals, matrices, words.

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


make_vec = MATHEnv.make_vec
