"""Small models of several architectures of `transformers`, with random weights."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "qwen2": {},
    "gpt2": {},
    "llama": {},
    "qwen3": {"head_dim": 8},
    # Some positions see a window only, so rows can leave the cache and none can join.
    "mistral": {"sliding_window": 4},
    # Convolutions beside attention: no cache of keys and values that could be used row by row.
    "lfm2": {"full_attn_idxs": [1]},
    # Attention and a state space in one layer, whose cache is one of keys and values and more.
    "falcon_h1": {"mamba_d_state": 8, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_ssm": 32, "mamba_n_groups": 1},
    # A model that takes no cache at all.
    "openai-gpt": {},
    # Learned terms that are added to the scores of attention by way of its mask.
    "doge": {},
}


def model_of(architecture: str, vocab_size: int, scale: float = 3.0, **sizes: Any) -> Any:
    """A model whose weights are multiplied by `scale`: as they are made they give nearly uniform tokens."""
    settings = SIZES | {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    settings |= ARCHITECTURES[architecture] | sizes
    config = AutoConfig.for_model(architecture, vocab_size=vocab_size, **settings)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.get_default_dtype())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(scale)
    return model.eval()
