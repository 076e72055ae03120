"""The packed pass equals the plain one: log-probabilities, entropies, gradients; and knows when it is not to be used."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from agents import Batch, CausalLMPolicy, PolicyConfig, Trajectory, make_batch
from agents.policies.transformers import prefix_sharing, scoring
from agents.policies.transformers.kv_cache import CacheKind, can_group
from agents.policies.transformers.logprobs import token_logprobs_and_entropy
from agents.policies.transformers.model_capabilities import can_share, costs_of
from agents.policies.transformers.prefix_sharing import is_cheaper, plan
from tests.agents.architectures import model_of
from tests.agents.rounding import FLOAT64, assert_equal
from tests.agents.trajectories import VOCAB, trajectory

MODELS = ("qwen2", "qwen3", "llama", "gpt2")


def model(name: str) -> Any:
    torch.manual_seed(0)
    return model_of(name, VOCAB)


def groups(members: int = 4, count: int = 3, legal: bool = False) -> list[Trajectory]:
    """Groups of ragged completions, one of a single token, with prompts of different lengths and a hole in a mask."""
    generator = np.random.default_rng(0)
    results = []
    for group in range(count):
        start = generator.integers(0, VOCAB, 18 + group).tolist()
        for member in range(members):
            own = 1 if member == 0 else int(generator.integers(2, 8))
            mask = [0] * len(start) + [1] * own
            if own > 4:
                mask[len(start) + 2] = 0
            tokens = start + generator.integers(0, VOCAB, own).tolist()
            choices = np.eye(VOCAB, dtype=bool)[tokens] | (generator.random((len(mask), VOCAB)) < 0.5)
            masks = np.packbits(choices, axis=1) if legal else None
            results.append(trajectory(mask, tokens=tokens, group=group, action_masks=masks))
    return results


def even_groups(members: int, own: int, count: int = 2, prompt: int = 9) -> list[Trajectory]:
    """Groups whose completions all have the same length."""
    generator = np.random.default_rng(1)
    starts = [generator.integers(0, VOCAB, prompt + group).tolist() for group in range(count)]
    return [
        trajectory([0] * len(start) + [1] * own, tokens=start + generator.integers(0, VOCAB, own).tolist(), group=group)
        for group, start in enumerate(starts)
        for _ in range(members)
    ]


def outputs_and_gradient(policy: CausalLMPolicy, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    outputs = policy.read(batch)
    mask = batch.loss_mask[:, batch.first :]
    weights = torch.randn(mask.shape, generator=torch.Generator().manual_seed(1))
    policy.model.zero_grad()
    ((weights * outputs.logprobs + 0.3 * outputs.entropy)[mask]).sum().backward()
    gradient = torch.cat([p.grad.reshape(-1) for p in policy.model.parameters() if p.grad is not None])
    return outputs.logprobs.detach()[mask], outputs.entropy.detach()[mask], gradient


@FLOAT64
@pytest.mark.parametrize("legal", [False, True])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("checkpointing", ["off", "on"])
def test_the_packed_pass_equals_the_plain_one(name: str, legal: bool, checkpointing: Any) -> None:
    batch = make_batch(groups(legal=legal))
    settings = {"temperature": 0.7, "checkpointing": checkpointing}
    plain = outputs_and_gradient(CausalLMPolicy(model(name), PolicyConfig(shared_prefix=False, **settings)), batch)
    sharing = CausalLMPolicy(model(name), PolicyConfig(**settings))
    layout = plan(batch.tokens, batch.lengths, batch.loss_mask.int().argmax(dim=1))
    assert is_cheaper(layout, *batch.tokens.shape, costs_of(sharing.model))
    packed = outputs_and_gradient(sharing, batch)
    assert sharing.model.config._attn_implementation == "rlvr_shared_prefix"
    for expected, result in zip(plain, packed, strict=True):
        assert_equal(result, expected)


@FLOAT64
@pytest.mark.parametrize("blocks", [1, 2, 3, 6])
@pytest.mark.parametrize("ragged", [False, True])
def test_blocks_change_nothing(blocks: int, ragged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many completions attend together."""
    batch = make_batch(groups(members=6) if ragged else even_groups(members=6, own=4))
    plain = outputs_and_gradient(CausalLMPolicy(model("qwen2"), PolicyConfig(shared_prefix=False)), batch)
    sharing = CausalLMPolicy(model("qwen2"))
    monkeypatch.setattr(prefix_sharing, "_num_blocks", lambda *_: blocks)
    monkeypatch.setattr(scoring, "is_cheaper", lambda *_: True)
    with monkeypatch.context() as trial:  # whose groups have two members
        trial.setattr(prefix_sharing, "_num_blocks", lambda *_: min(blocks, 2))
        assert sharing._lm.shares_prefixes
    packed = outputs_and_gradient(sharing, batch)
    for expected, result in zip(plain, packed, strict=True):
        assert_equal(result, expected)


