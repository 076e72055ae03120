"""Processes that stop: these tests mostly wait, so they are in a file of their own, beside which others run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.distributed.runs import errors, launched

pytestmark = pytest.mark.distributed


@pytest.mark.parametrize(("rank", "kind"), [(0, "stop"), (1, "lock")])
def test_a_process_that_stops_is_named_within_a_minute(tmp_path: Path, rank: int, kind: str) -> None:
    fault = tmp_path / "fault"
    done = launched(tmp_path / "run", fault=f"{rank}:{kind}:{fault}")
    seconds = time.time() - fault.stat().st_mtime
    assert done.returncode != 0
    (error,) = errors(done.stderr)
    assert f"rank {rank} gave no sign of life for 40 s" in error
    assert ('faults.py", line' in done.stderr) == (kind == "lock")  # written by Python's watchdog, which needs no lock
    # 40 s since its last sign of life, which may be older than the fault, and 20 s that the launcher gives the process before
    # it kills it: far from the 1800 s of --rank-timeout.
    assert seconds < 300
