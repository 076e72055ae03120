"""Ranks that are forks of a program, which the tests start with `python -m`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import torch

from agents.distributed.processes import join, leave
from agents.distributed.ranks import Ranks
from tests.distributed.commands import free_port


def on_forks(size: int, work: Callable[[Ranks], None]) -> None:
    """Call a function on each of several ranks, each a fork of this process, and wait for them; exit with 1 if one fails."""
    torch.set_num_threads(1)
    port, children = free_port(), []
    for rank in range(size):
        if child := os.fork():
            children.append(child)
            continue
        names = {"RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        os.environ |= {name: str(value) for name, value in names.items()} if size > 1 else {}
        work(join())
        leave()
        os._exit(0)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    if any(statuses):
        sys.exit(1)
