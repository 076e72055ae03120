"""Completions of an engine as the action of many rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agents.policies.vllm.engine import SampledCompletion
from agents.types import Action
from verifiers import EngineError, InvalidArgumentError


def action_of(
    shape: tuple[int, int],
    rows: NDArray[np.int64],
    completions: Sequence[SampledCompletion],
    *,
    greedy: bool,
    leaves_out: bool,
    legal: NDArray[np.int8] | None,
    masked: bool,
) -> Action:
    """The action that gives some rows their completions, and all other rows no token.

    Args:
        shape: The numbers b of rows and v of tokens.
        rows: i64[r], the rows of the completions.
        completions: The completions of these rows.
        greedy: Whether completions consist of the likeliest tokens, which have no log-probabilities to learn from.
        leaves_out: Whether top-k, top-p or min-p leave tokens out, so that each choice needs its candidates.
        legal: i8[v], 1 for tokens that the environment allows; None if all are legal.
        masked: Whether the environment limits tokens.

    Raises:
        EngineError: If tokens are left out and the engine does not report which it kept.
    """
    count, size = shape
    width = max((len(completion.tokens) for completion in completions), default=1)
    kept = None
    if leaves_out:
        candidates = _candidates((count, width, size), rows, completions)
        # A forbidden token may be among the k likeliest if hardly any other tokens are left.
        kept = np.packbits(candidates if legal is None else candidates & legal.astype(bool), axis=-1)
    elif masked:
        assert legal is not None
        packed = np.packbits(legal.astype(bool))
        kept = np.broadcast_to(packed, (count, width, len(packed)))
    action = Action(
        np.zeros((count, width), dtype=np.int64),
        np.zeros(count, dtype=np.int64),
        np.zeros((count, width), dtype=np.float32),
        kept,
    )
    for row, completion in zip(rows.tolist(), completions, strict=True):
        length = len(completion.tokens)
        action.tokens[row, :length] = completion.tokens
        action.logprobs[row, :length] = np.nan if greedy else completion.logprobs
        action.counts[row] = length
    return action


def _candidates(
    shape: tuple[int, int, int], rows: NDArray[np.int64], completions: Sequence[SampledCompletion]
) -> NDArray[np.bool_]:
    """The tokens bool[b n v] from which each choice was made."""
    kept = np.zeros(shape, dtype=bool)
    for row, completion in zip(rows.tolist(), completions, strict=True):
        if completion.kept is None or len(completion.kept) != len(completion.tokens):
            raise EngineError(
                "the engine does not report which tokens top-k, top-p and min-p kept, which training needs: leave them "
                "out, or start a server with --return-sampling-mask on a GPU"
            )
        for position, tokens in enumerate(completion.kept):
            kept[row, position, [token for token in tokens if token < shape[-1]]] = True
    return kept


def check_mask(mask: NDArray[np.int8] | None, asked: NDArray[np.int64], legal: NDArray[np.int8] | None) -> None:
    """Check that the mask i8[b v] of each requested row is the engine's set of legal tokens i8[v]."""
    if mask is None:
        return
    if legal is None or (np.atleast_2d(mask)[asked].astype(bool) != legal.astype(bool)).any():
        raise InvalidArgumentError(
            "the environment restricts the legal tokens, and vLLM takes one set of them for all steps: pass the mask of a "
            "FixedActions to VLLMPolicy as legal_tokens (`for_env` does), and sample with the policy itself where the "
            "legal tokens change"
        )
