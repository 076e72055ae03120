"""SuperGPQA: graduate-level questions of 285 disciplines (M-A-P 2025, arXiv:2502.14739).

The columns are those that public loaders read from `m-a-p/SuperGPQA` (https://huggingface.co/datasets/m-a-p/SuperGPQA: `uuid`,
`question`, `options`, `answer`, `answer_letter`, `discipline`, `field`, `subfield`, `difficulty`, `is_calculation`; split
`train`, 26,529 rows; the inference code at https://github.com/SuperGPQA/SuperGPQA).
"""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.data import Row, Source
from rlvr_envs.data.choices import choice_problem, lettered, read_choices
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task
from verifiers import Problem


def _to_problem(row: Row, default_id: str) -> Problem:
    choices = read_choices(row, "options")
    letter = lettered(row, "answer_letter", choices)
    metadata = row.without("uuid", "question", "options", "answer", "answer_letter")
    return choice_problem(f"supergpqa/{row.text('uuid')}", row.text("question"), choices, letter, metadata)


SOURCE = Source(
    name="supergpqa",
    hub_id="m-a-p/SuperGPQA",
    hub_config=None,
    sizes={"test": 26529},
    to_problem=_to_problem,
    hub_splits={"test": "train"},
)
"""The prompt is the question and its choices, in the source's order, the reference the letter of the right one. Ids are the
source's own, `"supergpqa/<uuid>"`. The metadata has the `choices`, `discipline`, `field`, `subfield`, `difficulty` and
`is_calculation`.
"""


class SuperGPQAEnv(TaskEnv):
    """Graduate-level questions of 285 disciplines.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    26,529 questions with four to ten choices each (M-A-P 2025, arXiv:2502.14739). `difficulty` in the metadata is `easy`,
    `middle` or `hard`.

    ## Starting State
    A question and its lettered choices. Default prompt `choice_chat`: one user message that asks for reasoning and a final
    letter.

    ## Reward
    1 when the completion settles on the right letter, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, and `data_dir`: a local folder of the data. Defaults: `split="test"`,
    `max_new_tokens=2048`, `verifier="choice"`.
    """

    task: ClassVar[TaskSpec] = benchmark_task(
        SOURCE,
        default_split="test",
        verifier=("choice", {}),
        prompt="choice_chat",
        max_new_tokens=2048,
    )
