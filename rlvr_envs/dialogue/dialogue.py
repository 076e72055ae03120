"""The interface of conversation formats, and functions that encode messages and cut them to the available room."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rlvr_envs.contexts import SummaryRequest
from rlvr_envs.dialogue.calls import ParsedTurn
from rlvr_envs.dialogue.literal import encode_literal
from rlvr_envs.tokenizers import Tokenizer, decode
from rlvr_envs.types import Turn
from verifiers import InvalidArgumentError, Message

ToolSchema = Mapping[str, Any]
"""A tool's description: `{"type": "function", "function": {"name": ..., "description": ..., "parameters": JSON schema}}`."""


class Dialogue(Protocol):
    """A format of conversations, for one tokenizer and one set of tools."""

    tokenizer: Tokenizer
    stop: Sequence[str | int]
    """Strings or tokens that stop a turn, in addition to the end token and the stops of the environment."""

    def open(self, messages: Sequence[Message]) -> NDArray[np.int32]:
        """Encode the beginning of a conversation as tokens i32[l], up to the start of the policy's first turn."""
        ...

    def bridge(self, messages: Sequence[Message], last_token: int) -> NDArray[np.int32]:
        """Encode the part between two turns of the policy as tokens i32[l]: the messages and their frame.

        Args:
            messages: The messages that answer the policy's turn, at least one.
            last_token: The last token of the turn that is answered.
        """
        ...

    def parse(self, tokens: NDArray[np.int32]) -> ParsedTurn:
        """Read the tool calls in a turn of tokens i32[t]."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Fitted:
    """Messages that have been cut to the available room."""

    tokens: NDArray[np.int32]
    """i32[l], the tokens of the messages; if the context is new, its tokens come first."""
    messages: tuple[Message, ...]
    """The messages as they are shown."""


def fit(
    dialogue: Dialogue,
    messages: Sequence[Message],
    last_token: int,
    room: int,
    *,
    context: Sequence[Message | Turn] | None = None,
) -> Fitted | None:
    """Encode messages as `Dialogue.bridge` does, and cut them to at most `room` tokens; None if not even the marks fit.

    The longest message is cut first, at its end, where a mark tells how much is missing. A request for a summary is never cut.

    Args:
        dialogue: The format of the conversation.
        messages: The messages to encode.
        last_token: The last token of the turn that is answered.
        room: The maximum number of tokens.
        context: A new context before the messages, which needs room, too, and is never cut. None if the messages follow the
            tokens in view.
    """

    def encode(said: Sequence[Message]) -> NDArray[np.int32]:
        return dialogue.bridge(said, last_token) if context is None else encode_context(dialogue, (*context, *said))

    encoded = [encode_literal(dialogue.tokenizer, message.content) for message in messages]
    kept = [
        0 if isinstance(message, SummaryRequest) else len(tokens)
        for message, tokens in zip(messages, encoded, strict=True)
    ]
    shown = list(messages)
    while len(tokens := encode(shown)) > room:
        if not any(kept):
            return None
        longest = int(np.argmax(kept))
        # The mark needs tokens, too, and tokens at the cut may merge differently. Another round cuts any remaining excess.
        kept[longest] = max(kept[longest] - max(len(tokens) - room, _MARK_TOKENS), 0)
        text = _cut(dialogue.tokenizer, encoded[longest], kept[longest])
        shown[longest] = dataclasses.replace(messages[longest], content=text)
    return Fitted(tokens, tuple(shown))


def encode_context(dialogue: Dialogue, context: Sequence[Message | Turn]) -> NDArray[np.int32]:
    """Encode a conversation as tokens i32[l], up to the start of the policy's next turn.

    Earlier turns keep their sampled tokens.

    Args:
        dialogue: The format of the conversation.
        context: Messages and turns; the first and the last item are messages.

    Raises:
        InvalidArgumentError: If the result has no token at all.
    """
    parts: list[NDArray[np.int32]] = []
    for is_turn, items in itertools.groupby(context, key=lambda item: isinstance(item, Turn)):
        if is_turn:
            parts += [item.tokens for item in items if isinstance(item, Turn)]
            continue
        said = [item for item in items if isinstance(item, Message)]
        parts.append(dialogue.bridge(said, int(parts[-1][-1])) if parts else dialogue.open(said))
    tokens: NDArray[np.int32] = np.concatenate(parts)
    if not len(tokens):
        raise InvalidArgumentError(
            "the context of a reply has no tokens: the policy needs at least one to continue, such as those of the problem"
        )
    return tokens


_MARK_TOKENS = 8
"""The approximate number of tokens of a mark."""


def _cut(tokenizer: Tokenizer, tokens: NDArray[np.int32], kept: int) -> str:
    """The text of the first `kept` tokens, followed by a note of how many tokens were cut."""
    left = decode(tokenizer, tokens[:kept].tolist()).rstrip("\ufffd")
    return f"{left} [cut: {len(tokens) - kept} of {len(tokens)} tokens]"
