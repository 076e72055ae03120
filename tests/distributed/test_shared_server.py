"""Ranks that divide the weights and sample with one server, which fails within a run; vLLM itself is in tests/vllm."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agents.policies.transformers.loading import load_model, save_model
from tests.agents.agent_cases import playing_policy, sort_env
from tests.distributed.commands import Done, Forks
from tests.distributed.runs import errors, rows, train, unprobed_rows, weights
from tests.vllm.stand_in import Fault, serving

pytestmark = pytest.mark.distributed
FAULTS = {
    "dies among completions": (Fault("dies", 2, "generate", 13), "it probably died"),
    "dies in a transfer": (Fault("dies", 2, "load_shared_weights", 2), "it probably died"),
    "has other weights": (Fault("forgets", 2, "generate", 13), "no longer has the weights that it was given"),
}


def learn(ranks: Forks, folder: Path, model: Path, port: int, *options: str) -> Done:
    engine = ["--engine", "vllm", "--engine-args", f"server=http://127.0.0.1:{port}"]
    return train(ranks, folder, "--steps", "3", "--shard", "fsdp", "--model", str(model), *engine, *options)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the learner begins with, and the server."""
    env, folder = sort_env("grpo"), tmp_path_factory.mktemp("model")
    save_model(folder, playing_policy(env, layers=2).model, env.unwrapped.tokenizer)
    return folder


@pytest.fixture(scope="module")
def undisturbed(ranks: Forks, model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("server") / "undisturbed"
    with serving(load_model(model)) as port:
        done = learn(ranks, folder, model, port)
    assert done.returncode == 0, done.stderr
    assert weights(folder, 2) != weights(folder, 3)
    assert all(row["sampling/probe_difference"] < 1e-5 for row in rows(folder))
    return folder


@pytest.mark.parametrize("kind", FAULTS)
def test_a_run_whose_server_fails_says_so_keeps_its_steps_and_goes_on_bit_by_bit(
    kind: str, ranks: Forks, undisturbed: Path, model: Path, tmp_path: Path
) -> None:
    fault, says = FAULTS[kind]
    with serving(load_model(model), fault) as port:
        failed = learn(ranks, tmp_path, model, port)
    assert failed.returncode == 1
    (error,) = errors(failed.stderr)
    assert f"the vLLM server at http://127.0.0.1:{port}" in error
    assert re.search(says, error)
    assert unprobed_rows(tmp_path) == unprobed_rows(undisturbed)[:1]
    with serving(load_model(model), port=port, late=True):
        done = learn(ranks, tmp_path, model, port, "--resume")
    assert "continuing after step 1" in done.stdout, done.stderr
    assert unprobed_rows(tmp_path) == unprobed_rows(undisturbed)
    assert weights(tmp_path, 3) == weights(undisturbed, 3)
