"""Two steps of TRL's own GRPOTrainer on a tiny model, with an environment's problems and a verifier that breaks at times."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
import trl
from tokenizers import Tokenizer, models

from agents.adapters import trl as adapter
from verifiers import Problem

# TRL 1.16 asks transformers by a name that transformers 5.23 replaced.
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}"


def tokenizer(template: str | None = TEMPLATE) -> transformers.PreTrainedTokenizerFast:
    letters = {letter: number for number, letter in enumerate(["<pad>", "<eos>", *"0123456789+="])}
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.BPE(vocab=letters, merges=[])), pad_token="<pad>", eos_token="<eos>"
    )
    made.chat_template = template
    return made


def model() -> transformers.PreTrainedModel:
    torch.manual_seed(0)
    shape = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(vocab_size=14, pad_token_id=0, eos_token_id=1, bos_token_id=None, **shape)
    )


def trained(folder: Path, functions: Any, rows: Any) -> Any:
    config = trl.GRPOConfig(
        output_dir=str(folder),
        per_device_train_batch_size=4,
        num_generations=4,
        max_completion_length=4,
        max_steps=2,
        logging_steps=1,
        learning_rate=1e-2,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        bf16=False,
        seed=1,
        disable_dropout=True,
        activation_checkpointing=False,
    )
    trainer = trl.GRPOTrainer(
        model=model(), reward_funcs=functions, args=config, train_dataset=rows, processing_class=tokenizer()
    )
    trainer.train()
    return trainer


def test_what_can_not_be_judged_has_no_advantage_and_is_in_no_mean(tmp_path: Path) -> None:
    """The verifier breaks on every second completion, and scores the others by turns 0 and 1."""
    calls = iter(range(100))

    def alternating(completion: str, problem: Problem) -> float:
        number = next(calls)
        if number % 2:
            raise ConnectionError("the pool died")
        return float(number % 4 == 0)

    rows, _ = adapter.environment("Addition", "train", size=8)
    verdicts = adapter.reward_function(alternating, reference="problem", name="verdicts")

    def bonus(completions: list[Any], **columns: Any) -> list[float | None]:
        return [10.0] * len(completions)

    trainer = trained(tmp_path, adapter.all_or_none(verdicts, bonus), rows)
    history = [entry for entry in trainer.state.log_history if "reward" in entry]
    assert [entry["reward"] for entry in history] == [10.5, 10.5]
    assert [entry["rewards/bonus/mean"] for entry in history] == [10.0, 10.0]
    assert [entry["verifier_errors/verdicts"] for entry in history] == [0.5, 0.5]
    advantages = list(trainer._logs["advantages"])
    assert advantages[1::2] == [0.0] * len(advantages[1::2])
    assert all(advantage > 0 for advantage in advantages[0::4])
    assert all(advantage < 0 for advantage in advantages[2::4])


@pytest.mark.filterwarnings("ignore:`gradient_checkpointing:FutureWarning")  # TRL's own default
@pytest.mark.parametrize("template", [None, TEMPLATE])  # of a base model, and of one for chats
def test_the_exported_script_trains(template: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = adapter.export("Addition", tmp_path / "sums", limit=8, digits=1)
    model().save_pretrained(tmp_path / "model")
    tokenizer(template).save_pretrained(tmp_path / "model")
    options = {
        "model_name_or_path": tmp_path / "model",
        "output_dir": tmp_path / "out",
        "max_steps": 1,
        "per_device_train_batch_size": 4,
        "num_generations": 4,
        "max_completion_length": 4,
        "report_to": "none",
        "save_strategy": "no",
        "use_cpu": True,
        "bf16": False,
        "logging_steps": 1,
    }
    arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    monkeypatch.setattr("sys.argv", [str(script), *arguments])
    logged: list[dict[str, float]] = []
    # What GRPOTrainer adds its means to before it passes them on.
    monkeypatch.setattr(transformers.Trainer, "log", lambda self, logs, *_: logged.append(dict(logs)))
    runpy.run_path(str(script), run_name="__main__")
    assert any("rewards/Addition/mean" in logs for logs in logged)
