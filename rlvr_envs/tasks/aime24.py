"""AIME 2024: the thirty problems of both papers of the American Invitational Mathematics Examination."""

from __future__ import annotations

import os

from rlvr_envs.data.dataset import ProblemDataset
from rlvr_envs.data.rows import Row
from rlvr_envs.data.source import Source
from verifiers import Problem


def _to_problem(row: Row, default_id: str) -> Problem:
    answer = row.text("answer")
    return Problem(
        id=f"aime24/{row.integer('id')}",
        prompt=row.text("problem"),
        reference=answer,
        # "question" repeats "problem" where it is there at all.
        metadata=row.without("id", "problem", "question", "answer")
        | {"gold_completion": f"The answer is $\\boxed{{{answer}}}$."},
    )


SOURCE = Source(
    name="aime24",
    hub_id="HuggingFaceH4/aime_2024",
    hub_config=None,
    sizes={"test": 30},
    to_problem=_to_problem,
    hub_splits={"test": "train"},
)
SPLITS = SOURCE.splits


def load(split: str, *, data_dir: str | os.PathLike[str] | None = None) -> ProblemDataset:
    r"""Load AIME 2024.

    The prompt is the problem. The reference is the answer as it is written on the answer sheet, three digits with
    leading zeros (`"025"`). The gold completion states that answer in `\boxed{}`: the `solution` column, kept in the
    metadata, collects several solutions and remarks and does not always end in an answer. Ids are the source's own,
    such as `"aime24/60"`.

    Args:
        split: `"test"` (30 problems), which the hub calls `train`.
        data_dir: As for `Source.load`, which also lists the errors.
    """
    return SOURCE.load(split, data_dir=data_dir)
