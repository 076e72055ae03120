"""NuminaMath-1.5: problems of competitions and schools that have an answer to check (Li et al. 2024).

The columns are those of the card of `AI-MO/NuminaMath-1.5` (https://huggingface.co/datasets/AI-MO/NuminaMath-1.5: `problem`,
`solution`, `answer`, `problem_type`, `question_type`, `problem_is_valid`, `solution_is_valid`, `source`, `synthetic`; split
`train`, 896,215 rows, of which 110,998 are proofs by `nlile/NuminaMath-1.5-proofs-only`). The earlier NuminaMath-CoT has no
column of answers.
"""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.data import Row, Source
from rlvr_envs.data.answers import FinalAnswers
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task

_NO_ANSWER = ("", "proof", "notfound", "not found")


def _can_be_judged(row: Row, split: str) -> bool:
    return (
        row.value("question_type") != "proof"
        and row.value("problem_is_valid") == "Yes"
        and row.value("solution_is_valid") == "Yes"
        and _text(row, "problem") != ""
        and _text(row, "answer").lower() not in _NO_ANSWER
    )


def _text(row: Row, column: str) -> str:
    value = row.value(column)
    return "" if value is None else str(value).strip()


SOURCE = Source(
    name="numina_math",
    hub_id="AI-MO/NuminaMath-1.5",
    hub_config=None,
    sizes={"train": 896215},
    to_problem=FinalAnswers("numina_math", repeated=("solution",)),
    belongs=_can_be_judged,
    used="can be judged: all are proofs, not valid, or without an answer",
)
r"""The prompt is the problem. The reference is the `answer`, in LaTeX; the gold completion states it in `\boxed{}`. Left out
are proofs, rows without an answer, and those that the source marks as invalid or incomplete. Ids count all rows. The metadata
has `problem_type`, `question_type` (`MCQ`: the answer is a letter), `source` and `synthetic`, and not the solution.
"""


class NuminaMathEnv(TaskEnv):
    r"""Problems of competitions and schools with an answer to check.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Those of the 896,215 problems of NuminaMath-1.5 that have an answer, are no proofs, and are marked as valid by the source,
    as are their solutions. `question_type` in the metadata is `math-word-problem` or `MCQ`, whose answer is a letter.

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
