"""The published rows, where `RLVR_DATA_DIR` names a folder that has them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rlvr_envs import data, tasks
from verifiers.completion.explicit import boxes

FOLDER = os.environ.get("RLVR_DATA_DIR")  # read before the fixture of this folder removes it
pytestmark = pytest.mark.skipif(not FOLDER, reason="needs RLVR_DATA_DIR, a folder with the published rows")


def problems(name: str, split: str = "test") -> data.ProblemDataset:
    assert FOLDER is not None
    if not (Path(FOLDER) / name).is_dir():
        pytest.skip(f"{FOLDER} has no folder {name}")
    return tasks.load(name, split, data_dir=FOLDER)


TESTED = [(name, "test") for name in ("gsm8k", "math", "math500", "aime24", "amc23", "humaneval", "mbpp")]
OTHER_SPLITS = [("gsm8k", "train"), ("mbpp", "train"), ("mbpp", "validation"), ("mbpp", "prompt")]


@pytest.mark.parametrize(("name", "split"), TESTED + OTHER_SPLITS)
def test_every_row_loads(name: str, split: str) -> None:
    loaded = problems(name, split)
    assert len(loaded) == tasks.SOURCES[name].sizes[split]
    assert all(isinstance(problem.prompt, str) and problem.prompt.strip() for problem in loaded)
    assert all(isinstance(problem.metadata["gold_completion"], str) for problem in loaded)
    assert len(loaded.fingerprint) == 64


def test_the_last_box_is_the_published_answer_of_math500() -> None:
    """MATH-500 has both the solution and the answer, so it tells whether `boxes` finds the right one."""
    differ = [
        problem.id
        for problem in problems("math500")
        if boxes(str(problem.metadata["gold_completion"]))[-1][2] != problem.reference
    ]
    assert differ == []
