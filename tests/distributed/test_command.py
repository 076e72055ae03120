"""`rlvr train --nproc 2`: one run folder, resuming, and what happens to ranks that fail."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.agents.agent_cases import timeless

pytestmark = pytest.mark.distributed
_SETTINGS = [
    "--env",
    "Sort",
    "--problems-per-step",
    "4",
    "--group-size",
    "4",
    "--num-envs",
    "8",
    "--learning-rate",
    "0.01",
]
_SETTINGS += [
    "--verifier",
    "tests.distributed.faults:digits",
    "--env-args",
    "max_new_tokens=8",
    "--checkpoint-every",
    "2",
]
_SETTINGS += ["--log-rollouts", "1", "--loggers"]
_TOO_LONG_S = 600


def train(
    folder: Path,
    *options: str,
    agent: str = "grpo",
    environment: dict[str, str] | None = None,
    file_kib: int | None = None,
) -> Any:
    """`rlvr train`, with files of limited size if asked for."""
    command = [sys.executable, "-m", "agents", "train", agent, "--run-folder", str(folder), *options, *_SETTINGS]
    env = os.environ | {"OMP_NUM_THREADS": "1"} | (environment or {})
    if file_kib is not None:
        command = ["bash", "-c", f'ulimit -f {file_kib} && exec "$@"', "bash", *command]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TOO_LONG_S, env=env)


def by_hand(
    folder: Path,
    options: list[list[str]],
    environment: dict[str, str] | None = None,
    own: Sequence[dict[str, str]] = (),
) -> list[Any]:
    """Start each rank by hand with its own options and variables, as a launcher would, and wait for all."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    size = {"WORLD_SIZE": str(len(options)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port} | (environment or {})
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "agents", "train", "grpo", "--run-folder", str(folder), *arguments, *_SETTINGS],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "RANK": str(rank)} | size | variables,
        )
        for rank, (arguments, variables) in enumerate(zip(options, own or [{}] * len(options), strict=True))
    ]
    try:
        return [(process.communicate(timeout=_TOO_LONG_S), process.returncode) for process in processes]
    finally:
        for process in processes:
            with process:
                process.kill()


