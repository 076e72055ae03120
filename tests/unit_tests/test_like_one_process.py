"""What a program and its tests do with each other's objects, threads and output ends as it does in one process."""

from __future__ import annotations

import pytest

from tests.sandbox import Case, cases, load
from verifiers.unit_tests import UnitTestVerifier

DATA = load("unit_tests/like_one_process")
pytestmark = pytest.mark.sandbox(timeout_s=10)


@pytest.mark.parametrize("case", cases(DATA["right"]))
def test_right_programs_pass_and_wrong_ones_fail(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)


@pytest.mark.parametrize("case", cases(DATA["wrong"]))
def test_wrong_programs_fail(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)


@pytest.mark.parametrize("case", cases(DATA["files"]))
def test_tests_that_need_files_are_not_supported(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)
