"""MATH-500: the 500 problems of MATH's test split that Lightman et al. 2023 (arXiv:2305.20050) held out."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.data import Row, Source
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task
from rlvr_envs.prompts import benchmarks
from verifiers import Problem


def _to_problem(row: Row, default_id: str) -> Problem:
    metadata = row.without("problem", "solution", "answer", "unique_id")
    return Problem(
        id=f"math500/{row.text('unique_id')}",
        prompt=row.text("problem"),
        reference=row.text("answer"),
        metadata=metadata | {"gold_completion": row.text("solution")},
    )


SOURCE = Source(
    name="math500",
    hub_id="HuggingFaceH4/MATH-500",
    hub_config=None,
    sizes={"test": 500},
    to_problem=_to_problem,
)
"""The prompt is the problem, the reference the `answer` column in LaTeX, the gold completion the worked solution. Ids
are the source's own, such as `"math500/test/algebra/1.json"`. The metadata has `subject` and `level` (1 to 5).
"""


class MATH500Env(TaskEnv):
    """500 problems of MATH's test split.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    The 500 test problems that Lightman et al. 2023 (arXiv:2305.20050) held out of MATH.

    ## Starting State
    A problem. Default prompt `minerva_math_4shot`: four worked examples that end in a final-answer line.

    ## Reward
    1 when the final answer equals the gold answer mathematically, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, and `data_dir`: a local folder of the data. Defaults: `split="test"`,
    `max_new_tokens=1024`, `verifier="math"`.
    """

    task: ClassVar[TaskSpec] = benchmark_task(
        SOURCE,
        default_split="test",
        verifier=("math", {}),
        prompt=benchmarks.MATH,
        max_new_tokens=1024,
    )
