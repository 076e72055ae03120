"""What a `transformers` model allows, found out by trying it on a few tokens."""

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
"""Of log-probabilities; what two orders of summation differ by in float32 is below, what a wrong layout does is far above."""
_ROUNDINGS = 4.0
"""Further roundings to the model's precision, each of a number as large as log-probabilities lie apart. Of 2, 8 and 32
layers with 6 seeds of random weights, two right passes in half precision differed by at most 0.6, 1.0 and 1.6 of them, and a
mask that shows too much by at least 18; 4 lies between."""


def inner_model(model: Any) -> Any:
    """The `transformers` model within one with an adapter, adapter included; any other model itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def body_of(model: Any) -> Any:
    """A causal LM without its output layer, adapters included."""
    return inner_model(model).base_model


def takes_positions(model: Any) -> bool:
    """Whether a model may be told where its tokens stand."""
    return "position_ids" in inspect.signature(inner_model(model).forward).parameters


@dataclass(frozen=True)
class LogitTransform:
    """What a model does to the output layer's logits: most nothing, some scale them, some bound them."""

    scale: float = 1.0
    cap: float | None = None
    """Logits z become cap tanh(z / cap), which is between -cap and cap."""

    def __call__(self, logits: Tensor) -> Tensor:
        """Give the model's logits."""
        scaled = logits if self.scale == 1 else logits * self.scale
        return scaled if self.cap is None else torch.tanh(scaled / self.cap) * self.cap


@torch.no_grad()
def logit_transform(model: Any) -> LogitTransform | None:
    """How logits come from the output layer of the body's last states.

    Scale and cap are those that the config names as Cohere, Granite and Gemma do; None where a trial gives other logits, so
    that only the model's own forward pass knows.
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
    """What a pass multiplies: the layers' matrices, whatever their shapes, and attention's pairs; not the output layer.

    The experts of a mixture, which are kept in tensors of three axes, are left out.
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
    """Whether prefixes can be shared: full attention in every layer, by `sdpa`, and a packed pass that gives the same."""
    config = model.config.get_text_config()
    layer_types = getattr(config, "layer_types", None)
    windowed = layer_types is None and getattr(config, "sliding_window", None) is not None
    if windowed or (layer_types is not None and set(layer_types) != {"full_attention"}):
        _say(type(model).__name__, "some of its layers have no full attention")
        return False
    before = model.config._attn_implementation
    if before not in ("sdpa", IMPLEMENTATION):
        _say(type(model).__name__, f"its attention is {before!r}, and 'sdpa' is needed")
        return False
    objection = _objection_to_packing(model)
    if objection is None:
        return True
    model.set_attn_implementation(before)
    _say(type(model).__name__, objection)
    return False


@torch.no_grad()
def _objection_to_packing(model: Any) -> str | None:
    """What speaks against the packed pass, compared with the plain one on two groups; None if nothing does."""
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
    except (TypeError, ValueError, IndexError, RuntimeError) as error:  # such as no positions, or no further keywords
        return f"a trial failed: {error}"
    if logits.shape[0] != len(layout.sources):
        return "it gives logits at other places than those asked for"
    logprobs = logits.float().log_softmax(-1)
    right = agree(logprobs, expected[layout.rows, layout.columns - 1], model.dtype)
    return None if right else "a trial gave other log-probabilities"


def agree(actual: Tensor, expected: Tensor, dtype: torch.dtype) -> bool:
    """Whether log-probabilities f32[...] of a trial are the expected ones, up to rounding in the model's precision.

    Weights that have diverged give NaN either way, and are no reason to give up.
    """
    finite = expected[expected.isfinite()]
    spread = float(finite.max() - finite.min()) if len(finite) else 0.0
    tolerance = _TOLERANCE + _ROUNDINGS * torch.finfo(dtype).eps * spread
    return torch.allclose(actual, expected, rtol=0, atol=tolerance, equal_nan=True)


def some_tokens(model: Any, rows: int, length: int) -> torch.Tensor:
    """Tokens i64[rows length] to try a model with."""
    vocab_size = int(model.get_output_embeddings().weight.shape[0])
    generator = torch.Generator().manual_seed(0)
    return torch.randint(vocab_size, (rows, length), generator=generator).to(model.device)


@functools.cache  # once, and not again for the copy of the model that is a reference policy
def _say(model: str, reason: str) -> None:
    logging.getLogger(__name__).warning(
        "prompts are read once for each completion when %s learns, not once for each group: %s", model, reason
    )
