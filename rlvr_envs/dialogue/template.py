"""Conversations in a model's own chat template, whatever it is.

The template is rendered with placeholders for what people and tools say. What stands between them is the template's, and may
hold special tokens; what replaces them is text. What follows a turn of the policy is what the template writes after a turn of
the assistant, so that nothing is known here of any model's marks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlvr_envs.dialogue.calls import CallFormat, ParsedTurn
from rlvr_envs.dialogue.dialogue import ToolSchema
from rlvr_envs.dialogue.literal import encode_literal, spell
from rlvr_envs.tokenizers import HuggingFaceTokenizer
from verifiers import InvalidArgumentError, Message

_ASSISTANT = "Zq7assistant7qZ"
# The quotation mark tells whether the template writes what is said as JSON.
_CONTENT = 'Zq7said{}"7qZ'
_PLACE = re.compile(r'Zq7said(\d+)(\\?)"7qZ')
_CALL_ID = "000000000"
"""Mistral's templates want nine letters or digits."""

Piece = tuple[str, bool]
"""Text, and whether it is the template's own."""


class TemplateDialogue:
    """A Hugging Face tokenizer's chat template.

    The tokens equal those of the template over the whole conversation, except where the template changes earlier turns, as
    those do that drop thoughts: what was sampled stays as it was. Where people or tools spell a special token, theirs are the
    tokens of its text.

    Args:
        tokenizer: One with a chat template.
        call_format: How the model writes tool calls.
        tools: The tools that the template lists.
        options: Further variables of the template, such as `{"enable_thinking": False}`.

    Raises:
        InvalidArgumentError: If there is no chat template, or it can't render tools or their results.
    """

    def __init__(
        self,
        tokenizer: HuggingFaceTokenizer,
        call_format: CallFormat,
        tools: Sequence[ToolSchema] = (),
        *,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if tokenizer.chat_template is None:
            raise InvalidArgumentError(
                f"{tokenizer.inner.name_or_path!r} has no chat template: use dialogue='plain', or a model with one"
            )
        self.tokenizer = tokenizer
        self.stop: Sequence[str | int] = ()
        self._format = call_format
        self._tools = [dict(tool) for tool in tools]
        self._options = dict(options or {})
        self._check_tools()

    def open(self, messages: Sequence[Message]) -> NDArray[np.int32]:
        """Encode the messages and the mark of the assistant's turn."""
        chat = [_chat_message(message, at) for at, message in enumerate(messages)]
        tokens, opening = self._encode(_filled(self._render(chat), messages)), self.tokenizer.encode("", start=True)
        begun = tokens[: len(opening)].tolist() == opening.tolist()
        return tokens if begun else np.concatenate([opening, tokens])

    def bridge(self, messages: Sequence[Message], last_token: int) -> NDArray[np.int32]:
        """Encode what the template writes from the end of the assistant's turn to the beginning of the next."""
        _, found, after = self._render_after(messages).rpartition(_ASSISTANT)
        ends = [mark for mark in self.tokenizer.special_tokens if mark in after]
        if not found or (not ends and any(message.role == "tool" for message in messages)):
            raise InvalidArgumentError(
                f"the chat template of {self.tokenizer.inner.name_or_path!r} does not show where a turn of the assistant ends: "
                "use dialogue='plain', or a model that was made for conversations"
            )
        stop = spell(self.tokenizer, [last_token])
        if stop in ends:
            after = after.partition(stop)[2]
        elif ends:
            after = after[min(map(after.index, ends)) :]
        return self._encode(_filled(after, messages))

    def parse(self, tokens: NDArray[np.int32]) -> ParsedTurn:
        """Read the calls from the tokens, special tokens written out."""
        return self._format.parse(spell(self.tokenizer, tokens))

    def _check_tools(self) -> None:
        if not self._tools:
            return
        name = str(self._tools[0]["function"]["name"])
        result = Message("tool", "x", name)
        if name not in self._render([{"role": "user", "content": "x"}]):
            raise InvalidArgumentError(
                f"the chat template of {self.tokenizer.inner.name_or_path!r} does not list tools: {name!r} is not in what it "
                "renders. Use dialogue='plain', or a model that was made for tools"
            )
        if not _PLACE.search(self._render_after([result])):
            raise InvalidArgumentError(
                f"the chat template of {self.tokenizer.inner.name_or_path!r} leaves out what tools answer: use "
                "dialogue='plain', or a model that was made for tools"
            )
        self.bridge([result], self.tokenizer.eos_token)

    def _render_after(self, messages: Sequence[Message]) -> str:
        """The template's text of a question, a turn of the assistant and messages, with placeholders."""
        said = [_chat_message(message, at) for at, message in enumerate(messages)]
        user = {"role": "user", "content": "x"}
        answer = {"role": "assistant", "content": _ASSISTANT}
        results = [message for message in messages if message.role == "tool"]
        if not results:
            return self._render([user, answer, *said])
        calls = [
            {
                "type": "function",
                "id": message.call_id or _CALL_ID,
                "function": {"name": message.name, "arguments": {"x": _ASSISTANT}},
            }
            for message in results
        ]
        return self._render([user, {"role": "assistant", "content": "", "tool_calls": calls}, *said])

    def _render(self, chat: list[dict[str, Any]]) -> str:
        try:
            return str(
                self.tokenizer.inner.apply_chat_template(
                    chat, tools=self._tools or None, tokenize=False, add_generation_prompt=True, **self._options
                )
            )
        except Exception as error:  # templates raise what they like
            roles = ", ".join(message["role"] for message in chat)
            raise InvalidArgumentError(
                f"the chat template of {self.tokenizer.inner.name_or_path!r} can't render the roles {roles}: {error}"
            ) from error

    def _encode(self, pieces: Sequence[Piece]) -> NDArray[np.int32]:
        """Encode what the template writes as it is, and the rest as text."""
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


def _chat_message(message: Message, at: int) -> dict[str, Any]:
    """A message as templates want it, with a placeholder for what it says."""
    chat = {"role": message.role, "content": _CONTENT.format(at)}
    return (
        chat | {"name": message.name, "tool_call_id": message.call_id or _CALL_ID} if message.role == "tool" else chat
    )


def _filled(text: str, messages: Sequence[Message]) -> list[Piece]:
    """The pieces of a template's text, with what the messages say in place of the placeholders."""
    own, *rest = _PLACE.split(text)
    pieces: list[Piece] = [(own, True)]
    for at, escaped, own in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        content = messages[int(at)].content
        pieces += [(json.dumps(content, ensure_ascii=False)[1:-1] if escaped else content, False), (own, True)]
    return pieces
