# ruff: noqa: E501 - a program reads best on one line
"""Forms in which people write tests: a right program passes, and the same one with a mistake does not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from verifiers import Outcome, Problem
from verifiers.unit_tests import (
    AssertTests,
    CallCase,
    CallTests,
    FunctionTests,
    StdioCase,
    StdioTests,
    UnitTestVerifier,
)


@pytest.fixture(scope="module")
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(timeout_s=5, memory_mib=512)
    yield verifier
    verifier.close()


ASSERTS = {
    "functions named as in operator": ("def add(a, b): return a + b\ndef sub(a, b): return a - b", "a - b", "a", ["assert add(2, 3) == 5", "assert sub(2, 3) == -1"]),
    "functions named as in math": ("import math\ndef gcd(a, b): return math.gcd(a, b)\ndef lcm(a, b): return a * b // gcd(a, b)", "a * b //", "a *", ["assert gcd(4, 6) == 2", "assert lcm(4, 6) == 12"]),
    "some named so, some not": ("def is_prime(n): return n in (2, 3)\ndef factorial(n): return 1 if n < 2 else n * factorial(n - 1)", "n * fac", "fac", ["assert is_prime(3)", "assert factorial(4) == 24"]),
    "helpers around what the setup made": ("def f(n): return [n, 1]", "[n, 1]", "[n, 2]", ["assert len(result) == 2", "assert sorted(result) == [1, 5]", "assert sorted([2, 1]) == [1, 2]"]),
    "a helper around the call": ("def area(r): return 3.0 * r", "3.0", "2.0", ["assert isclose(area(1), 3)", "assert sorted([area(2), area(1)]) == [3, 6]"]),
}  # fmt: skip


@pytest.mark.parametrize("name", ASSERTS)
def test_assert_lists(verifier: UnitTestVerifier, name: str) -> None:
    program, right, wrong, asserts = ASSERTS[name]
    problem = Problem("p", "", AssertTests(tuple(asserts), "result = f(5)" if "f(n)" in program else ""))
    assert verifier(program, problem).outcome is Outcome.CORRECT
    assert verifier(program.replace(right, wrong), problem).outcome is Outcome.INCORRECT
    nothing = "\n".join(
        f"def {name}(*_): pass" for name in ("add", "sub", "gcd", "lcm", "is_prime", "factorial", "area")
    )
    assert verifier(nothing, problem).outcome is Outcome.INCORRECT


FUNCTIONS = {
    "exceptions of the standard library": ("import json, decimal, queue\ndef f(n):\n    if n == 0: return json.loads('{')\n    if n == 1: return decimal.Decimal('x')\n    queue.Queue().get_nowait()", "json.loads('{')", "int('{')", "import json, decimal, queue, pytest\nfrom solution import f\n@pytest.mark.parametrize(('n', 'kind'), [(0, json.JSONDecodeError), (1, decimal.InvalidOperation), (2, queue.Empty)])\ndef test_it(n, kind):\n    with pytest.raises(kind) as e: f(n)\n    if n == 0: assert e.value.pos == 1"),
    "a name for one of these": ("import json\nBad = json.JSONDecodeError\ndef f(x): return json.loads(x)", "loads(x)", "dumps(x)", "import pytest\nfrom solution import f, Bad\ndef test_it():\n    with pytest.raises(Bad): f('{')"),
    "a test case imported by name": ("def f(x): return x + 1", "+ 1", "+ 2", "from unittest import TestCase\nfrom solution import f\nclass FTest(TestCase):\n    def test_it(self): self.assertEqual(f(1), 2)"),
    "a context manager": ("class Suppress:\n    def __init__(self, *kinds): self.kinds = kinds\n    def __enter__(self): return self\n    def __exit__(self, kind, error, trace):\n        self.caught = error\n        return kind is not None and issubclass(kind, self.kinds)", "is not None", "is None", "from solution import Suppress\ndef test_it():\n    with Suppress(ZeroDivisionError) as s: 1 / 0\n    assert str(s.caught) == 'division by zero'\n    with Suppress(ValueError):\n        int('x')\n    with Suppress(KeyError, IndexError): {}['k']"),
    "a stop that is raised": ("class Peekable:\n    def __init__(self, items): self.items = iter(items)\n    def peek(self): return next(self.items)\ndef g():\n    yield 1\n    return 'end'", "'end'", "'no'", "import pytest\nfrom solution import Peekable, g\ndef test_it():\n    with pytest.raises(StopIteration): Peekable([]).peek()\n    made = g()\n    next(made)\n    with pytest.raises(StopIteration) as e: next(made)\n    assert e.value.value == 'end'"),
    "a module that is patched": ("import time\ndef f(): return time.time() + 1", "+ 1", "+ 2", "from unittest.mock import patch\nfrom solution import f\ndef test_it():\n    with patch('solution.time') as time:\n        time.time.return_value = 5\n        assert f() == 6\n    assert f() > 1000"),
    "exceptions as values": ("def f(g):\n    try: g()\n    except Exception as error: return error", "return error", "return str(error)", "from solution import f\ndef fail(): raise ConnectionError('x')\ndef test_it():\n    assert isinstance(f(fail), OSError) and not isinstance(f(fail), ValueError)"),
    "objects of the tests in order": ("def best(items): return max(items)\ndef unique(items): return len(set(items))\ndef show(items): return sorted(map(str, items))\ndef place(items, x): return items.index(x)", "max(", "min(", "from dataclasses import dataclass\nfrom solution import best, unique, show, place\n@dataclass(frozen=True, order=True)\nclass Card:\n    rank: int\n    def __str__(self): return f'card {self.rank}'\nclass Plain:\n    def __init__(self, x): self.x = x\ndef test_it():\n    assert best([Card(1), Card(3), Card(2)]) == Card(3)\n    assert unique([Card(1), Card(1), Card(2)]) == 2 and unique([Plain(1), Plain(1)]) == 2\n    assert show([Card(2), Card(1)]) == ['card 1', 'card 2']\n    assert place([Card(2), Card(1)], Card(1)) == 1"),
    "exceptions in a tuple": ("class A(Exception): pass\nclass B(Exception): pass\nERRORS = (A, B, ValueError)\ndef f(n): raise ERRORS[n]()", "raise ERRORS[n]()", "raise KeyError", "import pytest\nfrom solution import f, ERRORS, B\ndef test_it():\n    for n in range(3):\n        with pytest.raises(ERRORS): f(n)\n    try: f(1)\n    except ERRORS as e: assert isinstance(e, B)"),
    "an expected failure": ("def f(x): return x + 1", "+ 1", "+ 2", "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n    @unittest.expectedFailure\n    def test_known(self): self.assertEqual(f(1), 7)\n    def test_it(self): self.assertEqual(f(1), 2)"),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_test_files(verifier: UnitTestVerifier, name: str) -> None:
    program, right, wrong, test = FUNCTIONS[name]
    problem = Problem("p", "", FunctionTests(test))
    verdict = verifier(program, problem)
    assert verdict.outcome is Outcome.CORRECT, verdict.detail
    assert verifier(program.replace(right, wrong), problem).outcome is Outcome.INCORRECT


def test_exceptions_of_the_files_that_a_problem_gives(verifier: UnitTestVerifier) -> None:
    files = {"shop/__init__.py": "", "shop/errors.py": "class TaxError(ValueError): pass\n"}
    test = "import pytest\nfrom shop.errors import TaxError\nfrom solution import tax\ndef test_it():\n    with pytest.raises(TaxError, match='no'): tax(-1)\n"
    problem = Problem("p", "", FunctionTests(test, files=files))
    program = "from shop.errors import TaxError\ndef tax(x):\n    if x < 0: raise TaxError('no')"
    assert verifier(program, problem).outcome is Outcome.CORRECT
    assert verifier(program.replace("raise TaxError", "raise ValueError"), problem).outcome is Outcome.INCORRECT


def test_a_test_of_expected_failures_alone_is_none(verifier: UnitTestVerifier) -> None:
    test = "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n    @unittest.expectedFailure\n    def test_it(self): self.assertEqual(f(1), 7)"
    assert verifier("def f(x): return 0", Problem("p", "", FunctionTests(test))).score != 1


RECURSIVE = "class E(Exception):\n    def __getattribute__(self, name): return self.x\n"


@pytest.mark.parametrize("raising", ["def f(x): raise E()", "raise E()"])
def test_an_exception_that_can_not_be_looked_at_is_one(verifier: UnitTestVerifier, raising: str) -> None:
    verdict = verifier(f"{RECURSIVE}{raising}", Problem("p", "", CallTests("f", (CallCase((1,), 1),))))
    assert verdict.detail["failure"] == "exception", verdict.detail
    script = verifier(f"{RECURSIVE}raise E()", Problem("p", "", StdioTests((StdioCase("", "1"),))))
    assert script.detail["failure"] == "exception", script.detail


def test_the_lowest_recursion_limit_is_the_programs_own(verifier: UnitTestVerifier) -> None:
    program = """
import sys
def f(x):
    for limit in range(1, 100):
        try: sys.setrecursionlimit(limit)
        except (ValueError, RecursionError): continue
        return [[x]]
"""
    verdict = verifier(program, Problem("p", "", CallTests("f", (CallCase((1,), [[1]]),) * 2)))
    assert verdict.score == 1, verdict.detail


def test_many_large_answers_count_together(verifier: UnitTestVerifier) -> None:
    test = "from solution import part, join\ndef test_it(): assert join([part(i) for i in range(10)]) == 1"
    program = "def part(i): return 'x' * 1_900_000\ndef join(parts): return 1"
    verdict = verifier(program, Problem("p", "", FunctionTests(test)))
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "output_limit")


def test_what_is_no_class_is_no_base(verifier: UnitTestVerifier) -> None:
    test = "from solution import Base\nclass Derived(Base): pass\ndef test_it(): pass"
    assert verifier("def Base(): pass", Problem("p", "", FunctionTests(test))).outcome is Outcome.INCORRECT
