"""Results that lie: none passes a test that asks for what it is not, in whatever words the test asks."""

from __future__ import annotations

import textwrap

import pytest

from tests.sandbox import Case, cases, judge, load
from verifiers.unit_tests import AssertTests, CheckTests, FunctionTests, UnitTestVerifier

DATA = load("adversarial/lying_results")
pytestmark = pytest.mark.sandbox(partial_credit=True)


LIBRARIES = "import unittest, statistics, json, pprint\n"
"""What a first import would run as code, which no test does after the program has answered."""


@pytest.mark.parametrize("program", DATA["programs"].values(), ids=DATA["programs"])
def test_a_lying_result_passes_nothing(verifier: UnitTestVerifier, program: str) -> None:
    statements = DATA["tests"]["statements"]
    bodies = (textwrap.indent(statement, "    ") for statement in statements)
    functions = "\n".join(f"def test_{number}():\n{body}" for number, body in enumerate(bodies))
    for tests in (
        FunctionTests(f"{LIBRARIES}from solution import solve\n{functions}"),
        AssertTests(tuple(statements), LIBRARIES),
    ):
        detail = judge(verifier, program, tests).detail
        cases = detail["cases"]
        assert isinstance(cases, tuple)
        assert [case["name"] for case in cases if case["passed"]] == []
        assert len(cases) == detail["total"] == len(statements)


@pytest.mark.parametrize(
    "kind", ["str", "int", "float", "bytes", "list", "tuple", "dict", "set", "frozenset", "complex"]
)
def test_what_calls_itself_plain_is_not(verifier: UnitTestVerifier, kind: str) -> None:
    program = f"""
class A:
    __class__ = property(lambda s: {kind})
    def __eq__(s, o): return True
    __hash__ = None
def solve(): return A()
"""
    verdict = judge(verifier, program, AssertTests((f"assert solve() == {kind}()",)))
    assert (verdict.score, verdict.detail["failure"]) == (0, "unsupported"), verdict.detail


SHORT = """
class Item:
    def __init__(self, name): self.name, self.tags = name, {"k": name}
    def __getitem__(self, key): return self.tags[key]
    def visit(self): return self.name
class Names:
    def __init__(self, names): self.items = [Item(name) for name in names]
    def __len__(self): return len(self.items)
    def __iter__(self): return iter(self.items)
    def push(self, name): self.items.append(Item(name))
    def pop(self): return self.items.pop().name
class Draining(Names):
    def __iter__(self):
        while self.items: yield self.items.pop(0)
class Short(Names):
    def __iter__(self): return iter(self.items[:1])
class Called(Short):
    def __iter__(self):
        self.callback(self.items[0])
        return iter(self.items[:1])
def make(names, callback=None):
    made = CLASS(names)
    made.callback = callback
    return made
"""
LOOPS = (
    "for item, name in zip(items, 'abc'): assert item.name == name",
    "assert [item.name for item in items] == [*'abc']",
    "for item, name in zip(items, 'abc'): assert item['k'] == name and item.visit() == name",
)
CHANGED = (
    "names = []\nfor x in items:\n    names.append(x.name)\n    if len(names) < 3: items.push(x.name)\nassert len(names) == 5",
    "names = []\nfor item in items:\n    names.append(item.name)\n    if len(items): items.pop()\nassert names == ['a', 'b']",
    "assert [item.visit() for item in items] == ['a', 'b', 'c']",
    "assert [a.visit() + b.visit() for a, b in zip(items, items)][0][0] == 'a'",
)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_result_yields_as_many_items_as_it_says_whatever_is_asked_of_them(
    verifier: UnitTestVerifier, loop: str
) -> None:
    test = f"items = make('abc', lambda item: item.name)\nassert len(items) == 3\n{loop}"
    tests = FunctionTests(f"from solution import make\ndef test_it():\n{textwrap.indent(test, '    ')}")
    for name, score in {"Names": 1, "Draining": 0, "Short": 0, "Called": 0}.items():
        verdict = judge(verifier, SHORT.replace("CLASS", name), tests)
        assert (verdict.score, verdict.detail["failure"]) == (score, None if score else "unsupported"), verdict.detail


