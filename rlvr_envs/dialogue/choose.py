"""Which format a conversation has, by its name or by the tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from rlvr_envs.dialogue.calls import CALL_FORMATS
from rlvr_envs.dialogue.dialogue import Dialogue, ToolSchema
from rlvr_envs.dialogue.plain import PlainDialogue
from rlvr_envs.dialogue.template import TemplateDialogue
from rlvr_envs.tokenizers import HuggingFaceTokenizer, Tokenizer
from verifiers import InvalidArgumentError

DialogueArgument = str | Callable[[Tokenizer, Sequence[ToolSchema]], Dialogue]


def check_dialogue_name(spec: DialogueArgument) -> None:
    """Check that a text names a format.

    Raises:
        InvalidArgumentError: If it does not.
    """
    if isinstance(spec, str) and spec not in ("auto", "plain", *CALL_FORMATS):
        raise InvalidArgumentError(
            f"dialogue must be 'auto', 'plain', one of {', '.join(map(repr, CALL_FORMATS))}, or a function; got {spec!r}"
        )


def get_dialogue(spec: DialogueArgument, tokenizer: Tokenizer, tools: Sequence[ToolSchema]) -> Dialogue:
    """Find the format of conversations.

    Args:
        spec: `"auto"` for the tokenizer's chat template where it has one, with calls as the template writes them; `"plain"`;
            the name of a call format, for the chat template with calls in that format; or a function that builds a `Dialogue`.
        tokenizer: The environment's.
        tools: The tools there are.

    Raises:
        InvalidArgumentError: If the name is unknown, or the tokenizer's template is not made for this.
    """
    check_dialogue_name(spec)
    if not isinstance(spec, str):
        return spec(tokenizer, tools)
    if spec == "plain" or (spec == "auto" and tokenizer.chat_template is None):
        return PlainDialogue(tokenizer, tools)
    if not isinstance(tokenizer, HuggingFaceTokenizer):
        raise InvalidArgumentError(
            f"dialogue={spec!r} needs a tokenizer with a chat template; use dialogue='plain' here"
        )
    return cast("Dialogue", TemplateDialogue(tokenizer, tools, call_format=CALL_FORMATS.get(spec)))
