"""Keeping a prompt's keys once for a group samples the same tokens as keeping them for each row, whatever the groups do."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from agents import CausalLMPolicy, Episode, PolicyConfig, Trajectory
from agents.policies.transformers import shared_prompt_cache
from agents.policies.transformers.kv_cache import CacheKind, RowCache, can_group
from agents.policies.transformers.shared_prompt_cache import GroupLayout
from tests.agents.architectures import model_of
from tests.agents.rounding import FLOAT64, assert_equal_stored
from tests.agents.test_policy import VOCAB, play

ARCHITECTURES = ("qwen2", "qwen3", "llama", "gpt2")
CPU = torch.device("cpu")
WIDTH = 128
RULES: dict[str, Any] = {"max_new_tokens": 12, "stop": list(range(0, 256, 9))}  # so that rows end at different times
EPISODES = [Episode(problem=index // 4, group=index // 4, seed=100 + index) for index in range(20)]


def new_policy(architecture: str, **settings: Any) -> CausalLMPolicy:
    torch.manual_seed(0)
    return CausalLMPolicy(model_of(architecture, VOCAB), PolicyConfig(**settings))


def play_by_rows(acting: CausalLMPolicy, num_envs: int) -> list[Trajectory]:
    assert not acting.config.shared_prefix
    return play(acting, num_envs, EPISODES, **RULES)


def assert_same(actual: list[Trajectory], expected: list[Trajectory]) -> None:
    for one, other in zip(actual, expected, strict=True):
        assert one.tokens.tolist() == other.tokens.tolist()
        assert_equal_stored(one.logprobs, other.logprobs)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many passes over one new token were by groups, and how many by rows, since the trials were over."""
    counts = {"groups": 0, "rows": 0}
    forward = RowCache._forward

    def counting(self: RowCache, tokens: Any, *args: Any) -> Any:
        if tokens.shape[1] == 1:
            counts["rows" if self._layout is None else "groups"] += 1
        return forward(self, tokens, *args)

    monkeypatch.setattr(RowCache, "_forward", counting)
    return counts


def play_grouped(acting: CausalLMPolicy, passes: dict[str, int], num_envs: int) -> list[Trajectory]:
    assert acting._lm.groups_rows
    passes.update(groups=0, rows=0)
    return play(acting, num_envs, EPISODES, **RULES)


@FLOAT64
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(("temperature", "num_envs"), [(1.0, 20), (0.7, 20), (1.0, 8)])
def test_groups_sample_what_rows_sample_and_become_rows_when_others_begin(
    architecture: str, temperature: float, num_envs: int, passes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts of different lengths, and rows that end at different times."""
    monkeypatch.setattr(GroupLayout, "pays", lambda *_: True)
    expected = play_by_rows(new_policy(architecture, temperature=temperature, shared_prefix=False), num_envs)
    result = play_grouped(new_policy(architecture, temperature=temperature), passes, num_envs)
    assert len({trajectory.prompt_length for trajectory in expected}) > 1
    assert len({len(trajectory.tokens) - trajectory.prompt_length for trajectory in expected}) > 1
    others_begin = num_envs < len(EPISODES)
    assert passes["groups"] > (0 if others_begin else 5)
    assert (passes["rows"] > 0) == others_begin
    assert_same(result, expected)


@FLOAT64
@pytest.mark.parametrize("columns", [10, 30])
def test_groups_become_rows_to_save_work(columns: int, passes: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupLayout, "pays", lambda _, next_columns: next_columns < columns)
    monkeypatch.setattr(shared_prompt_cache, "SPARE_STEPS", 2)  # rooms and masks grow, too
    expected = play_by_rows(new_policy("llama", shared_prefix=False), len(EPISODES))
    result = play_grouped(new_policy("llama"), passes, len(EPISODES))
    assert min(passes.values()) > 0
    assert_same(result, expected)


@FLOAT64
def test_new_weights_begin_new_groups(passes: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupLayout, "pays", lambda *_: True)
    acting = new_policy("qwen2")
    play_grouped(acting, passes, len(EPISODES))
    with torch.no_grad():
        for parameter in acting.model.parameters():
            parameter.mul_(1.05)
    acting.weights_changed()
    result = play_grouped(acting, passes, len(EPISODES))
    assert passes["groups"] > 0
    assert_same(result, play_by_rows(CausalLMPolicy(acting.model, PolicyConfig(shared_prefix=False)), len(EPISODES)))


def test_who_may_keep_groups() -> None:
    """Windows of attention, caches of another kind, and models that do not take the layout keep rows."""
    assert not new_policy("mistral")._lm.groups_rows
    assert not new_policy("qwen2", shared_prefix=False)._lm.groups_rows
    assert not can_group(new_policy("qwen2").model, CacheKind.SELECTED)
    policy = new_policy("qwen2")
    forward = policy.model.forward

    def deaf(*args: Any, position_ids: Any = None, group_layout: Any = None, **kwargs: Any) -> Any:
        return forward(*args, position_ids=position_ids, **kwargs)

    policy.model.forward = deaf
    assert policy._lm.shares_prefixes
    assert not policy._lm.groups_rows


def test_single_completions_keep_rows(passes: dict[str, int]) -> None:
    acting = new_policy("qwen2")
    play(acting, 3, [Episode(problem, problem, seed=problem) for problem in range(3)])
    assert passes["groups"] == 0
    assert passes["rows"] > 0
