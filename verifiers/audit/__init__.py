"""Looking for what is wrong with a verifier: rewritten golds, near misses, attacks, and questions asked twice."""

from verifiers.audit.audit import ATTACKS, audit_verifier
from verifiers.audit.cases import Case, Label
from verifiers.audit.checks import Check, Finding
from verifiers.audit.golds import Gold, Kind, recognise
from verifiers.audit.report import AuditReport, Row
from verifiers.audit.transformations import TRANSFORMATIONS, Transformation

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
    "Row",
    "Transformation",
    "audit_verifier",
    "recognise",
]
