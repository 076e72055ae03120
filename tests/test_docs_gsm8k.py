"""The commands of docs/how-to/gsm8k.md run in order, with a tiny model of the same family in place of the hub's."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("torch")

from transformers import Qwen2Config, Qwen2ForCausalLM

from agents.commands.main import main
from examples.grpo_gsm8k import made_up_rows
from tests.docs import DOCS
from tests.tiny_models import SHAPE, byte_level_tokenizer, save

PAGE = (DOCS / "how-to" / "gsm8k.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S) for line in block.splitlines()]
SMALLER = {
    "max_new_tokens=512": "max_new_tokens=4",
    "--steps 200": "--steps 2 --num-envs 4 --problems-per-step 2 --group-size 2",
    "--micro-batch-size 16": "--micro-batch-size 2",
}
CHAT = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's model and data set, in the layout of the hub's, in a folder of the name that the page gives."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("RLVR_DATA_DIR", str(made_up_rows(tmp_path / "data")))
    tokenizer = byte_level_tokenizer("<|im_start|>", "<|im_end|>", eos_token="<|im_end|>", chat_template=CHAT)
    model = Qwen2ForCausalLM(Qwen2Config(**SHAPE | {"vocab_size": len(tokenizer)}, tie_word_embeddings=True))
    save(tmp_path / "Qwen" / "Qwen2.5-0.5B-Instruct", model, tokenizer)


def smaller(command: str) -> list[str]:
    for wanted, instead in SMALLER.items():
        command = command.replace(wanted, instead)
    return shlex.split(command)[1:]


@pytest.mark.usefixtures("hub")
def test_the_commands_run_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert all(any(wanted in command for command in COMMANDS) for wanted in SMALLER)
    for command in COMMANDS:
        with pytest.raises(SystemExit) as ended:
            main(smaller(command))
        assert ended.value.code == 0, (command, capsys.readouterr().err)
    printed = capsys.readouterr().out
    assert "16 of 16 gold completions pass" in printed
    assert "after and before have the same score on every one of the 16 problems" in printed
    manifest = json.loads(Path("runs/gsm8k/before/manifest.json").read_text())
    prompt = manifest["settings"]["example_prompt"]
    assert prompt.startswith("<|im_start|>user\nA tray holds 2 cups.")
    assert prompt.endswith("<|im_start|>assistant")
    assert {path.name for path in Path("runs/gsm8k").iterdir()} >= {"curves.svg", "curves.png", "grpo"}
    assert len((Path("runs/gsm8k/grpo") / "metrics.jsonl").read_text().splitlines()) == 2


def test_the_arithmetic_of_the_memory_is_that_of_the_models() -> None:
    """By the sizes in the models' configs: layers, key-value heads, size of a head, parameters in millions."""
    table = dict(re.findall(r"^\| ([\w, ×]+) \| ([\d.| andofthepr]+) \|", PAGE, re.M))
    for column, (layers, heads, size, millions) in enumerate([(24, 2, 64, 494), (28, 2, 128, 1540)]):
        kept = {
            "weights, gradients, moments": 16e6 * millions,
            "reference": 4e6 * millions,
            "bfloat16 copies": 2e6 * millions,
            "keys and values of 128 × 800 tokens": 128 * 800 * layers * 2 * heads * size * 4,
        }
        for name, bytes_ in kept.items():
            assert float(table[name].split("|")[column]) == pytest.approx(bytes_ / 2**30, abs=0.06), name
