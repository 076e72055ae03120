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
