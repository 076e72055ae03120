"""A run that was killed and resumed is the run that was never killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agents.runs.run import latest_checkpoint

STEPS = 8
OPTIONS = [
    *("--env", "Sort", "--env-args", "tokenizer=char", "max_new_tokens=6", "--problems-per-step", "4"),
    *("--group-size", "4", "--learning-rate", "0.003", "--num-envs", "8", "--checkpoint-every", "3"),
]


def command(folder: Path, *more: str) -> list[str]:
    program = "import torch; torch.set_num_threads(1); from agents.commands.main import main; main()"
    return [sys.executable, "-c", program, "train", "grpo", "--run-folder", str(folder), *OPTIONS, *more]


def metrics(folder: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if not name.endswith("_s")} for row in rows]


def wait_for_lines(path: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        assert process.poll() is None, "the run ended before it could be stopped"
        time.sleep(0.01)
    raise AssertionError(f"{path} did not reach {count} lines")


def test_a_run_killed_with_sigkill_and_resumed_is_bit_identical(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run(command(whole, "--steps", str(STEPS)), check=True, capture_output=True, timeout=600)
    process = subprocess.Popen(command(killed, "--steps", "1000"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for_lines(killed / "metrics.jsonl", 5, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with (killed / "metrics.jsonl").open("a") as file:
        file.write('{"step": 99')  # a line that the kill cut short
    done = latest_checkpoint(killed)
    assert done is not None
    resumed_from = int(done.name.removeprefix("step-"))
    last = max(STEPS, resumed_from + 2)
    subprocess.run(command(killed, "--steps", str(last), "--resume"), check=True, capture_output=True, timeout=600)
    rows = metrics(killed)
    assert [row["step"] for row in rows] == list(range(1, last + 1))
    assert rows[:STEPS] == metrics(whole)
    of_whole = (whole / "rollouts.jsonl").read_text().splitlines()
    assert (killed / "rollouts.jsonl").read_text().splitlines()[: len(of_whole)] == of_whole
    assert len(of_whole) == 8 * STEPS
    if last == STEPS:
        assert weights(killed) == weights(whole)


def weights(folder: Path) -> bytes:
    checkpoint = latest_checkpoint(folder)
    assert checkpoint is not None
    return (checkpoint / "model" / "model.safetensors").read_bytes()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_stop_leaves_a_checkpoint_of_the_last_step(tmp_path: Path, number: int, code: int) -> None:
    process = subprocess.Popen(
        command(tmp_path / "run", "--steps", "1000"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wait_for_lines(tmp_path / "run" / "metrics.jsonl", 4, process)
    os.kill(process.pid, number)
    output, errors = process.communicate(timeout=600)
    assert process.returncode == code, errors
    assert b"--resume" in output
    checkpoint = latest_checkpoint(tmp_path / "run")
    assert checkpoint is not None
    assert checkpoint.name == f"step-{metrics(tmp_path / 'run')[-1]['step']:06d}"
