"""Small runs of `rlvr train` on several ranks, and what they leave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.agents.agent_cases import timeless
from tests.distributed.commands import TOO_LONG_S, Done, Forks, Rank

SETTINGS = ["--env", "Sort", "--problems-per-step", "4", "--group-size", "4", "--num-envs", "8"]
SETTINGS += ["--learning-rate", "0.01", "--verifier", "tests.distributed.faults:digits"]
SETTINGS += ["--env-args", "max_new_tokens=8", "--checkpoint-every", "2", "--log-rollouts", "1", "--loggers"]


def train(
    ranks: Forks, folder: Path, *options: str, size: int = 2, agent: str = "grpo", file_kib: int | None = None
) -> Done:
    """`rlvr train` on several ranks, with files of limited size if asked for; what rank 0 says, which alone says anything."""
    command = ["train", agent, "--run-folder", str(folder), *options, *SETTINGS]
    first, *others = ranks.run([Rank(command)] * size, file_kib=file_kib)
    assert all((other.stdout, errors(other.stderr)) == ("", []) for other in others)
    return first


def launched(folder: Path, *options: str, fault: str | None = None) -> Any:
    """`rlvr train --nproc 2`, whose launcher starts the ranks; one of them may fail, as `faults` says."""
    command = [sys.executable, "-m", "agents", "train", "grpo", "--nproc", "2", "--run-folder", str(folder), *options]
    env = os.environ | {"OMP_NUM_THREADS": "1"} | ({"FAULT": fault} if fault else {})
    return subprocess.run(
        [*command, *SETTINGS], capture_output=True, text=True, check=False, timeout=TOO_LONG_S, env=env
    )


def with_options(ranks: Forks, folder: Path, *options: Sequence[str], path: Sequence[str] = ()) -> list[Done]:
    """Ranks that were each started with other options; the last may look for packages elsewhere."""
    commands = [["train", "grpo", "--run-folder", str(folder), *own, *SETTINGS] for own in options]
    return ranks.run([*map(Rank, commands[:-1]), Rank(commands[-1], path=path)])


def rows(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [timeless({name: value or 0.0 for name, value in json.loads(line).items()}) for line in lines]


def unprobed_rows(folder: Path) -> list[dict[str, Any]]:
    """As `rows`, without the probe of engines: it repeats the last prompts, and a resumed run has none at first."""
    return [{name: value for name, value in row.items() if "probe" not in name} for row in rows(folder)]


def weights(folder: Path, step: int) -> bytes:
    return (folder / "checkpoints" / f"step-{step:06d}" / "model" / "model.safetensors").read_bytes()


def errors(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("error:")]
