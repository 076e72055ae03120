# ruff: noqa: E501 - a program reads best on one line
"""Exception classes that a program chooses: none swallows a failure of the tests, whatever it is called or derived from."""

from __future__ import annotations

import builtins
from collections.abc import Iterator

import pytest

from verifiers import Outcome, Problem
from verifiers.unit_tests import AssertTests, FunctionTests, UnitTestVerifier
from verifiers.unit_tests.tests import CheckTests

ALIASES = {
    "assertion": "Short = AssertionError",
    "exception": "Short = Exception",
    "base": "Short = BaseException",
    "object": "Short = object",
    "named": "Short = type('AssertionError', (Exception,), {'__module__': 'builtins'})",
    "named base": "Short = type('BaseException', (BaseException,), {'__module__': 'builtins'})",
    "failed": "Short = type('Failed', (AssertionError,), {'__module__': 'pytest', '__qualname__': 'Failed'})",
    "derived": "class Short(AssertionError): pass",
    "metaclass": "class M(type):\n    def __instancecheck__(c, e): return True\n    def __subclasscheck__(c, e): return True\nclass Short(Exception, metaclass=M): pass",
    "patched": "import builtins\nbuiltins.ValueError = AssertionError\nShort = ValueError",
    "tuple": "Short = (AssertionError, BaseException)",
    "tuple of object": "Short = (object,)",
    "runtime": "Short = RuntimeError",
    "skip": "import unittest\nShort = unittest.SkipTest",
    "group": "Short = BaseExceptionGroup",
    "lazy": "def __getattr__(name): return AssertionError\nclass L:\n    def __eq__(s, o): return True\nShort = L()",
}
"""By what `Short` is: none is raised."""
PROGRAM = "def take(n): return n\nclass P:\n    E = Short\n    def __init__(s): s.e = Short\n    def get(s): return Short\n    def take(s, n): return n\n"
BODIES = {
    "try": "try:\n        take(500)\n        assert False\n    except {e}:\n        pass",
    "try raise": "try:\n        take(500)\n        raise RuntimeError('nothing raised')\n    except {e}:\n        pass",
    "try tuple": "try:\n        assert take(500) == 3\n    except (KeyError, {e}):\n        pass",
    "star": "try:\n        assert take(500) == 3\n    except* {e}:\n        pass",
    "raises": "with pytest.raises({e}):\n        assert take(500) == 3",
    "raises fail": "with pytest.raises({e}):\n        take(500)\n        pytest.fail('nothing raised')",
    "raises tuple": "with pytest.raises((KeyError, {e})):\n        take(500)\n        assert False",
    "suppress": "with contextlib.suppress({e}):\n        assert take(500) == 3\n        return\n    pass",
    "unittest": "with unittest.TestCase().assertRaises({e}):\n        assert take(500) == 3",
    "isinstance": "try:\n        assert take(500) == 3\n    except BaseException as error:\n        if not isinstance(error, {e}): raise",
    "skip": "try:\n        assert take(500) == 3\n    except {e} as error:\n        assert 'nothing' in str(error)",
}
"""Each fails with a `take` that raises nothing, whatever the class is."""
PLACES = ("P.E", "P().e", "P().get()")
MOST_TELLING = ("try", "raises", "suppress", "isinstance")
CASES = [(body, "Short") for body in BODIES] + [(body, place) for body in MOST_TELLING for place in PLACES]


@pytest.fixture(scope="module")
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(timeout_s=2, memory_mib=512)
    yield verifier
    verifier.close()


def judging(body: str, place: str) -> FunctionTests:
    code = body.format(e=place)
    return FunctionTests(
        f"import contextlib, pytest, unittest\nfrom solution import P, Short, take\ndef test_it():\n    {code}\n"
    )


@pytest.mark.parametrize("alias", ALIASES)
def test_no_class_of_the_program_swallows_a_failure_of_the_tests(verifier: UnitTestVerifier, alias: str) -> None:
    program = f"{ALIASES[alias]}\n{PROGRAM}"
    problems = [Problem("p", "", judging(BODIES[body], place)) for body, place in CASES]
    verdicts = verifier.verify_batch([program] * len(problems), problems)
    passed = [case for case, verdict in zip(CASES, verdicts, strict=True) if verdict.outcome is not Outcome.INCORRECT]
    assert passed == []


@pytest.mark.parametrize("alias", ALIASES)
def test_neither_do_those_that_other_kinds_of_tests_name(verifier: UnitTestVerifier, alias: str) -> None:
    program = f"{ALIASES[alias]}\n{PROGRAM}"
    setup = "def refuses(n):\n    try:\n        take(n)\n        assert False\n    except Short:\n        return True\n"
    check = f"{setup}\ndef check(candidate):\n    try:\n        assert candidate(500) == 3\n    except Short:\n        pass\n"
    prefix = "class Short(Exception):\n    pass\n\ndef take(n):\n"
    suppress = AssertTests(
        ("with suppress(Short): assert take(500) == 3; raise KeyError",), setup="from contextlib import suppress"
    )
    for tests in (AssertTests(("assert refuses(500)",), setup=setup), CheckTests("take", check, prefix), suppress):
        verdict = verifier(f"```python\n{program}\n```", Problem("p", "", tests))
        assert verdict.outcome is Outcome.INCORRECT, (tests, verdict.detail)


