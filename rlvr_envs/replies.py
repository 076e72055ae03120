"""Asking the other side of an episode of several turns for its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlvr_envs.contexts import SummaryRequest
from rlvr_envs.dialogue import Dialogue, fit
from rlvr_envs.types import Interaction, Reply, Turn
from verifiers import InvalidArgumentError, Message, Problem, Verdict, verifier_error


@dataclass(frozen=True, slots=True)
class EncodedReply:
    """The answer to a turn."""

    reply: Reply | None = None
    """The reply; None ends the episode."""
    tokens: NDArray[np.int32] | None = None
    """i32[l], the reply to append or the reply's new context; None if there is neither, or no room."""
    shown: tuple[Message, ...] = ()
    """The messages of the reply as the policy sees them; messages that are too long are cut."""
    error: Verdict | None = None
    """A `VERIFIER_ERROR` if the interaction failed; None otherwise."""


def room_for_reply(free: int, window: int, budget: int, turn_tokens: int | None = None) -> int:
    """Maximum number of tokens of an answer such that the policy has room for its next turn.

    Args:
        free: Number of tokens that may still be added to the view.
        window: Maximum number of tokens in view.
        budget: Number of tokens that the policy may still choose, at least 1.
        turn_tokens: The length of a turn, if turns have a fixed length.
    """
    return free - max(min(turn_tokens or window // 4, budget, free // 2), 1)


def answer(
    interaction: Interaction,
    dialogue: Dialogue,
    turns: Sequence[Turn],
    problem: Problem,
    *,
    room: int,
    most: int,
    window: int,
) -> EncodedReply:
    """Ask an interaction for its answer to the last turn, and encode the answer.

    Args:
        interaction: The interaction that answers.
        dialogue: The format of the conversation.
        turns: The policy's turns so far.
        problem: The problem of the episode.
        room: Maximum number of tokens of an answer that is appended; a longer answer is cut.
        most: The maximum for an answer that requests a summary, if the request does not fit into `room`.
        window: Maximum number of tokens of a new context and the messages after it; only the messages are cut.

    Raises:
        InvalidArgumentError: If the answer is neither a `Reply` nor None.
    """
    try:
        reply: object = interaction(turns, problem)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - recorded in the verdict, never scored
        return EncodedReply(error=verifier_error(error))
    if reply is None:
        return EncodedReply()
    if not isinstance(reply, Reply):
        raise InvalidArgumentError(
            f"an interaction must return a rlvr_envs.Reply, or None to end the episode; got {reply!r}"
        )
    if reply.ends:
        return EncodedReply(reply)
    if not reply.messages and reply.context is None:
        return EncodedReply(reply, np.zeros(0, dtype=np.int32))
    try:
        said, last = reply.messages, int(turns[-1].tokens[-1])
        fitted = fit(dialogue, said, last, room if reply.context is None else window, context=reply.context)
        if fitted is None and reply.context is None and isinstance(said[-1], SummaryRequest):
            fitted = fit(dialogue, said, last, most)
    except Exception as error:  # noqa: BLE001 - recorded in the verdict, never scored
        return EncodedReply(error=verifier_error(error))
    return EncodedReply(reply) if fitted is None else EncodedReply(reply, fitted.tokens, fitted.messages)
