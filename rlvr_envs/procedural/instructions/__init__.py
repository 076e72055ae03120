"""The parts of the prompts of `rlvr/Instructions-v0`: requests, and instructions that are added to a request."""

from rlvr_envs.procedural.instructions.kinds import (
    KINDS,
    LEAST_WORDS,
    NEED_LANGDETECT,
    WORDINGS,
    Draws,
    Given,
    Wording,
    compatible,
)
from rlvr_envs.procedural.instructions.requests import TONES, TOPICS, Topic, longest_request

__all__ = [
    "KINDS",
    "LEAST_WORDS",
    "NEED_LANGDETECT",
    "TONES",
    "TOPICS",
    "WORDINGS",
    "Draws",
    "Given",
    "Topic",
    "Wording",
    "compatible",
    "longest_request",
]