def test_a_model_that_ignores_the_layout_is_found_out() -> None:
    made = model("qwen2")
    inner = made.forward

    def deaf(*args: Any, prefix_layout: Any = None, **kwargs: Any) -> Any:
        return inner(*args, **kwargs)

    made.forward = deaf
    policy = CausalLMPolicy(made)
    batch = make_batch(groups())
    assert torch.equal(policy.read(batch).logprobs, policy.forward(batch.tokens, batch.first).logprobs)
    assert made.config._attn_implementation == "sdpa"


@FLOAT64
def test_a_mask_of_the_models_own_is_not_lost() -> None:
    """Doge adds learned terms to the scores by way of the mask; at first they are small enough for any trial."""
    results = []
    for settings in ({"fast": False}, {}):
        torch.manual_seed(0)
        policy = CausalLMPolicy(model_of("doge", VOCAB, 1.0), PolicyConfig(**settings))
        batch = make_batch(groups())
        results.append(outputs_and_gradient(policy, batch))
        assert policy.model.model.layers[0].self_attn.A.grad is not None
        assert policy.model.config._attn_implementation == "sdpa"
        assert not policy._lm.shares_prefixes
    for expected, got in zip(*results, strict=True):
        assert_equal(got, expected)


@pytest.mark.parametrize("name", ["attention_mask", "s_aux", "position_bias"])
def test_what_a_layout_has_no_room_for_is_refused(name: str) -> None:
    states = torch.zeros(1, 2, 3, 4)
    arguments: dict[str, Any] = {"attention_mask": None, "position_ids": torch.zeros(1, 3), name: torch.zeros(2)}
    mask = arguments.pop("attention_mask")
    with pytest.raises(ValueError, match=f"the model itself passes {name} to its attention.*shared_prefix=False"):
        prefix_sharing._attention(torch.nn.Module(), states, states, states, mask, prefix_layout=(), **arguments)


@pytest.mark.parametrize(("dtype", "seed"), [(torch.float16, 3), (torch.bfloat16, 3), (torch.float32, 3)])
def test_rounding_in_half_precision_is_no_reason_to_read_plainly(dtype: torch.dtype, seed: int) -> None:
    torch.manual_seed(seed)
    made = model_of("qwen2", 257, 1.0, hidden_size=64, intermediate_size=128)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(4.0 if parameter.dim() > 1 else 1.0)
        made.lm_head.weight.mul_(4.0)
    made = made.to(dtype)
    assert can_share(made)
    assert can_group(made, CacheKind.MERGED)
    # A mask that shows the completions to one another is still found out.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prefix_sharing.Group, "bias", lambda group, dtype: torch.zeros(group.mask.shape, dtype=dtype))
        assert not can_share(made)


@FLOAT64
@pytest.mark.parametrize("lengths", [None, 1])
def test_rows_off_the_loss_mask_change_nothing_for_the_others(lengths: int | None) -> None:
    """A row of each group, and a group, that say nothing; they may be shorter than what the others share."""
    batch = make_batch(groups())
    off = torch.tensor([0, 5, 8, 9, 10, 11])
    mask, ends = batch.loss_mask.clone(), batch.lengths.clone()
    mask[off] = False
    if lengths is not None:
        ends[off] = lengths
    batch = dataclasses.replace(batch, loss_mask=mask, lengths=ends)
    plain = outputs_and_gradient(CausalLMPolicy(model("qwen2"), PolicyConfig(fast=False)), batch)
    sharing = CausalLMPolicy(model("qwen2"))
    assert sharing.read(batch).shared
    for expected, result in zip(plain, outputs_and_gradient(sharing, batch), strict=True):
        assert_equal(result, expected)
    learned = mask[:, batch.first :]
    slow = CausalLMPolicy(model("qwen2"), PolicyConfig(fast=False))
    assert_equal(sharing.read_states(batch)[:, :-1][learned], slow.read_states(batch)[:, :-1][learned])
    nothing = dataclasses.replace(batch, loss_mask=torch.zeros_like(mask))
    assert not sharing.read(nothing).shared


