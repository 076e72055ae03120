"""`rlvr/GSM8K-v0`."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.envs.spec import TaskSpec, benchmark_task
from rlvr_envs.envs.task_env import TaskEnv
from rlvr_envs.tasks import gsm8k as data


class GSM8KEnv(TaskEnv):
    """Grade-school word problems.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Word problems that take two to eight steps of arithmetic (Cobbe et al. 2021, arXiv:2110.14168): 7473 for training, 1319
    for testing. Gold answers are whole numbers.

    ## Starting State
    A question. Default prompt `gsm8k_cot_8shot`: eight worked examples, each ending `#### n`.

    ## Reward
    1 when the final answer equals the gold number, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, and `data_dir`: a local folder of the data. Defaults: `split="train"`,
    `max_new_tokens=512`, `verifier="math"`.
    """

    task: ClassVar[TaskSpec] = benchmark_task(
        data.SOURCE,
        default_split="train",
        verifier=("math", {}),
        prompt="gsm8k_cot_8shot",
        max_new_tokens=512,
    )


make_vec = GSM8KEnv.make_vec
