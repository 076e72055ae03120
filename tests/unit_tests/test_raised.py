# ruff: noqa: E501 - a program reads best on one line
"""Exceptions of the program as its tests see them: with causes, contexts, notes, and in groups."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from verifiers import Outcome, Problem, Verdict
from verifiers.unit_tests import CallCase, CallTests, FunctionTests, UnitTestVerifier
from verifiers.unit_tests.sandbox.tester.rpc.exceptions import Exceptions, tidy


@pytest.fixture(scope="module")
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(timeout_s=2, memory_mib=512)
    yield verifier
    verifier.close()


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
HONEST = [
    "with pytest.raises(Own) as e: from_cause()\n    assert isinstance(e.value.__cause__, KeyError) and e.value.__cause__.args == ('a',) and e.value.__cause__ is e.value.__context__ and e.value.__suppress_context__",
    "with pytest.raises(Own) as e: in_context()\n    assert e.value.__cause__ is None and isinstance(e.value.__context__, KeyError) and not e.value.__suppress_context__",
    "with pytest.raises(Own) as e: from_none()\n    assert e.value.__cause__ is None and e.value.__suppress_context__",
    "with pytest.raises(Own) as e: chain(3)\n    assert [e.value.number, e.value.__cause__.number, e.value.__cause__.__cause__.number] == [3, 2, 1]",
    "with pytest.raises(Own) as e: chain(90)\n    assert e.value.number == 90 and e.value.__cause__.number == 89",
    "with pytest.raises(Own) as e: noted()\n    assert e.value.__notes__ == ['first', 'second'] and e.value.__cause__ is None",
    "with pytest.raises(ExceptionGroup) as e: grouped()\n    assert e.value.message == 'many' and [type(x).__name__ for x in e.value.exceptions] == ['ValueError', 'TypeError', 'Own'] and e.value.exceptions[2].number == 3",
    "with pytest.raises(ExceptionGroup, match='many'): grouped()",
    "found = []\n    try: grouped()\n    except* ValueError as g: found += g.exceptions\n    except* (TypeError, Own) as g: found += g.exceptions\n    assert [type(x) for x in found] == [ValueError, TypeError, Own]",
    "try: nested()\n    except* Own as g: assert g.exceptions[0].exceptions[0].number == 5\n    except* OSError as g: assert g.exceptions[0].exceptions[0].errno == 2\n    except* ValueError as g: assert g.exceptions[0].args == (1,)",
    "with pytest.raises(Group) as e: own_group()\n    assert e.value.code == 3 and len(e.value.exceptions) == 1 and str(e.value) == 'code 3 (1 sub-exception)'",
    "with pytest.raises(BaseExceptionGroup) as e: base_group()\n    assert isinstance(e.value.exceptions[0], KeyboardInterrupt)",
    "with pytest.raises(ExceptionGroup) as e: same_twice()\n    assert [x.args for x in e.value.exceptions] == [(1,), (1,)]",
    "with pytest.raises(ExceptionGroup) as e: large()\n    assert [x.args[0] for x in e.value.exceptions] == list(range(300))",
    "with pytest.raises(Exception, match='many'): too_large()",
    "with pytest.raises(Exception, match='deep'): too_deep()",
    "with pytest.raises(Own) as e: cyclic()\n    assert e.value.__cause__.number == 2 and e.value.__cause__.__cause__ is None",
    "with pytest.raises(Hiding, match='x'): hiding()",
    "with pytest.raises(Own): stop_before()",
    "with pytest.raises(Stack.Empty, match='nothing'): Stack().pop()",
    "with unittest.TestCase().assertRaises(Stack.Empty): Stack().pop()",
    "try: Stack().pop()\n    except Queue.Empty: assert False\n    except Stack.Empty: pass",
]


def judge(verifier: UnitTestVerifier, body: str) -> Verdict:
    test = f"import pytest, unittest\nfrom solution import *\ndef test_it():\n    {body}\n"
    return verifier(PROGRAM, Problem("p", "", FunctionTests(test)))


@pytest.mark.parametrize("body", HONEST)
def test_exceptions_come_whole(verifier: UnitTestVerifier, body: str) -> None:
    verdict = judge(verifier, body)
    assert verdict.outcome is Outcome.CORRECT, verdict.detail


WRONG = [
    "with pytest.raises(ExceptionGroup): in_context()",
    "with pytest.raises(Own) as e: from_none()\n    assert e.value.__cause__",
    "try: grouped()\n    except* ValueError: pass",
    "with pytest.raises(ExceptionGroup) as e: grouped()\n    assert len(e.value.exceptions) == 2",
    "with pytest.raises(Queue.Empty): Stack().pop()",
    "with pytest.raises(ExceptionGroup): too_large()",
    "def items():\n        try: stop_inside()\n        except ExceptionGroup as g: error = g.exceptions[0]\n        raise error\n        yield\n    assert isinstance(next(items()), Own)",
    "class Items:\n        def __iter__(self): return self\n        def __next__(self):\n            try: stop_inside()\n            except ExceptionGroup as g: error = g.exceptions[0]\n            raise error\n    for item in Items(): assert item == 3",
]


@pytest.mark.parametrize("body", WRONG)
def test_they_are_no_more_than_they_are(verifier: UnitTestVerifier, body: str) -> None:
    verdict = judge(verifier, body)
    assert verdict.outcome is Outcome.INCORRECT, verdict.detail


FORBIDDEN = {
    "urlopen": "import urllib.request\ndef f(): return urllib.request.urlopen('http://127.0.0.1:1/').read()",
    "cause": f"{PROGRAM}\nf = opened",
    "context": "import subprocess\ndef f():\n    try: subprocess.run(['true'])\n    except OSError: raise ValueError('no true')",
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_came_of_something_forbidden_is_that(verifier: UnitTestVerifier, name: str) -> None:
    verdict = verifier(FORBIDDEN[name], Problem("p", "", CallTests("f", (CallCase((), 1),))))
    assert verdict.detail["failure"] == "forbidden", verdict.detail


SAID = {"type": "E", "class": "ValueError", "bases": [], "message": "m"}


def raised(**fields: object) -> BaseException:
    return Exceptions(lambda wire: wire).raised(tidy(SAID | fields), "call")


@pytest.mark.parametrize(
    "fields",
    [
        {"links": {"cause": 0, "context": None, "suppress": True}},
        {"links": {"cause": "cause", "context": None, "suppress": True}},
        {"links": {"cause": None, "context": "context", "suppress": True}},
        {"links": {"cause": SAID | {"links": {"cause": 0, "context": None, "suppress": True}}, "context": None}},
        {"class": "ExceptionGroup", "links": {"members": [0], "suppress": True, "cause": None, "context": None}},
        {"class": ["E"]},
        {"class": ["E", ["ValueError", "Exception", "ValueError", ["F", ["BaseException"], ""], "KeyError"], 0, 0]},
        {"links": {"cause": 7}},
        {"links": [3]},
    ],
)
def test_forged_descriptions_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
        raised(**fields)


def test_forged_attributes_are_no_description() -> None:
    error = raised(attributes={"candidate_error": "mine"})
    assert error.__dict__["candidate_error"]["message"] == "m"
