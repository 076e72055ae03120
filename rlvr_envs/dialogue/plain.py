"""Conversations as plain text, for models without a chat template, such as tiny models."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rlvr_envs.dialogue.calls import CallFormat, ParsedTurn, between, call_of_json
from rlvr_envs.dialogue.description import ToolDescription, describe_tools, takes_system
from rlvr_envs.dialogue.dialogue import ToolSchema
from rlvr_envs.dialogue.literal import encode_literal, spell
from rlvr_envs.tokenizers import Tokenizer
from rlvr_envs.types import ToolCall
from verifiers import InvalidArgumentError, Message

OPENING, CLOSING = "<tool>", "</tool>"
RESULT_FRAME = "<result>{}</result>"


class PlainDialogue:
    """A format in which messages follow each other as plain text; only the results of tools are framed.

    A tool is called with `<tool>{"name": ..., "arguments": {...}}</tool>`. If there is only one tool, with one argument of type
    text, the argument's text alone is enough, such as `<tool>12+34</tool>`.

    Args:
        tokenizer: Any tokenizer.
        tools: The tools that the policy may call.
        describe: Whether the opening describes the tools. Models that are trained from scratch learn to call tools without a
            description.
        frame: The text around the result of a tool, with `{}` in place of the result.

    Raises:
        InvalidArgumentError: If the frame has no `{}`.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        tools: Sequence[ToolSchema] = (),
        *,
        describe: bool = False,
        frame: str = RESULT_FRAME,
    ) -> None:
        before, place, after = frame.partition("{}")
        if not place:
            raise InvalidArgumentError(f"a frame must have {{}} where the result of a tool goes, got {frame!r}")
        self.tokenizer = tokenizer
        self.stop: Sequence[str | int] = (CLOSING,) if tools else ()
        self._before, self._after = before, after
        self._format = plain_format(tools)
        names = [str(tool["function"]["name"]) for tool in tools]
        named = (
            ""
            if _only_argument(tools) or not names
            else json.dumps({"name": min(names, key=len)}, separators=(",", ":"))
        )
        self.shortest_call = f"{OPENING}{named}{CLOSING}"
        """The shortest text that calls one of the tools."""
        self.description = (
            ToolDescription(describe_tools(tools, self._format, frame), takes_system(tokenizer.chat_template))
            if tools and describe
            else None
        )
        """The description of the tools in the opening."""

    def open(self, messages: Sequence[Message]) -> NDArray[np.int32]:
        """Encode the description of the tools and then the messages, with blank lines between them."""
        told = [] if self.description is None else [self.description.text]
        text = "\n\n".join([*told, *(message.content for message in messages)])
        return encode_literal(self.tokenizer, text, start=True)

    def bridge(self, messages: Sequence[Message], last_token: int) -> NDArray[np.int32]:
        """Encode the messages, with results of tools in their frame."""
        parts: list[NDArray[np.int32]] = []
        for message in messages:
            framed = message.role == "tool"
            parts += [self.tokenizer.encode(self._before)] if framed and self._before else []
            parts.append(encode_literal(self.tokenizer, message.content))
            parts += [self.tokenizer.encode(self._after)] if framed and self._after else []
        return np.concatenate(parts)

    def parse(self, tokens: NDArray[np.int32]) -> ParsedTurn:
        """Read the calls between tags."""
        return self._format.parse(spell(self.tokenizer, tokens))


def plain_format(tools: Sequence[ToolSchema]) -> CallFormat:
    """The format of calls between `<tool>` and `</tool>`: JSON, or the text argument of the only tool."""
    return CallFormat("plain", partial(_find, _only_argument(tools)), (OPENING, CLOSING))


def _find(only: tuple[str, str] | None, text: str) -> Iterator[Callable[[], ToolCall]]:
    for inner in between(text, OPENING, CLOSING):
        if only is None or inner.lstrip().startswith("{"):
            yield partial(call_of_json, inner)
        else:
            name, argument = only
            yield partial(ToolCall, name, {argument: inner})


def _only_argument(tools: Sequence[ToolSchema]) -> tuple[str, str] | None:
    """The names of the only tool and of its only argument, if this is a text.

    None for more tools, more arguments or another type.
    """
    if len(tools) != 1:
        return None
    function = tools[0]["function"]
    properties = function.get("parameters", {}).get("properties", {})
    texts = [name for name, schema in properties.items() if schema.get("type") == "string"]
    return (function["name"], texts[0]) if len(properties) == len(texts) == 1 else None
