"""The named prompts, and `get_prompt`, which also takes templates and custom prompts.

This module holds the prompts for many data sets; the prompts of benchmarks are in `rlvr_envs.prompts.benchmarks`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from rlvr_envs.prompts import benchmarks
from rlvr_envs.prompts.prompt import PLACEHOLDER, ChatPrompt, Prompt, TextPrompt
from verifiers import InvalidArgumentError, import_attribute, is_attribute_path, unknown_name

_GENERAL: tuple[TextPrompt | ChatPrompt, ...] = (
    TextPrompt(
        name="plain",
        source="The problem's text alone.",
    ),
    TextPrompt(
        name="answer_only",
        template="{problem}\n\nReply with the final answer alone, on one line.\nAnswer:",
        stop=("\n",),
        source="Zero-shot, without reasoning.",
    ),
    ChatPrompt(
        name="chat",
        template="{problem}",
        source="One user message with the problem's text alone.",
    ),
    ChatPrompt(
        name="boxed_chat",
        template="{problem}\n\nReason step by step, then give your final answer in \\boxed{}.",
        source="Zero-shot chat with the answer format of MATH, usual for instruction-tuned models.",
        answer_format="\\boxed{{answer}}",
    ),
    ChatPrompt(
        name="choice_chat",
        template="{problem}\n\nReason step by step, then give the letter of your choice in \\boxed{}.",
        answer_format="\\boxed{{answer}}",
        source="Zero-shot chat for multiple choice, usual for instruction-tuned models.",
    ),
    ChatPrompt(
        name="tagged_chat",
        template="{problem}\n\nReason step by step, then give your final answer between <answer> and </answer>, in exactly the "
        "form that is asked for.",
        source="Zero-shot chat with the answer in tags, as reasoning-gym reads it.",
        answer_format="<answer>{answer}</answer>",
    ),
    ChatPrompt(
        name="code_chat",
        template="Solve this programming task in Python. Reply with one fenced block that begins with ```python and "
        "holds the whole program, including any imports and functions given below.\n\n{problem}",
        source="Zero-shot chat that asks for one fenced program, usual for instruction-tuned models.",
        answer_format="```python\n{answer}\n```",
    ),
    ChatPrompt(
        name="sql_chat",
        template="{problem}\n\nAnswer with one SQL query in SQLite's dialect, in a fenced block that begins with ```sql.",
        source="Zero-shot chat that asks for one fenced query.",
        answer_format="```sql\n{answer}\n```",
    ),
)

CHAT_PROMPTS: Mapping[str, str] = MappingProxyType(
    {
        "math": "boxed_chat",
        "numeric": "boxed_chat",
        "choice": "choice_chat",
        "reasoning_gym": "tagged_chat",
        "unit_tests": "code_chat",
        "sql": "sql_chat",
    }
)
"""The chat prompts of verifiers that expect a special form of answer. For any other verifier, the chat prompt is `"chat"`."""
PRESETS: Mapping[str, TextPrompt | ChatPrompt] = MappingProxyType(
    {prompt.name: prompt for prompt in (*_GENERAL, *benchmarks.PROMPTS)}
)
"""The named prompts."""


def get_prompt(spec: str | Prompt) -> Prompt:
    """Find or make a prompt.

    Args:
        spec: A preset's name; a template with `{problem}` in it; the `module:attribute` of a prompt, such as
            `my_prompts.py:CHAT`; or a prompt, which is returned unchanged.

    Raises:
        UnknownNameError: If no preset has this name; the message suggests the nearest name.
        InvalidArgumentError: If a template has no `{problem}` or is not Unicode text, or `spec` has another type.
    """
    if not isinstance(spec, str):
        if _is_prompt(spec):
            return spec
        raise InvalidArgumentError(
            f"expected a preset's name, a template with {PLACEHOLDER} or a Prompt, got {type(spec).__name__}: {spec!r}"
        )
    if spec in PRESETS:
        return PRESETS[spec]
    if is_attribute_path(spec):
        return _imported(spec)
    if not _is_unicode(spec):
        raise InvalidArgumentError(
            f"a prompt must be Unicode text, but this one has half of a surrogate pair: {spec!a}"
        )
    if re.fullmatch(r"[\w.-]+", spec):
        raise unknown_name("prompt", spec, PRESETS)
    return TextPrompt(spec)


def _imported(path: str) -> Prompt:
    prompt = import_attribute(path, "prompt")
    if isinstance(prompt, str) and PLACEHOLDER in prompt:
        return TextPrompt(prompt)
    if not _is_prompt(prompt):
        raise InvalidArgumentError(
            f"the prompt {path!r} is {type(prompt).__name__} {prompt!r}; expected a rlvr_envs.ChatPrompt, a TextPrompt, an "
            f"object with their attributes, or a text with {PLACEHOLDER}"
        )
    return cast("Prompt", prompt)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_prompt(value: object) -> bool:
    # The protocol alone would accept a class of prompts, which has the attributes of its instances.
    return isinstance(value, Prompt) and not isinstance(value, type)
