"""`rlvr train` on several ranks: one run folder, resuming, and ranks that can't train together."""

from __future__ import annotations

import fcntl
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.distributed.commands import TOO_LONG_S, Forks, Rank
from tests.distributed.runs import SETTINGS, errors, rows, train, weights, with_options

pytestmark = pytest.mark.distributed


def test_two_ranks_learn_what_one_does(ranks: Forks, whole: Path, tmp_path: Path) -> None:
    done = train(ranks, tmp_path / "one", "--steps", "4", size=1)
    assert done.returncode == 0, done.stderr
    one, two = rows(tmp_path / "one"), rows(whole)
    assert [row["reward"] for row in one] == [row["reward"] for row in two]
    assert one[0]["grad_norm"] == pytest.approx(two[0]["grad_norm"], rel=1e-5)
    assert any(row["reward"] > 0 for row in one)


def test_a_run_that_stopped_goes_on_bit_equal_on_as_many_ranks(ranks: Forks, whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "resumed"
    assert train(ranks, folder, "--steps", "2").returncode == 0
    assert "resume it" in train(ranks, folder, "--steps", "4").stderr
    done = train(ranks, folder, "--steps", "4", "--resume")
    assert "continuing after step 2" in done.stdout
    assert weights(folder, 4) == weights(whole, 4)
    assert rows(folder) == rows(whole)


def test_two_trainers_in_one_folder_are_refused(ranks: Forks, whole: Path) -> None:
    with (whole / ".lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = train(ranks, whole, "--steps", "6", "--resume")
    assert done.returncode == 2
    assert len(errors(done.stderr)) == 1
    assert "is in use by" in done.stderr


@pytest.mark.parametrize(
    ("options", "difference"),
    [
        ((["--clip-low", "0.2"], ["--clip-low", "0.3"]), "options.config.clip_low is 0.2 on rank 0 and 0.3 on rank 1"),
        (([], []), r"versions.numpy is .* and '99.0' on rank 1"),
    ],
)
def test_ranks_with_different_options_or_versions_are_refused_and_the_difference_named(
    ranks: Forks, tmp_path: Path, options: tuple[list[str], list[str]], difference: str
) -> None:
    other = tmp_path / "packages" / "numpy-99.0.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 99.0\n", encoding="utf-8")
    zero, one = with_options(ranks, tmp_path / "run", *options, path=[] if options[0] else [str(other.parent)])
    assert zero.returncode == 1
    (error,) = errors(zero.stderr)
    assert re.search(f"rank 1 differs from rank 0: {difference}", error)
    assert (one.stdout, one.stderr) == ("", "")


def test_a_full_disk_on_rank_0_is_one_error_of_the_system(ranks: Forks, tmp_path: Path) -> None:
    # Python ignores the signal of the limit, and gets the error that a full disk would give but for its number.
    done = train(ranks, tmp_path / "run", "--steps", "4", file_kib=200)
    assert done.returncode == 1
    (error,) = errors(done.stderr)
    assert "File too large" in error


def test_the_error_of_another_rank_is_reported_by_rank_0(ranks: Forks, tmp_path: Path) -> None:
    zero, one = with_options(ranks, tmp_path / "run", ["--steps", "3"], ["--steps", "three"])
    (error,) = errors(zero.stderr)
    assert "rank 1 on" in error
    assert "three" in error
    # Rank 0 is told at its next exchange: where it takes 50 s to come to one, rank 1 says its error itself.
    assert (one.returncode, one.stderr) == (2, "")


def test_a_port_in_use_is_named(ranks: Forks, tmp_path: Path) -> None:
    command = ["train", "grpo", "--run-folder", str(tmp_path / "run"), *SETTINGS]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        launcher = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        (done,) = ranks.run([Rank(command, launcher)])
    assert done.returncode == 2
    assert f"rank 0 can't listen on port {port}" in done.stderr


def test_the_benchmark_of_scaling_prints_its_table() -> None:
    options = "--processes 1 2 --steps 3 --turns 1 --problems 2 --epochs 1 --tokens 2000"
    command = [sys.executable, "benchmarks/scaling.py", *options.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TOO_LONG_S)
    assert done.returncode == 0, done.stderr
    assert "2 processes of 1 threads against 1 of 1" in done.stdout
    assert "gathering 2000 tokens of 2 ranks" in done.stdout
