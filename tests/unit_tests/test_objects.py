# ruff: noqa: E501 - a program reads best on one line
"""Objects of the program in tests: classes with operators, exceptions, coroutines, and objects that lie."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from verifiers import Outcome, Problem, Verdict
from verifiers.unit_tests import AssertTests, CallCase, CallTests, CheckTests, FunctionTests, UnitTestVerifier


@pytest.fixture(scope="module")
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(timeout_s=2, memory_mib=512)
    yield verifier
    verifier.close()


def judge(verifier: UnitTestVerifier, program: str, *statements: str) -> Verdict:
    return verifier(program, Problem("p", "", AssertTests(statements)))


VECTOR = """
class Vector:
    def __init__(self, *x): self.x = list(x)
    def __add__(self, other): return Vector(*(a + b for a, b in zip(self.x, other.x)))
    def __mul__(self, k): return Vector(*(k * a for a in self.x))
    __rmul__ = __mul__
    def __sub__(self, k): return Vector(*(a - k for a in self.x))
    def __truediv__(self, k): return Vector(*(a / k for a in self.x))
    def __imul__(self, k):
        self.x = [k * a for a in self.x]
        return self
    def __neg__(self): return self * -1
    def __abs__(self): return sum(a * a for a in self.x) ** 0.5
    def __eq__(self, other):
        if isinstance(other, (list, tuple)): return self.x == list(other)
        return isinstance(other, Vector) and self.x == other.x
    def __lt__(self, other): return abs(self) < (abs(other) if isinstance(other, Vector) else other)
    def __hash__(self): return hash(tuple(self.x))
    def __len__(self): return len(self.x)
    def __iter__(self): return iter(self.x)
    def __reversed__(self): return reversed(self.x)
    def __getitem__(self, i): return self.x[i]
    def __setitem__(self, i, a): self.x[i] = a
    def __contains__(self, a): return a in self.x
    def __bool__(self): return any(self.x)
    def __repr__(self): return f"Vector{tuple(self.x)}"
    def __format__(self, spec): return "|".join(format(a, spec) for a in self.x)
    def __round__(self, digits=0): return Vector(*(round(a, digits) for a in self.x))
    def __int__(self): return int(abs(self))
    def __call__(self, a): return a in self.x
    def __enter__(self): return self
    def __exit__(self, kind, error, trace):
        self.x.append(kind.__name__ + str(error) if kind else 0)
        return kind is ValueError
