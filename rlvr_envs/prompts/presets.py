"""The prompts that have a name, and `get_prompt`, which also takes templates and prompts of one's own."""

from __future__ import annotations

import re
from types import MappingProxyType

from rlvr_envs.prompts import gsm8k, mbpp, minerva
from rlvr_envs.prompts.prompt import PLACEHOLDER, ChatPrompt, Prompt, TextPrompt
from verifiers import InvalidArgumentError, unknown_name

_PRESETS: tuple[TextPrompt | ChatPrompt, ...] = (
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
    TextPrompt(
        name="gsm8k_cot_8shot",
        template="Question: {problem}\nAnswer:",
        exemplars=gsm8k.EXEMPLARS,
        stop=("Question:", "</s>", "<|im_end|>"),
        source="Eight chains of thought (Wei et al. 2022, arXiv:2201.11903) in GSM8K's own answer format, which ends "
        "with '#### ' and the number; layout and stop strings as usual in evaluation harnesses. Examples of our own.",
    ),
    TextPrompt(
        name="minerva_math_4shot",
        template="Problem:\n{problem}\n\nSolution:",
        exemplars=minerva.EXEMPLARS,
        before_answer="\n",
        stop=("Problem:",),
        source="The four-shot layout for MATH of Minerva (Lewkowycz et al. 2022, arXiv:2206.14858), whose solutions "
        "end in a 'Final Answer:' line. Examples of our own.",
    ),
    TextPrompt(
        name="humaneval_completion",
        stop=("\nclass", "\ndef", "\n#", "\nif", "\nprint"),
        source="HumanEval's prompt as it is, for a base model to continue up to the next top-level statement, with the "
        "stop strings of Chen et al. 2021 (arXiv:2107.03374).",
    ),
    TextPrompt(
        name="mbpp_3shot",
        template="Here is a task for a Python programmer: {problem}\n[BEGIN]\n",
        exemplars=mbpp.EXEMPLARS,
        before_answer="",
        stop=("[DONE]",),
        source="The three-shot layout of Austin et al. 2021 (arXiv:2108.07732), with programs between [BEGIN] and "
        "[DONE]. Examples of our own.",
    ),
    ChatPrompt(
        name="boxed_chat",
        template="{problem}\n\nReason step by step, then give your final answer in \\boxed{}.",
        source="Zero-shot chat with the answer format of MATH, usual for instruction-tuned models.",
    ),
    ChatPrompt(
        name="code_chat",
        template="Solve this programming task in Python. Reply with one fenced block that begins with ```python and "
        "holds the whole program, including any imports and functions given below.\n\n{problem}",
        source="Zero-shot chat that asks for one fenced program, usual for instruction-tuned models.",
    ),
)

PRESETS = MappingProxyType({prompt.name: prompt for prompt in _PRESETS})
"""The named prompts."""


def get_prompt(spec: str | Prompt) -> Prompt:
    """Find or make a prompt.

    Args:
        spec: A preset's name; a template with `{problem}` in it; or a prompt, returned as it is.

    Raises:
        UnknownNameError: If no preset has that name; the message offers the nearest.
        InvalidArgumentError: If a template has no `{problem}` or is no Unicode text, or `spec` is something else.
    """
    if not isinstance(spec, str):
        if _is_prompt(spec):
            return spec
        raise InvalidArgumentError(
            f"expected a preset's name, a template with {PLACEHOLDER} or a Prompt, got {type(spec).__name__}: {spec!r}"
        )
    if spec in PRESETS:
        return PRESETS[spec]
    if not _is_unicode(spec):
        raise InvalidArgumentError(f"a prompt is Unicode text, and this has half of a surrogate pair: {spec!a}")
    if re.fullmatch(r"[\w.-]+", spec):
        raise unknown_name("prompt", spec, PRESETS)
    return TextPrompt(spec)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_prompt(value: object) -> bool:
    # A class has the attributes of its instances, so the protocol alone would let it through.
    return isinstance(value, Prompt) and not isinstance(value, type)
