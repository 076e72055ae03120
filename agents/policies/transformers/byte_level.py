"""A byte tokenizer for models that `transformers` loads by itself, such as reward models."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import rlvr_envs

_EOS, _PAD = "<|end|>", "<|pad|>"


def hugging_face_bytes() -> Any:
    """Build a tokenizer with the tokens of `ByteTokenizer` (a byte is its own id, 256 the end), and 257 for padding."""
    import tokenizers
    from transformers import PreTrainedTokenizerFast

    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [byte for byte in range(256) if byte not in set(plain)]
    # Byte-level BPE writes printable bytes as themselves and moves the others, in order, to U+0100 and up.
    vocab = {chr(byte): byte for byte in plain} | {chr(0x100 + index): byte for index, byte in enumerate(moved)}
    core = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={**vocab, _EOS: 256, _PAD: 257}, merges=[]))
    core.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = tokenizers.decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=core, eos_token=_EOS, pad_token=_PAD)


@torch.no_grad()
def copy_embeddings(model: Any, embeddings: Tensor, own: rlvr_envs.Tokenizer) -> None:
    """Give each byte of a resized model the embedding f32[d] of the token that consists of this byte alone, if there is one."""
    rows = model.get_input_embeddings().weight
    rows.normal_(std=float(embeddings.std()))
    for token in range(own.vocab_size):
        piece = own.token_bytes(token)
        if len(piece) == 1:
            rows[piece[0]] = embeddings[token].to(rows.device)
    rows[256] = embeddings[own.eos_token].to(rows.device)
