"""Prompts, which present a problem to the policy. `get_prompt` finds a prompt by name, or makes a prompt from a template."""

from rlvr_envs.prompts.presets import CHAT_PROMPTS, PRESETS, get_prompt
from rlvr_envs.prompts.prompt import (
    ChatPrompt,
    ChatTemplate,
    Exemplar,
    Prompt,
    TextPrompt,
    asked_form,
    render_chat,
    written_answer,
)

__all__ = [
    "CHAT_PROMPTS",
    "PRESETS",
    "ChatPrompt",
    "ChatTemplate",
    "Exemplar",
    "Prompt",
    "TextPrompt",
    "asked_form",
    "get_prompt",
    "render_chat",
    "written_answer",
]
