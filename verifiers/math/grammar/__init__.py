"""The grammar of answers; `verifiers.math.parse` is its entry."""

from verifiers.math.grammar.cursor import MAX_DEPTH
from verifiers.math.grammar.parser import Parser

__all__ = ["MAX_DEPTH", "Parser"]
