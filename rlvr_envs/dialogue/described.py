"""Tools for a chat template that can't show tools: descriptions and calls are text, and results are messages of the user."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rlvr_envs.dialogue.calls import CallFormat, ParsedTurn
from rlvr_envs.dialogue.description import ToolDescription, describe_tools, knows_tool_role, takes_system
from rlvr_envs.dialogue.dialogue import ToolSchema
from rlvr_envs.dialogue.literal import spell
from rlvr_envs.dialogue.plain import RESULT_FRAME
from rlvr_envs.dialogue.template import TemplateDialogue
from rlvr_envs.tokenizers import HuggingFaceTokenizer
from verifiers import Message


class DescribedDialogue:
    """A Hugging Face tokenizer's chat template, in which messages describe the tools.

    The description is part of the system message, or of the user's first message if the template has no system message. A call
    is text in a turn of the assistant. A result is a message of the role `tool` if the template has its own way to show this
    role. Otherwise a result is a message of the user, joined with any neighbouring message of the user. The tokens equal the
    template's own tokens for these messages.

    Args:
        tokenizer: A tokenizer with a chat template.
        tools: The tools, at least one.
        form: The format in which the model is to write calls.
        describe: Whether to describe the tools; if not, your own prompt must describe the tools.

    Raises:
        InvalidArgumentError: If there is no chat template, or calls in this format can't be described as text.
    """

    def __init__(
        self, tokenizer: HuggingFaceTokenizer, tools: Sequence[ToolSchema], form: CallFormat, *, describe: bool = True
    ) -> None:
        self.tokenizer = tokenizer
        self._template = TemplateDialogue(tokenizer)
        self._format = form
        template = tokenizer.chat_template
        assert template is not None  # `TemplateDialogue` has checked it
        self._has_tool_role = knows_tool_role(template)
        frame = None if self._has_tool_role else RESULT_FRAME
        self.description = (
            ToolDescription(describe_tools(tools, form, frame), takes_system(template)) if describe else None
        )
        """The description of the tools in the opening."""
        self.stop: Sequence[str | int] = (form.frame[1],) if form.frame and form.frame[1] else ()

    def open(self, messages: Sequence[Message]) -> NDArray[np.int32]:
        """Encode the messages, with the description of the tools, and the mark that begins the assistant's turn."""
        return self._template.open(messages if self.description is None else self.description.put_into(messages))

    def bridge(self, messages: Sequence[Message], last_token: int) -> NDArray[np.int32]:
        """Encode the template's text from the end of the assistant's turn to the beginning of the next."""
        return self._template.bridge(self._shown(messages), last_token)

    def parse(self, tokens: NDArray[np.int32]) -> ParsedTurn:
        """Read the calls from the tokens, with special tokens written out."""
        return self._format.parse(spell(self.tokenizer, tokens))

    def _shown(self, messages: Sequence[Message]) -> list[Message]:
        """The messages in the form that the template accepts; many templates refuse two consecutive messages of the user."""
        if self._has_tool_role:
            return [Message(message.role, message.content) for message in messages]
        return without_tool_role(messages)


def without_tool_role(messages: Sequence[Message]) -> list[Message]:
    """Turn results of tools into messages of the user, and join neighbouring messages of the same role."""
    answers = [
        Message("user", RESULT_FRAME.format(message.content)) if message.role == "tool" else message
        for message in messages
    ]
    return [
        Message(role, "\n\n".join(message.content for message in said))
        for role, said in itertools.groupby(answers, key=lambda message: message.role)
    ]
