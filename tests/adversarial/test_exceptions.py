"""Exception classes that a program chooses: none swallows a failure of the tests, whatever it is called or derived from."""

from __future__ import annotations

import textwrap

import pytest

from tests.sandbox import judge, load
from verifiers import Outcome, Problem
from verifiers.unit_tests import AssertTests, FunctionTests, UnitTestVerifier
from verifiers.unit_tests.tests import CheckTests

DATA = load("adversarial/exceptions")
ALIASES, HONEST, BODIES = DATA["lying"], DATA["honest"], DATA["bodies"]
PROGRAM = """
def take(n): return n
class P:
    E = Short
    def __init__(s): s.e = Short
    def get(s): return Short
    def take(s, n): return n
"""
PLACES = ("P.E", "P().e", "P().get()")
MOST_TELLING = ("try", "raises", "suppress", "isinstance")
CASES = [(body, "Short") for body in BODIES] + [(body, place) for body in MOST_TELLING for place in PLACES]


def judging(body: str, place: str) -> FunctionTests:
    code = textwrap.indent(body.replace("ERROR", place), "    ")
    return FunctionTests(
        f"import contextlib, pytest, unittest\nfrom solution import P, Short, take\ndef test_it():\n{code}\n"
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
    setup = """
def refuses(n):
    try:
        take(n)
        assert False
    except Short:
        return True
"""
    check = f"""
{setup}
def check(candidate):
    try:
        assert candidate(500) == 3
    except Short:
        pass
"""
    prefix = "class Short(Exception):\n    pass\n\ndef take(n):\n"
    suppress = AssertTests(
        ("with suppress(Short): assert take(500) == 3; raise KeyError",), setup="from contextlib import suppress"
    )
    for tests in (AssertTests(("assert refuses(500)",), setup=setup), CheckTests("take", check, prefix), suppress):
        verdict = judge(verifier, f"```python\n{program}\n```", tests)
        assert verdict.outcome is Outcome.INCORRECT, (tests, verdict.detail)


RAISING = """
def take(n): raise Short(n)
class P:
    E = Short
    def __init__(s): s.e = Short
    def take(s, n): raise Short(n)
"""


@pytest.mark.parametrize("alias", HONEST)
@pytest.mark.parametrize("place", ["Short", "P.E", "P().e"])
def test_what_the_program_raises_is_of_the_class_that_it_names(
    verifier: UnitTestVerifier, alias: str, place: str
) -> None:
    names = [name for name in BODIES if name not in ("star", "suppress", "skip")]
    bodies = [BODIES[name].replace("assert take(500) == 3", "take(500)") for name in names]
    bodies += DATA["raised"].values()
    problems = [Problem("p", "", judging(body, place)) for body in bodies]
    verdicts = verifier.verify_batch([f"{HONEST[alias]}\n{RAISING}"] * len(problems), problems)
    failed = [
        (body, verdict.detail)
        for body, verdict in zip(bodies, verdicts, strict=True)
        if verdict.outcome is not Outcome.CORRECT
    ]
    assert failed == []


@pytest.mark.parametrize("name", ["ValueError", "Exception", "AssertionError", "OSError"])
@pytest.mark.parametrize("caught", ["try: take(1)\n    except Short: pass", "with pytest.raises(Short): take(1)"])
def test_a_class_of_python_under_another_name_is_not_supported(
    verifier: UnitTestVerifier, name: str, caught: str
) -> None:
    test = FunctionTests(f"import pytest\nfrom solution import Short, take\ndef test_it():\n    {caught}\n")
    verdict = judge(verifier, f"Short = {name}\n{RAISING}", test)
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "unsupported"), verdict.detail
