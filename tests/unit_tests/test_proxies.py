# ruff: noqa: E501 - a program reads best on one line
"""What test code learns of an object that lives in the candidate by other means than calls: its type and its description."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from verifiers import Outcome, Problem, Verdict
from verifiers.unit_tests import AssertTests, FunctionTests, UnitTestVerifier


@pytest.fixture(scope="module")
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(timeout_s=2, memory_mib=512)
    yield verifier
    verifier.close()


IMPORTS = "import inspect, types, pytest\nfrom collections.abc import *\nfrom dataclasses import *"


def judge(verifier: UnitTestVerifier, program: str, statement: str) -> Verdict:
    """Whether a statement holds of a program whose `f` and `C` it names."""
    test = f"{IMPORTS}\nfrom solution import f, C\ndef test_it():\n    {statement}"
    return verifier(program, Problem("p", "", FunctionTests(test)))


CLASSES = '''
from collections.abc import Sequence
from dataclasses import dataclass
import functools
class C(Sequence):
    """A class."""
    def __init__(self, a: int = 1): self.a = a
    def __len__(self): return 2
    def __getitem__(self, i): return (self.a, 5)[i]
    def __call__(self): return 7
    def __contains__(self, x): return x == 5
    def __add__(self, other): return C(self.a + other.a)
def f(a: int, b: str = "x", *rest, c=(1, 2), **more) -> list:
    """Do it."""
    return C(a)
@dataclass
class Inner:
    n: int
@dataclass
class Outer:
    inner: Inner
    names: list
class Empty: pass
class Unhashable:
    def __eq__(self, other): return True
class NotIterable(C):
    __iter__ = None
def gen():
    yield 1
async def agen(): yield 1
async def co(): pass
@functools.wraps(f)
def wrapped(*args): return f(*args)
'''
HONEST = [
    "f.__doc__ == 'Do it.' and C.__doc__ == 'A class.' and inspect.getdoc(f) == 'Do it.'",
    "f.__annotations__ == {'a': int, 'b': str, 'return': list}",
    "f.__name__ == 'f' and C.__name__ == 'C' and C.__qualname__ == 'C' and f.__module__ == 'solution'",
    "list(inspect.signature(f).parameters) == ['a', 'b', 'rest', 'c', 'more']",
    "inspect.signature(f).parameters['b'].default == 'x' and inspect.signature(f).return_annotation is list",
    "str(inspect.signature(f)) == \"(a: int, b: str = 'x', *rest, c=(1, 2), **more) -> list\"",
    "str(inspect.signature(C)) == '(a: int = 1)' and list(inspect.signature(C.__init__).parameters) == ['self', 'a']",
    "str(inspect.signature(wrapped)) == str(inspect.signature(f)) and f.__code__.co_argcount == 2",
    "type(f(1)).__name__ == 'C' and f(1).__class__.__name__ == 'C' and type(gen()).__name__ == 'generator'",
    "isinstance(gen(), types.GeneratorType) and isinstance(gen(), Iterator) and inspect.isgenerator(gen())",
    "inspect.isgeneratorfunction(gen) and inspect.iscoroutinefunction(co) and not inspect.iscoroutinefunction(gen)",
    "inspect.isfunction(f) and inspect.isclass(C) and isinstance(C, type) and not isinstance(f, type)",
    "isinstance(map_, map) and not isinstance(map_, filter)",
    "isinstance(f(1), (Sequence,)) and isinstance(f(1), Iterable) and isinstance(f(1), Sized) and isinstance(f(1), C)",
    "callable(f) and callable(C) and callable(f(1)) and not callable(Empty())",
    "all(hasattr(f(1), name) for name in ('__iter__', '__len__', '__contains__', '__call__', 'a'))",
    "all(hasattr(C, name) for name in ('__len__', '__add__', '__contains__', '__iter__'))",
    "not any(hasattr(C, name) for name in ('__sub__', '__next__', '__bool__', 'zzz'))",
    "isinstance(Empty(), Hashable) and not isinstance(Unhashable(), Hashable) and not isinstance(Empty(), Iterable)",
    "is_dataclass(Outer) and is_dataclass(Outer(1, 2)) and not is_dataclass(C) and not is_dataclass(f(1))",
    "asdict(Outer(Inner(3), ['a'])) == {'inner': {'n': 3}, 'names': ['a']}",
    "[each.name for each in fields(Outer)] == [each.name for each in fields(Outer(1, 2))] == ['inner', 'names']",
    "sum([C(1), C(2), C(4)], C(0)).a == 7 and bool(Empty()) and C.__add__(C(1), C(2)).a == 3",
    "len(f(1)) == 2 and list(reversed(f(1))) == [5, 1] and f(1).__len__() == 2",
    "issubclass(NotIterable, C) and not issubclass(Empty, C) and issubclass(Empty, object)",
]  # fmt: skip


@pytest.mark.parametrize("expression", HONEST)
def test_objects_are_described_as_they_are(verifier: UnitTestVerifier, expression: str) -> None:
    names = "Outer, Inner, Empty, Unhashable, NotIterable, gen, agen, co, wrapped, map_"
    test = f"{IMPORTS}\nfrom solution import f, C, {names}\ndef test_it():\n    assert {expression}"
    verdict = verifier(CLASSES + "map_ = map(str, [])\n", Problem("p", "", FunctionTests(test)))
    assert verdict.outcome is Outcome.CORRECT, verdict.detail


BARE = "class C: pass\ndef f(*a): return C()"
ABSENT = [
    "assert callable(f())",
    "assert f.__doc__",
    "assert f.__annotations__",
    "assert f.__wrapped__",
    "assert inspect.signature(f).parameters['x']",
    "assert isinstance(f(), (Iterable, Iterator, Sized, Container, Callable, Awaitable))",
    "assert any(hasattr(f(), name) for name in ('__iter__', '__len__', '__next__', '__contains__', '__getitem__', '__call__', '__enter__', '__add__', '__radd__', '__abs__', '__int__', '__await__'))",
    "assert any(isinstance(f(), kind) for kind in (int, str, list, tuple, dict, type, types.FunctionType, types.GeneratorType))",
    "assert isinstance(f(), (Sequence, Mapping, Set))",
    "assert is_dataclass(f()) or is_dataclass(C)",
    "assert C.__len__",
    "assert C.__add__",
    "assert type(f()).__name__ == 'int'",
    "assert f().__class__ is int",
    "assert sum([f(), 16]) == 16",
    "assert f() < f()",
]  # fmt: skip


@pytest.mark.parametrize("statement", ABSENT)
def test_a_plain_object_has_nothing_of_its_proxys(verifier: UnitTestVerifier, statement: str) -> None:
    assert judge(verifier, BARE, statement).score == 0


LIARS = """
class Meta(type):
    def __contains__(self, x): return True
    def __eq__(self, x): return True
    __hash__ = lambda self: 16
