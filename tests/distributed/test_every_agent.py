"""Two and three processes make of a step what one makes of it, for every agent.

With whole weights and with divided ones, and with rows gathered in place of trajectories.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.agents.agent_cases import CASES
from tests.distributed.every_agent import RUNS, is_refused

pytestmark = pytest.mark.distributed
_SPLIT = {"shared_prefix"}
"""Metrics of micro-batches, which are others on other numbers of ranks."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, str], list[dict[str, Any]]]:
    """What every rank has of one, two and three processes, and of weights that are divided."""
    folder: Path = tmp_path_factory.mktemp("results")
    subprocess.run([sys.executable, "-m", "tests.distributed.every_agent", str(folder)], check=True, timeout=1200)
    return {
        (size, kind): [torch.load(folder / f"{size}-{kind}-{rank}.pt") for rank in range(size)] for size, kind in RUNS
    }


@pytest.mark.parametrize(("size", "kind"), RUNS[1:])
@pytest.mark.parametrize("case", CASES)
def test_ranks_agree_with_each_other_and_with_one(results: Any, case: str, size: int, kind: str) -> None:
    if is_refused(case, kind):
        pytest.skip("this agent can't do so: see test_sharding and test_ranks")
    (one,) = (rank[case] for rank in results[1, "whole"])
    first, *others = (rank[case] for rank in results[size, kind])
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
