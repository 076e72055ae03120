"""What a program and its tests do with each other's objects ends as it does in one process, or is not supported."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.sandbox import Case, cases, judge, load
from tests.unit_tests import generated
from verifiers import Outcome
from verifiers.unit_tests import FunctionTests, UnitTestVerifier

DATA = load("unit_tests/like_one_process")
pytestmark = pytest.mark.sandbox(timeout_s=10)
EXAMPLES = 300


def test_generated_programs_and_tests_end_as_in_one_process_or_are_not_supported(verifier: UnitTestVerifier) -> None:
    decided = []

    @settings(derandomize=True, max_examples=EXAMPLES, database=None)
    @given(generated.programs(), generated.bodies())
    def compare(program: str, body: str) -> None:
        log = generated.log_in_one_process(program, body)
        right, wrong = (
            judge(verifier, program, FunctionTests(generated.test_file(body, expected), prefix=generated.PREFIX))
            for expected in (log, [*log[:-1], "another"])
        )
        decided.append(right.detail["failure"] != "unsupported")
        assert right.outcome is Outcome.CORRECT or not decided[-1], right.detail
        assert wrong.outcome is not Outcome.CORRECT, wrong.detail
        assert wrong.detail["failure"] == ("wrong_answer" if decided[-1] else "unsupported"), wrong.detail

    compare()
    assert sum(decided) > len(decided) / 2, "most of them are supported"
