"""Mathematical answers: finding them in completions, reading them, and comparing them with a gold answer."""

from verifiers.math.extract import PRESETS, Extracted, Extraction
from verifiers.math.presets import GRADERS, Grader
from verifiers.math.rules import Rules
from verifiers.math.tokens import UnreadableError
from verifiers.math.values import Tier
from verifiers.math.verifier import Finding, MathVerifier

__all__ = [
    "GRADERS",
    "PRESETS",
    "Extracted",
    "Extraction",
    "Finding",
    "Grader",
    "MathVerifier",
    "Rules",
    "Tier",
    "UnreadableError",
]
