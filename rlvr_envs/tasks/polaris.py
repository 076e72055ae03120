"""Polaris: fifty-three thousand problems, each with the share of attempts that solved it.

The columns are those that public harnesses read from `POLARIS-Project/Polaris-Dataset-53K` (`problem`, `answer`,
`difficulty`, as its card says; split `train`), 53,291 rows as https://openreward.ai/GeneralReasoning/POLARIS-53K counts them.
"""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.data import Source
from rlvr_envs.data.answers import FinalAnswers, has_answer
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task

SOURCE = Source(
    name="polaris",
    hub_id="POLARIS-Project/Polaris-Dataset-53K",
    hub_config=None,
    sizes={"train": 53291},
    to_problem=FinalAnswers("polaris"),
    belongs=has_answer,
    used="has an answer",
)
r"""The prompt is the problem. The reference is the `answer`, in LaTeX; the gold completion states it in `\boxed{}`. Rows
without an answer are left out. Ids count rows. The metadata has `difficulty`.
"""


class PolarisEnv(TaskEnv):
    r"""The training problems of POLARIS.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    53,291 problems of DeepScaleR and AReaL-boba, with answers in LaTeX. `difficulty` in the metadata is the share of attempts
    in which DeepSeek-R1-Distill-Qwen-7B solved the problem.

    ## Starting State
    A problem. Default prompt `boxed_chat`: one user message that asks for reasoning and a final `\boxed{}`.

    ## Reward
    1 when the final answer equals the gold answer mathematically, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, and `data_dir`: a local folder of the data. Defaults: `split="train"`,
    `max_new_tokens=4096`, `verifier="math"`.
    """

    task: ClassVar[TaskSpec] = benchmark_task(
        SOURCE,
        default_split="train",
        verifier=("math", {}),
        prompt="boxed_chat",
        max_new_tokens=4096,
    )
