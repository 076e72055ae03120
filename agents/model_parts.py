"""What a `transformers` model allows, found out by trying it on a few tokens."""

from __future__ import annotations

import inspect
import logging
from typing import Any

import torch

from agents.shared_prefix import IMPLEMENTATION, plan, shared_prefix_attention

_TOLERANCE = 1e-3
"""Of log-probabilities; what two orders of summation differ by is below, what a wrong layout does is far above."""


def inner_model(model: Any) -> Any:
    """The `transformers` model within one with an adapter, adapter included; any other model itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def body_of(model: Any) -> Any:
    """A causal LM without its output layer, adapters included."""
    return inner_model(model).base_model


def takes_positions(model: Any) -> bool:
    """Whether a model may be told where its tokens stand."""
    return "position_ids" in inspect.signature(inner_model(model).forward).parameters


@torch.no_grad()
def head_is_plain(model: Any) -> bool:
    """Whether logits are the output layer of the body's last states and no more (some models scale or cap them)."""
    tokens = _some_tokens(model, 1, 4)
    expected = model(input_ids=tokens, use_cache=False).logits
    states = getattr(body_of(model)(input_ids=tokens, use_cache=False), "last_hidden_state", None)
    if states is None or states.shape[-1] != model.get_output_embeddings().weight.shape[1]:
        return False
    found = model.get_output_embeddings()(states)
    return found.shape == expected.shape and bool(torch.allclose(found, expected, rtol=1e-4, atol=1e-5))


def can_share(model: Any) -> bool:
    """Whether prefixes can be shared: full attention in every layer, by `sdpa`, and a packed pass that gives the same."""
    config = model.config.get_text_config()
    kinds = getattr(config, "layer_types", None)
    windowed = kinds is None and getattr(config, "sliding_window", None) is not None
    if windowed or (kinds is not None and set(kinds) != {"full_attention"}):
        _say(model, "some of its layers have no full attention")
        return False
    if model.config._attn_implementation not in ("sdpa", IMPLEMENTATION):
        return False
    before = model.config._attn_implementation
    if _packed_is_right(model):
        return True
    model.set_attn_implementation(before)
    _say(model, "a trial gave other log-probabilities")
    return False


@torch.no_grad()
def _packed_is_right(model: Any) -> bool:
    """Compare the packed pass with the plain one on two groups."""
    tokens = _some_tokens(model, 4, 7)
    tokens[1, :3], tokens[3, :3] = tokens[0, :3], tokens[2, :3]
    lengths = torch.tensor([7, 5, 6, 4])
    expected = model(input_ids=tokens, use_cache=False).logits.float().log_softmax(-1)
    layout = plan(tokens, lengths, torch.full((4,), 3))
    try:
        with shared_prefix_attention(model):
            logits = model(
                input_ids=layout.tokens,
                position_ids=layout.positions,
                use_cache=False,
                prefix_layout=layout.groups,
                logits_to_keep=layout.sources,
            ).logits[0]
    except (TypeError, ValueError, IndexError, RuntimeError):  # it takes no positions, or no further keywords
        return False
    if logits.shape[0] != len(layout.sources):
        return False
    found = logits.float().log_softmax(-1)
    # Weights that have diverged give NaN either way, and are no reason to give up.
    return torch.allclose(found, expected[layout.rows, layout.places - 1], rtol=0, atol=_TOLERANCE, equal_nan=True)


def _some_tokens(model: Any, rows: int, length: int) -> torch.Tensor:
    vocab_size = int(model.get_output_embeddings().weight.shape[0])
    generator = torch.Generator().manual_seed(0)
    return torch.randint(vocab_size, (rows, length), generator=generator).to(model.device)


def _say(model: Any, reason: str) -> None:
    logging.getLogger(__name__).warning(
        "prompts are read once for each completion when %s learns, not once for each group: %s",
        type(model).__name__,
        reason,
    )
