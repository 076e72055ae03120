"""One process for the ranks of many tests, and the run that others are compared with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.distributed.commands import Forks, forks


@pytest.fixture(scope="session")
def ranks() -> Iterator[Forks]:
    """Starts `rlvr` in several processes."""
    with forks() as started:
        yield started


@pytest.fixture(scope="session")
def whole(ranks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four steps on two ranks, never disturbed."""
    from tests.distributed.runs import train  # here, since tests/agents/conftest.py has to come before `agents`

    folder = tmp_path_factory.mktemp("runs") / "whole"
    done = train(ranks, folder, "--steps", "4")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("4 steps done") == 1
    return folder
