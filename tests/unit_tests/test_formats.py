# ruff: noqa: E501 - a program reads best on one line
"""Tests made from the row formats of public data sets."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from verifiers import InvalidArgumentError, Problem
from verifiers.unit_tests import CallTests, StdioTests, UnitTestVerifier
from verifiers.unit_tests.formats import from_input_output, from_livecodebench


@pytest.fixture(scope="module")
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(timeout_s=2)
    yield verifier
    verifier.close()


def score(verifier: UnitTestVerifier, program: str, tests: object) -> float:
    return verifier(program, Problem("p", "", tests)).score


SUM = "import sys\nprint(sum(map(int, sys.stdin.read().split())))"


def test_inputs_and_outputs_are_stdin_and_stdout(verifier: UnitTestVerifier) -> None:
    tests = from_input_output(json.dumps({"inputs": ["1 2\n", ["3", "4"]], "outputs": ["3\n", ["7"]]}))
    assert isinstance(tests, StdioTests)
    assert score(verifier, SUM, tests) == 1
    assert score(verifier, SUM.replace("sum", "max"), tests) == 0


@pytest.mark.parametrize(
    "program", ["def pair(a, b):\n    return a, b", "class Solution:\n    def pair(self, a, b):\n        return [a, b]"]
)
def test_a_function_name_makes_calls_of_a_function_or_of_a_solution(verifier: UnitTestVerifier, program: str) -> None:
    tests = from_input_output({"fn_name": "pair", "inputs": [[1, 2], [3, "x"]], "outputs": [[1, 2], [3, "x"]]})
    assert isinstance(tests, CallTests)
    assert score(verifier, program, tests) == 1, "a tuple is as good as the list that JSON has for it"
    assert score(verifier, program.replace("return", "return 0,"), tests) == 0


def test_each_case_has_a_solution_of_its_own(verifier: UnitTestVerifier) -> None:
    program = "class Solution:\n    def __init__(self): self.n = 0\n    def count(self):\n        self.n += 1\n        return self.n"
    tests = from_input_output({"fn_name": "count", "inputs": [[], []], "outputs": [[1], [1]]})
    assert score(verifier, program, tests) == 1


def test_outputs_that_are_all_lists_of_one_are_wrapped_values(verifier: UnitTestVerifier) -> None:
    wrapped = from_input_output({"fn_name": "f", "inputs": [[1], [2]], "outputs": [[1], [4]]})
    listed = from_input_output({"fn_name": "f", "inputs": [[1], [2]], "outputs": [[1], [2, 2]]})
    assert score(verifier, "def f(n): return n * n", wrapped) == 1
    assert score(verifier, "def f(n): return [n] * n", listed) == 1


def test_floats_agree_within_rounding_and_integers_exactly(verifier: UnitTestVerifier) -> None:
    halves = from_input_output({"fn_name": "f", "inputs": [[0.1, 0.2]], "outputs": [[0.3]]})
    big = from_input_output({"fn_name": "f", "inputs": [[10**9, 1]], "outputs": [[10**9]]})
    assert score(verifier, "def f(a, b): return a + b", halves) == 1
    assert score(verifier, "def f(a, b): return a + b", big) == 0, "one in a thousand million is not rounding"
    written = from_input_output({"inputs": ["", ""], "outputs": ["1000000000", "0.30000001"]})
    assert score(verifier, "print(1000000000)", StdioTests(written.cases[:1], 1e-6)) == 1  # type: ignore[arg-type]  # stdio cases
    assert score(verifier, "print(1000000001)", StdioTests(written.cases[:1], 1e-6)) == 0  # type: ignore[arg-type]
    assert score(verifier, "print(0.3)", StdioTests(written.cases[1:], 1e-6)) == 1  # type: ignore[arg-type]


def compressed(tests: list[dict[str, str]], *, pickled: bool) -> str:
    text = json.dumps(tests)
    return base64.b64encode(zlib.compress(pickle.dumps(text) if pickled else text.encode())).decode()


@pytest.mark.parametrize("pickled", [True, False])
def test_livecodebench_stdin(verifier: UnitTestVerifier, pickled: bool) -> None:
    private = [{"input": "5 6\n", "output": "11\n", "testtype": "stdin"}]
    row = {
        "public_test_cases": json.dumps([{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]),
        "private_test_cases": compressed(private, pickled=pickled),
        "metadata": "{}",
    }
    tests = from_livecodebench(row)
    assert isinstance(tests, StdioTests)
    assert len(tests.cases) == 2
    assert score(verifier, SUM, tests) == 1
    assert score(verifier, "print(3)", tests) == 0
    assert score(verifier, "print(3)", from_livecodebench(row, private=False)) == 1


def test_livecodebench_functional(verifier: UnitTestVerifier) -> None:
    cases = [{"input": '[3, 1]\n"ab"', "output": '["ab", 3, 1]', "testtype": "functional"}]
    row = {
        "public_test_cases": json.dumps(cases),
        "private_test_cases": "[]",
        "metadata": json.dumps({"func_name": "join"}),
        "starter_code": "class Solution:\n    def join(self, a, b):\n        ",
    }
    tests = from_livecodebench(row)
    program = "class Solution:\n    def join(self, a, b):\n        return [b] + a"
    assert score(verifier, program, tests) == 1
    assert score(verifier, program.replace("[b] + a", "a + [b]"), tests) == 0


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("ran",)


def test_compressed_tests_run_no_code(capsys: pytest.CaptureFixture[str]) -> None:
    packed = base64.b64encode(zlib.compress(pickle.dumps(Evil()))).decode()
    with pytest.raises(InvalidArgumentError, match=r"hold builtins\.print, where text was expected"):
        from_livecodebench({"public_test_cases": "[]", "private_test_cases": packed})
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: from_input_output("no json"), "input_output is not JSON"),
        (lambda: from_input_output({"inputs": []}), "needs the keys 'inputs' and 'outputs', got {'inputs': \\[\\]}"),
        (lambda: from_input_output({"inputs": ["1"], "outputs": []}), "has 1 inputs and 0 outputs"),
        (lambda: from_livecodebench({"a": 1}), "has a column 'public_test_cases'; this one has a"),
        (
            lambda: from_livecodebench({"public_test_cases": "[]", "private_test_cases": "!!"}),
            "neither JSON nor base64 of compressed tests",
        ),
        (
            lambda: from_livecodebench(
                {
                    "public_test_cases": '[{"input": "1", "output": "1", "testtype": "functional"}]',
                    "private_test_cases": "[]",
                }
            ),
            "needs metadata with 'func_name'",
        ),
        (lambda: from_livecodebench({"public_test_cases": '[{"input": "1"}]'}), "a test has 'input', 'output'"),
    ],
)
def test_a_row_that_does_not_fit_says_what_is_wrong(make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()
