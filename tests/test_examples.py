"""The examples run: those that train do two steps."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.docs import ROOT


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def test_a_plain_loop() -> None:
    example = importlib.import_module("examples.gymnasium_loop")
    assert example.main() == 0.5


def test_a_new_verifier() -> None:
    example = importlib.import_module("examples.new_verifier")
    report = example.main()
    assert {finding.check for finding in report.findings} >= {"false positive"}


def test_grpo_on_gsm8k_without_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("RLVR_DATA_DIR", raising=False)
    result = importlib.import_module("examples.grpo_gsm8k").main(["--dry-run", "--folder", str(tmp_path / "run")])
    assert (result.problems, result.verifier_errors) == (16, 0)
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 2


def in_this_process(*arguments: object) -> None:
    """A command without a process of its own: one for each would take a minute."""
    from agents.commands.main import main

    with pytest.raises(SystemExit) as ended:
        main(list(map(str, arguments)))
    assert ended.value.code == 0, arguments


def test_comparing_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib")
    example = importlib.import_module("examples.compare_agents")
    monkeypatch.setattr(example, "rlvr", in_this_process)
    example.main(["--steps", "2", "--problems", "8", "--folder", str(tmp_path / "compared")])
    assert "grpo-scores" in capsys.readouterr().out
    assert (tmp_path / "compared" / "curves.svg").is_file()


def test_a_chat_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib")
    example = importlib.import_module("examples.chat_model")
    monkeypatch.setattr(example, "rlvr", in_this_process)
    from tests.tiny_models import chat_model

    model, folder = chat_model(tmp_path / "model"), tmp_path / "real"
    short = ["--steps", "2", "--problems", "8", "--env-args", "prompt=chat", "max_new_tokens=4"]
    sums = ["--benchmark", "Sort", "--benchmark-problems", "8", "--benchmark-tokens", "4"]
    example.main(["--model", str(model), "--folder", str(folder), *short, *sums])
    printed = capsys.readouterr().out
    assert "task-after" in printed
    assert printed.count("── addition/test") == 5
    assert (tmp_path / "real-1" / "reward.svg").is_file()


def test_every_example_is_tested() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    for path in (ROOT / "examples").glob("*.py"):
        assert f"examples.{path.stem}" in text