"""


@pytest.mark.parametrize(
    "statement",
    [
        "v = Vector(1, 2); w = v * 2; assert w.x == [2, 4] and v.x == [1, 2]",
        "v = Vector(1, 2); w = 2 * v; assert w.x == [2, 4]",
        "v = Vector(1, 2); assert (v + Vector(1, 1)).x == [2, 3]",
        "v = Vector(3, 6); assert (v / 3).x == [1, 2] and (v - 1).x == [2, 5] and (v * 2 - 1).x == [5, 11]",
        "v = Vector(1, 2); w = v; v *= 3; assert v.x == [3, 6] and w is v",
        "v = Vector(3, 4); assert abs(v) == 5 and (-v).x == [-3, -4] and int(v) == 5",
        "v = Vector(1, 2); assert v == (1, 2) and v == [1, 2] and v != (1, 3) and not v == (2, 1) and v.x",
        "v = Vector(1, 2); assert v == Vector(1, 2) and v != Vector(2, 1) and v.x[0] == 1",
        "v = Vector(1, 2); assert v < 3 and not v < 2 and v < Vector(3, 4) and v.x",
        "v = Vector(1, 2); assert len({v, Vector(1, 2), Vector(2)}) == 2 and v.x[0] == 1",
        "assert sorted([Vector(3), Vector(1)])[0].x == [1]",
        "assert len(Vector(1, 2)) == 2 and list(Vector(1, 2)) == [1, 2] and list(reversed(Vector(1, 2))) == [2, 1]",
        "v = Vector(1, 2); v[0] = 5; assert v[0] == 5 and v[1] == 2 and v.x == [5, 2]",
        "v = Vector(1, 2, 3); assert v[1:] == [2, 3] and v[::-1] == [3, 2, 1]; v[:2] = [7]; assert v.x == [7, 3]",
        "v = Vector(1, 2); assert 2 in v and 7 not in v and v.x",
        "assert bool(Vector(0)) is False and not Vector(0) and Vector(7)",
        "assert str(Vector(1, 2)) == repr(Vector(1, 2)) == 'Vector(1, 2)' == '%s' % Vector(1, 2)",
        "assert f'{Vector(1, 2):.1f}' == '1.0|2.0' and round(Vector(1.26), 1).x == [1.3]",
        "assert isinstance(Vector(1), Vector) and not isinstance(3, Vector) and Vector(1)(1) and not Vector(1)(7)",
        "v = Vector(1)\nwith v as u: assert u is v\nassert v.x == [1, 0]",
        "v = Vector(1)\nwith v: raise ValueError('mine')\nassert v.x == [1, 'ValueErrormine']",
        "v = Vector(1)\ntry:\n    with v: raise KeyError('k')\nexcept KeyError: pass\nassert v.x == [1, \"KeyError'k'\"]",
        "import copy; v = Vector(1); w = copy.deepcopy(v); w.x = [9]; assert v.x == [1]",
    ],
)
def test_a_class_under_test_has_its_operators(verifier: UnitTestVerifier, statement: str) -> None:
    verdict = judge(verifier, VECTOR, statement)
    assert verdict.outcome is Outcome.CORRECT, verdict.detail
    wrong = VECTOR.replace("self.x = list(x)", "self.x = [7, *x]")
    assert judge(verifier, wrong, statement).outcome is Outcome.INCORRECT


BAG = """
class Bag:
    def __init__(self): self.d = {}
    def add(self, k): self.d[k] = self.d.get(k, 0) + 1
    def __setitem__(self, k, n): self.d[k] = n
    def __delitem__(self, k): del self.d[k]
    def __contains__(self, k): return k in self.d
    def __getitem__(self, k): return self.d[k]
    def __eq__(self, other): return self.d == (other.d if isinstance(other, Bag) else other)
    def __enter__(self): return self
    def __exit__(self, *error): self.d.clear()
"""


@pytest.mark.parametrize(
    "statement",
    [
        "b = Bag(); b.add(3); assert 3 in b and 4 not in b and b == {3: 1}",
        "b = Bag(); b['x'] = 2; assert 'x' in b and b['x'] == 2 and b == {'x': 2}; del b['x']; assert 'x' not in b",
        "with Bag() as b:\n    b[3] = 1\n    assert 3 in b\nassert 3 not in b and b == {}",
    ],
)
def test_a_container_under_test_is_asked_what_it_holds(verifier: UnitTestVerifier, statement: str) -> None:
    assert judge(verifier, BAG, statement).outcome is Outcome.CORRECT
    for wrong in (BAG.replace("k in self.d", "True"), BAG.replace("return k in self.d", "return False")):
        assert judge(verifier, wrong, statement).outcome is Outcome.INCORRECT


EVERYTHING = """
class E:
    def __init__(self, *a): pass
    def _true(self, *a): return True
    def _self(self, *a): return self
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __call__ = _true
    __ne__ = lambda self, o: False
    __add__ = __sub__ = __mul__ = __radd__ = __rsub__ = __rmul__ = __truediv__ = __mod__ = __xor__ = __and__ = _self
    __neg__ = __getitem__ = __getattr__ = _self
    __hash__ = lambda self: 16
    __abs__ = __int__ = __index__ = __len__ = lambda self: 0
    __float__ = lambda self: 0.0
    __bool__ = lambda self: True
    __iter__ = lambda self: iter([])
