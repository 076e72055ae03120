"""Tokenizers and `transformers` models that are made in a moment and know nothing, for the tests of learned verifiers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

SHAPE = {
    "vocab_size": 320,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "max_position_embeddings": 512,
}


def character_tokenizer(
    *special: str, start: bool = True, merges: tuple[tuple[str, str], ...] = (), **options: Any
) -> Any:
    """One token for each character of ASCII and each merged pair; `<s>`, `</s>` and the `special` texts are one each.

    Args:
        special: Further special tokens.
        start: Whether `<s>` is put before a text.
        merges: Pairs of tokens that are joined.
        options: Further arguments of `PreTrainedTokenizerFast`.
    """
    added = ["<s>", "</s>", *special]
    pieces = [*added, "\n", *map(chr, range(32, 127)), *map("".join, merges)]
    core = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocab={piece: number for number, piece in enumerate(pieces)}, merges=list(merges))
    )
    core.add_special_tokens(added)
    if start:
        core.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    names = {"bos_token": "<s>", "eos_token": "</s>"} | options
    return transformers.PreTrainedTokenizerFast(tokenizer_object=core, **names)


def byte_level_tokenizer(*special: str, merges: tuple[tuple[str, str], ...] = (), **options: Any) -> Any:
    """As Qwen's: one token for each byte, where `Ġ` is a space and `Ċ` a line break, and for each merged pair; no start token.

    `AutoTokenizer` makes a `Qwen2Tokenizer` of it in the folder of a Qwen2 model.
    """
    added = ["<|endoftext|>", *special]
    pieces = [*added, *sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()), *map("".join, merges)]
    core = tokenizers.Tokenizer(tokenizers.models.BPE({p: number for number, p in enumerate(pieces)}, list(merges)))
    core.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = tokenizers.decoders.ByteLevel()
    core.add_special_tokens(added)
    names = {"eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>"} | options
    return transformers.PreTrainedTokenizerFast(tokenizer_object=core, **names)


def spread(model: Any, seed: int = 0) -> Any:
    """Draw the weights so wide that scores differ: after initialisation the scores of all texts would nearly agree."""
    torch.manual_seed(seed)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3) if parameter.dim() > 1 else parameter.data.add_(0.1)
    return model.eval()


def save(folder: Path, model: Any, tokenizer: Any) -> Path:
    """Save both, as `from_pretrained` reads them."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def chat_model(folder: Path, **shape: int) -> Path:
    """Save a causal model with a chat template, whose turns end with `<|im_end|>`; `shape` is what differs from `SHAPE`."""
    template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
    tokenizer = byte_level_tokenizer("<|im_start|>", "<|im_end|>", eos_token="<|im_end|>", chat_template=template)
    shape = SHAPE | {"vocab_size": len(tokenizer), "max_position_embeddings": 4096} | shape
    return save(
        folder,
        transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**shape, tie_word_embeddings=True)),
        tokenizer,
    )
