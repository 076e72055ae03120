"""Omni-MATH: olympiad problems of thirty-three subjects and ten levels (Gao et al. 2024, arXiv:2410.07985).

The columns are those of the card of `KbsdJames/Omni-MATH` (https://huggingface.co/datasets/KbsdJames/Omni-MATH), as loaders
read them: `problem`, `answer`, `solution`, `domain`, `difficulty`, `source`; split `test`, 4,428 rows.
"""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.data import Source
from rlvr_envs.data.answers import FinalAnswers, has_answer
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task

SOURCE = Source(
    name="omni_math",
    hub_id="KbsdJames/Omni-MATH",
    hub_config=None,
    sizes={"test": 4428},
    to_problem=FinalAnswers("omni_math"),
    belongs=has_answer,
    used="has an answer",
)
r"""The prompt is the problem. The reference is the `answer`, in LaTeX or words; the gold completion states it in `\boxed{}`.
Rows without an answer are left out. Ids count rows. The metadata has `difficulty`, `domain`, `source` and `solution`.
"""


class OmniMATHEnv(TaskEnv):
    r"""Olympiad problems of many subjects and levels.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    4,428 problems of olympiads (Gao et al. 2024, arXiv:2410.07985). `difficulty` in the metadata goes from 1 to 10. Some
    answers are sentences, which a rule can't judge: `rlvr data stats OmniMATH` counts them, and the verifier `hybrid` asks a
    model there.

    ## Starting State
    A problem. Default prompt `boxed_chat`: one user message that asks for reasoning and a final `\boxed{}`.

    ## Reward
    1 when the final answer equals the gold answer mathematically, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, and `data_dir`: a local folder of the data. Defaults: `split="test"`,
    `max_new_tokens=4096`, `verifier="math"`.
    """

    task: ClassVar[TaskSpec] = benchmark_task(
        SOURCE,
        default_split="test",
        verifier=("math", {}),
        prompt="boxed_chat",
        max_new_tokens=4096,
    )
