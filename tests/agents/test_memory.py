"""Computing activations again changes memory, never the gradient; precision and the choice follow the device."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from agents import CausalLMPolicy, make_batch, tiny_model
from agents.memory import activation_bytes, checkpoints
from tests.agents.trajectories import VOCAB, random_trajectory


def saved_and_gradients(checkpointing: Any) -> tuple[int, list[Tensor]]:
    """Bytes that the forward pass keeps for the backward, and the gradients."""
    policy = CausalLMPolicy(tiny_model(VOCAB, layers=3, hidden_size=16, heads=2, intermediate_size=32))
    policy.checkpointing = checkpointing
    generator = np.random.default_rng(0)
    batch = make_batch([random_trajectory(generator, score=1.0) for _ in range(6)])
    kept = 0

    def keep(tensor: Tensor) -> Tensor:
        nonlocal kept
        kept += tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        outputs = policy.forward(batch.tokens, batch.first)
    (outputs.logprobs * batch.loss_mask[:, batch.first :]).sum().backward()
    assert not any(module.training for module in policy.model.modules())
    return kept, [p.grad for p in policy.parameters() if p.grad is not None]


def test_gradients_are_the_same_and_less_is_kept() -> None:
    plain, expected = saved_and_gradients("off")
    again, found = saved_and_gradients("on")
    assert again < plain / 2
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
    assert saved_and_gradients("auto")[0] == plain  # on a CPU


def test_on_a_gpu_it_depends_on_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    config = SimpleNamespace(num_hidden_layers=24, hidden_size=896)
    model = SimpleNamespace(device=torch.device("cuda"), config=SimpleNamespace(get_text_config=lambda: config))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 0)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 0)
    needed = activation_bytes(config, 1000, 50_000, 2)
    assert needed == 1000 * (24 * 896 * 34 + 50_000 * 12)
    for free, expected in ((needed, True), (2 * needed, False)):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device, free=free: (free, free))
        assert checkpoints(model, "auto", 1000, 50_000, 2) is expected
    assert checkpoints(model, "on", 1, 1, 2)
    assert not checkpoints(model, "off", 10**9, 10**6, 2)


def test_bfloat16_is_close_and_used_for_sampling_and_learning_alike() -> None:
    model = tiny_model(VOCAB, layers=1, hidden_size=16, heads=2, intermediate_size=32)
    exact, half = CausalLMPolicy(model), CausalLMPolicy(model, precision="bfloat16")
    assert exact.precision == "float32"  # what "auto" means on a CPU
    tokens = torch.randint(VOCAB, (3, 7), generator=torch.Generator().manual_seed(0))
    one, other = exact.forward(tokens, 2).logprobs, half.forward(tokens, 2).logprobs
    assert one.dtype is other.dtype is torch.float32
    assert 0 < float((one - other).detach().abs().max()) < 0.05
    observation = {"tokens": tokens[:, :3].numpy().astype(np.int32), "length": np.full(3, 3, dtype=np.int32)}
    action = half.act(observation)
    chosen = torch.cat([tokens[:, :3], torch.from_numpy(action.tokens)], dim=1)
    learned = half.forward(chosen, 3).logprobs.detach()[:, 0].numpy()
    assert np.abs(learned - action.logprobs[:, 0]).max() < 0.02
