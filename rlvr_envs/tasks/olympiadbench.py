"""OlympiadBench: olympiad problems in text, its English mathematics part (He et al. 2024, arXiv:2402.14008).

The columns are those that OpenCompass reads (https://github.com/open-compass/opencompass,
`opencompass/datasets/OlympiadBench.py`: `question`, `final_answer`, `is_multiple_answer`, `answer_type`, `unit`, `error`), of
`Hothan/OlympiadBench`, configuration `OE_TO_maths_en_COMP` (open-ended, text only), split `train`, 674 rows as the hub's viewer
counts them.
"""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.data import Row, Source
from rlvr_envs.data.answers import boxed_statement
from rlvr_envs.data.programs import optional_text
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task
from verifiers import Problem

_USED = ("question", "context", "final_answer")


def _to_problem(row: Row, default_id: str) -> Problem:
    answers = row.texts("final_answer")
    if not answers or not all(answer.strip() for answer in answers):
        raise row.wrong_type("at least one answer", list(answers), "final_answer")
    answer = ", ".join(text.strip() for text in answers)
    context = optional_text(row, "context").strip()
    # Some columns hold pictures, of which this part has none.
    metadata = {name: value for name, value in row.without(*_USED).items() if not name.startswith("image")}
    return Problem(
        default_id,
        f"{context}\n\n{row.text('question')}" if context else row.text("question"),
        answer,
        metadata | {"gold_completion": boxed_statement(answer)},
    )


SOURCE = Source(
    name="olympiadbench",
    hub_id="Hothan/OlympiadBench",
    hub_config="OE_TO_maths_en_COMP",
    sizes={"test": 674},
    to_problem=_to_problem,
    hub_splits={"test": "train"},
)
r"""The prompt is the question, below its context if it has one. The reference is the final answer in LaTeX, of several answers
all of them, whose order does not matter; the gold completion states it in `\boxed{}`. Ids count rows. The metadata has
`subfield`, `answer_type`, `is_multiple_answer`, `unit`, and `error`, the tolerance that the source allows, which is not used.
"""


class OlympiadBenchEnv(TaskEnv):
    r"""Olympiad mathematics in English.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    674 open-ended problems without pictures (He et al. 2024, arXiv:2402.14008). Some have several answers.

    ## Starting State
    A problem. Default prompt `boxed_chat`: one user message that asks for reasoning and a final `\boxed{}`.

    ## Reward
    1 when the final answer equals the gold answer mathematically, of several answers all of them, else 0.

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
