"""What docs/speed.md names is there."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

pytest.importorskip("torch")

DOCS = (Path(__file__).parent.parent / "docs" / "speed.md").read_text(encoding="utf-8")


def test_every_switch_is_one() -> None:
    from agents import LearnerConfig, PolicyConfig
    from agents.commands.train_options import TrainOptions
    from rlvr_envs import Rules

    rows = [line for line in DOCS.splitlines() if line.startswith("| ") and line.count(" | ") == 2]
    switches = set(re.findall(r"`(\w+)` \|$", "\n".join(rows), re.MULTILINE)) | {"fast"}
    assert {"shared_prefix", "checkpointing", "skip_zero_advantages", "max_cached_tokens"} <= switches
    policy = {field.name for field in fields(PolicyConfig)}
    learner = {field.name for field in fields(LearnerConfig)}
    rules = {field.name for field in fields(Rules)}
    assert switches <= policy | learner | rules
    assert switches & policy <= {field.name for field in fields(TrainOptions)}


def test_the_sizes_are_those_of_the_code() -> None:
    from agents.learn import batch_passes
    from agents.policies.transformers import acting, language_model, sampling

    assert language_model.LOGITS_AT_ONCE == 2**24
    assert acting._PROMPT_TOKENS_AT_ONCE == 2**16
    assert batch_passes.TOKENS_AT_ONCE == 2**17
    assert 8 * sampling._BLOCK == 2048
    for size in ("2^24", "2^16", "2^17", "2048"):
        assert size in DOCS
