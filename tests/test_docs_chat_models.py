"""The commands of docs/how-to/chat-models.md run in order, with a tiny chat model in place of the page's."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("peft")

from agents.commands.main import main
from tests.docs import DOCS
from tests.tiny_models import chat_model

PAGE = (DOCS / "how-to" / "chat-models.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S) for line in block.splitlines()]
(REWARDS,) = re.findall(r"^```python\n# rewards\.py\n(.*?)^```$", PAGE, re.M | re.S)
SMALLER = {
    "$CHAT": "chat",
    "--problems 16": "--problems 2 --num-envs 2",
    "--problems 4": "--problems 1 --num-envs 1",
    "--steps 40 --problems-per-step 8 --group-size 8": "--steps 2 --problems-per-step 2 --group-size 2 --num-envs 4",
    "max_new_tokens=20": "max_new_tokens=4",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the model and the page's reward."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rewards.py").write_text(REWARDS)
    chat_model(tmp_path / "chat")
    return tmp_path


def test_the_commands_run_one_after_the_other(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert all(any(wanted in command for command in COMMANDS) for wanted in SMALLER)
    printed = ""
    for command in COMMANDS:
        for wanted, instead in SMALLER.items():
            command = command.replace(wanted, instead)
        with pytest.raises(SystemExit) as ended:
            main(shlex.split(command)[1:])
        said = capsys.readouterr()
        assert ended.value.code == 0, (command, said.err)
        printed += said.out
    assert "prompt: boxed_chat, in the model's chat template" in printed
    prompt = json.loads((folder / "runs/chat/sums/manifest.json").read_text())["settings"]["example_prompt"]
    assert prompt.startswith("<|im_start|>user\nWhat is ")
    assert "I think of a whole number" in printed
    described = json.loads((folder / "runs/chat/tools/manifest.json").read_text())["settings"]["example_prompt"]
    assert "calculator" in described
    assert (folder / "runs/chat/merged/model.safetensors").is_file()
