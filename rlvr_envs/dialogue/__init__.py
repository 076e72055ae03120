"""Encode conversations of several turns as tokens, and read the policy's turns.

The model's own tokens stay unchanged. Messages of users and tools are appended, and no part of such a message becomes a special
token.
"""

from rlvr_envs.dialogue.calls import CALL_FORMATS, CallFormat, ParsedTurn, parse_made
from rlvr_envs.dialogue.choose import DescribeTools, DialogueArgument, check_dialogue_name, get_dialogue
from rlvr_envs.dialogue.described import DescribedDialogue
from rlvr_envs.dialogue.description import ToolDescription
from rlvr_envs.dialogue.dialogue import Dialogue, Fitted, ToolSchema, encode_context, fit
from rlvr_envs.dialogue.literal import encode_literal, encode_parts, spell, split_marks
from rlvr_envs.dialogue.plain import PlainDialogue, plain_format
from rlvr_envs.dialogue.protocol import MessageTurn, as_text, with_calls, with_ids
from rlvr_envs.dialogue.template import TemplateDialogue

__all__ = [
    "CALL_FORMATS",
    "CallFormat",
    "DescribeTools",
    "DescribedDialogue",
    "Dialogue",
    "DialogueArgument",
    "Fitted",
    "MessageTurn",
    "ParsedTurn",
    "PlainDialogue",
    "TemplateDialogue",
    "ToolDescription",
    "ToolSchema",
    "as_text",
    "check_dialogue_name",
    "encode_context",
    "encode_literal",
    "encode_parts",
    "fit",
    "get_dialogue",
    "parse_made",
    "plain_format",
    "spell",
    "split_marks",
    "with_calls",
    "with_ids",
]