from collections.abc import Sequence
class C(Sequence, metaclass=type("M", (Meta, type(Sequence)), {})):
    __class__ = property(lambda self: int)
    def __len__(self): return 2
    def __getitem__(self, i): raise IndexError
    def __iter__(self): return iter(())
    def __contains__(self, x): return True
    def __add__(self, x): return True
    __radd__ = __sub__ = __rsub__ = __add__
    def __eq__(self, x): return True
    def __getattr__(self, name): return lambda *a: True
    __hash__ = lambda self: 16
def f(*a): return RESULT
"""


@pytest.mark.parametrize("result", ["C()", "C", "lambda *a: True", "[C()]", "type(C)"])
@pytest.mark.parametrize(
    "statement",
    [
        "assert f() == pytest.approx([1, 2])",
        "assert f() == [1, 2] or [1, 2] == f()",
        "assert f().__contains__(16)",
        "assert f().__contains__(f(), 16)",
        "assert f().__add__(16)",
        "assert f().__radd__(f(), 16)",
        "assert 16 in f()",
        "assert sum([f(), 16]) is True",
        "assert isinstance(f(), int)",
        "assert isinstance(f(), (list, tuple)) and isinstance(f()[0], int)",
        "import pickle; assert pickle.loads(pickle.dumps(f())) == 16",
        "match f():\n        case [1, 2]: pass\n        case _: assert False",
        "assert f()() == 16",
        "import unittest; unittest.TestCase().assertSequenceEqual(f(), [1, 2])",
        "import unittest; unittest.TestCase().assertCountEqual(f(), [1, 2])",
    ],
)
def test_a_description_decides_nothing(verifier: UnitTestVerifier, statement: str, result: str) -> None:
    assert judge(verifier, LIARS.replace("RESULT", result), statement).score == 0


def test_the_programs_test_functions_and_classes_are_no_tests(verifier: UnitTestVerifier) -> None:
    program = "import unittest\ndef test_a(): pass\nclass TestB:\n    def test_b(self): pass\nclass D(unittest.TestCase):\n    def test_c(self): pass"
    test = "from solution import test_a, TestB, D\ndef test_own(): assert callable(test_a) and TestB and D"
    verdict = verifier(program, Problem("p", "", FunctionTests(test)))
    assert (verdict.score, verdict.detail["total"]) == (1, 1)


@pytest.mark.parametrize(
    "info",
    [
        "'C', 'call', 'function'",
        "'C', 'call', 'zzz', ''",
        "'C', 'call', 'function map', ''",
        "'C', 'call', '', 'a a'",
        "'C', 'call', '', '1x'",
        "'C', 'call', '', 'x=__import__(\"os\")._exit(0)'",
        "'C\\0', 'call', '', ''",
        "'C', 5, '', ''",
        "'C' * 10**6, 'call', '', ''",
        "'C', 'call', '', '', ''",
    ],
)
def test_a_forged_description_ends_the_job(verifier: UnitTestVerifier, info: str) -> None:
    program = f"import sys\ndef f():\n    sys.modules['sandbox.candidate.candidate'] = 0\n    frame = sys._getframe(1)\n    while 'self' not in frame.f_locals: frame = frame.f_back\n    frame.f_locals['self']._channel.send(['returned', ['h', 1, {info}], []])\n"
    verdict = verifier(program, Problem("p", "", AssertTests(("assert f() is not None",))))
    assert (verdict.score, verdict.detail["failure"]) == (0, "protocol"), verdict.detail


SIZED = """
class R:
    def __init__(self, items): self.items, self.asked = items, 0
    def __len__(self): return len(self.items)
    def __iter__(self): return iter(self.items)
    def __getitem__(self, i): return self.items[i]
    def append(self, item): self.items.append(item)