def test_sampling_is_the_same_before_and_after_the_packed_pass() -> None:
    """The model keeps the attention function that knows layouts; without one it does what it did."""
    policy = CausalLMPolicy(model("llama"))
    tokens = np.tile(np.arange(12, dtype=np.int32) % VOCAB, (3, 1))
    observation = {"tokens": tokens, "length": np.array([12, 5, 9], dtype=np.int32)}
    before = policy.act(observation)
    outputs_and_gradient(policy, make_batch(groups()))
    fresh = CausalLMPolicy(policy.model)
    after = fresh.act(observation)
    assert after.logprobs.tolist() == before.logprobs.tolist()
    assert after.tokens.tolist() == before.tokens.tolist()


# The output layer


def reference(logits: Tensor, tokens: Tensor, temperature: float, legal: Tensor | None) -> tuple[Tensor, Tensor]:
    scaled = logits / temperature
    if legal is not None:
        scaled = scaled.masked_fill(~legal, -torch.inf)
    logprobs = scaled.log_softmax(-1)
    shares = logprobs.exp()
    return logprobs.gather(-1, tokens[:, None])[:, 0], -(shares * logprobs.clamp(min=-1e30)).sum(-1)


@FLOAT64
@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("weigh_entropy", [0.0, 0.7])
def test_log_probabilities_and_their_gradient_equal_autograd(
    temperature: float, limited: bool, weigh_entropy: float
) -> None:
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(9, (6,), generator=generator)
    legal = torch.rand(6, 9, generator=generator) < 0.5
    legal[torch.arange(6), tokens] = True
    weights = torch.randn(6, generator=generator)
    results, grads = [], []
    for compute in (reference, token_logprobs_and_entropy):
        logits = (4 * torch.randn(6, 9, generator=torch.Generator().manual_seed(1))).requires_grad_(True)
        logprobs, entropy = compute(logits, tokens, temperature, legal if limited else None)
        (weights * logprobs + weigh_entropy * weights.flip(0) * entropy).sum().backward()
        results.append(torch.stack([logprobs, entropy]).detach())
        grads.append(logits.grad)
    assert_equal(results[1], results[0])
    assert_equal(grads[1], grads[0])


@FLOAT64
@pytest.mark.parametrize("name", MODELS)
def test_chunks_of_the_vocabulary_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = make_batch(groups())
    for shared in (False, True):
        whole = outputs_and_gradient(CausalLMPolicy(model(name), PolicyConfig(shared_prefix=shared)), batch)
        with monkeypatch.context() as patched:
            patched.setattr(scoring, "LOGITS_AT_ONCE", 5 * VOCAB)
            chunked = outputs_and_gradient(CausalLMPolicy(model(name), PolicyConfig(shared_prefix=shared)), batch)
        for expected, got in zip(whole, chunked, strict=True):
            assert_equal(got, expected)


@FLOAT64
def test_a_head_that_does_more_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that scales its logits is read through its own forward, whatever that costs."""
    made = model("qwen2")
    inner = made.forward

    def scaled(*args: Any, **kwargs: Any) -> Any:
        output = inner(*args, **kwargs)
        output.logits = output.logits * 0.5
        return output

    made.forward = scaled
    monkeypatch.setattr(scoring, "LOGITS_AT_ONCE", 5 * VOCAB)
    policy = CausalLMPolicy(made)
    batch = make_batch(groups())
    expected = made(input_ids=batch.tokens).logits.log_softmax(-1)[:, batch.first - 1 : -1]
    expected = expected.gather(-1, batch.tokens[:, batch.first :, None])[..., 0]
    mask = batch.loss_mask[:, batch.first :]
    assert_equal(policy.read(batch).logprobs[mask], expected[mask])
