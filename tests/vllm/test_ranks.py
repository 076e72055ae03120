"""What `tests.vllm.ranks` leaves: vLLM itself, in the process of each rank and as a server, with divided weights."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from agents import tiny_model
from agents.policies.transformers.loading import save_model
from tests.agents.agent_cases import sort_env
from tests.distributed.commands import free_port
from tests.distributed.runs import errors, launched, rows, unprobed_rows, weights
from tests.vllm.servers import FOR_ROLLOUTS, vllm_server
from tests.vllm.test_engine import server as server  # a fixture

if importlib.util.find_spec("vllm") is None:
    pytest.skip("vllm is not installed here: `make test-vllm` runs these tests", allow_module_level=True)


def learned(folder: Path, *arguments: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What one process leaves, and what each of two ranks leaves."""
    subprocess.run([sys.executable, "-m", "tests.vllm.ranks", str(folder), *arguments], check=True, timeout=1800)
    one, *two = (torch.load(folder / f"{arguments[0]}-{rank}.pt") for rank in ("1-0", "2-0", "2-1"))
    return one, two


@pytest.mark.parametrize("kind", ["lag", "adapter", "server"])
def test_ranks_with_engines_of_their_own_or_one_server_learn_what_one_process_does(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    one, two = learned(tmp_path, kind, *([request.getfixturevalue("server")] if kind == "server" else []))
    assert len(one["rows"]) == 3
    assert one["moved"] > 1e-4
    for rank in two:
        assert [row["reward"] for row in rank["rows"]] == [row["reward"] for row in one["rows"]]
        assert torch.equal(rank["weights"], two[0]["weights"])
        assert rank["weights"].sub(one["weights"]).norm() < 1e-4 * one["weights"].norm()
    for row in [row for result in (one, *two) for row in result["rows"] if "sync_s" in row]:
        assert row["sampling/probe_difference"] < 1e-5


def test_a_run_whose_server_is_killed_says_so_keeps_its_steps_and_goes_on_bit_by_bit(tmp_path: Path) -> None:
    env, port, model = sort_env("grpo"), free_port(), tmp_path / "model"
    shape = {"layers": 2, "hidden_size": 64, "heads": 2, "intermediate_size": 128, "max_tokens": 64}
    save_model(model, tiny_model(int(env.single_action_space.n), seed=0, **shape), env.unwrapped.tokenizer)
    options = ["--steps", "3", "--shard", "fsdp", "--model", str(model)]
    options += ["--engine", "vllm", "--engine-args", f"server=http://127.0.0.1:{port}"]
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"

    def served() -> Any:
        """Each request by itself, since rounding depends on the others, and those on time."""
        alone = ("--max-num-seqs", "1", "--no-enable-prefix-caching")
        return vllm_server(model, tmp_path / "log", port, *FOR_ROLLOUTS, *alone)

    with served() as group:
        done = launched(undisturbed, *options)
        assert done.returncode == 0, done.stderr
        failed = launched(killed, *options, fault=f"0:kill {group}:{tmp_path / 'fault'}")
    assert failed.returncode == 1
    (error,) = errors(failed.stderr)
    assert f"http://127.0.0.1:{port}" in error
    kept = rows(killed)
    assert 1 <= len(kept) < 3
    assert kept == rows(undisturbed)[: len(kept)]
    with served():
        resumed = launched(killed, *options, "--resume")
    assert f"continuing after step {len(kept)}" in resumed.stdout, resumed.stderr
    assert unprobed_rows(killed) == unprobed_rows(undisturbed)
    assert weights(killed, 3) == weights(undisturbed, 3)
    assert weights(killed, 3) != weights(killed, 2)
