"""Prompts: how a problem is put to the policy. `get_prompt` finds one by name or makes one from a template."""

from rlvr_envs.prompts.presets import PRESETS, get_prompt, register_prompt
from rlvr_envs.prompts.prompt import ChatPrompt, ChatTemplate, Exemplar, Prompt, TextPrompt, render_chat

__all__ = [
    "PRESETS",
    "ChatPrompt",
    "ChatTemplate",
    "Exemplar",
    "Prompt",
    "TextPrompt",
    "get_prompt",
    "register_prompt",
    "render_chat",
]
