"""GSM8K: grade-school word problems (Cobbe et al. 2021, arXiv:2110.14168), with worked solutions."""

from __future__ import annotations

import os

from rlvr_envs.data.dataset import ProblemDataset
from rlvr_envs.data.rows import Row
from rlvr_envs.data.source import Source
from verifiers import Problem

_MARK = "#### "


def _to_problem(row: Row, default_id: str) -> Problem:
    solution = row.text("answer")
    _, mark, answer = solution.rpartition(_MARK)
    if not mark or not answer.strip():
        raise row.error(f"column 'answer' should end with the final answer after {_MARK!r}, got: …{solution[-60:]!r}")
    metadata = row.without("question", "answer")
    return Problem(default_id, row.text("question"), answer.strip(), metadata | {"gold_completion": solution})


SOURCE = Source(
    name="gsm8k",
    hub_id="openai/gsm8k",
    hub_config="main",
    sizes={"train": 7473, "test": 1319},
    to_problem=_to_problem,
)
SPLITS = SOURCE.splits


def load(split: str, *, data_dir: str | os.PathLike[str] | None = None) -> ProblemDataset:
    """Load GSM8K.

    The prompt is the question. The reference is the text after the last `"#### "`, as it is written in the data, with
    thousands separators (`"1,080"`). The gold completion is the worked solution, calculator annotations included.

    Args:
        split: `"train"` (7473 problems) or `"test"` (1319).
        data_dir: As for `Source.load`, which also lists the errors.
    """
    return SOURCE.load(split, data_dir=data_dir)
