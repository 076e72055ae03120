"""Two and three processes make of a step what one makes of it, for every agent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.agents.agent_cases import CASES

pytestmark = pytest.mark.distributed
_SPLIT = {"shared_prefix"}
"""Metrics of micro-batches, which are others on other numbers of ranks."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[dict[str, Any]]]:
    """What every rank of one, two and three processes has."""
    made = {}
    for size in (1, 2, 3):
        folder: Path = tmp_path_factory.mktemp("results")
        command = [sys.executable, "-m", "tests.distributed.every_agent", str(size), str(folder)]
        subprocess.run(command, check=True, timeout=600)
        made[size] = [torch.load(folder / f"{rank}.pt") for rank in range(size)]
    return made


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("case", CASES)
def test_ranks_agree_with_each_other_and_with_one(results: Any, case: str, size: int) -> None:
    (one,) = (rank[case] for rank in results[1])
    first, *others = (rank[case] for rank in results[size])
    for other in others:
        assert torch.equal(other["weights"], first["weights"])
        assert other["metrics"] == first["metrics"]
        assert other["rewards"] == first["rewards"]
    assert first["rewards"] == one["rewards"]
    assert float((first["gradient"] - one["gradient"]).norm()) <= 1e-5 * float(one["gradient"].norm())
    assert float((first["weights"] - one["weights"]).norm()) <= 1e-5 * float(one["weights"].norm())
    names = one["metrics"].keys() - _SPLIT
    assert {name: first["metrics"][name] for name in names} == pytest.approx(
        {name: one["metrics"][name] for name in names}, rel=1e-4, abs=1e-6, nan_ok=True
    )
