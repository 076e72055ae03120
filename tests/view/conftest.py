"""Runs where Inspect is installed: `make test-view`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.recorded import ODD, row, run_of

collect_ignore_glob = [] if importlib.util.find_spec("inspect_ai") else ["test_*.py"]

SAMPLES = 10_000
WORDS = "so that leaves nine of the twelve apples, which is three times three; take away the two that were eaten "


def sample_row(number: int) -> dict[str, Any]:
    """One of 10 samples of a problem; the first ones hold what could be rendered."""
    problem, sample = divmod(number, 10)
    outcome = ("correct", "incorrect", "no_answer", "timeout", "scored", "verifier_error")[number % 6]
    score = {"correct": 1.0, "scored": 0.5, "verifier_error": None}.get(outcome, 0.0)
    return row(
        problem,
        sample,
        # A name with what addresses and markup give a meaning to.
        problem_id="a/b c?d#e%41&é<b>" if problem == 1 else f"p{problem}",
        completion=ODD[number] if number < len(ODD) else f"{number}: {WORDS * 10}\n#### {number % 7}",
        prompt=f"Problem {problem}: {WORDS * 2}",
        outcome=outcome,
        score=score,
        error="the pool died" if score is None else None,
        truncated=number % 11 == 0,
        step=problem // 10,
        advantage=(number % 9 - 4) / 4,
    )


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 1,000 problems with 10 samples each."""
    folder = tmp_path_factory.mktemp("view") / "run"
    run_of(folder, map(sample_row, range(SAMPLES)), model="runs/<b>grpo</b>")
    return folder
