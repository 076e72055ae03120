"""Tests made from the row formats of public data sets."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from typing import Any

import pytest

from tests.sandbox import Tests, judge
from verifiers import InvalidArgumentError, UnknownNameError
from verifiers.unit_tests import (
    AssertTests,
    CallCase,
    CallTests,
    CheckTests,
    FunctionTests,
    StdioCase,
    StdioTests,
    UnitTestVerifier,
    from_test_list,
)
from verifiers.unit_tests.datasets import from_input_output, from_json, from_livecodebench


def score(verifier: UnitTestVerifier, program: str, tests: Tests) -> float:
    return judge(verifier, program, tests).score


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


def test_an_output_that_is_a_list_of_one_is_that_list_or_a_wrapped_value(verifier: UnitTestVerifier) -> None:
    wrapped = from_input_output({"fn_name": "f", "inputs": [[1], [2]], "outputs": [[1], [4]]})
    listed = from_input_output({"fn_name": "f", "inputs": [[1], [2]], "outputs": [[1], [2, 2]]})
    nested = from_input_output({"fn_name": "f", "inputs": [[1], [2]], "outputs": [[[1]], [[2, 2]]]})
    assert score(verifier, "def f(n): return n * n", wrapped) == 1
    assert score(verifier, "def f(n): return [n * n]", wrapped) == 1
    assert score(verifier, "def f(n): return [n] * n", listed) == 1
    assert score(verifier, "def f(n): return (n,) * n", nested) == 1
    assert score(verifier, "def f(n): return n", listed) == 0, "a list of two is no value"
    assert score(verifier, "def f(n): return [[n * n]]", wrapped) == 0
    liar = """
class One(list):
    __eq__ = lambda *a: True
    __len__ = lambda s: 1
def f(n): return One()
"""
    assert score(verifier, liar, wrapped) == 0


CALL = {"fn_name": "head", "inputs": [[[3, 1, 2], 2]], "outputs": [[[3, 1]]]}
SOLUTION = "class Solution:\n    def head(self, nums: List[int], k: int) -> List[int]:\n        "
FUNCTION = "import math\n\ndef head(nums, k):\n    "
IMPORTING = [
    "def head(nums: List[int], k: Optional[int] = inf) -> List[int]: return nums[:k]",
    "class Solution:\n    def head(self, nums: List[int], k: int) -> List[int]: return nums[:k]",
    "from __future__ import annotations\ndef head(nums: Unknown, k): return nums[:k]",
    (
        "def head(nums, k):\n"
        "    d, c, q = defaultdict(int), Counter(nums), deque(nums)\n"
        "    heapq.heapify(nums[:]); bisect_left([1], 1); bisect.bisect([1], 1)\n"
        "    assert c.most_common() and sqrt(4) == 2 and gcd(4, 6) == 2 and reduce(add, nums) and list(accumulate([1, "
        "2])) == [1, 3]\n"
        "    return list(islice(q, k))"
    ),
    "@lru_cache(None)\ndef down(n): return n and down(n - 1)\ndef head(nums, k):\n    down(300)\n    return nums[:k]",
    (
        "def count(x): return 7\n"
        "class Counter: x = 5\n"
        "def head(nums, k): return nums[:k] if count(1) == 7 and Counter.x == 5 else 0"
    ),
    "def head(nums, k): return nums[:k] if open.__module__ == 'io' and pow(2, 3, 5) == 3 and max([1]) == 1 else 0",
]


@pytest.mark.parametrize("program", IMPORTING)
def test_what_starter_code_uses_is_imported(verifier: UnitTestVerifier, program: str) -> None:
    row = {"input": "[3, 1, 2]\n2", "output": "[3, 1]", "testtype": "functional"}
    columns = {"public_test_cases": json.dumps([row]), "private_test_cases": "[]", "metadata": '{"func_name": "head"}'}
    for tests in (from_input_output(CALL), from_livecodebench(columns)):
        assert score(verifier, program, tests) == 1
        assert score(verifier, program.replace("nums[:k]", "nums[:1]").replace("q, k", "q, 1"), tests) == 0


def test_imports_stand_in_for_no_function_that_the_program_lacks(verifier: UnitTestVerifier) -> None:
    product = from_input_output({"fn_name": "product", "inputs": [[2, 3]], "outputs": [6]})
    verdict = judge(verifier, "x = 1", product)
    assert verdict.detail["failure"] == "exception", "itertools.product is not the program's"
    method = "class Solution:\n    def product(self, a, b): return a * b"
    assert score(verifier, method, product) == 1
    gcd = from_input_output({"fn_name": "gcd", "inputs": [[4, 6]], "outputs": [2]})
    assert score(verifier, "def lcm(a, b): return a * b", gcd) == 0, "math.gcd is not the program's"


@pytest.mark.parametrize(
    "starter", [SOLUTION, FUNCTION, SOLUTION + "pass", "", FUNCTION.rstrip(), "# def head\n" + SOLUTION.rstrip() + "\n"]
)
@pytest.mark.parametrize(
    "program",
    [
        "class Solution:\n    def head(self, nums: List[int], k: int):\n        return nums[:k]",
        (
            "from typing import List\n"
            "\n"
            "class Solution:\n"
            "    def head(self, nums: List[int], k: int):\n"
            "        return nums[:k]"
        ),
        "```python\ndef head(nums, k):\n    return nums[:int(math.sqrt(k * k))]\n```",
    ],
)
def test_starter_code_is_no_part_of_a_whole_program(verifier: UnitTestVerifier, starter: str, program: str) -> None:
    tests = from_input_output(CALL, starter_code=starter)
    assert score(verifier, program, tests) == 1
    assert score(verifier, program.replace("nums[:", "nums[1:"), tests) == 0


@pytest.mark.parametrize(("starter", "indent"), [(SOLUTION, 8), (FUNCTION, 4)])
def test_starter_code_can_be_continued(verifier: UnitTestVerifier, starter: str, indent: int) -> None:
    tests = from_input_output(CALL, starter_code=starter.rstrip() + "\n")
    assert score(verifier, " " * indent + "return nums[:k]", tests) == 1
    assert score(verifier, " " * indent + "return nums[k:]", tests) == 0


def test_floats_agree_within_rounding_and_integers_exactly(verifier: UnitTestVerifier) -> None:
    halves = from_input_output({"fn_name": "f", "inputs": [[0.1, 0.2]], "outputs": [[0.3]]})
    big = from_input_output({"fn_name": "f", "inputs": [[10**9, 1]], "outputs": [[10**9]]})
    assert score(verifier, "def f(a, b): return a + b", halves) == 1
    assert score(verifier, "def f(a, b): return a + b", big) == 0, "one in a thousand million is not rounding"


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


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("ran",)


def test_compressed_tests_run_no_code(capsys: pytest.CaptureFixture[str]) -> None:
    packed = base64.b64encode(zlib.compress(pickle.dumps(Evil()))).decode()
    with pytest.raises(InvalidArgumentError, match=r"hold builtins\.print, where text was expected"):
        from_livecodebench({"public_test_cases": "[]", "private_test_cases": packed})
    assert capsys.readouterr().out == ""


def test_programs_that_read_stdin_have_the_imports_of_their_sites_too(verifier: UnitTestVerifier) -> None:
    tests = from_input_output({"inputs": ["aab\n"], "outputs": ["a 2 inf"]})
    program = """
