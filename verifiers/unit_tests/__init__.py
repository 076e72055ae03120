"""Verification by unit tests: programs written by a model run in isolation and are judged by another process."""

from verifiers.sandbox import ProgramOutput, ProgramRunner
from verifiers.unit_tests.datasets import from_input_output, from_json, from_livecodebench, from_test_list
from verifiers.unit_tests.languages import check_languages, language_title
from verifiers.unit_tests.tests import (
    AssertTests,
    CallCase,
    CallTests,
    CheckTests,
    DeferredTests,
    FunctionTests,
    StdioCase,
    StdioTests,
    Tests,
)
from verifiers.unit_tests.verifier import UnitTestVerifier

__all__ = [
    "AssertTests",
    "CallCase",
    "CallTests",
    "CheckTests",
    "DeferredTests",
    "FunctionTests",
    "ProgramOutput",
    "ProgramRunner",
    "StdioCase",
    "StdioTests",
    "Tests",
    "UnitTestVerifier",
    "check_languages",
    "from_input_output",
    "from_json",
    "from_livecodebench",
    "from_test_list",
    "language_title",
]