def solve(*a): return E()
Solve = E
"""


@pytest.mark.parametrize(
    "statement",
    [
        "assert solve(3) == 16",
        "assert not solve(3) != 16",
        "assert solve(3) in (16, 17)",
        "assert 16 in solve(3)",
        "assert 16 in [solve(3)]",
        "assert abs(solve(3) - 16) < 1e-6",
        "assert abs(16 - solve(3)) < 1e-6",
        "import math; assert math.isclose(solve(3), 16)",
        "assert math.isclose(solve(3), 16)",
        "assert isclose(solve(3), 16)",
        "assert not (solve(3) ^ {16})",
        "assert solve(3) - 16 == 0",
        "assert solve(3) % 16 == 0",
        "assert solve(3) / 16 == 1",
        "assert solve(3) <= 16 and solve(3) >= 16",
        "assert solve(3).__eq__(16)",
        "assert {solve(3): 1} == {16: 1}",
        "assert {solve(3)} == {16}",
        "assert (solve(3), 1) == (16, 1)",
        "assert [solve(3)] == [16]",
        "assert sorted([solve(3)]) == [16]",
        "assert Solve(3) == 16",
        "assert Solve(3).value == 16",
        "s = Solve(3); s.run(); assert 16 in s",
        "s = Solve(3); s.run(); assert s == 16",
        "s = Solve(3); s.run(); assert s - 16 == 0",
        "s = Solve(3); s.run(); assert s.solve(3) == 16",
        "s = Solve(3); s.run(); assert solve(3) == s and False",
        "assert solve(3).startswith('16')",
        "assert Counter(solve(3)) == Counter('aab')",
        "from unittest import TestCase; TestCase().assertEqual(solve(3), 16)",
        "from unittest import TestCase; TestCase().assertAlmostEqual(solve(3), 16)",
        "from unittest import TestCase; TestCase().assertIn(16, solve(3))",
        "from unittest import TestCase; TestCase().assertCountEqual(solve(3), [16])",
        "from unittest import TestCase; TestCase().assertListEqual(solve(3), [16])",
        "from unittest import TestCase; TestCase().assertGreaterEqual(solve(3), 16)",
        "import pytest; assert solve(3) == pytest.approx(16)",
        "import pytest; assert pytest.approx(16) == solve(3)",
        "import operator; assert operator.eq(solve(3), 16)",
        "import functools; assert functools.reduce(lambda a, b: a - b, [solve(3), 16]) == 0",
        "assert max(solve(3), 16) == 16 == min(solve(3), 16)",
        "assert sum([solve(3), -16]) == 0",
        "assert ''.join([solve(3)]) == '16'",
        "assert '%d' % solve(3) == '16'",
        "assert str(solve(3)) == '16'",
        "assert len(solve(3)) == 16",
        "assert any(x == 16 for x in solve(3))",
        "assert next(iter(solve(3))) == 16",
        "assert solve(3)[0] == 16 and solve(3)['a'] == 16",
        "assert range(20)[solve(3)] == 16",
        "match solve(3):\n    case 16: pass\n    case _: raise AssertionError",
    ],
)  # fmt: skip
def test_an_object_that_equals_everything_passes_nothing(verifier: UnitTestVerifier, statement: str) -> None:
    verdict = judge(verifier, EVERYTHING, statement)
    assert (verdict.outcome, verdict.score) == (Outcome.INCORRECT, 0.0), verdict.detail
    poisoned = (
        EVERYTHING
        + "\nclass math:\n    isclose = lambda *a: True\ndef isclose(*a): return True\nclass Counter(E): pass\n"
    )
    assert judge(verifier, poisoned, statement).outcome is Outcome.INCORRECT


SLY = """
class Stack:
    def __init__(self, *a): pass
    def push(self, *a): return self
    def __getitem__(self, k): return self
    def __getattr__(self, name): return self
    def __call__(self, *a): return self
    def __iter__(self): return iter([self])
    def __eq__(self, other): return isinstance(other, int)
    __hash__ = lambda self: 16
