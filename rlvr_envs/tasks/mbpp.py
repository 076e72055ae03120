"""MBPP: short Python programs from a description and three tests (Austin et al. 2021, arXiv:2108.07732)."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rlvr_envs.data.dataset import ProblemDataset
from rlvr_envs.data.rows import Row
from rlvr_envs.data.source import Source
from verifiers import Problem

_TASKS = {"train": range(601, 975), "validation": range(511, 601), "test": range(11, 511), "prompt": range(1, 11)}


def _to_problem(row: Row, default_id: str) -> Problem:
    from verifiers.unit_tests import AssertTests

    setup, asserts = row.text("test_setup_code"), row.texts("test_list")
    metadata = row.without("test_setup_code", "test_list", "challenge_test_list")
    return Problem(
        id=f"mbpp/{row.integer('task_id')}",
        prompt=prompt_text(row.text("text"), asserts, setup),
        reference=AssertTests(asserts=asserts, setup=setup),
        metadata=metadata
        | {
            "challenge_test_list": row.texts("challenge_test_list"),
            "gold_completion": f"```python\n{row.text('code')}\n```",
        },
    )


def prompt_text(text: str, asserts: Sequence[str], setup: str = "") -> str:
    """The prompt of an MBPP problem: its description, then its set-up code if there is any, then its tests."""
    tests = "\n".join([setup.replace("\r\n", "\n"), *asserts] if setup else asserts)
    return f"{text}\nYour code should pass these tests:\n\n{tests}"


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
SPLITS = SOURCE.splits


def load(split: str, *, data_dir: str | os.PathLike[str] | None = None) -> ProblemDataset:
    """Load MBPP.

    The prompt is the task's description followed by its tests, because only they show the function's name and
    arguments; the two problems with set-up code show that before the tests. The reference is an `AssertTests` of those
    tests. The gold completion is the source's program in a fenced block. Ids are `"mbpp/<task_id>"`. The metadata has
    `task_id`, `text` (the description alone), `code` and `challenge_test_list` (harder tests, where there are any).

    Splits follow `task_id`: 601-974 train, 511-600 validation, 11-510 test, 1-10 prompt. Locally a split is read from
    its own file, or from `test.jsonl`, which may hold the rows of all four.

    Args:
        split: `"train"` (374 problems), `"validation"` (90), `"test"` (500) or `"prompt"` (10).
        data_dir: As for `Source.load`, which also lists the errors.
    """
    return SOURCE.load(split, data_dir=data_dir)
