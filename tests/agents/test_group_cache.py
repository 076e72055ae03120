"""Keeping a prompt's keys once for a group samples the same tokens as keeping them for each row, whatever the groups do."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from agents import CausalLMPolicy, Episode, PolicyConfig, Trajectory, tiny_model
from agents.policies.transformers import shared_prompt_cache
from agents.policies.transformers.kv_cache import CacheKind, RowCache, can_group
from agents.policies.transformers.preallocated_layer import GrowingLayer
from agents.policies.transformers.shared_prompt_cache import GroupLayout
from tests.agents.rounding import FLOAT64, assert_equal_stored
from tests.agents.test_policy import SMALL, VOCAB, gpt2, llama, mistral, play, qwen2, qwen3, sharpened

MODELS = [qwen2, qwen3, llama, gpt2]
CPU = torch.device("cpu")
WIDTH = 128
RULES: dict[str, Any] = {"max_new_tokens": 12, "stop": list(range(0, 256, 9))}  # so that rows end at different times
EPISODES = [Episode(problem=index // 4, group=index // 4, seed=100 + index) for index in range(20)]


def new_policy(make: Any, **settings: Any) -> CausalLMPolicy:
    torch.manual_seed(0)
    return CausalLMPolicy(sharpened(make()), PolicyConfig(**settings))


def play_by_rows(acting: CausalLMPolicy, num_envs: int, **rules: Any) -> list[Trajectory]:
    assert not acting.config.shared_prefix
    return play(acting, num_envs, EPISODES, **RULES | rules)


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


def play_grouped(acting: CausalLMPolicy, passes: dict[str, int], num_envs: int, **rules: Any) -> list[Trajectory]:
    assert acting._lm.groups_rows
    passes.update(groups=0, rows=0)
    return play(acting, num_envs, EPISODES, **RULES | rules)


@FLOAT64
@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_groups_sample_what_rows_sample(
    make: Any, temperature: float, passes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts of different lengths, and rows that end at different times."""
    monkeypatch.setattr(GroupLayout, "pays", lambda *_: True)
    expected = play_by_rows(new_policy(make, temperature=temperature, shared_prefix=False), len(EPISODES))
    result = play_grouped(new_policy(make, temperature=temperature), passes, len(EPISODES))
    assert len({trajectory.prompt_length for trajectory in expected}) > 1
    assert len({len(trajectory.tokens) - trajectory.prompt_length for trajectory in expected}) > 1
    assert passes["groups"] > 5
    assert passes["rows"] == 0
    assert_same(result, expected)


@FLOAT64
@pytest.mark.parametrize("make", MODELS)
def test_groups_become_rows_when_others_begin(
    make: Any, passes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GroupLayout, "pays", lambda *_: True)
    expected = play_by_rows(new_policy(make, shared_prefix=False), 8)
    result = play_grouped(new_policy(make), passes, 8)
    assert min(passes.values()) > 0
    assert_same(result, expected)


@FLOAT64
@pytest.mark.parametrize("columns", [10, 20, 30])
def test_groups_become_rows_when_that_is_less_work(
    columns: int, passes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GroupLayout, "pays", lambda _, next_columns: next_columns < columns)
    monkeypatch.setattr(shared_prompt_cache, "SPARE_STEPS", 2)  # rooms and masks grow, too
    expected = play_by_rows(new_policy(llama, shared_prefix=False), len(EPISODES))
    result = play_grouped(new_policy(llama), passes, len(EPISODES))
    assert min(passes.values()) > 0
    assert_same(result, expected)


@FLOAT64
def test_new_weights_begin_new_groups(passes: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupLayout, "pays", lambda *_: True)
    acting = new_policy(qwen2)
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
    assert not new_policy(mistral)._lm.groups_rows
    assert not new_policy(qwen2, shared_prefix=False)._lm.groups_rows
    assert not can_group(new_policy(qwen2).model, CacheKind.SELECTED)
    policy = new_policy(qwen2)
    forward = policy.model.forward

    def deaf(*args: Any, position_ids: Any = None, group_layout: Any = None, **kwargs: Any) -> Any:
        return forward(*args, position_ids=position_ids, **kwargs)

    policy.model.forward = deaf
    assert policy._lm.shares_prefixes
    assert not policy._lm.groups_rows


