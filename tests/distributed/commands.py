"""`rlvr` on ranks that are forks of one process, which has loaded what a run needs: loading takes longer than the runs here.

What a launcher does with processes is tested with the launcher.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TOO_LONG_S = 600
"""Seconds after which a test fails whose processes have not ended."""


@dataclass(frozen=True)
class Done:
    """How a process ended, and what it said."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Rank:
    """A process to start."""

    arguments: Sequence[str]
    """The command line of `rlvr`."""
    environment: Mapping[str, str] = field(default_factory=dict)
    path: Sequence[str] = ()
    """Folders to look for packages in before all others."""


class Forks:
    """The process of which ranks are forks, within a block of `forks`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, ranks: Sequence[Rank], *, file_kib: int | None = None) -> list[Done]:
        """Start ranks, as a launcher would if there are several, and wait for all."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            jobs = [_job(ranks, number, folder, file_kib) for number in range(len(ranks))]
            late = threading.Timer(TOO_LONG_S, os.killpg, (self._process.pid, 9))
            late.start()
            self._process.stdin.write(json.dumps(jobs) + "\n")
            self._process.stdin.flush()
            reply = self._process.stdout.readline()
            late.cancel()
            assert reply, "the processes took too long"
            said = [[Path(job[name]).read_text(encoding="utf-8") for name in ("stdout", "stderr")] for job in jobs]
        return [Done(code, *texts) for code, texts in zip(json.loads(reply), said, strict=True)]


@contextlib.contextmanager
def forks() -> Iterator[Forks]:
    """Start the process that forks."""
    with subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "FATAL"},
    ) as process:
        try:
            yield Forks(process)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)


def free_port() -> str:
    """A port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def _job(ranks: Sequence[Rank], number: int, folder: str, file_kib: int | None) -> dict[str, Any]:
    rank = ranks[number]
    launched = {"RANK": str(number), "WORLD_SIZE": str(len(ranks)), "MASTER_ADDR": "127.0.0.1"}
    return {
        "arguments": list(rank.arguments),
        "environment": (launched if len(ranks) > 1 else {}) | dict(rank.environment),
        "path": list(rank.path),
        "file_kib": file_kib,
        **{name: f"{folder}/{name}-{number}" for name in ("stdout", "stderr")},
    }


# In the process that forks


def main() -> None:
    """Fork for each line of the input, the processes of one run, and answer with their exit codes."""
    _load()
    replies = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        jobs, port = json.loads(line), free_port()
        children = []
        for job in jobs:
            if child := os.fork():
                children.append(child)
            else:
                replies.close()
                _become(job, port)
                return
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        replies.write(json.dumps(codes) + "\n")
        replies.flush()


def _load() -> None:
    """Import what a run imports, and start no thread, which a fork would not have."""
    import matplotlib.pyplot  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import torch

    import agents.commands.train
    import agents.distributed.processes
    import agents.distributed.sharding  # noqa: F401

    torch.set_num_threads(1)


def _become(job: dict[str, Any], port: str) -> None:
    """Run the command in this process, with files in place of its standard streams."""
    from agents.commands.main import main as rlvr

    for number, name in enumerate((os.devnull, job["stdout"], job["stderr"])):
        file = os.open(name, os.O_RDWR | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    os.environ |= {"MASTER_PORT": port} | job["environment"]
    sys.path[:0] = job["path"]
    if job["file_kib"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024 * job["file_kib"],) * 2)
    rlvr(job["arguments"])


if __name__ == "__main__":
    main()
