"""Capabilities of a `transformers` model apart from its cache, determined by trials on a few tokens."""

from __future__ import annotations

import functools
import inspect
import logging
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from agents.policies.transformers.prefix_sharing import IMPLEMENTATION, Costs, plan, shared_prefix_attention

_TOLERANCE = 1e-3
"""Tolerance of log-probabilities: above the effect of the order of summation in float32, far below the effect of a wrong
layout."""
_ROUNDINGS = 4.0
"""Additional tolerance in rounding errors of the model's precision, relative to the spread of log-probabilities. For 2, 8 and
32 layers with 6 seeds of random weights, two correct passes in half precision differed by at most 0.6, 1.0 and 1.6 rounding
errors, and passes with a mask that is too wide by at least 18; 4 is in between."""


def inner_model(model: Any) -> Any:
    """The `transformers` model, including the adapter, inside a model with an adapter; other models are returned unchanged."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def body_of(model: Any) -> Any:
    """The body of a causal LM: everything but the output layer; adapters are kept."""
    return inner_model(model).base_model


def takes_positions(model: Any) -> bool:
    """Whether a model accepts position ids."""
    return "position_ids" in inspect.signature(inner_model(model).forward).parameters


@dataclass(frozen=True)
class LogitTransform:
    """A model's transformation of the output layer's logits: most models have none, some scale or soft-cap the logits."""

    scale: float = 1.0
    cap: float | None = None
    """Logits z become cap tanh(z / cap), which lies between -cap and cap; None leaves them unchanged."""

    def __call__(self, logits: Tensor) -> Tensor:
        """Turn results of the output layer into the model's logits."""
        scaled = logits if self.scale == 1 else logits * self.scale
        return scaled if self.cap is None else torch.tanh(scaled / self.cap) * self.cap


@torch.no_grad()
def logit_transform(model: Any) -> LogitTransform | None:
    """The transformation from the output layer's results to the model's logits.

    Scale and cap are read from the config, under the names of Cohere, Granite and Gemma; None if a trial gives other logits,
    so that the model's own forward pass must be used.
    """
    tokens = some_tokens(model, 1, 4)
    expected = model(input_ids=tokens, use_cache=False).logits
    states = getattr(body_of(model)(input_ids=tokens, use_cache=False), "last_hidden_state", None)
    if states is None or states.shape[-1] != model.get_output_embeddings().weight.shape[1]:
        return None
    config = model.config.get_text_config()
    transform = LogitTransform(
        scale=(getattr(config, "logit_scale", None) or 1.0) / (getattr(config, "logits_scaling", None) or 1.0),
        cap=getattr(config, "final_logit_softcapping", None),
    )
    logits = transform(model.get_output_embeddings()(states))
    same = logits.shape == expected.shape and torch.allclose(logits, expected, rtol=1e-4, atol=1e-5)
    return transform if same else None


def costs_of(model: Any) -> Costs:
    """The multiplications of a pass, by the layers' matrices and by attention, without the output layer.

    The experts of a mixture of experts, which are tensors with three axes, are not counted.
    """
    config = model.config.get_text_config()
    tables = {id(module.weight) for module in model.modules() if isinstance(module, torch.nn.Embedding)}
    matrices = [
        parameter for parameter in body_of(model).parameters() if parameter.dim() == 2 and id(parameter) not in tables
    ]
    heads = config.num_attention_heads
    head_size = getattr(config, "head_dim", None) or config.hidden_size // heads
    return Costs(
        token=sum(matrix.numel() for matrix in matrices),
        pair=2 * config.num_hidden_layers * heads * head_size,
    )


def can_share(model: Any) -> bool:
    """Whether prefixes can be shared: full `sdpa` attention in every layer, and a packed pass with equal results."""
    config = model.config.get_text_config()
    layer_types = getattr(config, "layer_types", None)
    windowed = layer_types is None and getattr(config, "sliding_window", None) is not None
    if windowed or (layer_types is not None and set(layer_types) != {"full_attention"}):
        _say(type(model).__name__, "some of its layers have no full attention")
        return False
    before = model.config._attn_implementation
    if before not in ("sdpa", IMPLEMENTATION):
        _say(type(model).__name__, f"its attention is {before!r}, but 'sdpa' is needed")
        return False
    objection = _objection_to_packing(model)
    if objection is None:
        return True
    model.set_attn_implementation(before)
    _say(type(model).__name__, objection)
    return False


@torch.no_grad()
def _objection_to_packing(model: Any) -> str | None:
    """Compare the packed pass with the plain pass on two groups; return why packing can't be used, or None if it can."""
    tokens = some_tokens(model, 4, 7)
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
    except (TypeError, ValueError, IndexError, RuntimeError) as error:  # such as no support of positions or keywords
        return f"a trial failed: {error}"
    if logits.shape[0] != len(layout.sources):
        return "it returns logits at other positions than requested"
    logprobs = logits.float().log_softmax(-1)
    right = agree(logprobs, expected[layout.rows, layout.columns - 1], model.dtype)
    return None if right else "a trial gave other log-probabilities"


def agree(actual: Tensor, expected: Tensor, dtype: torch.dtype) -> bool:
    """Whether log-probabilities f32[...] of a trial are the expected ones, up to rounding in the model's precision.

    NaN equals NaN: diverged weights give NaN in both passes.
    """
    finite = expected[expected.isfinite()]
    spread = float(finite.max() - finite.min()) if len(finite) else 0.0
    tolerance = _TOLERANCE + _ROUNDINGS * torch.finfo(dtype).eps * spread
    return torch.allclose(actual, expected, rtol=0, atol=tolerance, equal_nan=True)


def some_tokens(model: Any, rows: int, length: int) -> torch.Tensor:
    """Random tokens i64[rows length] for trials."""
    vocab_size = int(model.get_output_embeddings().weight.shape[0])
    generator = torch.Generator().manual_seed(0)
    return torch.randint(vocab_size, (rows, length), generator=generator).to(model.device)


@functools.cache  # once, and not again for the copy of the model that is a reference policy
def _say(model: str, reason: str) -> None:
    logging.getLogger(__name__).warning(
        "in training, %s computes prompts once for each completion, not once for each group: %s", model, reason
    )
