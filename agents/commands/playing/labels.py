"""Labels of single tokens."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import rlvr_envs

_MOST_LEGAL = 20
"""Maximum number of legal tokens that are listed."""


def token_label(tokenizer: rlvr_envs.Tokenizer, token: int) -> str:
    r"""A token as a Python literal: its text, or its bytes if these are not whole characters; a special token by its number.

    The token that ends a completion is `<end>`.
    """
    if token == tokenizer.eos_token:
        return "<end>"
    piece = tokenizer.token_bytes(token)
    try:
        return repr(piece.decode()) if piece else f"#{token}"
    except UnicodeDecodeError:
        return repr(piece)


def legal_tokens(tokenizer: rlvr_envs.Tokenizer, action_mask: NDArray[np.int8]) -> str:
    """The legal tokens of a mask i8[v], or only their number if there are many."""
    tokens = np.flatnonzero(action_mask).tolist()
    if len(tokens) > _MOST_LEGAL:
        return f"{len(tokens)} of {len(action_mask)} tokens"
    return " ".join(token_label(tokenizer, token) for token in tokens)
