"""Functions that tests give to the program, as decorators do: what the program sees of them."""

from __future__ import annotations

import pytest

from tests.sandbox import judge
from verifiers import Outcome
from verifiers.unit_tests import FunctionTests, UnitTestVerifier

PROGRAM = """
import functools, inspect, types
def deco(f):
    @functools.wraps(f)
    def w(*a, **k): return f(*a, **k)
    return w
def bound(f): return lambda *a, **k: dict(inspect.signature(f).bind(*a, **k).arguments)
def checked(f):
    def w(*a):
        for value, kind in zip(a, f.__annotations__.values()):
            if not isinstance(value, kind): raise TypeError(kind.__name__)
        return f(*a)
    return w
def seen(f): return [f.__name__, f.__qualname__, f.__doc__, callable(f), inspect.isfunction(f)]
def same(f): return f
def count(f):
    f.calls = getattr(f, "calls", 0) + 1
    return f.calls
def reach(f): return [getattr(f, name, None) is not None for name in ("__wrapped__", "__self__", "__kwdefaults__", "secret")]
def hidden(f): return repr([f.__code__.co_consts, f.__defaults__, list(f.__globals__)])
class Registry:
    def __init__(self): self.found = {}
    def register(self, f):
        self.found[f.__name__] = f
        return f
    def call(self, name, *a): return self.found[name](*a)
"""
TEST = """
import inspect, solution
from solution import *
def test_it():
    def g(a, b=2, *c, d: int = 3, **e) -> str:
        'doc'
        return a + b
    def h(x: int, y: str): return y * x
    class K:
        def m(self, x): 'method'; return x
    marker = object()
    def odd(a, b=marker): return a
    g.secret = 'expected'
"""
HONEST = [
    "deco(g)(1) == 3",
    "deco(g).__name__ == 'g'",
    "deco(g).__doc__ == 'doc'",
    "deco(g).__wrapped__ is g",
    "deco(g).__qualname__ == g.__qualname__",
    "inspect.signature(deco(g)) == inspect.signature(g)",
    "deco(lambda x: x).__name__ == '<lambda>' and deco(lambda x: x)(4) == 4",
    "bound(g)(1, 5, 6, d=7, f=8) == {'a': 1, 'b': 5, 'c': (6,), 'd': 7, 'e': {'f': 8}}",
    "checked(h)(2, 'ab') == 'abab'",
    "seen(g) == ['g', g.__qualname__, 'doc', True, True]",
    "seen(K().m)[:3] == ['m', K.m.__qualname__, 'method']",
    "seen(odd)[0] == 'odd' and deco(odd)(3) == 3",
    "same(g) is g",
    "[count(g), count(g), count(g)] == [1, 2, 3]",
    "deco(deco(g))(1) == 3 and deco(deco(g)).__name__ == 'g'",
    "list(map(deco(h), [2, 3], 'ab')) == ['aa', 'bbb']",
]


def given(body: str) -> FunctionTests:
    return FunctionTests(f"{TEST}    {body}\n")


@pytest.mark.parametrize("expression", HONEST)
def test_functions_keep_what_they_say_of_themselves(verifier: UnitTestVerifier, expression: str) -> None:
    verdict = judge(verifier, PROGRAM, given(f"assert {expression}"))
    assert verdict.outcome is Outcome.CORRECT, verdict.detail


REGISTERED = """
    registry = Registry()
    @registry.register
    @deco
    def named(x): return x + 1
    assert registry.call('named', 3) == 4 == named(3)
"""


def test_decorators_wrap_functions_of_the_tests(verifier: UnitTestVerifier) -> None:
    verdict = judge(verifier, PROGRAM, FunctionTests(TEST + REGISTERED))
    assert verdict.outcome is Outcome.CORRECT, verdict.detail


def test_the_program_sees_no_more_than_that(verifier: UnitTestVerifier) -> None:
    sees_nothing = "reach(g) == [False] * 4 and 'expected' not in hidden(g) and 'test_it' not in hidden(g)"
    verdict = judge(verifier, PROGRAM, given(f"assert {sees_nothing}"))
    assert verdict.outcome is Outcome.CORRECT, verdict.detail


@pytest.mark.parametrize(
    "expression", ["deco(g).__name__ == 'w'", "deco(g)(1) == 4", "same(g) is h", "bound(g)(1) == {'a': 2}"]
)
def test_wrong_expectations_fail(verifier: UnitTestVerifier, expression: str) -> None:
    assert judge(verifier, PROGRAM, given(f"assert {expression}")).outcome is Outcome.INCORRECT
