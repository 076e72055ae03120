"""`rlvr/AIME24-v0`."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.envs.spec import TaskSpec, benchmark_task
from rlvr_envs.envs.task_env import TaskEnv
from rlvr_envs.tasks import aime24 as data


class AIME24Env(TaskEnv):
    r"""American Invitational Mathematics Examination 2024.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    The 30 problems of both 2024 papers; every answer is a whole number from 0 to 999.

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


make_vec = AIME24Env.make_vec
