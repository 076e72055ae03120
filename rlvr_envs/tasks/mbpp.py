"""MBPP: short Python programs from a description and three tests (Austin et al. 2021, arXiv:2108.07732)."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.data import Row, Source
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task
from rlvr_envs.prompts import benchmarks
from verifiers import Problem

_TASKS = {"train": range(601, 975), "validation": range(511, 601), "test": range(11, 511), "prompt": range(1, 11)}


def _to_problem(row: Row, default_id: str) -> Problem:
    from verifiers.unit_tests import AssertTests

    setup, asserts = row.text("test_setup_code"), row.texts("test_list")
    metadata = row.without("test_setup_code", "test_list", "challenge_test_list")
    return Problem(
        id=f"mbpp/{row.integer('task_id')}",
        prompt=benchmarks.mbpp_text(row.text("text"), asserts, setup),
        reference=AssertTests(asserts=asserts, setup=setup),
        metadata=metadata
        | {
            "challenge_test_list": row.texts("challenge_test_list"),
            "gold_completion": f"```python\n{row.text('code')}\n```",
        },
    )


def _belongs(row: Row, split: str) -> bool:
    return row.integer("task_id") in _TASKS[split]


SOURCE = Source(
    name="mbpp",
    hub_id="google-research-datasets/mbpp",
    hub_config="full",
    sizes={split: len(tasks) for split, tasks in _TASKS.items()},
    to_problem=_to_problem,
    combined_split="test",
    belongs=_belongs,
)
"""The prompt is the task's description followed by its tests, because only they show the function's name and
arguments; the two problems with set-up code show that before the tests. The reference is an `AssertTests` of those
tests. The gold completion is the source's program in a fenced block. Ids are `"mbpp/<task_id>"`. The metadata has
`task_id`, `text` (the description alone), `code` and `challenge_test_list` (harder tests, where there are any).

Splits follow `task_id`: 601-974 train, 511-600 validation, 11-510 test, 1-10 prompt. Locally a split is read from
its own file, or from `test.jsonl`, which may hold the rows of all four.
"""


class MBPPEnv(TaskEnv):
    """Mostly basic Python problems.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    974 short programming tasks (Austin et al. 2021, arXiv:2108.07732) with three assertions each: 374 for training, 90 for
    validation, 500 for testing, and 10 (`prompt`) for few-shot examples.

    ## Starting State
    A task and its assertions. Default prompt `mbpp_3shot`: three worked examples between `[BEGIN]` and `[DONE]`.

    ## Reward
    1 when the program passes every assertion in the sandbox, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, and `data_dir`: a local folder of the data. Defaults: `split="train"`,
    `max_new_tokens=512`, `verifier="unit_tests"`.
    """

    task: ClassVar[TaskSpec] = benchmark_task(
        SOURCE,
        default_split="train",
        verifier=("unit_tests", {}),
        prompt=benchmarks.MBPP,
        max_new_tokens=512,
    )
