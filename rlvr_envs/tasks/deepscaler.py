"""DeepScaleR: forty thousand problems of AIME, AMC, Omni-MATH and STILL.

The columns are those that public harnesses read from `agentica-org/DeepScaleR-Preview-Dataset` (`problem`, `answer`,
`solution`; split `train`; the loaders of verl recipes and NeMo-RL). The hub's
viewer shows 40.3k rows, of which six have no answer
(https://huggingface.co/datasets/agentica-org/DeepScaleR-Preview-Dataset/discussions, number 4).
"""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.data import Source
from rlvr_envs.data.answers import FinalAnswers, has_answer
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task

SOURCE = Source(
    name="deepscaler",
    hub_id="agentica-org/DeepScaleR-Preview-Dataset",
    hub_config=None,
    sizes={"train": 40315},
    to_problem=FinalAnswers("deepscaler"),
    belongs=has_answer,
    used="has an answer",
)
r"""The prompt is the problem. The reference is the `answer`, in LaTeX; the gold completion states it in `\boxed{}`, since the
`solution`, kept in the metadata, is often empty. Rows without an answer are left out. Ids count rows.
"""


class DeepScaleREnv(TaskEnv):
    r"""The training problems of DeepScaleR.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    40,315 competition problems of AIME and AMC before 2024, Omni-MATH and STILL, with answers in LaTeX.

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
