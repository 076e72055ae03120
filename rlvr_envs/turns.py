"""The loop over turns, for episodes in tokens and in messages: get the answer to a turn, and apply its consequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rlvr_envs.contexts import SummaryRequest
from rlvr_envs.dialogue import Dialogue, Fitted, fit
from rlvr_envs.rules import Rules
from rlvr_envs.types import Reply, Turn
from verifiers import Completion, InvalidArgumentError, Message, Problem, Verdict, verifier_error


@dataclass(frozen=True, slots=True)
class EncodedReply:
    """The answer to a turn."""

    reply: Reply | None = None
    """The reply; None ends the episode."""
    tokens: NDArray[np.int32] | None = None
    """i32[l], the tokens of the reply or of the reply's new context. None if nothing is to be appended, or if there is no
    room."""
    shown: tuple[Message, ...] = ()
    """The messages of the reply as the policy sees them, which are cut if they are too long."""
    error: Verdict | None = None
    """A `VERIFIER_ERROR` if the interaction failed; None otherwise."""


def room_for_reply(free: int, window: int, budget: int, turn_tokens: int | None = None) -> int:
    """Maximum length of an answer, in tokens, that leaves the policy room for its next turn.

    Args:
        free: Number of tokens that may still be added to the view.
        window: Maximum number of tokens in view.
        budget: Number of tokens that the policy may still choose, at least 1.
        turn_tokens: The length of a turn, if turns have a fixed length.
    """
    return free - max(min(turn_tokens or window // 4, budget, free // 2), 1)


def answer_turn(
    rules: Rules,
    dialogue: Dialogue,
    turns: Sequence[Turn],
    problem: Problem,
    *,
    left: int,
    inserted: int,
    in_view: int,
    window: int,
    context: int,
) -> EncodedReply:
    """Ask the rules' interaction to answer the last turn, and cut the answer to the available room.

    Args:
        rules: The rules.
        dialogue: The format of the conversation.
        turns: The policy's turns so far.
        problem: The problem of the episode.
        left: Number of tokens that the policy may still choose.
        inserted: Number of tokens of earlier answers.
        in_view: Number of tokens in view at the end of the turn.
        window: Maximum number of tokens in view.
        context: Maximum number of tokens of a new context and the messages after it.

    Raises:
        InvalidArgumentError: If the answer is neither a `Reply` nor None.
    """
    assert rules.interaction is not None
    try:
        reply: object = rules.interaction(turns, problem)
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
    room = most = rules.max_inserted_tokens - inserted
    if left > 0:  # leave room for at least one token of the policy after the messages
        room = min(room, room_for_reply(window - in_view, window, left, rules.turn_tokens))
        most = min(most, window - in_view - 1)
        context -= 1
    try:
        fitted = _fit(dialogue, reply, int(turns[-1].tokens[-1]), room, most, context)
    except Exception as error:  # noqa: BLE001 - recorded in the verdict, never scored
        return EncodedReply(error=verifier_error(error))
    return EncodedReply(reply) if fitted is None else EncodedReply(reply, fitted.tokens, fitted.messages)


def _fit(dialogue: Dialogue, reply: Reply, last: int, room: int, most: int, context: int) -> Fitted | None:
    """Cut a reply to `room` tokens. A request for a summary may take up to `most` tokens, and a new context up to `context`."""
    if reply.context is not None:
        return fit(dialogue, reply.messages, last, context, context=reply.context)
    fitted = fit(dialogue, reply.messages, last, room)
    if fitted is None and isinstance(reply.messages[-1], SummaryRequest):
        fitted = fit(dialogue, reply.messages, last, most)
    return fitted


@dataclass(frozen=True, slots=True)
class Followed:
    """The consequences of the answer to a turn."""

    turns: tuple[Turn, ...]
    """The policy's turns so far; if the episode goes on, the last turn includes its answer."""
    reward: float = 0.0
    """The reward of the turn."""
    over: bool = False
    terminated: bool = False
    """Whether the interaction ended the episode."""
    closing: tuple[Message, ...] = ()
    """The messages of the reply that ended the episode, for the verifier."""
    error: Verdict | None = None
    """A `VERIFIER_ERROR` if the interaction failed; None otherwise."""


def follow(rules: Rules, turns: tuple[Turn, ...], given: EncodedReply, left: int) -> Followed:
    """Return the consequences of the answer to the last turn, if the policy may still choose `left` tokens."""
    reply = given.reply
    reward = 0.0 if reply is None else reply.reward
    if given.error is not None:
        return Followed(turns, reward, over=True, error=given.error)
    if reply is None or reply.ends:
        closing = () if reply is None else reply.messages
        return Followed(turns, reward, over=True, terminated=True, closing=closing)
    if given.tokens is None or left <= 0 or len(turns) == rules.max_turns:
        return Followed(turns, reward, over=True)
    cut = given.shown if given.shown != reply.messages else None
    answered = replace(turns[-1], reply=reply.messages, shown=cut, context=reply.context)
    return Followed((*turns[:-1], answered), reward)


def judged_text(turns: Sequence[Turn], last: Message, closing: tuple[Message, ...] = ()) -> str:
    """The last turn's text for the verifier, which carries the whole dialogue after the prompt.

    Args:
        turns: The turns that have been answered.
        last: The last turn.
        closing: The messages of the reply that ended the episode, if there are any.
    """
    if not turns and not closing and type(last) is Message:
        return last.content
    said = [message for turn in turns for message in (turn.message, *turn.reply)]
    return Completion(last.content, (*said, last, *closing))