HONEST = {
    "builtin": "Short = ValueError",
    "exception": "Short = Exception",
    "assertion": "Short = AssertionError",
    "own": "class Short(Exception): pass",
    "derived": "class Short(ValueError):\n    def __init__(self, n=0): super().__init__('short', n)",
    "standard": "from json import JSONDecodeError\nclass Short(JSONDecodeError):\n    def __init__(self, n=0): super().__init__('x', '', 0)",
    "system": "Short = OSError",
    "deeper": "class Base(Exception): pass\nclass Short(Base): pass",
}
RAISING = "def take(n): raise Short(n)\nclass P:\n    E = Short\n    def __init__(s): s.e = Short\n    def take(s, n): raise Short(n)\n"


@pytest.mark.parametrize("alias", HONEST)
@pytest.mark.parametrize("place", ["Short", "P.E", "P().e"])
def test_what_the_program_raises_is_of_the_class_that_it_names(
    verifier: UnitTestVerifier, alias: str, place: str
) -> None:
    names = [name for name in BODIES if name not in ("star", "suppress", "skip")]
    bodies = [BODIES[name].replace("assert take(500) == 3", "take(500)") for name in names]
    bodies += [
        "with contextlib.suppress({e}):\n        take(500)\n        assert False",
        "with pytest.raises({e}) as info: P().take(1)\n    assert info.type.__name__ == {e}.__name__ and isinstance(info.value, {e})",
    ]
    bodies += [
        "group = None\n    try:\n        take(500)\n    except* {e} as found:\n        group = found\n    assert len(group.exceptions) == 1",
        "assert issubclass({e}, Exception)\n    with pytest.raises(Exception): take(1)",
    ]
    problems = [Problem("p", "", judging(body, place)) for body in bodies]
    verdicts = verifier.verify_batch([f"{HONEST[alias]}\n{RAISING}"] * len(problems), problems)
    failed = [
        (body, verdict.detail)
        for body, verdict in zip(bodies, verdicts, strict=True)
        if verdict.outcome is not Outcome.CORRECT
    ]
    assert failed == []


@pytest.mark.parametrize(
    ("names", "raised", "caught"),
    [
        ("Short = Exception", "ValueError('a')", "Short"),
        ("Short = LookupError", "KeyError('a')", "Short"),
        ("Short, Other = LookupError, Exception", "IndexError('a')", "Short"),
        ("Short, Other = LookupError, Exception", "IndexError('a')", "Other"),
        ("Short, Other = Exception, LookupError", "IndexError('a')", "Other"),
        ("Short, Other = Exception, AssertionError", "AssertionError('a')", "Short"),
        ("import io\nShort, Other = ValueError, OSError", "io.UnsupportedOperation('a')", "Other"),
        ("Short = OSError", "FileNotFoundError(2, 'a')", "FileNotFoundError"),
        ("Short = Exception", "AssertionError('a')", "AssertionError"),
        ("Short = ValueError\nclass Sub(Short): pass", "Sub('a')", "Short"),
        ("Short = Exception\nclass Sub(ValueError): pass", "Sub('a')", "Sub"),
        ("Short = StopIteration", "Short()", "RuntimeError"),
    ],
)
def test_it_is_of_its_bases_too(verifier: UnitTestVerifier, names: str, raised: str, caught: str) -> None:
    place = caught if hasattr(builtins, caught) else f"solution.{caught}"
    test = f"import solution\nfrom solution import Short\ndef test_it():\n    getattr(solution, 'Other', None)\n    try:\n        solution.take()\n        assert False\n    except {place} as error:\n        assert error.args == solution.ARGS or isinstance(error, RuntimeError)\n"
    program = f"{names}\nERROR = {raised}\nARGS = ERROR.args\ndef take(): raise ERROR\n"
    verdict = verifier(program, Problem("p", "", FunctionTests(test)))
    assert verdict.outcome is Outcome.CORRECT, verdict.detail


CANCELLING = """
import asyncio
class Mine(asyncio.CancelledError): pass
async def double(n): raise {error}
"""
IN_A_GROUP = """
import asyncio
from solution import double
async def one(n):
    assert await double(n) == 2 * n
async def main():
    async with asyncio.TaskGroup() as group:
        for n in (1, 2): group.create_task(one(n))
def test_it(): asyncio.run(main())
"""
AWAITED = """
import asyncio
from unittest.mock import AsyncMock
from solution import notify
def test_it():
    send = AsyncMock()
    asyncio.run(notify(send))
    assert send.await_count == 3
"""


@pytest.mark.parametrize("error", ["asyncio.CancelledError", "asyncio.CancelledError('late')", "Mine"])
def test_no_task_of_the_tests_is_cancelled_by_the_program(error: str) -> None:
    verifier = UnitTestVerifier()
    program = f"```python\n{CANCELLING.format(error=error)}\n```"
    assert verifier(program, Problem("p", "", FunctionTests(IN_A_GROUP))).outcome is Outcome.INCORRECT
    raised = "import asyncio, pytest\nfrom solution import double\ndef test_it():\n    with pytest.raises(asyncio.CancelledError): asyncio.run(double(1))\n"
    assert verifier(program, Problem("p", "", FunctionTests(raised))).outcome is Outcome.CORRECT
    verifier.close()


@pytest.mark.parametrize("name", ["await_count", "await_args", "await_args_list"])
def test_what_a_mock_has_awaited_is_not_the_programs_to_say(name: str) -> None:
    verifier = UnitTestVerifier()
    program = f"```python\nasync def notify(send): send.{name} = 3\n```"
    tests = FunctionTests(AWAITED.replace("await_count", name))
    assert verifier(program, Problem("p", "", tests)).outcome is Outcome.INCORRECT
    verifier.close()