C = None
def f(*items): return R(list(items))
"""
SAME = [
    "assert len(f(1, 2)) == 2 and all(a == b for a, b in zip(f(1, 2), [1, 2]))",
    "r = f(1, 2); assert len(r) == 2 and all(a == b for a, b in zip(r, [1, 2]))",
    "r = f(1, 2); assert all(a == b for a, b in zip([1, 2], r)) and len(r) == 2",
    "r = f(1, 2)\n    assert len(r) == 2\n    for a, b in zip(r, [1, 2]): assert a == b",
    "r = f(1, 2); assert len(r) == 2 and all(r[i] == i + 1 for i in range(len(r)))",
    "r = f(1, 2); assert len(r) == 2 and list(r) == [1, 2]; r.append(3); assert len(r) == 3 and list(r) == [1, 2, 3]",
    "import itertools; r = f(1, 2); assert len(r) == 2 and all(a == b for a, b in itertools.chain(zip(r, [1, 2])))",
    "r = f(1, 2); assert sorted(r) == [1, 2] and not [x for x in r if x > 2] and len(r) == 2",
]


@pytest.mark.parametrize("statement", SAME)
def test_a_result_holds_as_many_items_as_it_says(verifier: UnitTestVerifier, statement: str) -> None:
    verdict = judge(verifier, SIZED, statement)
    assert verdict.outcome is Outcome.CORRECT, verdict.detail
    for lie in (
        "R.__iter__ = lambda self: iter(())\nR.__getitem__ = lambda self, i: ().__getitem__(i)",
        "R.__iter__ = lambda self: self\ndef end(self): raise StopIteration\nR.__next__ = end\nR.__getitem__ = lambda self, i: ().__getitem__(i)",
        "def size(self):\n    self.asked += 1\n    return 2 if self.asked == 1 else 0\nR.__len__ = size\nR.__iter__ = lambda self: iter(())",
    ):
        one_alone_is_consistent = "asked" in lie or "self: self" in lie
        if not ("zip(f(" in statement and one_alone_is_consistent):
            assert judge(verifier, SIZED + lie, statement).score == 0, lie


@pytest.mark.parametrize(
    "statement",
    [
        "assert pytest.approx(f()) == [1, 2]",
        "assert pytest.approx(f()) == {'a': 1}",
        "assert f() == pytest.approx({'a': 1})",
    ],
)
def test_closeness_is_of_what_is_there(verifier: UnitTestVerifier, statement: str) -> None:
    program = "from collections.abc import Sequence, Mapping\nclass C(BASE):\n    def __len__(self): return SIZE\n    def __iter__(self): return iter(())\n    def __getitem__(self, i): raise IndexError\n    def keys(self): return {'a': 1}.keys()\n    def items(self): return []\ndef f(): return C()"
    for base, size in (("Sequence", 2), ("Mapping", 1)):
        assert judge(verifier, program.replace("BASE", base).replace("SIZE", str(size)), statement).score == 0


@pytest.mark.parametrize(
    "name", ["function", "self", "cls", "code", "subject", "operation", "args", "kwargs", "number"]
)
def test_keywords_may_have_any_name(verifier: UnitTestVerifier, name: str) -> None:
    other = "b" if name == "self" else "self"
    program = (
        f"def f({name}, g): return g({name}={name})\nclass C:\n    def __init__({other}, {name}): {other}.x = {name}\n"
    )
    verdict = judge(verifier, program, f"assert f({name}=3, g=lambda {name}: {name} + 1) == 4 and C({name}=5).x == 5")
    assert verdict.outcome is Outcome.CORRECT, verdict.detail
