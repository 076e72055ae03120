"""`rlvr/AMC23-v0`."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.envs.spec import TaskSpec, benchmark_task
from rlvr_envs.envs.task_env import TaskEnv
from rlvr_envs.tasks import amc23 as data


class AMC23Env(TaskEnv):
    r"""American Mathematics Competitions 2023.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    40 problems of the 2023 AMC 12 papers with numeric answers.

    ## Starting State
    A problem. Default prompt `boxed_chat`: one user message that asks for reasoning and a final `\boxed{}`.

    ## Reward
    1 when the final answer equals the gold number, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, and `data_dir`: a local folder of the data. Defaults: `split="test"`,
    `max_new_tokens=4096`, `verifier="math"`.
    """

    task: ClassVar[TaskSpec] = benchmark_task(
        data.SOURCE,
        default_split="test",
        verifier=("math", {}),
        prompt="boxed_chat",
        max_new_tokens=4096,
    )


make_vec = AMC23Env.make_vec
