"""Audits of verifiers: rewritten golds, near misses, attacks, and repeated questions."""

# The modules that fill the table of transformations, in the order of the report.
from verifiers.audit import transformations as transformations  # isort: skip
from verifiers.audit import structured as structured  # isort: skip
from verifiers.audit import mutations as mutations  # isort: skip
from verifiers.audit.audit import ATTACKS, audit_verifier, field_of
from verifiers.audit.card import check_card, read_card, write_card
from verifiers.audit.cases import Case, Label
from verifiers.audit.checks import Check, Finding
from verifiers.audit.drawing import draw_cases
from verifiers.audit.golds import Gold, Kind
from verifiers.audit.recognition import recognise
from verifiers.audit.registry import TRANSFORMATIONS, Transformation
from verifiers.audit.report import AuditReport, OptionRow, ReportRow

__all__ = [
    "ATTACKS",
    "TRANSFORMATIONS",
    "AuditReport",
    "Case",
    "Check",
    "Finding",
    "Gold",
    "Kind",
    "Label",
    "OptionRow",
    "ReportRow",
    "Transformation",
    "audit_verifier",
    "check_card",
    "draw_cases",
    "field_of",
    "read_card",
    "recognise",
    "write_card",
]