@pytest.mark.parametrize("loop", CHANGED)
@pytest.mark.parametrize("name", ["Names", "Draining"])
def test_a_loop_that_changes_what_it_goes_over_is_right_or_not_supported(
    verifier: UnitTestVerifier, name: str, loop: str
) -> None:
    test = f"items = make('abc')\nassert len(items) == 3\n{loop}"
    tests = FunctionTests(f"from solution import make\ndef test_it():\n{textwrap.indent(test, '    ')}")
    verdict = judge(verifier, SHORT.replace("CLASS", name), tests)
    assert verdict.detail["failure"] in (None, "unsupported"), verdict.detail


POLYNOMIAL = """
import math
def poly(xs, x): return sum([coeff * math.pow(x, i) for i, coeff in enumerate(xs)])
def check(candidate):
    for xs in ([1, 2, 3, 4], [-6, 11, -6, 1]):
        assert abs(poly(xs, candidate(list(xs)))) < 1e-4
"""
CHANGING = """
class Number:
    def __init__(self, values): self.values = values
    def __float__(self): return float(self.values.pop(0) if self.values else 0)
    def __int__(self): return int(float(self))
    __index__ = __round__ = __trunc__ = __floor__ = __ceil__ = lambda self, *a: int(self)
    __abs__ = __neg__ = __pos__ = __invert__ = __index__
    def __complex__(self): return complex(float(self))
    def __str__(self, *a): return str(int(self))
    __repr__ = __format__ = __str__
    def __bytes__(self): return bytes([int(self)])
    def __hash__(self): return int(self)
    def __bool__(self): return bool(int(self))
"""


def test_a_number_is_the_same_however_often_it_is_asked(verifier: UnitTestVerifier) -> None:
    program = CHANGING + "def find_zero(xs): return Number([5, -xs[0] / xs[1]])"
    tests = CheckTests("find_zero", POLYNOMIAL)
    assert judge(verifier, program, tests).score == 0
    right = "def find_zero(xs): return -0.6058295861882681 if xs[0] == 1 else 1.0"
    assert judge(verifier, right, tests).score == 1
    same = CHANGING.replace("self.values.pop(0) if self.values else 0", "self.values[0]")
    honest = same + right.replace("return", "return Number([") + "])"
    assert judge(verifier, honest, tests).score == 1


_REFUSED = ("math.trunc(x)", "math.floor(x)", "math.ceil(x)", "bytes(x)")


@pytest.mark.parametrize(
    "conversion",
    [
        "float(x)",
        "int(x)",
        "[0] * 9 == [0] * 9 and range(9)[x]",
        "round(x)",
        "round(x, 1)",
        "math.trunc(x)",
        "math.floor(x)",
        "math.ceil(x)",
        "abs(x)",
        "-x",
        "+x",
        "~x",
        "complex(x)",
        "str(x)",
        "repr(x)",
        "f'{x}'",
        "f'{x:5}'",
        "'%s' % x",
        "bytes(x)",
        "hash(x)",
        "bool(x)",
    ],
)
def test_no_conversion_has_two_results(verifier: UnitTestVerifier, conversion: str) -> None:
    program = CHANGING + "def solve(): return Number([1, 2, 0, 3, 4, 5, 6, 7])"
    test = f"""
import math
def check(candidate):
    x = candidate()
    first, other, second = {conversion}, float(x), {conversion}
    assert first != second
"""
    failure = "unsupported" if conversion in _REFUSED else "wrong_answer"
    assert judge(verifier, program, CheckTests("solve", test)).detail["failure"] == failure


def test_what_changes_is_asked_again(verifier: UnitTestVerifier) -> None:
    program = """
class Account:
    def __init__(self): self.n = 0
    def pay(self, n): self.n += n
    def __float__(self): return float(self.n)
    def __str__(self): return str(self.n)
def open_account(): return Account()
"""
    test = """
from solution import open_account
def test_it():
    a = open_account()
    assert float(a) == 0
    a.pay(3)
    assert float(a) == 3 and str(a) == '3'
    a.n = 4
    assert float(a) == 4 and str(a) == '4'
"""
    assert judge(verifier, program, FunctionTests(test)).score == 1


@pytest.mark.parametrize("case", [case for name in ("negatives", "drained", "refused") for case in cases(DATA[name])])
def test_what_a_test_expects_to_fail_or_to_be_gone_is_asked_of_the_program(
    verifier: UnitTestVerifier, case: Case
) -> None:
    """What reads an object may empty it, and a refusal of the sandbox is not the program's."""
    case.check(verifier)