def rows(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [timeless({name: value or 0.0 for name, value in json.loads(line).items()}) for line in lines]


def weights(folder: Path, step: int) -> bytes:
    return (folder / "checkpoints" / f"step-{step:06d}" / "model" / "model.safetensors").read_bytes()


def errors(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("error:")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four steps on two ranks, never disturbed."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    done = train(folder, "--nproc", "2", "--steps", "4")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("4 steps done") == 1
    return folder


def test_two_ranks_learn_what_one_does(whole: Path, tmp_path: Path) -> None:
    done = train(tmp_path / "one", "--steps", "4")
    assert done.returncode == 0, done.stderr
    one, two = rows(tmp_path / "one"), rows(whole)
    assert [row["reward"] for row in one] == [row["reward"] for row in two]
    assert one[0]["grad_norm"] == pytest.approx(two[0]["grad_norm"], rel=1e-5)
    assert any(row["reward"] > 0 for row in one)


def test_a_run_that_stopped_goes_on_bit_equal_on_as_many_ranks(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "resumed"
    assert train(folder, "--nproc", "2", "--steps", "2").returncode == 0
    assert "resume it" in train(folder, "--nproc", "2", "--steps", "4").stderr
    done = train(folder, "--nproc", "2", "--steps", "4", "--resume")
    assert "continuing after step 2" in done.stdout
    assert weights(folder, 4) == weights(whole, 4)
    assert rows(folder) == rows(whole)


def test_a_killed_rank_costs_a_restart_and_changes_nothing(whole: Path, tmp_path: Path) -> None:
    folder, fault = tmp_path / "killed", tmp_path / "fault"
    done = train(
        folder, "--nproc", "2", "--steps", "4", "--max-restarts", "1", environment={"FAULT": f"1:kill:{fault}"}
    )
    assert fault.exists()
    assert done.returncode == 0, done.stderr
    assert weights(folder, 4) == weights(whole, 4)
    assert rows(folder) == rows(whole)


def test_ranks_that_sample_beside_learning_repeat_and_survive_a_restart(tmp_path: Path) -> None:
    folders, fault = (tmp_path / "whole", tmp_path / "killed"), tmp_path / "fault"
    options = ["--nproc", "2", "--steps", "4", "--lag", "1"]
    assert train(folders[0], *options).returncode == 0
    done = train(folders[1], *options, "--max-restarts", "1", environment={"FAULT": f"1:kill:{fault}"})
    assert fault.exists()
    assert done.returncode == 0, done.stderr
    assert weights(folders[1], 4) == weights(folders[0], 4)
    ages = [row["sampling/age"] for row in rows(folders[0])]
    assert ages == [0, 1, 1, 1]


def test_a_killed_rank_without_restarts_is_named(tmp_path: Path) -> None:
    done = train(tmp_path / "run", "--nproc", "2", environment={"FAULT": f"1:kill:{tmp_path / 'fault'}"})
    assert done.returncode == 1
    assert "was killed by SIGKILL" in errors(done.stderr)[-1]
    assert "rank 1" in errors(done.stderr)[-1]


def test_a_rank_that_hangs_is_named(tmp_path: Path) -> None:
    fault = {"FAULT": f"1:hang:{tmp_path / 'fault'}"}
    done = train(tmp_path / "run", "--nproc", "2", "--rank-timeout", "15", environment=fault)
    assert done.returncode != 0
    assert "error: rank 1 did not come to an exchange within 15 s" in done.stderr


@pytest.mark.parametrize("rank", [0, 1])
def test_a_process_that_stops_is_named_within_a_minute(tmp_path: Path, rank: int) -> None:
    fault = tmp_path / "fault"
    done = train(tmp_path / "run", "--nproc", "2", environment={"FAULT": f"{rank}:stop:{fault}"})
    seconds = time.time() - fault.stat().st_mtime
    assert done.returncode != 0
    (error,) = errors(done.stderr)
    assert f"rank {rank} gave no sign of life for 40 s" in error
    # 40 s, and 20 s that the launcher gives the process before it kills it: far from the 1800 s of --rank-timeout.
    assert 40 < seconds < 300


def test_two_trainers_in_one_folder_are_refused(whole: Path) -> None:
    with (whole / ".lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = train(whole, "--nproc", "2", "--steps", "6", "--resume")
    assert done.returncode == 2
    assert len(errors(done.stderr)) == 1
    assert "is in use by" in done.stderr


def test_fewer_groups_than_ranks_are_refused(tmp_path: Path) -> None:
    done = train(tmp_path / "run", "--nproc", "5")
    assert done.returncode == 2
    assert errors(done.stderr) == [line for line in errors(done.stderr) if "rank 4 would have nothing to play" in line]
    assert len(errors(done.stderr)) == 1


def test_ranks_with_different_options_are_refused_and_the_difference_named(tmp_path: Path) -> None:
    (zero, code), (one, _) = by_hand(tmp_path / "run", [["--clip-low", "0.2"], ["--clip-low", "0.3"]])
    assert code == 1
    assert "rank 1 differs from rank 0: options.config.clip_low is 0.2 on rank 0 and 0.3 on rank 1" in zero[1]
    assert one == ("", "")


def test_ranks_with_different_versions_are_refused_and_the_difference_named(tmp_path: Path) -> None:
    other = tmp_path / "packages" / "numpy-99.0.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 99.0\n", encoding="utf-8")
    older = {"PYTHONPATH": os.pathsep.join([str(other.parent), os.environ.get("PYTHONPATH", "")])}
    (zero, code), (one, _) = by_hand(tmp_path / "run", [[], []], own=[{}, older])
    assert code == 1
    assert len(errors(zero[1])) == 1
    assert "rank 1 differs from rank 0: versions.numpy is" in zero[1]
    assert "and '99.0' on rank 1" in zero[1]
    assert one == ("", "")


def test_a_full_disk_on_rank_0_is_one_error_of_the_system(tmp_path: Path) -> None:
    started = time.monotonic()
    # Python ignores the signal of the limit, and gets the error that a full disk would give but for its number.
    done = train(tmp_path / "run", "--nproc", "2", "--steps", "4", file_kib=200)
    assert done.returncode == 1
    (error,) = errors(done.stderr)
    assert "File too large" in error
    assert time.monotonic() - started < _TOO_LONG_S / 2


def test_the_error_of_another_rank_is_reported_by_rank_0(tmp_path: Path) -> None:
    (zero, _), (one, code) = by_hand(tmp_path / "run", [["--steps", "3"], ["--steps", "three"]])
    assert len(errors(zero[1])) == 1
    assert "rank 1 on" in zero[1]
    assert "three" in zero[1]
    assert code == 2
    # A rank says its error itself only where rank 0 takes very long to come to an exchange, as on a machine this busy.
    assert all(line.startswith("error: rank 1: ") for line in errors(one[1]))


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ((said, code),) = by_hand(tmp_path / "run", [[]], {"WORLD_SIZE": "2", "MASTER_PORT": port})
    assert code == 2
    assert f"rank 0 can't listen on port {port}" in said[1]


def test_torchrun_starts_the_same_run(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "torchrun"
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--standalone",
        "-m",
        "agents",
        "train",
    ]
    command += ["grpo", "--run-folder", str(folder), "--steps", "4", *_SETTINGS]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TOO_LONG_S)
    assert done.returncode == 0, done.stderr
    assert weights(folder, 4) == weights(whole, 4)


def test_the_benchmark_of_scaling_prints_its_table() -> None:
    options = [
        "--processes",
        "1",
        "2",
        "--steps",
        "3",
        "--turns",
        "1",
        "--problems",
        "2",
        "--epochs",
        "1",
        "--tokens",
        "2000",
    ]
    command = [sys.executable, "benchmarks/scaling.py", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TOO_LONG_S)
    assert done.returncode == 0, done.stderr
    assert "2 processes of 1 threads against 1 of 1" in done.stdout
    assert "gathering 2000 tokens of 2 ranks" in done.stdout
