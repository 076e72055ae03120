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

_WRITTEN_IN = {
    "harmony": ("<|channel|>",),
    "deepseek": ("<｜tool▁call▁begin｜>",),
    "mistral": ("[TOOL_CALLS]",),
    "llama": ("<|start_header_id|>",),
    "hermes": ("<tool_call>",),
}
"""What the vocabulary or the template of a model that writes calls in a format has."""


def get_dialogue(spec: DialogueArgument, tokenizer: Tokenizer, tools: Sequence[ToolSchema]) -> Dialogue:
    """Find the format of conversations.

    Args:
        spec: `"auto"` for the tokenizer's chat template where it has one, with the call format that its marks show; `"plain"`;
            the name of a call format, for the chat template with calls in that format; or a function that builds a `Dialogue`.
        tokenizer: The environment's.
        tools: The tools there are.

    Raises:
        InvalidArgumentError: If the name is unknown, or the tokenizer's template does not show its call format or has no tools.
    """
    if not isinstance(spec, str):
        return spec(tokenizer, tools)
    if spec == "plain" or (spec == "auto" and tokenizer.chat_template is None):
        return PlainDialogue(tokenizer, tools)
    if spec not in ("auto", *CALL_FORMATS):
        raise InvalidArgumentError(
            f"dialogue must be 'auto', 'plain', one of {', '.join(map(repr, CALL_FORMATS))}, or a function; got {spec!r}"
        )
    if not isinstance(tokenizer, HuggingFaceTokenizer):
        raise InvalidArgumentError(
            f"dialogue={spec!r} needs a tokenizer with a chat template; use dialogue='plain' here"
        )
    name = spec if spec != "auto" else _call_format(tokenizer, bool(tools))
    return cast("Dialogue", TemplateDialogue(tokenizer, CALL_FORMATS[name], tools))


def _call_format(tokenizer: HuggingFaceTokenizer, has_tools: bool) -> str:
    """The call format that a tokenizer's tokens and template show."""
    shown = "".join(tokenizer.special_tokens) + str(tokenizer.inner.chat_template)
    names = [name for name, marks in _WRITTEN_IN.items() if any(mark in shown for mark in marks)]
    if not names and has_tools:
        raise InvalidArgumentError(
            f"the chat template of {tokenizer.inner.name_or_path!r} does not show how its model writes tool calls: say "
            f"which with dialogue={' or '.join(map(repr, CALL_FORMATS))}, or use dialogue='plain'"
        )
    return names[0] if names else "hermes"
