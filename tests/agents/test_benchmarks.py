"""The benchmarks of speed run at tiny sizes, and what they report adds up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd import DeviceType

from agents import save_model, tiny_model
from agents.policies.transformers.loading import load_tokenizer
from benchmarks import rollout as sampling, training_step as training
from rlvr_envs import ByteTokenizer, Rules, TokenStreams, TokenVectorEnv
from tests.tiny_models import chat_model

TINY = {"layers": 1, "width": 16, "heads": 2, "problems": 2, "group": 2, "prompt": 5, "completion": 3}
OPTIONS = [text for name, value in TINY.items() for text in (f"--{name}", str(value))]


@pytest.fixture(autouse=True)
def threads_as_they_were() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def test_the_profile_of_a_training_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = tmp_path / "figures.json"
    options = ["--work", "2x4", *OPTIONS, "--kv-heads", "1", "--mlp", "24", "--micro", "2"]
    training.main(["--profile", *options, "--steps", "2", "--threads", "1", "--json", str(figures)])
    table = capsys.readouterr().out
    result = json.loads(figures.read_text())["results"]["2x4"]
    assert result["work"] == {**TINY, "vocab": 512, "flat": 0.0, "kv_heads": 1, "mlp": 24, "micro": 2, "model": ""}
    assert list(result["phases"]) == list(training.PHASES)
    assert 0 < sum(phase["wall_s"] for phase in result["phases"].values()) < result["wall_s"]
    for name, phase in result["phases"].items():
        assert f"| **{name}** |" in table
        inside = sum(cpu for _, cpu, _ in phase["operations"].values())
        assert 0 < inside < phase["wall_s"]
    calls = {name: phase["operations"] for name, phase in result["phases"].items()}
    assert any("mm" in operation for operation in calls["training forward"])
    assert any("Backward" in operation for operation in calls["backward"])
    assert not any("Backward" in operation for operation in calls["decode"])


def event(name: str, start: float, end: float, cpu: float = 0.0, gpu: float = 0.0, **fields: Any) -> SimpleNamespace:
    return SimpleNamespace(
        name=name,
        time_range=SimpleNamespace(start=start, end=end),
        self_cpu_time_total=cpu,
        self_device_time_total=gpu,
        device_type=fields.get("device", DeviceType.CPU),
        is_user_annotation=name in training.PHASES or "#" in name,
    )


def test_events_belong_to_the_phase_in_which_they_began() -> None:
    """Times in microseconds; a kernel is counted with the operation that launched it, not by itself."""
    phases = training.by_phase(
        [
            event("mm", 130, 140, 8.0, 30.0),
            event("decode", 100, 150),
            event("mm", 110, 120, 9.0, 20.0),
            event("mm", 155, 160, 1.0, 1.0),  # between phases
            event("backward", 200, 300),
            event("Optimizer.step#AdamW.step", 205, 210, 5.0),
            event("MmBackward0", 250, 320, 40.0),
            event("kernel", 110, 130, 0.0, 20.0, device=DeviceType.CUDA),
        ]
    )
    assert phases["decode"].wall_s == pytest.approx(50e-6)
    assert phases["decode"].operations == {"mm": [2, pytest.approx(17e-6), pytest.approx(50e-6)]}
    assert phases["decode"].in_operations_s() == pytest.approx(17e-6)
    assert phases["decode"].on_device_s() == pytest.approx(50e-6)
    assert phases["backward"].operations == {"MmBackward0": [1, pytest.approx(40e-6), 0.0]}
    assert phases["prefill"].wall_s == 0


def test_the_cost_of_our_side_of_a_training_step(capsys: pytest.CaptureFixture[str]) -> None:
    training.main(
        ["--work", "2x4", *OPTIONS, "--sides", "ours", "--rounds", "1", "--steps", "1", "--threads", "1"],
    )
    cells = [cell.strip() for cell in capsys.readouterr().out.splitlines()[-1].split("|")[1:-1]]
    assert cells[:2] == ["2x4", "ours"]
    cpu_s, wall_s, tokens_per_s = map(float, cells[2:5])
    assert cpu_s > 0
    assert tokens_per_s == pytest.approx(4 * 3 / wall_s, rel=0.2)  # of a rounded time


def test_the_bound_counts_the_matrices_as_they_are() -> None:
    """One layer of width 16: two heads of queries, one of keys and values, 24 wide in between; a vocabulary of 512."""
    work = training.Work(**TINY, kv_heads=1, mlp=24)
    layer = 16 * 16 + 16 * 16 + 2 * 16 * 8 + 3 * 16 * 24
    own, prompts = 4 * 3, 2 * 5
    attention = 2 * 16 * (own * (5 + 2) + 2 * 5**2 / 2)
    assert training.floating_point_operations(work) == 8 * ((own + prompts) * layer + own * 512 * 16 + attention)


def test_sampling_of_both_sides_of_torch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = tmp_path / "figures.json"
    shape = ["--kv-heads", "1", "--mlp", "24", "--vocab", "300"]
    sampling.main([*OPTIONS, *shape, "--rounds", "1", "--threads", "1", "--json", str(figures)])
    result = json.loads(figures.read_text())
    assert result["work"]["vocab"] == 300
    assert set(result["sides"]) == {"ours", "generate"}
    assert all(cost["wall_s"] > 0 for cost in result["sides"].values())
    assert "2 x 2 completions of 3 tokens" in capsys.readouterr().out


CHAT_OPTIONS = ["--problems", "2", "--group", "2", "--completion", "3", "--rounds", "1", "--threads", "1"]


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(chat_model(tmp_path_factory.mktemp("chat")))


def test_the_cost_of_a_training_step_of_a_chat_model(
    chat: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = tmp_path / "figures.json"
    sides = ["--sides", "ours", "ours, float32", "--steps", "1"]
    training.main(["--model", chat, *CHAT_OPTIONS, *sides, "--json", str(figures)])
    result = json.loads(figures.read_text())["results"]["chat model"]
    shape = {"layers": 2, "width": 16, "heads": 2, "kv_heads": 2, "mlp": 32}
    assert {name: result["work"][name] for name in shape} == shape
    assert result["work"]["prompt"] > 300  # of a tokenizer of bytes
    assert result["tokens"] == 2 * 2 * 3
    for cost in result["sides"].values():
        assert not cost["half"]
        assert 0 < cost["bound_s"] < cost["cpu_s"]
    assert "| chat model | ours, float32 |" in capsys.readouterr().out


@pytest.mark.parametrize("precision", ["auto", "float32", "bfloat16"])
def test_sampling_from_a_chat_model(precision: str, chat: str, tmp_path: Path, capfd: Any) -> None:
    figures = tmp_path / "figures.json"
    options = [*CHAT_OPTIONS, "--greedy", "--precision", precision, "--json", str(figures)]
    sampling.main(["--model", chat, *options])
    assert set(json.loads(figures.read_text())["sides"]) == {"ours", "generate"}
    assert f"2 layers of 16, 259 tokens, precision {precision}, greedy" in capfd.readouterr().out


def test_what_ends_a_turn_ends_no_completion(chat: str) -> None:
    """The environment's side; the sampling benchmark checks the lengths of `generate`, and TRL's are checked by its reward."""
    work = training.with_model(training.Work(problems=1, group=1, completion=4), chat)
    problems, encoding = training.rules_of(work)
    env = TokenVectorEnv(TokenStreams(problems, Rules(**encoding, max_new_tokens=4), 1))
    env.reset(options={"problems": np.array([0])})
    end = load_tokenizer(chat).turn_end
    ended = [env.step(np.array([end]))[2:4] for _ in range(4)]
    assert [(bool(terminated[0]), bool(truncated[0])) for terminated, truncated in ended] == [(False, False)] * 3 + [
        (False, True)
    ]


@pytest.mark.parametrize("main", [training.main, sampling.main])
def test_a_chat_model_has_a_shape_of_its_own(main: Any, chat: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--model", chat, "--kv-heads", "1"])
    assert "--model has a shape and prompts of its own: leave out --kv-heads" in capsys.readouterr().err


@pytest.mark.parametrize("main", [training.main, sampling.main])
def test_a_model_without_a_chat_template_is_refused(main: Any, tmp_path: Path) -> None:
    save_model(tmp_path, tiny_model(257, layers=1, hidden_size=16, heads=2), ByteTokenizer())
    with pytest.raises(SystemExit, match="expected a model whose tokenizer has a chat template"):
        main(["--model", str(tmp_path), *CHAT_OPTIONS])


@pytest.mark.parametrize("main", [training.main, sampling.main])
def test_a_gpu_that_is_not_there_is_named(
    main: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SystemExit):
        main(["--device", "cuda"])
    assert "--device cuda: torch finds no GPU here" in capsys.readouterr().err
