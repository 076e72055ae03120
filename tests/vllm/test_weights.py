"""Room for the weights on their way to an engine."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from agents.policies.vllm.weight_transfer import SharedMemoryTransfer
from verifiers import EngineError

WEIGHTS = {"first": torch.arange(1000.0), "second": torch.ones(3, 5, dtype=torch.bfloat16)}


class Reader:
    """An engine that reads what it is sent."""

    def __init__(self) -> None:
        self.read: list[tuple[Path, dict[str, torch.Tensor]]] = []

    def rpc(self, method: str, *arguments: str) -> list[Any]:
        assert method == "load_shared_weights"
        self.read.append((Path(arguments[0]).parent, load_file(arguments[0])))
        return [None]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The free bytes of shared memory, and of the folder for temporary files."""
    free = {"shared": 10_000, "temporary": 10_000}
    for name in free:
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=free[folder.name]))
    return free


@pytest.mark.parametrize(("free", "used"), [(10_000, "shared"), (4000, "temporary")])  # of 4030 bytes of numbers
def test_weights_go_through_shared_memory_if_it_has_room_or_a_temporary_file_and_leave_nothing(
    free: int, used: str, folders: dict[str, int], tmp_path: Path
) -> None:
    folders["shared"] = free
    engine: Any = Reader()
    SharedMemoryTransfer(engine.rpc, tmp_path / "shared").push(WEIGHTS)
    ((folder, read),) = engine.read
    assert folder == tmp_path / used
    assert read.keys() == WEIGHTS.keys()
    assert all(torch.equal(read[name], weight) for name, weight in WEIGHTS.items())
    assert not list(folder.iterdir())


def test_no_room_anywhere_is_an_error_that_says_where_and_what_to_do(folders: dict[str, int], tmp_path: Path) -> None:
    folders.update(shared=2 * 2**20, temporary=3 * 2**20)
    engine: Any = Reader()
    message = r"take 4 MiB, and .*/shared has 2 and .*/temporary has 3 MiB free: .*--shm-size.*TMPDIR"
    with pytest.raises(EngineError, match=message):
        SharedMemoryTransfer(engine.rpc, tmp_path / "shared").push({"w": torch.zeros(2**20)})
    assert engine.read == []