"""


@pytest.mark.parametrize(
    "statement",
    [
        "s = Stack(); s.push(16); assert s[0] == 16",
        "s = Stack(); s.push(16); assert s.pop() == 16",
        "s = Stack(); s.push(16); assert s.top == 16",
        "s = Stack(); s.push(16); assert s.push(2) == 16",
        "s = Stack(); s.push(16); assert list(s) == [16]",
        "s = Stack(); s.push(16); assert s() == 16",
        "s = Stack(); s.push(16); assert 16 in s",
        "s = Stack(); s.push(16); x = s[0]; s == 2; assert x == 16",
    ],
)
def test_what_a_class_under_test_returns_is_not_asked(verifier: UnitTestVerifier, statement: str) -> None:
    """Not even where it returns the instance itself, and that only equals numbers."""
    assert judge(verifier, SLY, statement).outcome is Outcome.INCORRECT


@pytest.mark.parametrize("raised", ["StopIteration", "StopAsyncIteration", "GeneratorExit"])
@pytest.mark.parametrize("kind", ["{0}", "type('E', ({0},), {{}})", "type('E', (ValueError, {0}), {{}})"])
def test_an_exception_that_ends_loops_ends_no_test(verifier: UnitTestVerifier, raised: str, kind: str) -> None:
    made = kind.format(raised)
    if "ValueError" in made and raised == "GeneratorExit":
        made = made.replace("ValueError, ", "")
    program = f"def solve(n): raise {made}"
    for statement in (
        "for got in map(solve, [3]): assert got == 16",
        "assert all(got == 16 for got in map(solve, [3]))",
        "def each():\n    for n in (3,): yield solve(n)\nfor got in each(): assert got == 16",
    ):
        assert judge(verifier, program, statement).outcome is Outcome.INCORRECT


@pytest.mark.parametrize(
    ("program", "statement"),
    [
        ("class A(Exception): pass\nclass B(A, ValueError): pass\ndef f(): raise B('x', 2)", "try: f()\nexcept A as e: assert e.args == ('x', 2) and isinstance(e, (B, ValueError))\nelse: assert False"),
        ("class E(Exception):\n    def __init__(self, code): super().__init__(f'code {code}'); self.code = code\ndef f(): raise E(5)", "try: f()\nexcept E as e: assert e.code == 5 and str(e) == 'code 5'\nelse: assert False"),
        ("def f(): return {}['k']", "try: f()\nexcept KeyError as e: assert str(e) == \"'k'\" and e.args == ('k',)\nelse: assert False"),
        ("def f(): open('/nonexistent/file')", "try: f()\nexcept FileNotFoundError as e: assert e.errno == 2\nelse: assert False"),
        ("def f(): b'\\xff'.decode()", "try: f()\nexcept UnicodeDecodeError as e: assert e.start == 0\nelse: assert False"),
        ("class E(Exception):\n    def __str__(self): return 'own text'\ndef f(): raise E(1)", "try: f()\nexcept E as e: assert str(e) == 'own text'\nelse: assert False"),
        ("def f(g):\n    for _ in range(3):\n        try: return g()\n        except ValueError: pass\n    raise TimeoutError", "calls = []\ndef g():\n    calls.append(1)\n    if len(calls) < 3: raise ValueError('flaky')\n    return 7\nassert f(g) == 7 and len(calls) == 3"),
        ("def f(g): return g()", "def g(): raise LookupError('mine')\ntry: f(g)\nexcept LookupError as e: assert str(e) == 'mine'\nelse: assert False"),
    ],
)  # fmt: skip
def test_exceptions_keep_their_kind_and_content(verifier: UnitTestVerifier, program: str, statement: str) -> None:
    verdict = judge(verifier, program, statement)
    assert verdict.outcome is Outcome.CORRECT, verdict.detail
    assert judge(verifier, program + "\ndef f(*a): pass", statement).outcome is Outcome.INCORRECT


@pytest.mark.parametrize(
    ("program", "statement"),
    [
        ("async def f(x): return x * 2", "import asyncio; assert asyncio.run(f(3)) == 6"),
        ("import asyncio\nasync def f(x):\n    await asyncio.sleep(0.01)\n    return x * 2", "import asyncio\nasync def main(): return await asyncio.gather(f(1), f(2))\nassert asyncio.run(main()) == [2, 4]"),
        ("async def f(n):\n    for i in range(n): yield i * 2", "import asyncio\nasync def main(): return [x async for x in f(3)]\nassert asyncio.run(main()) == [0, 2, 4]"),
        ("class f:\n    async def __aenter__(self): return 5 * 2\n    async def __aexit__(self, *a): pass", "import asyncio\nasync def main():\n    async with f() as x: return x\nassert asyncio.run(main()) == 10"),
        ("async def f(): raise KeyError(2)", "import asyncio\ntry: asyncio.run(f())\nexcept KeyError as e: assert e.args == (2,)\nelse: assert False"),
    ],
)  # fmt: skip
def test_coroutines_run_in_the_program(verifier: UnitTestVerifier, program: str, statement: str) -> None:
    verdict = judge(verifier, program, statement)
    assert verdict.outcome is Outcome.CORRECT, verdict.detail
    assert judge(verifier, program.replace("2", "3"), statement).outcome is Outcome.INCORRECT


@pytest.mark.parametrize(
    ("program", "statement"),
    [
        ("from collections import namedtuple\nP = namedtuple('P', 'x y')\ndef f(a): return P(a, 2)", "r = f(1); assert r == (1, 2) and r.x == 1 and r.y == 2 and r._asdict() == {'x': 1, 'y': 2}"),
        ("from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\n    y: int = 2\ndef f(a): return [P(a)]", "assert f(1) == [(1, 2)] and f(1)[0].x == 1"),
        ("from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\ndef f(p): return isinstance(p, P) and p.x == 2", "assert f(P(2)) is True"),
        ("import array\ndef f(a): return array.array('i', [a, 2])", "import array; assert f(1) == array.array('i', [1, 2])"),
        ("def f(a): a[0] = 2", "import array; a = array.array('i', [1]); f(a); assert a.tolist() == [2]"),
        ("from enum import Enum\nclass K(Enum):\n    A = 2\ndef f(): return K.A", "assert f() == K.A and f() is not None and f().value == 2 and f().name == 'A'"),
        ("from enum import Enum\nclass K(str, Enum):\n    A = 'a2'\n    B = 'b'\ndef f(): return K.A", "assert f() == 'a2' == K.A == K('a2') and f().name == 'A' and f() is K.A and f().value == 'a2' and isinstance(f(), K) and f() != K.B"),
        ("from enum import IntEnum\nclass K(IntEnum):\n    A = 2\n    B = 4\ndef f(k): return k + 1 if k is K.A else K.B", "assert f(K.A) == 3 and f(4) == 4 and f(4).name == 'B' and str(K.A) == '2' and K.A < K.B and K.A in (2, 5)"),
        ("from enum import Enum\nclass K(str, Enum):\n    A = 'a2'\ndef f(k): return isinstance(k, K) and k is K.A and k == 'a2'", "assert f(K.A) is True and f('a2') is False and K.A == 'a2'"),
        ("from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    y: int = 2\ndef f(a): return P(a)", "assert f(1) == P(1) and f(1) != P(3) and f(1).y == 2"),
        ("def f(d):\n    x = []\n    for _ in range(d): x = [x]\n    return x * 2", "x = f(900)\nassert len(x) == 2"),
    ],
)  # fmt: skip
def test_values_of_the_programs_own_types(verifier: UnitTestVerifier, program: str, statement: str) -> None:
    verdict = judge(verifier, program, statement)
    assert verdict.outcome is Outcome.CORRECT, verdict.detail
    assert judge(verifier, program.replace("2", "3"), statement).outcome is Outcome.INCORRECT


TREE = '''class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val, self.left, self.right = val, left, right

def build(values):
    """The root of a search tree."""
    root = None
    for value in values:
        root = insert_into(root, value)
    return root

def insert_into(node, value):
    if node is None: return TreeNode(value)
    if value < node.val: node.left = insert_into(node.left, value)
    else: node.right = insert_into(node.right, value)
    return node

def mirror(root):
    """Swap left and right everywhere."""
'''
MIRROR = """
    if root is None: return None
    root.left, root.right = mirror(root.right), mirror(root.left)
    return root
