"""`rlvr/HumanEval-v0`."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.envs.spec import TaskSpec, benchmark_task
from rlvr_envs.envs.task_env import TaskEnv
from rlvr_envs.tasks import humaneval as data


class HumanEvalEnv(TaskEnv):
    """Python functions from their docstrings.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    164 hand-written functions to complete (Chen et al. 2021, arXiv:2107.03374), judged by unit tests.

    ## Starting State
    A signature with its docstring. Default prompt `humaneval_completion`: that text itself, which the completion continues;
    it stops where a new top-level statement begins.

    ## Reward
    1 when the program passes every test in the sandbox, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, and `data_dir`: a local folder of the data. Defaults: `split="test"`,
    `max_new_tokens=512`, `verifier="unit_tests"`.
    """

    task: ClassVar[TaskSpec] = benchmark_task(
        data.SOURCE,
        default_split="test",
        verifier=("unit_tests", {}),
        prompt="humaneval_completion",
        max_new_tokens=512,
    )


make_vec = HumanEvalEnv.make_vec