def test_single_completions_keep_rows(passes: dict[str, int]) -> None:
    acting = CausalLMPolicy(sharpened(tiny_model(VOCAB, **SMALL)))
    play(acting, 3, [Episode(problem, problem, seed=problem) for problem in range(3)])
    assert passes["groups"] == 0
    assert passes["rows"] > 0


# By hand


def test_a_layout_by_hand() -> None:
    """Rows of groups 0, 1, 0, whose prompts have 2 tokens and 1: four places, the last empty."""
    layout = GroupLayout([0, 1, 0], [2, 1], WIDTH, CPU)
    assert (layout.num_groups, layout.members, layout.prompt, layout.full) == (2, 2, 2, False)
    assert layout.slots.tolist() == [0, 2, 1]
    states = torch.tensor([1.0, 2.0, 3.0])[:, None, None, None]
    assert layout.fold(states).flatten().tolist() == [1, 3, 2, 0]
    assert layout.unfold(layout.fold(states)).flatten().tolist() == [1, 2, 3]
    seen = layout.mask(6, 1, torch.float32) == 0
    assert seen.int().tolist() == [
        [[[1, 1, 1, 0, 1, 0], [1, 1, 0, 1, 0, 1]]],
        [[[0, 1, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1]]],
    ]
    assert torch.equal(layout.mask(4, 2, torch.float32)[:, :, 2:], layout.mask(4, 1, torch.float32))
    assert layout.keep([1]) == [1]
    assert (layout.num_groups, layout.members, layout.slots.tolist()) == (1, 2, [0])
    assert layout.mask(4, 1, torch.float32).shape == (1, 1, 2, 4)


def test_prompts_of_one_length_share_a_mask() -> None:
    layout = GroupLayout([0, 0, 1, 1], [3, 3], WIDTH, CPU)
    assert layout.full
    assert layout.mask(5, 1, torch.float32).shape == (1, 1, 2, 5)


@pytest.mark.parametrize(
    ("groups", "members", "prompt", "steps", "pays"),
    [
        (8, 8, 128, 32, True),
        (8, 8, 64, 8, True),
        (8, 8, 64, 240, False),  # the others' columns outweigh the prompt
        (4, 16, 64, 32, True),
        (4, 16, 64, 100, False),
        (2, 4, 16, 8, False),  # too little work to be worth bringing into groups
    ],
)
def test_groups_pay_while_the_prompt_outweighs_the_others_columns(
    groups: int, members: int, prompt: int, steps: int, pays: bool
) -> None:
    layout = GroupLayout([group for group in range(groups) for _ in range(members)], [prompt] * groups, WIDTH, CPU)
    assert layout.pays(prompt + members * steps) is pays


def test_groups_do_not_pay_for_few_rows() -> None:
    layout = GroupLayout([0] * 16, [64], WIDTH, CPU)
    assert layout.pays(64 + 16)
    layout.keep([3])
    assert not layout.pays(64 + 16)


def test_rows_are_spread_into_their_room() -> None:
    keys, values = torch.randn(2, 3, 2, 4, 5).unbind(0)
    layer = GrowingLayer.spread(keys, values, torch.tensor([2, 0, 0]))
    assert layer.keys is not None
    assert torch.equal(layer.keys, keys[[2, 0, 0]])
    room = layer.keys.untyped_storage().data_ptr()
    longer, _ = layer.update(keys[:, :, :1], values[:, :, :1])
    assert longer.untyped_storage().data_ptr() == room
    assert torch.equal(longer, torch.cat([keys[[2, 0, 0]], keys[:, :, :1]], dim=2))
