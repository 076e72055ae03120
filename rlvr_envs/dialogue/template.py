"""Conversations in a model's own chat template.

The template is rendered with placeholders for the messages of people and tools. The text between placeholders belongs to the
template and may hold special tokens; the messages that replace the placeholders are plain text. After a turn of the policy
comes the text that the template writes after a turn of the assistant. So this code depends on no model's special tokens.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlvr_envs.dialogue.calls import CALL_FORMATS, NO_CALLS, CallFormat, ParsedTurn
from rlvr_envs.dialogue.dialogue import ToolSchema
from rlvr_envs.dialogue.literal import encode_literal, spell
from rlvr_envs.tokenizers import HuggingFaceTokenizer
from rlvr_envs.turn_ends import ASSISTANT, USER, special_tokens_in
from verifiers import InvalidArgumentError, Message, ToolMessage

# The quotation mark shows whether the template writes messages as JSON.
_CONTENT = 'Zq7said{}"7qZ'
_PLACE = re.compile(r'Zq7said(\d+)(\\?)"7qZ')
_CALL_ID = "000000000"
"""Placeholder for the id of a call; Mistral's templates require nine letters or digits."""

Piece = tuple[str, bool]
"""A text; True if it is the template's own text, False if it is a message's."""


class TemplateDialogue:
    """A Hugging Face tokenizer's chat template.

    The tokens equal the template's own tokens for the whole conversation, unless the template changes earlier turns, such as by
    dropping thoughts. Sampled tokens never change. The text of a special token in a message of people or tools is encoded as
    ordinary text.

    Args:
        tokenizer: A tokenizer with a chat template.
        tools: The tools that the template lists.
        call_format: The format of the model's tool calls; None for the format of the template's own calls.
        options: Further variables of the template, such as `{"enable_thinking": False}`.

    Raises:
        InvalidArgumentError: If there is no chat template, or the template can't render tools, their calls or their results, or
            writes calls in a different format.
    """

    def __init__(
        self,
        tokenizer: HuggingFaceTokenizer,
        tools: Sequence[ToolSchema] = (),
        *,
        call_format: CallFormat | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self._tools = [dict(tool) for tool in tools]
        self._options = dict(options or {})
        if tokenizer.chat_template is None:
            raise self._unfit("is missing")
        self._format = self._chosen_format(call_format) if tools else NO_CALLS
        self.stop: Sequence[str | int] = self._stops() if tools else ()

    def open(self, messages: Sequence[Message]) -> NDArray[np.int32]:
        """Encode the messages and the mark that begins the assistant's turn."""
        chat = [_chat_message(message, at) for at, message in enumerate(messages)]
        text = self._render(chat)
        if len(_PLACE.findall(text)) < len(messages):
            raise self._unfit(f"leaves out what a message says: {text[:200]!r}")
        tokens, opening = self._encode(_filled(text, messages)), self.tokenizer.encode("", start=True)
        begun = tokens[: len(opening)].tolist() == opening.tolist()
        return tokens if begun else np.concatenate([opening, tokens])

    def bridge(self, messages: Sequence[Message], last_token: int) -> NDArray[np.int32]:
        """Encode the template's text from the end of the assistant's turn to the beginning of the next."""
        after = self._after_turn(messages)
        stop = spell(self.tokenizer, [last_token])
        if stop in self.tokenizer.special_tokens and stop in after:
            return self._encode(_filled(after.partition(stop)[2], messages))
        end = self._turn_end(after)
        return self._encode(_filled(after[after.index(end) :] if end else after, messages))

    def parse(self, tokens: NDArray[np.int32]) -> ParsedTurn:
        """Read the calls from the tokens, with special tokens written out."""
        return self._format.parse(spell(self.tokenizer, tokens))

    # Find the format of the model's calls and turns by rendering its template

    def _chosen_format(self, given: CallFormat | None) -> CallFormat:
        name = str(self._tools[0]["function"]["name"])
        prompt = self._render([USER])
        if name not in prompt:
            raise self._unfit(f"does not list tools: {name!r} is not in what it renders")
        called = self._render([USER, _calling([name])], reply=False)
        said = called[len(os.path.commonprefix([prompt, called])) :]  # noqa: RUF071 - characters are meant
        for form in (given,) if given else CALL_FORMATS.values():
            calls = form.parse(said).calls
            if [(call.name, dict(call.arguments)) for call in calls] == [(name, _ARGUMENTS)]:
                return form
        names = repr(given.name) if given else f"any of {', '.join(map(repr, CALL_FORMATS))}"
        raise self._unfit(f"writes tool calls in a format other than {names}: {said[:200]!r}")

    def _stops(self) -> Sequence[str | int]:
        """The token that ends a turn with a call; empty if the same token ends every turn."""
        result = ToolMessage("tool", "x", str(self._tools[0]["function"]["name"]))
        end = self._turn_end(self._after_turn([result]))
        token = None if end is None else self.tokenizer.special_tokens[end]
        return () if token is None or token in self.tokenizer.stop_tokens else (token,)

    def _turn_end(self, after: str) -> str | None:
        """The special token that ends a turn, from the template's text after the turn's placeholder."""
        special = self.tokenizer.special_tokens
        marks = special_tokens_in(_PLACE.split(after, maxsplit=1)[0], special)
        stops = [mark for mark in marks if special[mark] in self.tokenizer.stop_tokens]
        return next(iter(stops or marks), None)

    def _after_turn(self, messages: Sequence[Message]) -> str:
        """The template's text after a turn of the assistant, with placeholders for the messages that follow."""
        said = [_chat_message(message, at) for at, message in enumerate(messages)]
        results = [message for message in messages if isinstance(message, ToolMessage)]
        turn = _calling([message.name for message in results], [message.call_id for message in results])
        text = self._render([USER, turn if results else {"role": "assistant", "content": ASSISTANT}, *said])
        _, found, after = text.rpartition(ASSISTANT)
        if not found or len(_PLACE.findall(after)) < len(messages):
            raise self._unfit(f"leaves out messages after a turn of the assistant: {after[:200]!r}")
        if results and self._turn_end(after) is None:
            raise self._unfit(f"does not show where a turn with tool calls ends: {after[:200]!r}")
        return after

    def _render(self, chat: list[dict[str, Any]], *, reply: bool = True) -> str:
        try:
            return self._applied(chat, reply)
        except TypeError:  # DeepSeek's templates expect a call's arguments as text
            return self._applied([_with_arguments_as_text(message) for message in chat], reply)

    def _applied(self, chat: list[dict[str, Any]], reply: bool) -> str:
        try:
            return str(
                self.tokenizer.inner.apply_chat_template(
                    chat, tools=self._tools or None, tokenize=False, add_generation_prompt=reply, **self._options
                )
            )
        except Exception as error:
            if isinstance(error, TypeError) and any(_has_arguments(message) for message in chat):
                raise
            roles = ", ".join(message["role"] for message in chat)
            raise self._unfit(f"can't render the roles {roles}: {error}") from error

    def _unfit(self, reason: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"the chat template of {self.tokenizer.inner.name_or_path!r} {reason}. Use a model whose template is made "
            "for this, or describe_tools='text' for tools, dialogue='plain' for other messages"
        )

    def _encode(self, pieces: Sequence[Piece]) -> NDArray[np.int32]:
        """Encode the template's own text with its special tokens, and the rest as plain text."""
        special, marks = self.tokenizer.special_tokens, self._format.marks
        if not any(mark in text for text, own in pieces if not own for mark in (*special, *marks)):
            return self.tokenizer.encode("".join(text for text, _ in pieces))
        written = re.compile("|".join(map(re.escape, sorted((*special, *marks), key=len, reverse=True))))
        parts: list[NDArray[np.int32]] = []
        run = ""
        for text, own in pieces:
            at = 0
            for mark in written.finditer(text) if own else ():
                ordinary = run + text[at : mark.start()]
                parts += [encode_literal(self.tokenizer, ordinary, marks), self.tokenizer.encode(mark[0])]
                run, at = "", mark.end()
            run += text[at:]
        return np.concatenate([*parts, encode_literal(self.tokenizer, run, marks)])


_ARGUMENTS = {"x": ASSISTANT}


def _calling(names: Sequence[str], ids: Sequence[str] = ()) -> dict[str, Any]:
    """A turn of the assistant that calls tools, with a placeholder as the argument of each call."""
    calls = [
        {"type": "function", "id": id or _CALL_ID, "function": {"name": name, "arguments": dict(_ARGUMENTS)}}
        for name, id in itertools.zip_longest(names, ids)
    ]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def _has_arguments(message: Mapping[str, Any]) -> bool:
    """Whether a message calls a tool with arguments that are not text."""
    return any(not isinstance(call["function"]["arguments"], str) for call in message.get("tool_calls", ()))


def _with_arguments_as_text(message: dict[str, Any]) -> dict[str, Any]:
    """The message with the arguments of its calls as JSON."""
    if not _has_arguments(message):
        return message
    calls = [
        {**call, "function": {**call["function"], "arguments": json.dumps(call["function"]["arguments"])}}
        for call in message["tool_calls"]
    ]
    return {**message, "tool_calls": calls}


def _chat_message(message: Message, at: int) -> dict[str, Any]:
    """A message in the form that templates expect, with a placeholder for its content."""
    chat = {"role": message.role, "content": _CONTENT.format(at)}
    return (
        chat | {"name": message.name, "tool_call_id": message.call_id or _CALL_ID}
        if isinstance(message, ToolMessage)
        else chat
    )


def _filled(text: str, messages: Sequence[Message]) -> list[Piece]:
    """The pieces of a template's text, with the messages' contents in place of the placeholders."""
    own, *rest = _PLACE.split(text)
    pieces: list[Piece] = [(own, True)]
    for at, escaped, own in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        content = messages[int(at)].content
        pieces += [(json.dumps(content, ensure_ascii=False)[1:-1] if escaped else content, False), (own, True)]
    return pieces
