"""Checkpoints by hand: what replaces what, and what they hold beside the weights."""

from __future__ import annotations

import random
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents import Run, tiny_model
from agents.learn.checkpoint import save_checkpoint
from agents.learn.random_state import random_state, set_random_state
from tests.agents.agent_cases import all_weights, make_agent, playing_policy, some_batch, sort_env
from verifiers import InvalidArgumentError


def test_a_failure_while_saving_leaves_the_earlier_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = make_agent("grpo")
    agent.save(tmp_path / "saved")
    agent.update(some_batch(agent.policy))

    def full(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(torch, "save", full)
        with pytest.raises(OSError, match="no space left"):
            agent.save(tmp_path / "saved")
    other = make_agent("grpo")
    other.load(tmp_path / "saved")
    assert other.steps == 0
    agent.save(str(tmp_path / "saved"))
    other.load(str(tmp_path / "saved"))
    assert other.steps == 1
    assert torch.equal(all_weights(other), all_weights(agent))


@pytest.mark.parametrize("most_bytes", [10_000, 600_000])
@pytest.mark.parametrize(
    "model", [tiny_model(5, layers=1, hidden_size=64), torch.nn.Linear(200, 200)], ids=["tiny", "torch"]
)
def test_what_the_system_refuses_to_write_is_named_and_nothing_stays(
    model: Any, most_bytes: int, tmp_path: Path
) -> None:
    """The smaller limit stops the model, the larger one the state."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
    try:
        with pytest.raises(OSError, match=r"File too large|No space left") as raised:
            save_checkpoint(tmp_path / "one", model, {"weights": torch.zeros(10**6)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(raised.value.filename).startswith(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_not_replaced(tmp_path: Path) -> None:
    """A folder of something else, and the checkpoint that a run's step has."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    env = sort_env("grpo")
    agent = make_agent("grpo", playing_policy(env))
    with pytest.raises(InvalidArgumentError, match="contains something other than a checkpoint"):
        agent.save(tmp_path / "mine")
    assert [path.name for path in tmp_path.rglob("*")] == ["mine", "thesis.txt"]
    run = Run(tmp_path / "run", {}, loggers=())
    agent.learn(env, steps=2, run=run, checkpoint_every=1)
    written = (run.checkpoint_folder(2) / "state.pt").stat().st_mtime_ns
    agent.learn(env, steps=2, run=run)
    assert (run.checkpoint_folder(2) / "state.pt").stat().st_mtime_ns == written
    run.close()


def test_every_global_generator_goes_on_where_it_was(tmp_path: Path) -> None:
    def draw() -> list[float]:
        gauss = [random.gauss(0, 1), float(np.random.normal()), float(torch.randn(()))]
        return [*gauss, random.random(), float(np.random.random()), float(torch.rand(()))]

    draw()  # both of the first keep half of a pair of normal numbers
    agent = make_agent("grpo")
    agent.save(tmp_path / "saved")
    expected = draw()
    assert draw() != expected
    make_agent("grpo").load(tmp_path / "saved")
    assert draw() == expected
    state = random_state()  # of more GPUs than are here
    here = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    set_random_state({**state, "cuda": [*here, torch.zeros(16, dtype=torch.uint8)]})
    assert torch.equal(torch.get_rng_state(), state["torch"])
