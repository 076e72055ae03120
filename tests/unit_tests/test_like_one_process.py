"""What a program and its tests do with each other's objects ends as it does in one process, or is not supported."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import assume, given, settings, strategies as st

from tests.sandbox import Case, cases, judge, load
from tests.unit_tests import generated
from verifiers import Outcome
from verifiers.unit_tests import FunctionTests, UnitTestVerifier

DATA = load("unit_tests/like_one_process")
pytestmark = pytest.mark.sandbox(timeout_s=10)
EXAMPLES = 400


def test_generated_programs_and_tests_end_as_in_one_process_or_are_not_supported(verifier: UnitTestVerifier) -> None:
    supported: list[bool] = []

    @settings(derandomize=True, max_examples=EXAMPLES, database=None)
    @given(st.integers(0, 2**32))
    def compare(seed: int) -> None:
        random = Random(seed)
        program, body = generated.make_program(random), generated.make_body(random)
        log = generated.log_in_one_process(program, body)
        assume("..." not in str(log))  # where `repr` ends a recursion depends on the process
        for expected, outcome in ((log, Outcome.CORRECT), ([*log[:-1], "another"], Outcome.INCORRECT)):
            tests = FunctionTests(generated.make_test_file(body, expected), prefix=generated.PREFIX)
            verdict = judge(verifier, program, tests)
            supported.append(verdict.detail["failure"] != "unsupported")
            assert verdict.outcome is outcome or not supported[-1], (program, tests.test, verdict.detail)
            assert verdict.outcome is not Outcome.VERIFIER_ERROR or not supported[-1], (
                program,
                tests.test,
                verdict.detail,
            )

    compare()
    assert sum(supported) > 0.8 * len(supported)


@pytest.mark.parametrize("case", cases(DATA["right"]))
def test_right_programs_pass_and_wrong_ones_fail(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)
    assert judge(verifier, case.mistaken(), case.tests).outcome is Outcome.INCORRECT


@pytest.mark.parametrize("case", cases(DATA["wrong"]))
def test_wrong_programs_fail(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)


@pytest.mark.parametrize("case", cases(DATA["unsupported"]) + cases(DATA["files"]))
def test_what_is_left_out_is_neither_right_nor_wrong(verifier: UnitTestVerifier, case: Case) -> None:
    assert case.check(verifier).score != 1
