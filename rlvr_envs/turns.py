"""The loop over turns, for episodes in tokens and in messages: the answer to a turn, and the answer's consequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rlvr_envs.dialogue import Dialogue
from rlvr_envs.replies import EncodedReply, answer, room_for_reply
from rlvr_envs.rules import Rules
from rlvr_envs.types import Turn
from verifiers import Completion, Message, Problem, Verdict


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
    """Ask the interaction of the rules for its answer to the last turn, cut to the available room.

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
    room = most = rules.max_inserted_tokens - inserted
    if left > 0:  # the policy needs room for at least one token after the messages
        room = min(room, room_for_reply(window - in_view, window, left, rules.turn_tokens))
        most = min(most, window - in_view - 1)
        context -= 1
    return answer(rules.interaction, dialogue, turns, problem, room=room, most=most, window=context)


@dataclass(frozen=True, slots=True)
class Followed:
    """The consequences of the answer to a turn."""

    turns: tuple[Turn, ...]
    """The policy's turns so far; if the episode goes on, the last turn has its answer."""
    reward: float = 0.0
    """The reward of the turn."""
    over: bool = False
    terminated: bool = False
    """Whether the episode is over because the other side ended it."""
    closing: tuple[Message, ...] = ()
    """The messages of the reply that ended the episode, for the verifier."""
    error: Verdict | None = None
    """A `VERIFIER_ERROR` if the interaction failed; None otherwise."""


def follow(rules: Rules, turns: tuple[Turn, ...], given: EncodedReply, left: int) -> Followed:
    """Return the consequences of the answer to the last turn; the policy may still choose `left` tokens."""
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
    """The text of the last turn for the verifier, with the whole dialogue after the prompt.

    Args:
        turns: The turns that have been answered.
        last: The last turn.
        closing: The messages of the reply that ended the episode, if there are any.
    """
    if not turns and not closing and type(last) is Message:
        return last.content
    said = [message for turn in turns for message in (turn.message, *turn.reply)]
    return Completion(last.content, (*said, last, *closing))
