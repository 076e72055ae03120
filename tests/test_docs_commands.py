"""The commands of two pages of docs/how-to run in order, with tiny models in place of the pages'."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("peft")

from agents.commands.main import main
from examples.grpo_gsm8k import made_up_rows
from tests.docs import DOCS
from tests.tiny_models import chat_model

SMALLER = {
    "chat-models.md": {
        "$CHAT": "chat",
        "--problems 16": "--problems 2 --num-envs 2",
        "--problems 4": "--problems 1 --num-envs 1",
        "--steps 40 --problems-per-step 8 --group-size 8": "--steps 2 --problems-per-step 2 --group-size 2 --num-envs 4",
        "max_new_tokens=20": "max_new_tokens=4",
    },
    "gsm8k.md": {
        "max_new_tokens=512": "max_new_tokens=4",
        "--steps 200": "--steps 2 --num-envs 4 --problems-per-step 2 --group-size 2",
        "--micro-batch-size 16": "--micro-batch-size 2",
    },
}


def run(page: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a page's commands, made smaller, and give what they print."""
    text = (DOCS / "how-to" / page).read_text(encoding="utf-8")
    commands = [line for block in re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S) for line in block.splitlines()]
    assert all(any(wanted in command for command in commands) for wanted in SMALLER[page])
    for name, code in re.findall(r"^```python\n# (rewards\.py)\n(.*?)^```$", text, re.M | re.S):
        Path(name).write_text(code)
    printed = ""
    for command in commands:
        for wanted, instead in SMALLER[page].items():
            command = command.replace(wanted, instead)
        with pytest.raises(SystemExit) as ended:
            main(shlex.split(command)[1:])
        said = capsys.readouterr()
        assert ended.value.code == 0, (command, said.err)
        printed += said.out
    return printed


def example_prompt(folder: str) -> str:
    return str(json.loads(Path(folder, "manifest.json").read_text())["settings"]["example_prompt"])


def test_chat_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    chat_model(tmp_path / "chat")
    printed = run("chat-models.md", capsys)
    assert "prompt: boxed_chat, in the model's chat template" in printed
    assert "I think of a whole number" in printed
    assert example_prompt("runs/chat/sums").startswith("<|im_start|>user\nWhat is ")
    assert "calculator" in example_prompt("runs/chat/tools")
    assert Path("runs/chat/merged/model.safetensors").is_file()


def test_gsm8k(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With data in the layout of the hub's, and a model in a folder of the name that the page gives."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("RLVR_DATA_DIR", str(made_up_rows(tmp_path / "data")))
    chat_model(tmp_path / "Qwen" / "Qwen2.5-0.5B-Instruct")
    printed = run("gsm8k.md", capsys)
    assert "16 of 16 gold completions pass" in printed
    assert "after and before have the same score on every one of the 16 problems" in printed
    prompt = example_prompt("runs/gsm8k/before")
    assert prompt.startswith("<|im_start|>user\nA tray holds 2 cups.")
    assert prompt.endswith("<|im_start|>assistant")
    assert {path.name for path in Path("runs/gsm8k").iterdir()} >= {"curves.svg", "curves.png", "grpo"}
    assert len(Path("runs/gsm8k/grpo/metrics.jsonl").read_text().splitlines()) == 2
