"""HumanEval: Python functions to complete from signature and docstring (Chen et al. 2021, arXiv:2107.03374)."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.data import Row, Source
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task
from rlvr_envs.prompts import benchmarks
from verifiers import Problem


def _to_problem(row: Row, default_id: str) -> Problem:
    from verifiers.unit_tests import CheckTests

    prompt = row.text("prompt")
    metadata = row.without("task_id", "prompt", "test", "canonical_solution")
    return Problem(
        id=row.text("task_id"),
        prompt=prompt,
        reference=CheckTests(entry_point=row.text("entry_point"), test=row.text("test"), prefix=prompt),
        metadata=metadata | {"gold_completion": row.text("canonical_solution")},
    )


SOURCE = Source(
    name="humaneval",
    hub_id="openai/openai_humaneval",
    hub_config=None,
    sizes={"test": 164},
    to_problem=_to_problem,
)
"""The prompt is the beginning of a program: imports, helpers, the signature and the docstring. The reference is a
`CheckTests` whose `prefix` is that prompt, so that a completion may be the rest of the function (as the gold
completion is) or a whole program. Ids are the source's own, such as `"HumanEval/0"`. The metadata has
`entry_point`, the name of the function.
"""


class HumanEvalEnv(TaskEnv):
    """Python functions from their docstrings.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    164 hand-written functions to complete (Chen et al. 2021, arXiv:2107.03374), judged by unit tests.

    ## Starting State
    A signature with its docstring. Default prompt `humaneval_completion`: that text itself, which the completion continues;
    it stops where a new top-level statement begins.

    ## Reward
    1 when the program passes every test in the sandbox, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, and `data_dir`: a local folder of the data. Defaults: `split="test"`,
    `max_new_tokens=512`, `verifier="unit_tests"`.
    """

    task: ClassVar[TaskSpec] = benchmark_task(
        SOURCE,
        default_split="test",
        verifier=("unit_tests", {}),
        prompt=benchmarks.HUMANEVAL,
        max_new_tokens=512,
    )
