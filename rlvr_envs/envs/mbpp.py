"""`rlvr/MBPP-v0`."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.envs.spec import TaskSpec, benchmark_task
from rlvr_envs.envs.task_env import TaskEnv
from rlvr_envs.tasks import mbpp as data


class MBPPEnv(TaskEnv):
    """Mostly basic Python problems.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    974 short programming tasks (Austin et al. 2021, arXiv:2108.07732) with three assertions each: 374 for training, 90 for
    validation, 500 for testing, and 10 (`prompt`) for few-shot examples.

    ## Starting State
    A task and its assertions. Default prompt `mbpp_3shot`: three worked examples between `[BEGIN]` and `[DONE]`.

    ## Reward
    1 when the program passes every assertion in the sandbox, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, and `data_dir`: a local folder of the data. Defaults: `split="train"`,
    `max_new_tokens=512`, `verifier="unit_tests"`.
    """

    task: ClassVar[TaskSpec] = benchmark_task(
        data.SOURCE,
        default_split="train",
        verifier=("unit_tests", {}),
        prompt="mbpp_3shot",
        max_new_tokens=512,
    )


make_vec = MBPPEnv.make_vec
