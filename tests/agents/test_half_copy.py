"""Sampling in half precision on a CPU: matrices are converted once, and the logits stay the same to the bit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from agents.policies.transformers import kv_cache
from agents.policies.transformers.kv_cache import CacheKind, Grouping, RowCache
from agents.policies.transformers.language_model import HalfCopy
from tests.agents.architectures import model_of
from tests.agents.test_policy import VOCAB


def logits_of(module: Any) -> list[Tensor]:
    """Logits after two prompts of unequal lengths, and after each of five more tokens."""
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        cache = RowCache(module, CacheKind.MERGED, positions=True)
        first = cache.prefill([torch.arange(5), torch.arange(3)], torch.tensor([0, 1, 1]))
        return [first, *(cache.append(torch.arange(3) + step) for step in range(5))]


@pytest.mark.parametrize("architecture", ["gpt2", "llama", "qwen2", "qwen3"])
def test_a_copy_computes_the_same_bits_before_and_after_an_update(architecture: str) -> None:
    module = model_of(architecture, VOCAB, scale=1.0)
    half = HalfCopy(module)
    half.update()
    before = logits_of(module)
    assert all(map(torch.equal, logits_of(half.module), before))
    with torch.no_grad():
        for weight in module.parameters():
            weight.mul_(1.5)
    half.update()
    assert all(map(torch.equal, logits_of(half.module), logits_of(module)))
    assert not torch.equal(logits_of(module)[-1], before[-1])


def test_a_copy_shares_all_but_matrices() -> None:
    module = nn.Sequential(nn.Embedding(3, 4), nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 3, bias=False))
    module[3].weight = module[0].weight  # tied, as in many language models
    copied = HalfCopy(module).module
    assert copied[0].weight is module[0].weight
    assert copied[1].bias is module[1].bias
    assert copied[2].weight is module[2].weight
    assert copied[1].weight.dtype is copied[3].weight.dtype is torch.bfloat16
    assert module[3].weight.dtype is torch.float32


@pytest.mark.parametrize("architecture", ["llama", "qwen3"])
def test_keys_in_half_precision_give_the_same_bits(architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where prompts are shared; they are kept in the precision of attention."""
    module = model_of(architecture, VOCAB, scale=1.0)

    def grouped(precision: torch.dtype) -> list[Tensor]:
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            cache = RowCache(module, CacheKind.MERGED, positions=True, grouping=Grouping.ALWAYS)
            first = cache.prefill([torch.arange(5), torch.arange(3)], torch.tensor([0, 0, 1, 1, 1]))
            logits = [first, *(cache.append(torch.arange(5) + step) for step in range(5))]
        assert {layer.keys.dtype for layer in cache._cache.layers} == {precision}
        return logits

    kept = grouped(torch.bfloat16)
    monkeypatch.setattr(kv_cache, "_as_attended", lambda states: states)
    assert all(map(torch.equal, kept, grouped(torch.float32)))
