"""Exceptions of the program as its tests see them: with causes, contexts and notes."""

from __future__ import annotations

import pytest
from verifiers.unit_tests.sandbox.tester.rpc.exceptions import Exceptions, tidy

from tests.sandbox import Case, cases, load
from verifiers.unit_tests import CallCase, CallTests, UnitTestVerifier

DATA = load("unit_tests/raised")
PROGRAM = """
class Own(Exception):
    def __init__(self, number): self.number = number
class Group(ExceptionGroup):
    def __new__(cls, code, errors):
        made = super().__new__(cls, f"code {code}", errors)
        made.code = code
        return made
    def __init__(self, code, errors): pass
    def derive(self, errors): return Group(self.code, errors)
class Hiding(Exception):
    __cause__ = __context__ = property(lambda self: 1 / 0)
class Stack:
    class Empty(Exception): pass
    def pop(self): raise self.Empty("nothing")
class Queue:
    class Empty(Exception): pass
    def pop(self): raise self.Empty("nothing")
def caught():
    try: {}["a"]
    except KeyError: return Own(7)
def from_cause():
    try: {}["a"]
    except KeyError as error: raise Own(7) from error
def in_context():
    try: {}["a"]
    except KeyError: raise Own(7)
def from_none():
    try: {}["a"]
    except KeyError: raise Own(7) from None
def chain(n):
    try:
        if n: chain(n - 1)
        else: raise Own(0)
    except Own as error: raise Own(n) from error
def noted():
    error = Own(7)
    error.add_note("first")
    error.add_note("second")
    raise error
def group(*errors): raise ExceptionGroup("many", list(errors))
def grouped(): group(ValueError(1), TypeError(2), Own(3))
def nested(): group(ValueError(1), ExceptionGroup("inner", [Own(5), OSError(2, "no")]))
def own_group(): raise Group(3, [ValueError(1)])
def base_group(): raise BaseExceptionGroup("b", [KeyboardInterrupt(), ValueError(1)])
def same_twice():
    error = ValueError(1)
    group(error, error)
def large(): group(*map(ValueError, range(300)))
def too_large(): group(*map(ValueError, range(5000)))
def too_deep():
    error = ValueError(1)
    for _ in range(50): error = ExceptionGroup("deep", [error])
    raise error
def cyclic():
    first, second = Own(1), Own(2)
    first.__cause__, second.__cause__ = second, first
    raise first
def hiding(): raise Hiding("x")
def stop_inside(): group(StopIteration(1))
def stop_before():
    try: next(iter(()))
    except StopIteration: raise Own(1)
def opened():
    try: open("/etc/hostname")
    except OSError as error: raise ValueError("no name") from error
"""


@pytest.mark.parametrize("case", cases(DATA["whole"]))
def test_exceptions_come_whole(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier, PROGRAM)


@pytest.mark.parametrize("case", cases(DATA["groups"]))
def test_groups_are_not_supported(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier, PROGRAM)


@pytest.mark.parametrize("case", cases(DATA["wrong"]))
def test_they_are_no_more_than_they_are(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier, PROGRAM)


OPENED = Case("cause", f"{PROGRAM}\nf = opened", CallTests("f", (CallCase((), 1),)), {"failure": "forbidden"})


@pytest.mark.parametrize("case", [*cases(DATA["forbidden"]), pytest.param(OPENED, id="cause")])
def test_what_came_of_something_forbidden_is_that(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)


SAID = {"type": "E", "class": "ValueError", "bases": [], "message": "m"}


def raised(**fields: object) -> BaseException:
    return Exceptions(lambda wire: wire, print, print, print).raised(tidy(SAID | fields), "call")


@pytest.mark.parametrize(
    "fields",
    [
        {"links": [0, None, True]},
        {"links": ["cause", None, True]},
        {"links": [None, "context", True]},
        {"links": [SAID | {"links": [0, None, True]}, None, False]},
        {"class": ["E"]},
        {"class": ["E", ["ValueError", "Exception", "ValueError", ["F", ["BaseException"], ""], "KeyError"], 0, 0]},
        {"links": {"cause": 7}},
        {"links": [7]},
        {"links": [3]},
    ],
)
def test_forged_descriptions_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
        raised(**fields)


def test_forged_attributes_are_no_description() -> None:
    error = raised(attributes={"candidate_error": "mine"})
    assert error.__dict__["candidate_error"]["message"] == "m"
