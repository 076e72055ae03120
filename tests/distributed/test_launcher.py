"""`rlvr train --nproc 2` and torchrun: ranks that are started, killed, started again, and that hang."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.distributed.commands import TOO_LONG_S, Forks
from tests.distributed.runs import SETTINGS, errors, launched, rows, train, weights

pytestmark = pytest.mark.distributed


def test_a_killed_rank_costs_a_restart_and_changes_nothing(whole: Path, tmp_path: Path) -> None:
    folder, fault = tmp_path / "killed", tmp_path / "fault"
    done = launched(folder, "--steps", "4", "--max-restarts", "1", fault=f"1:kill:{fault}")
    assert fault.exists()
    assert done.returncode == 0, done.stderr
    assert weights(folder, 4) == weights(whole, 4)
    assert rows(folder) == rows(whole)


def test_ranks_that_sample_beside_learning_repeat_and_survive_a_restart(ranks: Forks, tmp_path: Path) -> None:
    folders, fault = (tmp_path / "whole", tmp_path / "killed"), tmp_path / "fault"
    options = ["--steps", "4", "--lag", "1"]
    assert train(ranks, folders[0], *options).returncode == 0
    done = launched(folders[1], *options, "--max-restarts", "1", fault=f"1:kill:{fault}")
    assert fault.exists()
    assert done.returncode == 0, done.stderr
    assert weights(folders[1], 4) == weights(folders[0], 4)
    ages = [row["sampling/age"] for row in rows(folders[0])]
    assert ages == [0, 1, 1, 1]


def test_a_killed_rank_without_restarts_is_named(tmp_path: Path) -> None:
    done = launched(tmp_path / "run", fault=f"1:kill:{tmp_path / 'fault'}")
    assert done.returncode == 1
    assert "was killed by SIGKILL" in errors(done.stderr)[-1]
    assert "rank 1" in errors(done.stderr)[-1]


def test_a_rank_that_hangs_is_named_with_the_line_in_which_it_is(tmp_path: Path) -> None:
    done = launched(tmp_path / "run", "--rank-timeout", "15", fault=f"1:hang:{tmp_path / 'fault'}")
    assert done.returncode != 0
    (error,) = errors(done.stderr)
    assert "rank 1 did not come to an exchange within 15 s" in error
    assert "rank 1 is in distributed/faults.py:" in error
    assert "(_fail), distributed/faults.py:" in error
    assert "[MainThread]" in error
    assert done.stderr.count("warning: rank 0 waits unusually long for others: rank 1 is in ") == 1


def test_torchrun_starts_the_same_run(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "torchrun"
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", "-m", "agents"]
    command += ["train", "grpo", "--run-folder", str(folder), "--steps", "4", *SETTINGS]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TOO_LONG_S)
    assert done.returncode == 0, done.stderr
    assert weights(folder, 4) == weights(whole, 4)
