"""Unit tests as a verifier: model-written programs, run isolated, judged from outside."""

from verifiers.unit_tests.cases import (
    AssertTests,
    CallCase,
    CallTests,
    CheckTests,
    FunctionTests,
    StdioCase,
    StdioTests,
)
from verifiers.unit_tests.verifier import UnitTestVerifier

__all__ = [
    "AssertTests",
    "CallCase",
    "CallTests",
    "CheckTests",
    "FunctionTests",
    "StdioCase",
    "StdioTests",
    "UnitTestVerifier",
]
