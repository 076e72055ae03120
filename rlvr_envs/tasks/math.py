"""MATH: competition problems in seven subjects and five levels (Hendrycks et al. 2021, arXiv:2103.03874)."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.data import Row, Source
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task
from rlvr_envs.prompts import benchmarks
from verifiers import Problem
from verifiers.completion import boxed_answer


def _to_problem(row: Row, default_id: str) -> Problem:
    solution = row.text("solution")
    answer = boxed_answer(solution)
    if not answer:
        raise row.error(f"column 'solution' should hold its final answer in \\boxed{{}}, got: …{solution[-60:]!r}")
    metadata = row.without("problem", "solution")
    return Problem(default_id, row.text("problem"), answer, metadata | {"gold_completion": solution})


SOURCE = Source(
    name="math",
    hub_id="DigitalLearningGmbH/MATH-lighteval",
    hub_config="default",
    sizes={"train": 7500, "test": 5000},
    to_problem=_to_problem,
)
r"""The prompt is the problem. The reference is the content of the solution's last `\boxed{}`, in LaTeX; where a
solution boxes several answers one after the other, it is all of them, joined by commas or `or`. The gold completion is
the solution. The metadata has `level` (`"Level 1"` to `"Level 5"`) and `type`, the subject.
"""


class MATHEnv(TaskEnv):
    """Competition mathematics.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Competition problems in seven subjects and five levels (Hendrycks et al. 2021, arXiv:2103.03874): 7500 for training, 5000
    for testing. Gold answers are LaTeX: numbers, expressions, sets, intervals, matrices, words.

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