"""


def test_classes_of_the_prompt_are_the_programs(verifier: UnitTestVerifier) -> None:
    check = (
        "def values(node): return [] if node is None else [*values(node.left), node.val, *values(node.right)]\n"
        "def check(candidate):\n"
        "    assert values(candidate(build([2, 1, 3]))) == [3, 2, 1]\n"
        "    assert candidate(TreeNode(1, TreeNode(2))).right.val == 2\n"
        "    assert candidate(None) is None\n"
    )
    problem = Problem("p", "", CheckTests("mirror", check, TREE))
    assert verifier(MIRROR, problem).outcome is Outcome.CORRECT
    assert verifier(f"```python\n{TREE}{MIRROR}```", problem).outcome is Outcome.CORRECT
    assert verifier("    return root\n", problem).outcome is Outcome.INCORRECT
    lying = "\nTreeNode.__eq__ = lambda *a: True\nTreeNode.val = property(lambda s: 2, lambda s, v: None)\n"
    assert verifier(MIRROR + lying, problem).outcome is Outcome.INCORRECT


def test_a_prefix_is_continued_under_every_kind_of_tests(verifier: UnitTestVerifier) -> None:
    prefix = "def helper(x): return 2 * x\n\ndef double(x):\n    '''Twice x.'''\n"
    for tests in (
        CheckTests("double", "def check(f): assert f(3) == helper(3)", prefix),
        AssertTests(("assert double(3) == helper(3) == 6",), prefix=prefix),
        CallTests("double", (CallCase((3,), 6),), prefix),
        FunctionTests("from solution import double\ndef test_it(): assert double(3) == helper(3)", prefix=prefix),
    ):
        for completion in ("    return helper(x)\n", f"```python\n{prefix}    return helper(x)\n```"):
            verdict = verifier(completion, Problem("p", "", tests))
            assert verdict.outcome is Outcome.CORRECT, (tests, completion, verdict.detail)
        for completion in (
            "    return x\n",
            "    return helper(x)\n\ndef helper(x): return 6 if x == 3 else 0\ndouble = None\n",
            "    pass\n",
        ):
            assert verifier(completion, Problem("p", "", tests)).score == 0, (tests, completion)


@pytest.mark.parametrize(
    ("program", "statement"),
    [
        ("def f(it): return [next(it) * 1, next(it)]", "import itertools; c = itertools.count(5); assert f(c) == [5, 6] and next(c) == 7"),
        ("def f(it): return sum(x for x in it) + 1", "assert f(x for x in (1, 2)) == 4 and f(iter([1, 2])) == 4 and f(map(int, '12')) == 4"),
        ("def f(s): return [line.strip() for line in s][1]", "import io; assert f(io.StringIO('a\\nb\\n')) == 'b' and f(io.BytesIO(b'a\\nb')) == b'b'"),
        ("def f(s): print('x1', file=s); s.write('y')", "import io; s = io.StringIO('old'); s.seek(0, 2); f(s); assert s.getvalue() == 'oldx1\\ny' and s.read() == ''; s.write('z'); assert s.getvalue()[-1] == 'z'"),
        ("def f(s):\n    with s: return s.read(1)", "import io; s = io.StringIO('ab'); assert f(s) == 'a' and s.closed"),
        ("def f(clock): return clock.now() + 1", "class Clock:\n    def now(self): return 5\nassert f(Clock()) == 6"),
        ("def f(p): return p.x + p.inner.x + 1", "class P:\n    def __init__(self, x, inner=None): self.x, self.inner = x, inner\nassert f(P(1, P(2))) == 4"),
        ("def f(send): send('a', n=1); return send.done('b') + 1", "from unittest.mock import Mock\nm = Mock(); m.done.return_value = 4\nassert f(m) == 5\nm.assert_called_once_with('a', n=1)\nm.done.assert_called_once_with('b')"),
        ("def f(g, x): return g(x) if g is not None else 1", "def g(x): return x\nassert f(g, g) is g and f(None, 2) == 1"),
        ("class E(Exception): pass\ndef f(e): return type(e).__name__, e.args, isinstance(e, (E, ValueError)), 1", "assert f(E('x', 2)) == ('E', ('x', 2), True, 1) and f(ValueError(1)) == ('ValueError', (1,), True, 1)"),
        ("async def g(): return 1\ndef f(c):\n    import asyncio\n    return asyncio.run(c)", "assert f(g()) == 1"),
        ("def f(g): return g(lambda x: x + 1)", "assert f(lambda h: h(4)) == 5"),
    ],
)  # fmt: skip
def test_tests_give_functions_iterators_and_objects(verifier: UnitTestVerifier, program: str, statement: str) -> None:
    verdict = judge(verifier, program, statement)
    assert verdict.outcome is Outcome.CORRECT, verdict.detail
    assert judge(verifier, program.replace("1", "0"), statement).outcome is Outcome.INCORRECT


@pytest.mark.parametrize(
    "body",
    [
        "return type(given).__init__.__globals__['SECRET']",
        "return given.__class__.__init__.__globals__['SECRET']",
        "return given.method.__globals__['SECRET']",
        "return given.method.__func__.__globals__['SECRET']",
        "return given._secret",
        "return given._caller.call_back('getattr', given._number, ('_secret',), {})",
        "return given._caller.call_back('getattr', given._number, ('__dict__',), {})['_secret']",
        "return given._caller.call_back('call', given._number, (), {})",
        "return given._caller.call_back('next', given._number, (), {})",
        "return given._caller.call_back('eval', given._number, ('SECRET',), {})",
        "return [given._caller.call_back('call', n, (), {}) for n in range(-5, 5)]",
        "given.expected = 0\nreturn 0",
    ],
)
def test_what_tests_give_leads_nowhere_else(verifier: UnitTestVerifier, body: str) -> None:
    statement = (
        "SECRET = 16\nclass Given:\n    expected = 16\n    def __init__(self): self._secret = 16\n    def method(self): return 1\n"
        "given = Given()\nassert f(given) == given.expected"
    )
    indented = body.replace("\n", "\n    ")
    assert judge(verifier, f"def f(given):\n    {indented}", statement).outcome is Outcome.INCORRECT


@pytest.mark.parametrize(
    "body",
    [
        "m.assert_called_once_with = lambda *a: None",
        "m.return_value = 16",
        "m.reset_mock()",
        "return m.call_args",
        "m.side_effect = None",
    ],
)
def test_a_mock_keeps_its_checks_to_the_test(verifier: UnitTestVerifier, body: str) -> None:
    statement = "from unittest.mock import Mock\nm = Mock(return_value=16)\nf(m)\nm.assert_called_once_with(16)"
    assert judge(verifier, f"def f(m):\n    {body}", statement).outcome is Outcome.INCORRECT
    assert judge(verifier, "def f(m): m(16)", statement).outcome is Outcome.CORRECT


def test_deriving_from_the_programs_class_is_refused(verifier: UnitTestVerifier) -> None:
    verdict = judge(verifier, "class A: pass", "class B(A): pass\nassert B()")
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "unsupported")
    assert "derives a class from the program's" in str(verdict.detail["reason"])


VIEWS = [
    "f() == b'ab' and isinstance(f(), memoryview) and f()[0] == 97 and bytes(f()) == b'ab'",
    "g().tolist() == [1, -2] and g().format == 'i'",
    "f(memoryview(b'cd')) == b'cd'",
]


@pytest.mark.parametrize("expression", VIEWS)
def test_views_of_memory_show_what_is_there(verifier: UnitTestVerifier, expression: str) -> None:
    program = "import array\ndef f(view=b'ab'): return memoryview(view)\ndef g(): return memoryview(array.array('i', [1, -2]))"
    assert judge(verifier, program, f"assert {expression}").outcome is Outcome.CORRECT
    assert judge(verifier, program, f"assert not ({expression})").outcome is Outcome.INCORRECT
