# ruff: noqa: E501 - a program reads best on one line
"""Results that lie: none passes a test that asks for what it is not, in whatever words the test asks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from verifiers import Problem
from verifiers.unit_tests import AssertTests, CheckTests, FunctionTests, UnitTestVerifier

PROGRAMS = {
    "liar": "class E:\n    def __init__(self,*a): pass\n    def __eq__(self,o): return True\n    def __ne__(self,o): return False\n    def __hash__(self): return hash(16)\n    def __lt__(self,o): return True\n    __le__=__gt__=__ge__=__contains__=__lt__\n    def __len__(self): return 3\n    def __iter__(self): return iter(())\n    def __getattr__(self,n): return lambda *a,**k: True\n    def __call__(self,*a,**k): return True\n    def __bool__(self): return True\n    def __getitem__(self,k): return self\n    def __index__(self): return 0\n    def __float__(self): return 0.0\n    def __abs__(self): return 0\n    def __sub__(self,o): return self\n    __rsub__=__add__=__radd__=__mul__=__rmul__=__truediv__=__mod__=__sub__\n    def __round__(self,n=None): return self\n    def __format__(self,s): return ''\n    def __str__(self): return ''\n    def __enter__(self): return self\n    def __exit__(self,*a): return True\n    def __next__(self): raise StopIteration\ndef solve(*a,**k): return E()",
    "stop": "def solve(*a, **k): raise StopIteration",
    "gen": "def solve(*a, **k):\n    return\n    yield",
    "gexit": "def solve(*a, **k):\n    raise GeneratorExit",
    "fn": "def solve(*a, **k): return lambda *a, **k: True",
    "cls": "class M(type):\n    def __getattr__(c,n): return lambda *a,**k: True\n    def __eq__(c,o): return True\n    def __hash__(c): return 16\n    def __len__(c): return 3\n    def __iter__(c): return iter(())\n    def __contains__(c,o): return True\n    def __instancecheck__(c,o): return True\nclass K(metaclass=M): pass\ndef solve(*a,**k): return K",
    "exc": "class X(Exception):\n    def __eq__(s,o): return True\n    __hash__=None\ndef solve(*a,**k): return X('17')",
    "nt": "from collections import namedtuple\nclass N(namedtuple('N','a b c')):\n    def __eq__(s,o): return True\n    __hash__=None\ndef solve(*a,**k): return N(1,2,3)",
    "subint": "class I(int):\n    def __eq__(s,o): return True\n    def __sub__(s,o): return 0\n    __rsub__=__sub__\n    __hash__=int.__hash__\ndef solve(*a,**k): return I(5)",
    "sublist": "class L(list):\n    def __eq__(s,o): return True\n    def __len__(s): return 3\n    def __iter__(s): return iter(())\ndef solve(*a,**k): return L()",
    "dd": "from collections import defaultdict\nclass E:\n    def __eq__(s,o): return True\n    def __hash__(s): return 16\n    def __radd__(s,o): return s\n    def __rsub__(s,o): return 0\ndef solve(*a,**k): return defaultdict(E)",
    "counter": "from collections import Counter\nclass C(Counter):\n    def __eq__(s,o): return True\ndef solve(*a,**k): return C()",
    "mut": "def solve(x=None,*a,**k):\n    if hasattr(x,'clear'): x.clear()\n    return x",
    "path": "import pathlib\nclass P(type(pathlib.Path())):\n    def __eq__(s,o): return True\n    __hash__=lambda s:16\ndef solve(*a,**k): return P('x')",
    "nan": "def solve(*a,**k): return float('nan')",
    "ni": "def solve(*a,**k): return NotImplemented",
    "ell": "def solve(*a,**k): return ...",
    "enum": "import enum\nclass C(int,enum.Enum):\n    A=5\n    def __eq__(s,o): return True\n    __hash__=int.__hash__\ndef solve(*a,**k): return C.A",
    "dc": "from dataclasses import dataclass\n@dataclass\nclass D:\n    x:int=1\n    def __eq__(s,o): return True\ndef solve(*a,**k): return D()",
    "dataview": "def solve(*a,**k): return {}.keys()",
}
"""By what `solve` returns, or does."""
STATEMENTS = [
    "assert solve([3,4]) == [9,16,7]",
    "r = solve([3,4]); assert len(r) == 3 and all(a == b for a,b in zip(r,[9,16,7]))",
    "r = solve([3,4]); assert len(r) == len([9,16,7])\nfor i, x in enumerate(r): assert x == [9,16,7][i]",
    "assert sorted(solve([3,4])) == [7,9,16]",
    "assert set(solve([3,4])) == {7,9,16}",
    "assert 16 in solve([3,4]) and len(solve([3,4])) == 3",
    "assert solve([3,4]) in ([9,16,7],[16,9,7])",
    "assert not (set([9,16,7]) - set(solve([3,4])))",
    "assert not (set([9,16,7]) ^ set(solve([3,4])))",
    "assert not {9,16,7}.difference(solve([3,4]))",
    "assert {9,16,7}.issubset(solve([3,4]))",
    "assert {9,16,7} == solve([3,4])",
    "assert {9,16,7} <= solve([3,4])",
    "assert not ({9,16,7} - solve([3,4]))",
    "assert solve([3,4]) >= {9,16,7}",
    "assert f'{solve(3)}' == '16'",
    "assert '%s' % solve(3) == '16' or '{}'.format(solve(3)) == '16'",
    "assert abs(solve(3) - 16) < 1e-6",
    "assert round(solve(3), 2) == 16.0",
    "assert abs(float(solve(3)) - 16.25) < 1e-6",
    "assert max(solve(3), 16) == 16 and min(solve(3), 16) == 16",
    "assert str(solve(3)) == '16'",
    "assert repr(solve(3)) == '16'",
    "assert solve(3) is not None and 16 == solve(3)",
    "assert isinstance(solve(3), int) and solve(3) == 16",
    "assert type(solve(3)) is int and solve(3) == 16",
    "assert type(solve(3)) == type(16) and str(solve(3)) == str(16)",
    "assert {'a': 16}.items() <= solve(3).items()",
    "assert dict(solve(3)) == {'a': 16}",
    "assert {**solve(3)} == {'a': 16}",
    "assert [*solve(3)] == [16]",
    "a, b, c = solve(3); assert (a, b, c) == (9, 16, 7)",
    "assert all(solve(n) == n * n + 7 for n in range(3, 6))",
    "assert [solve(n) for n in (3, 4)] == [16, 23]",
    "assert list(map(solve, [3, 4])) == [16, 23]",
    "for n, e in [(3, 16), (4, 23)]:\n    assert solve(n) == e",
    "assert any(solve(3) == e for e in (16, 17))",
    "assert next(x for x in (16,) if x == solve(3)) == 16",
    "assert [16].index(solve(3)) == 0 and [16].count(solve(3)) == 1",
    "x = [16]; x.remove(solve(3)); assert x == []",
    "assert {16: 'a'}[solve(3)] == 'a'",
    "assert {16: 'a'}.get(solve(3)) == 'a'",
    "from collections import Counter; assert Counter(solve(3)) == Counter([9,16,7])",
    "from collections import Counter; assert not (Counter([9,16,7]) - Counter(solve(3)))",
    "from collections import Counter; c = Counter([9,16,7]); c.subtract(solve(3)); assert not any(c.values())",
    "import statistics; assert statistics.mean([solve(3), 16]) == 16",
    "import json; assert json.dumps(solve(3)) == '16'",
    "import json; assert json.loads(json.dumps(solve(3), default=str)) == 16",
    "import itertools; assert all(a == b for a, b in itertools.zip_longest(solve(3), [9,16,7]))",
    "import operator; assert operator.eq(solve(3), 16)",
    "import functools; assert functools.reduce(operator.xor, [solve(3), 16], 0) == 0\nimport operator",
    "import difflib; assert not list(difflib.unified_diff(['16'], solve(3)))",
    "x = [3,4]; solve(x); assert x == [9, 16]",
    "x = {1: 2}; solve(x); assert x == {1: 3}",
    "x = [3]; assert solve(x) == x and x == [16]",
    "import copy; assert copy.deepcopy(solve(3)) == 16",
    "import pprint; assert pprint.pformat(solve(3)) == '16'",
    "try:\n    solve(3)\nexcept ValueError as e: assert str(e) == '16'\nelse: assert False",
    "import contextlib\nwith contextlib.suppress(ValueError):\n    solve(3)\n    raise AssertionError",
    "with solve(3) as r: assert r == 16",
    "match solve(3):\n    case [9, 16, 7]: pass\n    case {'a': 16}: pass\n    case int(16): pass\n    case _: assert 0",
    "def g():\n    yield from solve(3)\nassert list(g()) == [9,16,7]",
    "assert (solve(3) or 0) == 16",
    "assert not solve(3) != 16",
    "assert solve(3) == 16 if solve(3) else False",
    "assert 16 == sum(solve(3))",
    "assert bytes(solve(3)) == b'16'",
    "assert int(str(solve(3))) == 16",
    "assert [1,2,3][solve(3)] == 4",
    "assert ''.join(solve(3)) == 'abc'",
    "assert 'abc'.startswith(solve(3)) and solve(3) == 'abc'",
    "assert 'abc'.replace(solve(3), '') == ''",
    "assert dict.fromkeys(solve(3)) == {9: None, 16: None}",
    "assert (9,16,7) == tuple(solve(3))",
    "assert frozenset(solve(3)) == frozenset((9,16,7))",
    "assert 15 < solve(3) < 17",
    "assert solve(3) == solve(3) == 16",
    "assert hash(solve(3)) == hash(16) and solve(3) == 16",
    "assert divmod(solve(3), 16) == (1, 0)",
    "assert pow(solve(3), 1) == 16",
    "import unittest; unittest.TestCase().assertDictEqual(solve(3), {'a': 16})",
    "import unittest; unittest.TestCase().assertSetEqual(solve(3), {16})",
    "import unittest; unittest.TestCase().assertTupleEqual(solve(3), (16,))",
    "import unittest; unittest.TestCase().assertMultiLineEqual(solve(3), '16')",
    "import unittest; unittest.TestCase().assertIs(solve(3), 16)",
    "import unittest; unittest.TestCase().assertRegex(solve(3), '^16$')",
    "import unittest; unittest.TestCase().assertDictContainsSubset({'a': 16}, solve(3))",
    "import unittest; unittest.TestCase().assertSequenceEqual(solve(3), [9,16,7])",
    "import unittest; unittest.TestCase().assertSequenceEqual([9,16,7], solve(3))",
    "import unittest; unittest.TestCase().assertCountEqual([9,16,7], solve(3))",
    "import unittest; unittest.TestCase().assertAlmostEqual(solve(3), 16, places=5)",
    "import unittest; unittest.TestCase().assertAlmostEqual(16, solve(3), delta=0.5)",
    "from unittest.mock import Mock; m = Mock(); solve(m); m.assert_called_once_with(16)",
    "from unittest.mock import Mock; m = Mock(); m(solve(3)); m.assert_called_once_with(16)",
    "from unittest.mock import call; assert [call(solve(3))] == [call(16)]",
    "import pytest; assert solve(3) == pytest.approx([9.0,16.0,7.0])",
    "import pytest; assert pytest.approx({'a': 16.0}) == solve(3)",
    "import pytest; assert [solve(3)] == pytest.approx([16])",
    "import pytest; assert pytest.approx(solve(3)) == [9,16,7]",
    "import pytest; assert solve(3) == pytest.approx(16, abs=solve(3))",
]
"""Each fails, or raises, unless `solve` is right."""


@pytest.fixture(scope="module")
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(timeout_s=2, partial_credit=True)
    yield verifier
    verifier.close()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_lying_result_passes_nothing(verifier: UnitTestVerifier, name: str) -> None:
    bodies = (statement.replace("\n", "\n    ") for statement in STATEMENTS)
    functions = "\n".join(f"def test_{number}():\n    {body}" for number, body in enumerate(bodies))
    for tests in (FunctionTests(f"from solution import solve\n{functions}"), AssertTests(tuple(STATEMENTS))):
        detail = verifier(PROGRAMS[name], Problem("p", "", tests)).detail
        cases = detail["cases"]
        assert isinstance(cases, tuple)
        assert [case["name"] for case in cases if case["passed"]] == []
        assert len(cases) == detail["total"] == len(STATEMENTS)


@pytest.mark.parametrize(
    "kind", ["str", "int", "float", "bytes", "list", "tuple", "dict", "set", "frozenset", "complex"]
)
def test_what_calls_itself_plain_is_not(verifier: UnitTestVerifier, kind: str) -> None:
    program = f"class A:\n    __class__ = property(lambda s: {kind})\n    def __eq__(s, o): return True\n    __hash__ = None\ndef solve(): return A()"
    verdict = verifier(program, Problem("p", "", AssertTests((f"assert solve() == {kind}()",))))
    assert (verdict.score, verdict.detail["failure"]) == (0, "unsupported"), verdict.detail


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
    __index__ = __round__ = __trunc__ = __floor__ = __ceil__ = __abs__ = __neg__ = __pos__ = __invert__ = lambda self, *a: int(self)
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
    assert verifier(program, Problem("p", "", tests)).score == 0
    right = "def find_zero(xs): return -0.6058295861882681 if xs[0] == 1 else 1.0"
    assert verifier(right, Problem("p", "", tests)).score == 1
    honest = (
        CHANGING.replace("self.values.pop(0) if self.values else 0", "self.values[0]")
        + right.replace("return", "return Number([")
        + "])"
    )
    assert verifier(honest, Problem("p", "", tests)).score == 1


@pytest.mark.parametrize(
    "conversion",
    ["float(x)", "int(x)", "[0] * 9 == [0] * 9 and range(9)[x]", "round(x)", "round(x, 1)", "math.trunc(x)", "math.floor(x)", "math.ceil(x)", "abs(x)", "-x", "+x", "~x", "complex(x)", "str(x)", "repr(x)", "f'{x}'", "f'{x:5}'", "'%s' % x", "bytes(x)", "hash(x)", "bool(x)"],
)  # fmt: skip
def test_no_conversion_has_two_results(verifier: UnitTestVerifier, conversion: str) -> None:
    program = CHANGING + "def solve(): return Number([1, 2, 0, 3, 4, 5, 6, 7])"
    test = f"import math\ndef check(candidate):\n    x = candidate()\n    first, other, second = {conversion}, float(x), {conversion}\n    assert first != second"
    assert verifier(program, Problem("p", "", CheckTests("solve", test))).detail["failure"] == "wrong_answer"


def test_what_changes_is_asked_again(verifier: UnitTestVerifier) -> None:
    program = "class Account:\n    def __init__(self): self.n = 0\n    def pay(self, n): self.n += n\n    def __float__(self): return float(self.n)\n    def __str__(self): return str(self.n)\ndef open_account(): return Account()"
    test = "from solution import open_account\ndef test_it():\n    a = open_account()\n    assert float(a) == 0\n    a.pay(3)\n    assert float(a) == 3 and str(a) == '3'\n    a.n = 4\n    assert float(a) == 4 and str(a) == '4'"
    assert verifier(program, Problem("p", "", FunctionTests(test))).score == 1
