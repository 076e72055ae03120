"""Weights that are divided among ranks: how they are learned, saved, read again, and what can't be done with them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.distributed.commands import Forks, Rank
from tests.distributed.runs import errors, train
from tests.distributed.sharded import RUNS

pytestmark = pytest.mark.distributed
_SAVED = {kind: sizes for kind, sizes in RUNS.items() if kind.startswith("save")}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, str], list[dict[str, Any]]]:
    """What every rank leaves of each number of ranks and kind."""
    folder = tmp_path_factory.mktemp("sharded")
    subprocess.run([sys.executable, "-m", "tests.distributed.sharded", str(folder)], check=True, timeout=1800)
    return {
        (size, kind): [
            {**torch.load(file), "saved": folder / kind} for file in sorted(folder.glob(f"{size}-{kind}-?.pt"))
        ]
        for kind, sizes in RUNS.items()
        for size in sizes
    }


def close(actual: torch.Tensor, expected: torch.Tensor, tolerance: float) -> bool:
    return float((actual - expected).norm()) <= tolerance * float(expected.norm())


_HALF = 8 * 2**-8
"""The rounding of bfloat16, and that of norms and residuals over two layers."""


@pytest.mark.parametrize(
    ("kind", "alone", "compared", "tolerance"),
    [
        *(
            (kind, "whole", ("gradient", "weights", "reference"), 1e-5)
            for kind in ("divided", "checkpointing", "offload")
        ),
        ("bfloat16", "bfloat16", ("gradient",), _HALF),
        *((kind, kind, ("weights",), 1e-5) for kind in ("lora", "engine", "engine lora", "engine adapter", "lag")),
    ],
)
def test_divided_weights_learn_what_whole_ones_do(
    results: Any, kind: str, alone: str, compared: tuple[str, ...], tolerance: float
) -> None:
    if "lora" in kind or "adapter" in kind:
        pytest.importorskip("peft")
    (one,), (first, second) = results[1, alone], results[2, kind]
    assert first["weights"].dtype is torch.float32
    for name in {"weights", *compared}:
        assert torch.equal(first[name], second[name])
    for name in compared:
        assert close(first[name], one[name], tolerance)


@pytest.mark.parametrize("kind", ["divided", "checkpointing", "offload"])
def test_divided_weights_take_half_the_room(results: Any, kind: str) -> None:
    (one,), two = results[1, "whole"], results[2, kind]
    assert one["acting"] == ""
    assert all("act within `with policy.sampling():`" in rank["acting"] for rank in two)
    # 96 weights and moments may have an odd number of rows.
    assert all(rank["bytes"] < 0.52 * one["bytes"] for rank in two)


@pytest.mark.parametrize("kind", ["engine", "engine lora", "engine adapter"])
def test_engines_of_ranks_get_divided_weights_one_layer_after_the_other(results: Any, kind: str) -> None:
    for rank in results[2, kind]:
        assert len(rank["differences"]) == rank["loads"] == 3  # one before each step
        assert max(rank["differences"]) < 1e-5
        # One of three layers, of all weights; or only the adapter.
        assert 0 < rank["whole"] < (0.2 if kind == "engine adapter" else 0.34)


def test_an_engine_samples_beside_learning_with_the_parts_of_older_weights(results: Any) -> None:
    (one,) = results[1, "lag"]
    for rank in results[2, "lag"]:
        assert [row["sampling/age"] for row in rank["rows"]] == [0, 1, 1, 1]
        assert [row["reward"] for row in rank["rows"]] == [row["reward"] for row in one["rows"]]
        assert max(row["sampling/probe_difference"] for row in rank["rows"] if "sync_s" in row) < 1e-5
        for name in ("stopped", "resumed"):  # with the older weights, that the engine gets once more
            assert torch.equal(rank[name], rank["weights"])
    assert close(one["resumed"], one["weights"], 1e-5)


def test_a_checkpoint_waits_for_no_rank_that_samples(results: Any) -> None:
    for rank in results[2, "lag saved"]:
        assert torch.equal(rank["resumed"], rank["weights"])


def test_an_interrupt_of_one_rank_leaves_a_checkpoint_of_all_with_a_lag(results: Any) -> None:
    for rank in results[2, "lag interrupted"]:
        assert rank["stopped"] == 1
        assert torch.equal(rank["resumed"], rank["weights"])


def test_a_run_goes_on_bit_by_bit_after_half_of_a_transfer_and_after_the_death_of_an_engine(results: Any) -> None:
    zero, one = results[2, "interrupted"]
    assert zero["errors"] == ["rank 1: the engine died", "rank 1: half of a transfer"]
    assert one["errors"][0].endswith("the engine died")
    for rank, expected in zip((zero, one), results[2, "engine"], strict=True):
        assert rank["steps"] == 1
        assert torch.equal(rank["weights"], expected["weights"])
    zero, one = results[2, "engine dies lag"]
    assert one["error"].endswith("the engine died")
    assert zero["error"] == "rank 1: the engine died"


def test_each_rank_can_write_the_model_for_an_engine_of_its_own(results: Any) -> None:
    for rank in results[2, "written"]:
        assert torch.equal(rank["saved_bits"], rank["bits"])


def test_a_rank_that_dies_within_a_pass_is_an_error_of_the_others(results: Any) -> None:
    (survivor,) = results[2, "left alone"]
    assert "another rank ended during the run, without an error of its own" in survivor["error"]


def test_a_checkpoint_does_not_know_how_many_ranks_wrote_it(results: Any) -> None:
    (two, other), (one,), three, again = (results[size, kind] for kind, (size,) in _SAVED.items())
    for later in (one, three[0], again[0]):
        assert_same(state_of(two["saved"]), state_of(later["saved"]))
    assert torch.equal(again[0]["weights"], two["weights"])
    assert torch.equal(other["weights"], two["weights"])
    assert close(one["weights"], two["weights"], 1e-5)


def state_of(checkpoint: Path) -> dict[str, Any]:
    state: dict[str, Any] = torch.load(checkpoint / "state.pt")
    del state["random"]  # of the process that wrote it
    return {"state": state, "model": load_file(checkpoint / "model" / "model.safetensors")}


def assert_same(actual: Any, expected: Any, where: str = "") -> None:
    if isinstance(expected, dict):
        assert actual.keys() == expected.keys()
        for name in expected:
            assert_same(actual[name], expected[name], f"{where}.{name}")
    elif isinstance(expected, torch.Tensor):
        assert torch.equal(actual, expected), where
    else:
        assert actual == expected, where


def test_a_run_of_divided_weights_goes_on_with_another_number_of_ranks_or_with_one(
    ranks: Forks, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    for number, (size, shard) in enumerate([(2, "fsdp"), (1, "none"), (3, "fsdp")]):
        steps, resume = str(2 * number + 2), ["--resume"] if number else []
        done = train(ranks, folder, "--steps", steps, "--shard", shard, *resume, size=size)
        assert done.returncode == 0, done.stderr
        assert f"{steps} steps done" in done.stdout


def test_what_divided_weights_do_not_allow_is_one_error(ranks: Forks, tmp_path: Path) -> None:
    command = ["train", "trpo", "--env", "Sort", "--shard", "fsdp", "--run-folder", str(tmp_path / "run")]
    done, other = ranks.run([Rank(command)] * 2)
    assert errors(other.stderr) == []
    assert done.returncode == 2
    (error,) = errors(done.stderr)
    assert "TRPO computes with vectors as long as all weights together" in error
