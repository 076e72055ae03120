"""AMC 2023: forty problems of the American Mathematics Competitions 12A and 12B with integer answers."""

from __future__ import annotations

import math
import os

from rlvr_envs.data.dataset import ProblemDataset
from rlvr_envs.data.rows import Row
from rlvr_envs.data.source import Source
from verifiers import Problem


def _to_problem(row: Row, default_id: str) -> Problem:
    answer = _answer(row)
    return Problem(
        id=f"amc23/{row.integer('id')}",
        prompt=row.text("problem", "question"),
        reference=answer,
        metadata=row.without("id", "problem", "question", "answer")
        | {"gold_completion": f"The answer is $\\boxed{{{answer}}}$."},
    )


def _answer(row: Row) -> str:
    """The answer without the decimal point that the source's float column gives an integer: 36.0 is `"36"`."""
    value = row.value("answer")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise row.wrong_type("a finite number", value, "answer")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise row.wrong_type("a finite number", value, "answer")
    return str(int(number)) if number.is_integer() else str(value)


SOURCE = Source(
    name="amc23",
    hub_id="math-ai/amc23",
    hub_config=None,
    sizes={"test": 40},
    to_problem=_to_problem,
)
SPLITS = SOURCE.splits


def load(split: str, *, data_dir: str | os.PathLike[str] | None = None) -> ProblemDataset:
    r"""Load AMC 2023.

    The prompt is the problem (the column is `problem` or `question`). The reference is the answer as a string, integers
    without a decimal point (`"36"` for 36.0). The gold completion states it in `\boxed{}`. Ids are the source's own,
    such as `"amc23/0"`.

    Args:
        split: `"test"` (40 problems).
        data_dir: As for `Source.load`, which also lists the errors.
    """
    return SOURCE.load(split, data_dir=data_dir)
