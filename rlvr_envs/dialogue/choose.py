"""Choose the format of conversations, by name or by the tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, cast

from rlvr_envs.dialogue.calls import CALL_FORMATS, CallFormat
from rlvr_envs.dialogue.described import DescribedDialogue
from rlvr_envs.dialogue.dialogue import Dialogue, ToolSchema
from rlvr_envs.dialogue.plain import PlainDialogue, plain_format
from rlvr_envs.dialogue.template import TemplateDialogue
from rlvr_envs.tokenizers import HuggingFaceTokenizer, Tokenizer
from verifiers import InvalidArgumentError

DialogueArgument = str | Callable[[Tokenizer, Sequence[ToolSchema]], Dialogue]
DescribeTools = Literal["auto", "template", "text", "none"]
"""How tools are described to a model: in the chat template's own list of tools, as text in the prompt, or not at all."""


def check_dialogue_name(spec: DialogueArgument) -> None:
    """Check that a format given by name is known.

    Raises:
        InvalidArgumentError: If the name is unknown.
    """
    if isinstance(spec, str) and spec not in ("auto", "plain", *CALL_FORMATS):
        raise InvalidArgumentError(
            f"dialogue must be 'auto', 'plain', one of {', '.join(map(repr, CALL_FORMATS))}, or a function; got {spec!r}"
        )


def get_dialogue(
    spec: DialogueArgument, tokenizer: Tokenizer, tools: Sequence[ToolSchema], describe: DescribeTools = "auto"
) -> Dialogue:
    """Find the format of conversations.

    Args:
        spec: `"auto"`, `"plain"`, the name of a call format, or a function that builds a `Dialogue`. `"auto"` is the
            tokenizer's chat template, with calls in the template's own form, or plain text if there is no template. `"plain"`
            is always plain text. The name of a call format selects the chat template with calls in this format.
        tokenizer: The environment's tokenizer.
        tools: The available tools.
        describe: How the tools are described. With `"auto"`, the chat template describes the tools if it can show tools, calls
            and results; otherwise a text describes the tools. For a tokenizer without a template there is no description.

    Raises:
        InvalidArgumentError: If the name is unknown, or the tokenizer's template can't show such a conversation.
    """
    check_dialogue_name(spec)
    if not isinstance(spec, str):
        if describe != "auto":
            raise InvalidArgumentError(
                f"describe_tools={describe!r} is for dialogues that have a name; a function given as dialogue= decides itself "
                "what it says of tools"
            )
        return spec(tokenizer, tools)
    if spec == "plain" or (spec == "auto" and tokenizer.chat_template is None):
        return _plain(tokenizer, tools, describe)
    if not isinstance(tokenizer, HuggingFaceTokenizer):
        raise InvalidArgumentError(
            f"dialogue={spec!r} needs a Hugging Face tokenizer with a chat template; use dialogue='plain' here"
        )
    return _in_template(CALL_FORMATS.get(spec), tokenizer, tools, describe)


def _plain(tokenizer: Tokenizer, tools: Sequence[ToolSchema], describe: DescribeTools) -> Dialogue:
    if describe == "template":
        raise InvalidArgumentError(
            "describe_tools='template' needs a chat template that lists tools, but this dialogue is plain text: use "
            "describe_tools='text'"
        )
    described = describe == "text" or (describe == "auto" and tokenizer.chat_template is not None)
    return PlainDialogue(tokenizer, tools, describe=described)


def _in_template(
    form: CallFormat | None, tokenizer: HuggingFaceTokenizer, tools: Sequence[ToolSchema], describe: DescribeTools
) -> Dialogue:
    if not tools or describe in ("auto", "template"):
        try:
            return cast("Dialogue", TemplateDialogue(tokenizer, tools, call_format=form))
        except InvalidArgumentError:
            if not tools or describe == "template":
                raise
    form = form or plain_format(tools)
    return cast("Dialogue", DescribedDialogue(tokenizer, tools, form, describe=describe != "none"))
