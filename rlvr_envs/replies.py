"""Asking the other side of an episode of several turns for its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlvr_envs.dialogue import Dialogue, fit
from rlvr_envs.types import Interaction, Reply, Turn
from verifiers import InvalidArgumentError, Problem, Verdict, verifier_error


@dataclass(frozen=True, slots=True)
class EncodedReply:
    """What a turn was answered."""

    reply: Reply | None = None
    """None ends the episode."""
    tokens: NDArray[np.int32] | None = None
    """i32[l], the reply as it is appended; None where nothing is, or where there is no room for its frame."""
    error: Verdict | None = None
    """A `VERIFIER_ERROR`, where the interaction broke."""


def answer(
    interaction: Interaction, dialogue: Dialogue, turns: Sequence[Turn], problem: Problem, room: int
) -> EncodedReply:
    """Ask an interaction for its answer to the last of some turns, and encode it in at most `room` tokens.

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
    if not reply.messages:
        return EncodedReply(reply, np.zeros(0, dtype=np.int32))
    try:
        return EncodedReply(reply, fit(dialogue, reply.messages, int(turns[-1].tokens[-1]), room))
    except Exception as error:  # noqa: BLE001 - recorded in the verdict, never scored
        return EncodedReply(error=verifier_error(error))
