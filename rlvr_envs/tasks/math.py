"""MATH: competition problems in seven subjects and five levels (Hendrycks et al. 2021, arXiv:2103.03874)."""

from __future__ import annotations

import os

from rlvr_envs.data.dataset import ProblemDataset
from rlvr_envs.data.rows import Row
from rlvr_envs.data.source import Source
from verifiers import Problem
from verifiers.answers import boxed_answer


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
SPLITS = SOURCE.splits


def load(split: str, *, data_dir: str | os.PathLike[str] | None = None) -> ProblemDataset:
    r"""Load MATH.

    The prompt is the problem. The reference is the content of the solution's last `\boxed{}`, in LaTeX; where a
    solution boxes several answers one after the other, it is all of them, joined by commas or `or`. The gold completion is
    the solution. The metadata has `level` (`"Level 1"` to `"Level 5"`) and `type`, the subject.

    Args:
        split: `"train"` (7500 problems) or `"test"` (5000).
        data_dir: As for `Source.load`, which also lists the errors.
    """
    return SOURCE.load(split, data_dir=data_dir)
