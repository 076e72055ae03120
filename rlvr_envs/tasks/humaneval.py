"""HumanEval: Python functions to complete from signature and docstring (Chen et al. 2021, arXiv:2107.03374)."""

from __future__ import annotations

import os

from rlvr_envs.data.dataset import ProblemDataset
from rlvr_envs.data.rows import Row
from rlvr_envs.data.source import Source
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
SPLITS = SOURCE.splits


def load(split: str, *, data_dir: str | os.PathLike[str] | None = None) -> ProblemDataset:
    """Load HumanEval.

    The prompt is the beginning of a program: imports, helpers, the signature and the docstring. The reference is a
    `CheckTests` whose `prefix` is that prompt, so that a completion may be the rest of the function (as the gold
    completion is) or a whole program. Ids are the source's own, such as `"HumanEval/0"`. The metadata has
    `entry_point`, the name of the function.

    Args:
        split: `"test"` (164 problems).
        data_dir: As for `Source.load`, which also lists the errors.
    """
    return SOURCE.load(split, data_dir=data_dir)
