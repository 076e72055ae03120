"""Mathematical answers: extraction from completions, parsing, and comparison with a gold answer."""

from verifiers.math.comparison import Comparison
from verifiers.math.extract import PRESETS, Extracted, Extraction
from verifiers.math.gold import kind_of
from verifiers.math.options import ComparisonOptions
from verifiers.math.presets import GRADERS, Grader
from verifiers.math.reading.errors import UnreadableError
from verifiers.math.values.tiers import Tier
from verifiers.math.verifier import MathVerifier

__all__ = [
    "GRADERS",
    "PRESETS",
    "Comparison",
    "ComparisonOptions",
    "Extracted",
    "Extraction",
    "Grader",
    "MathVerifier",
    "Tier",
    "UnreadableError",
    "kind_of",
]
