"""The benchmark of training steps: with a chat model both sides read the same prompts, and nothing ends a completion."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs TRL, in the environment of make test-trl")

from benchmarks import training_step as training
from tests.tiny_models import chat_model


def test_prompts_are_the_same(tmp_path: Path) -> None:
    work = training.with_model(training.Work(problems=4), str(chat_model(tmp_path)))
    problems, encoding = training.rules_of(work)
    tokenizer, chats = training.chats_of(work)
    theirs = tokenizer.apply_chat_template(chats, add_generation_prompt=True, tokenize=True, return_dict=True)
    assert theirs["input_ids"] == [encoding["tokenizer"].prompt_tokens(problem) for problem in problems]
    assert tokenizer.eos_token_id == work.vocab


def test_completions_have_the_full_length(tmp_path: Path) -> None:
    """TRL's side asserts it in its reward; a side that dies ends the run."""
    figures = tmp_path / "figures.json"
    sides = ["--sides", "ours", "TRL tuned", "TRL tuned, bfloat16", "TRL defaults"]
    sizes = ["--problems", "2", "--completion", "6", "--rounds", "1", "--steps", "1", "--threads", "1"]
    training.main(["--model", str(chat_model(tmp_path / "model")), *sizes, *sides, "--json", str(figures)])
    result = json.loads(figures.read_text())["results"]["chat model"]
    assert {side: cost["half"] for side, cost in result["sides"].items()} == {
        "ours": False,
        "TRL tuned": False,
        "TRL tuned, bfloat16": True,
        "TRL defaults": True,
    }