from __future__ import annotations
letter, count = Counter(input()).most_common(1)[0]
print(letter, gcd(count, 4), inf)
"""
    assert score(verifier, program, tests) == 1
    assert isinstance(tests, StdioTests)
    assert score(verifier, program, StdioTests(tests.cases)) == 0


@pytest.mark.parametrize(
    ("value", "tests"),
    [
        ({"asserts": ["assert f(1) == 2"], "setup": "import math"}, AssertTests(("assert f(1) == 2",), "import math")),
        ({"entry_point": "f", "test": "def check(candidate): ..."}, CheckTests("f", "def check(candidate): ...")),
        (
            {"entry_point": "f", "cases": [{"args": [[1], 2], "expected": [3]}], "tolerance": 0.1},
            CallTests("f", (CallCase(([1], 2), [3]),), tolerance=0.1),
        ),
        (
            {"cases": [{"stdin": "1", "expected": "2", "alternatives": ["3"]}], "comparison": "lines"},
            StdioTests((StdioCase("1", "2", ("3",)),), comparison="lines"),
        ),
        ({"test": "def test_f(): ...", "module": "mine"}, FunctionTests("def test_f(): ...", "mine")),
        ({"inputs": ["1"], "outputs": ["2"]}, from_input_output({"inputs": ["1"], "outputs": ["2"]})),
        ([{"input": "1", "output": "2"}], from_test_list([{"input": "1", "output": "2"}])),
    ],
)
def test_every_kind_of_tests_can_be_json(value: object, tests: object) -> None:
    assert from_json(json.loads(json.dumps(value))) == tests


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"assert": ["assert f(1) == 2"]}, "tests as JSON have the keys asserts; entry_point and test, or cases"),
        ({"cases": [{"stdin": "1"}]}, "StdioCase as JSON: .*missing 1 required positional argument: 'expected'"),
        ({"cases": ["1"]}, "cases of StdioTests is a list of mappings"),
        ({"asserts": "assert f(1) == 2"}, "asserts of AssertTests is a list, got 'assert"),
        ({"test": 3}, "test must be text, got 3"),
        ({"asserts": [], "set_up": ""}, "unknown field of AssertTests 'set_up'. Did you mean 'setup'"),
    ],
)
def test_json_that_is_no_tests_says_what_it_lacks(value: object, message: str) -> None:
    with pytest.raises((InvalidArgumentError, UnknownNameError), match=message):
        from_json(value)
