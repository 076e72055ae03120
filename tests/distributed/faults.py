"""A verifier that scores digits, and on request brings its process down; named on the command line of the tests.

`FAULT=RANK:KIND:FILE` makes the rank of that number kill or stop itself, kill a group of other processes ("kill GROUP"), hang,
with Python's lock or without, or exit, once, in the second step; `FILE` then exists.
"""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

from verifiers import Problem

_FIRST_STEP = 8
"""Completions that each of two ranks verifies in the first step of `test_command`."""
_seen = 0


def digits(completion: str, problem: Problem) -> float:
    """The share of a completion that is digits."""
    global _seen
    _seen += 1
    rank, _, rest = os.environ.get("FAULT", "").partition(":")
    if rank and rank == os.environ.get("RANK") and _seen > _FIRST_STEP:
        kind, _, file = rest.partition(":")
        if not Path(file).exists():
            Path(file).touch()
            _fail(kind)
    return sum(map(str.isdigit, completion)) / 8


def _fail(kind: str) -> None:
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif kind.startswith("kill "):
        os.killpg(int(kind.removeprefix("kill ")), signal.SIGKILL)
    elif kind == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif kind == "hang":
        time.sleep(600)
    elif kind == "lock":
        re.match("(a*)*b", "a" * 60)
    else:
        os._exit(3)
