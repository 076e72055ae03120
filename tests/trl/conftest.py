"""The model that both libraries learn on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny Qwen2 model."""
    # Imported here, since tests/agents checks shapes of what is first imported there.
    from tests.agents.trajectories import tiny_policy

    path = tmp_path_factory.mktemp("model")
    tiny_policy().model.save_pretrained(path)
    return path


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Sums split over threads round differently; one thread also suits models this small."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
