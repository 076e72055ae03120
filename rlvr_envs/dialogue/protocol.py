"""Turn a conversation into messages of a server's protocol, with calls and results in separate fields, or as text alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlvr_envs.dialogue.described import without_tool_role
from rlvr_envs.dialogue.plain import RESULT_FRAME
from rlvr_envs.types import Turn
from verifiers import AssistantMessage, MadeCall, Message, ToolMessage


@dataclass(frozen=True, slots=True)
class MessageTurn(Turn):
    """A turn received as text and calls. The environment's own tokenizer makes its tokens."""

    made: tuple[MadeCall, ...] = ()
    """The calls that are not part of the text, including calls that could not be read."""
    reasoning: str = ""
    stopped_by: str = ""
    """The stop string that ended the text, if it is known."""

    @property
    def message(self) -> Message:
        """The turn as a message of a dialogue, with the calls and thoughts that are not part of its text."""
        if not self.made and not self.reasoning:
            return Message("assistant", self.text)
        return AssistantMessage("assistant", self.text, self.made, self.reasoning)


def as_text(view: Sequence[Message | Turn]) -> tuple[Message, ...]:
    """Turn a conversation into messages of text alone; thoughts are left out."""
    return tuple(without_tool_role([item if isinstance(item, Message) else _said(item) for item in view]))


def _said(turn: Turn, calls: tuple[MadeCall, ...] = ()) -> Message:
    """The message of a turn as the policy wrote it, including the stop string."""
    text = turn.text + (turn.stopped_by if isinstance(turn, MessageTurn) else "")
    return AssistantMessage("assistant", text, calls) if calls else Message("assistant", text)


def with_calls(view: Sequence[Message | Turn]) -> tuple[Message, ...]:
    """Turn a conversation into messages: each turn has its calls, and each result its call's id. Thoughts are left out.

    A call without a result is left out, and a result without a call becomes a message of the user, since servers refuse both.
    """
    messages: list[Message] = []
    for turn, said in _answered(view):
        calls = turn.made if isinstance(turn, MessageTurn) else ()
        by_id = {call.id: call for call in calls}
        # Error messages for unreadable calls come after the results of the other calls, in the order of the calls.
        named = {message.call_id for message in said if isinstance(message, ToolMessage)}
        unnamed = iter([call for call in calls if call.id not in named])
        answered: list[MadeCall] = []
        shown: list[Message] = []
        for message in said:
            own = by_id.get(message.call_id) if isinstance(message, ToolMessage) else None
            call = (own or next(unnamed, None)) if message.role == "tool" else None
            if call is not None:
                answered.append(call)
                shown.append(ToolMessage("tool", message.content, call.name, call.id))
            elif message.role == "tool":
                shown.append(Message("user", RESULT_FRAME.format(message.content)))
            else:
                shown.append(message)
        if turn is not None:
            messages.append(_said(turn, tuple(call for call in calls if call in answered)))
        messages += shown
    return tuple(messages)


def _answered(view: Sequence[Message | Turn]) -> Iterator[tuple[Turn | None, list[Message]]]:
    """The turns of a conversation, each with the messages after the turn.

    None instead of a turn goes with the first messages.
    """
    turn: Turn | None = None
    said: list[Message] = []
    for item in view:
        if isinstance(item, Turn):
            if turn is not None or said:
                yield turn, said
            turn, said = item, []
        else:
            said.append(item)
    yield turn, said


def with_ids(calls: Sequence[MadeCall], turn: int) -> tuple[MadeCall, ...]:
    """Give each call an id: the server's own id, or an id made from the numbers of the turn and the call."""
    seen: set[str] = set()
    numbered: list[MadeCall] = []
    for number, call in enumerate(calls):
        fresh = call.id if call.id and call.id not in seen else f"call_{turn}_{number}"
        seen.add(fresh)
        numbered.append(dataclasses.replace(call, id=fresh))
    return tuple(numbered)
