"""TRL's own GRPOTrainer on a tiny model: an environment's problems, and episodes of several turns by a script."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
import trl

from agents.adapters import trl as adapter, trl_episodes
from rlvr_envs import MessageEnv, TextCompletion, environment_class
from tests.tiny_models import SHAPE, byte_level_tokenizer
from verifiers import MadeCall, Problem, verify_batch

pytestmark = [
    # TRL 1.16 asks transformers by a name that transformers 5.23 replaced.
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"),
    pytest.mark.filterwarnings("ignore:You are using 'environment_factory':UserWarning"),
]
PLAIN = "{% for m in messages %}{{ m.content }}{% endfor %}"
QWEN3 = (Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja").read_text(encoding="utf-8")
OPTIONS = {
    "per_device_train_batch_size": 4,
    "save_strategy": "no",
    "report_to": "none",
    "use_cpu": True,
    "bf16": False,
    "seed": 1,
    "activation_checkpointing": False,
    "gradient_checkpointing": False,
}


def tiny(template: str | None) -> tuple[Any, Any]:
    """A model that knows nothing, and its tokenizer."""
    torch.manual_seed(0)
    tokenizer = byte_level_tokenizer("<|im_start|>", "<|im_end|>", eos_token="<|im_end|>", chat_template=template)
    shape = SHAPE | {"vocab_size": len(tokenizer), "max_position_embeddings": 8192}
    return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**shape)), tokenizer


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

    model, tokenizer = tiny(PLAIN)
    sizes = {"num_generations": 4, "max_completion_length": 4, "max_steps": 2, "logging_steps": 1}
    trainer = trl.GRPOTrainer(
        model=model,
        reward_funcs=adapter.all_or_none(verdicts, bonus),
        args=trl.GRPOConfig(output_dir=str(tmp_path), **OPTIONS, **sizes),
        train_dataset=rows,
        processing_class=tokenizer,
    )
    trainer.train()
    history = [entry for entry in trainer.state.log_history if "reward" in entry]
    assert [entry["reward"] for entry in history] == [10.5, 10.5]
    assert [entry["rewards/bonus/mean"] for entry in history] == [10.0, 10.0]
    assert [entry["verifier_errors/verdicts"] for entry in history] == [0.5, 0.5]
    advantages = list(trainer._logs["advantages"])
    assert advantages[1::2] == [0.0] * len(advantages[1::2])
    assert all(advantage > 0 for advantage in advantages[0::4])
    assert all(advantage < 0 for advantage in advantages[2::4])


@pytest.mark.parametrize(
    ("env", "template"),
    [("Addition", None), ("Addition", PLAIN), ("GuessNumber", QWEN3)],
    ids=["base model", "chat model", "several turns"],
)
def test_the_exported_script_trains(
    env: str, template: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = adapter.export(env, tmp_path / "made", limit=8)
    for made in tiny(template):
        made.save_pretrained(tmp_path / "model")
    sizes = {"num_generations": 2, "max_completion_length": 8, "max_steps": 1, "logging_steps": 1}
    options = {"model_name_or_path": tmp_path / "model", "output_dir": tmp_path / "out", **OPTIONS, **sizes}
    arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    monkeypatch.setattr("sys.argv", [str(script), *arguments])
    logged: list[dict[str, float]] = []
    # What GRPOTrainer adds its means to before it passes them on.
    monkeypatch.setattr(transformers.Trainer, "log", lambda self, logs, *_: logged.append(dict(logs)))
    runpy.run_path(str(script), run_name="__main__")
    assert any(f"rewards/{env}/mean" in logs for logs in logged)


Turn = str | tuple[str, dict[str, str]]
"""A text, or a call."""


Policy = Callable[[str], Turn]
"""Says the next turn after all the text so far."""


def halving(text: str) -> Turn:
    """Guesses the middle of what is left of 1 to 100."""
    low, high = 1, 100
    answers = re.findall(r"<tool_response>\s*(higher|lower|right)", text)
    for answer in answers:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if answer == "higher" else (low, middle - 1)
    return "Done." if "right" in answers else ("say", {"text": str((low + high) // 2)})


def gives_up(text: str) -> Turn:
    return "I give up." if "<tool_response>" in text else ("say", {"text": "0"})


def calculates(text: str) -> Turn:
    """Asks the calculator, and says what it says."""
    answers = re.findall(r"<tool_response>\s*(-?\d+)", text)
    (asked,) = set(re.findall(r"What is (\d+\+\d+)", text))
    return rf"\boxed{{{answers[-1]}}}" if answers else ("calculator", {"expression": asked})


class Scripted(trl.GRPOTrainer):  # type: ignore[misc]
    """Says what a policy says in place of what a model would."""

    policy: Policy

    def _generate_single_turn(self, prompt_ids: Any, images: Any, fields: Any, num_generations: int, **_: Any) -> Any:
        said = []
        for ids in prompt_ids:
            turn = self.policy(self.processing_class.decode(ids).partition("<|im_start|>user\n")[2])
            if not isinstance(turn, str):
                turn = f"<tool_call>\n{json.dumps({'name': turn[0], 'arguments': turn[1]})}\n</tool_call>"
            said.append(self.processing_class.encode(f"{turn}<|im_end|>", add_special_tokens=False))
        return said, None


def played(folder: Path, policy: Policy, made: Any) -> dict[str, Any]:
    """Train for one step on an environment; give what was said, and the rewards."""
    rows, factory, reward = made
    learner, tokenizer = tiny(QWEN3)
    seen: dict[str, Any] = {}

    def noted(**columns: Any) -> list[float | None]:
        seen["scores"] = reward(**columns)
        seen["problems"] = columns["problem"]
        seen["completions"] = columns["completions"]
        return seen["scores"]

    config = trl.GRPOConfig(output_dir=str(folder), max_completion_length=2048, **OPTIONS, num_generations=2)
    trainer = Scripted(
        model=learner,
        reward_funcs=noted,
        args=config,
        train_dataset=rows,
        processing_class=tokenizer,
        environment_factory=factory,
    )
    trainer.policy = policy
    torch.manual_seed(0)
    trainer.train()
    return seen


def own_score(env: str, index: int, turns: list[Turn], **arguments: Any) -> float:
    """What an episode here pays for the same turns."""
    world = MessageEnv(environment_class(env).make_vec(1, prompt="auto_chat", **arguments).streams)
    episode = world.start(world.streams.dataset[index])
    for turn in turns:
        if not episode.over:
            made = turn if isinstance(turn, str) else (turn[0], json.dumps(turn[1]))
            calls = () if isinstance(made, str) else (MadeCall(*made, ""),)
            episode.take(TextCompletion(made if isinstance(made, str) else "", calls=calls))
    (verdict,) = verify_batch(world.rules.verifier, [episode.completion], [episode.problem])
    return episode.reward + verdict.score


@pytest.mark.parametrize(
    ("env", "arguments", "policy", "outcome"),
    [
        ("GuessNumber", {}, halving, 1.0),
        ("GuessNumber", {}, gives_up, 0.0),
        ("Addition", {"tools": "calculator", "digits": 4}, calculates, 1.0),
    ],
)
def test_episodes_are_played_by_calls_and_pay_as_here(
    env: str, arguments: dict[str, Any], policy: Policy, outcome: float, tmp_path: Path
) -> None:
    seen = played(tmp_path, policy, trl_episodes.episodes(env, size=4, **arguments))
    assert seen["scores"] == [outcome] * 4
    for index, completion in zip(seen["problems"], seen["completions"], strict=True):
        turns = [turn_of(message) for message in completion if message["role"] == "assistant"]
        assert len(turns) > 1
        assert own_score(env, index, turns, size=4, **arguments) == outcome


def turn_of(message: dict[str, Any]) -> Turn:
    """A turn as it was said in TRL."""
    for call in message.get("tool_calls") or ():
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        return arguments["text"] if name == "say" else (name, arguments)
    return str(message["content"])
