"""Encode text without special tokens, and decode tokens to text in which special tokens are written out."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from rlvr_envs.tokenizers import Tokenizer
from verifiers import DataError


def encode_literal(
    tokenizer: Tokenizer, text: str, marks: Collection[str] = (), *, start: bool = False
) -> NDArray[np.int32]:
    """Encode text as tokens i32[l], so that no part of the text becomes a special token or one of the format's marks.

    A text that contains the text of a special token or a mark is split after the first character of that text or mark. The two
    parts are encoded separately, so that other tokens spell the same text. Any other text is encoded as usual.

    Args:
        tokenizer: Any tokenizer.
        text: The text.
        marks: Further texts that must not become one token.
        start: Whether the text begins a prompt, so that the tokenizer may put its own tokens before it.

    Raises:
        DataError: If the tokenizer still makes a special token from the text.
    """
    parts = split_marks(text, {*tokenizer.special_tokens, *marks})
    tokens = encode_parts(tokenizer, parts, start=start)
    special = _is_special(tokenizer, tokens)
    if special.sum() > (_is_special(tokenizer, tokenizer.encode("", start=True)).sum() if start else 0):
        raise DataError(
            f"the tokenizer reads a special token, {int(tokens[special][0])}, in {text[:80]!r} although no part of the text "
            "spells one: what is inserted into an episode must be ordinary text"
        )
    return tokens


def split_marks(text: str, marks: Collection[str]) -> list[str]:
    """Split a text after the first character of every mark in it; a text without marks stays one part."""
    cuts = {0, len(text)}
    for mark in marks:
        at = text.find(mark) if mark else -1
        while at >= 0:
            cuts.add(at + 1)
            at = text.find(mark, at + 1)
    return [text[begin:end] for begin, end in itertools.pairwise(sorted(cuts))] or [text]


def encode_parts(tokenizer: Tokenizer, parts: Sequence[str], *, start: bool = False) -> NDArray[np.int32]:
    """Encode a text that is given in parts as tokens i32[l], so that no token spans two parts.

    Args:
        tokenizer: Any tokenizer.
        parts: The parts of the text, at least one.
        start: Whether the text begins a prompt, so that the tokenizer may put its own tokens before it.
    """
    if not start and parts == [""]:
        return np.zeros(0, dtype=np.int32)
    return np.concatenate([tokenizer.encode(part, start=start and not at) for at, part in enumerate(parts)])


def _is_special(tokenizer: Tokenizer, tokens: NDArray[np.int32]) -> NDArray[np.bool_]:
    return np.isin(tokens, list(tokenizer.special_tokens.values()))


def spell(tokenizer: Tokenizer, tokens: Iterable[int]) -> str:
    """Decode tokens to text in which special tokens are written out."""
    written = {token: text.encode() for text, token in tokenizer.special_tokens.items()}
    pieces = (written.get(token) or tokenizer.token_bytes(token) for token in map(int, tokens))
    return b"".join(pieces).decode("utf-8", errors="replace")
