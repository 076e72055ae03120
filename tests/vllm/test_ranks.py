"""What `tests.vllm.ranks` leaves: vLLM itself, in the process of each rank and as a server, with divided weights."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.vllm.test_engine import server as server  # a fixture

if importlib.util.find_spec("vllm") is None:
    pytest.skip("vllm is not installed here: `make test-vllm` runs these tests", allow_module_level=True)


def learned(folder: Path, *arguments: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What one process leaves, and what each of two ranks leaves."""
    subprocess.run([sys.executable, "-m", "tests.vllm.ranks", str(folder), *arguments], check=True, timeout=1800)
    one, *two = (torch.load(folder / f"{arguments[0]}-{rank}.pt") for rank in ("1-0", "2-0", "2-1"))
    return one, two


def check_learned(one: dict[str, Any], two: list[dict[str, Any]]) -> None:
    assert one["moved"] > 1e-4
    for rank in two:
        assert [row["reward"] for row in rank["rows"]] == [row["reward"] for row in one["rows"]]
        assert torch.equal(rank["weights"], two[0]["weights"])
        assert rank["weights"].sub(one["weights"]).norm() < 1e-4 * one["weights"].norm()
    for row in [row for result in (one, *two) for row in result["rows"] if "sync_s" in row]:
        assert row["sampling/probe_difference"] < 1e-5


@pytest.mark.parametrize("kind", ["lag", "adapter"])
def test_ranks_with_engines_of_their_own_learn_what_one_process_does(kind: str, tmp_path: Path) -> None:
    one, two = learned(tmp_path, kind)
    assert len(one["rows"]) == 3
    check_learned(one, two)


def test_ranks_that_share_a_server_learn_what_one_process_does(server: str, tmp_path: Path) -> None:
    one, two = learned(tmp_path, "server", server)
    assert len(one["rows"]) == 3
    check_learned(one, two)
