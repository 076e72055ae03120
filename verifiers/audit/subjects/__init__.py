"""Drawn problems by subject."""

# The modules that fill the table of subjects.
from verifiers.audit.subjects import expressions as expressions, numbers as numbers, sets as sets
from verifiers.audit.subjects.drawn import SUBJECTS, Drawn

__all__ = ["SUBJECTS", "Drawn"]
