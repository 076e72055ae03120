"""Drawn problems by subject, for mathematics and for the other fields."""

# The modules that fill the table of subjects.
from verifiers.audit.subjects import expressions as expressions, numbers as numbers, sets as sets
from verifiers.audit.subjects.documents import DOCUMENTS
from verifiers.audit.subjects.drawn import SUBJECTS, Drawn
from verifiers.audit.subjects.instructions import INSTRUCTIONS
from verifiers.audit.subjects.programs import PROGRAMS
from verifiers.audit.subjects.queries import QUERIES
from verifiers.audit.subjects.tasks import Field, Task

MATHEMATICS = {"mathematics": tuple(SUBJECTS), "choice": ("choice",)}
"""Fields whose references are answers, with their subjects."""
FIELDS = {"programs": PROGRAMS, "sql": QUERIES, "json_schema": DOCUMENTS, "instructions": INSTRUCTIONS}
"""Fields whose references are tests, queries, schemas and instructions."""

__all__ = ["FIELDS", "MATHEMATICS", "SUBJECTS", "Drawn", "Field", "Task"]
