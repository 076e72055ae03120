"""MATH-500: the 500 problems of MATH's test split that Lightman et al. 2023 (arXiv:2305.20050) held out."""

from __future__ import annotations

import os

from rlvr_envs.data.dataset import ProblemDataset
from rlvr_envs.data.rows import Row
from rlvr_envs.data.source import Source
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
SPLITS = SOURCE.splits


def load(split: str, *, data_dir: str | os.PathLike[str] | None = None) -> ProblemDataset:
    """Load MATH-500.

    The prompt is the problem, the reference the `answer` column in LaTeX, the gold completion the worked solution. Ids
    are the source's own, such as `"math500/test/algebra/1.json"`. The metadata has `subject` and `level` (1 to 5).

    Args:
        split: `"test"` (500 problems).
        data_dir: As for `Source.load`, which also lists the errors.
    """
    return SOURCE.load(split, data_dir=data_dir)
