# ruff: noqa: E501 - a program reads best on one line
"""What breaks because of what a program has chosen is the program's failure: none has its own tests left out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.adversarial.test_protocol import take_over
from verifiers import Outcome, Problem
from verifiers.unit_tests import AssertTests, CallCase, CallTests, CheckTests, FunctionTests, UnitTestVerifier

TESTS = AssertTests | CallTests | CheckTests | FunctionTests


@pytest.fixture(scope="module")
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(timeout_s=3)
    yield verifier
    verifier.close()


NESTED = "def nested(n):\n    value = n\n    for _ in range(999): value = (value,)\n    return value\n"
BACK_AND_FORTH = {
    "nests": (f"{NESTED}def flat(value): return 1", AssertTests(("assert flat((nested(2), 1)) == 2",))),
    "counts": (
        "def letters(word): return 20_000_000\ndef area(rows): return 0",
        AssertTests(('assert area("a" * letters("abc")) == 3',)),
    ),
    "covers": (
        "def span(n): return range(4_000_000)\ndef mean(numbers): return 0",
        FunctionTests("from solution import mean, span\ndef test_mean(): assert mean(list(span(5))) == 2"),
    ),
    "names a size": (
        "SIZE = 9_000_000\ndef area(rows): return 0",
        FunctionTests("from solution import SIZE, area\ndef test_area(): assert area([0] * SIZE) == 3"),
    ),
    "repeats": (
        "def fold(join, words): return join('ab', 12_000_000)",
        CheckTests("fold", "def check(f):\n    assert f(lambda word, n: word * n, ['ab', 2]) == 'abab'"),
    ),
}
"""Answers of which the tests make an argument that can't be sent."""


@pytest.mark.parametrize(("program", "tests"), BACK_AND_FORTH.values(), ids=BACK_AND_FORTH)
def test_what_is_made_of_an_answer_and_cannot_be_sent_fails_the_program(
    verifier: UnitTestVerifier, program: str, tests: TESTS
) -> None:
    verdict = verifier(program, Problem("p", "", tests))
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "output_limit"), verdict.detail


DEEP = "x = 0\nfor _ in range(1001): x = (x,)\n"


@pytest.mark.parametrize("argument", ["[0] * 9_000_000", "x"])
@pytest.mark.parametrize("head", ["from solution import area", "import solution\narea = solution.area"])
def test_what_the_tests_alone_make_too_large_is_their_error(
    verifier: UnitTestVerifier, head: str, argument: str
) -> None:
    tests = FunctionTests(f"{head}\n{DEEP}def test_area(): assert area({argument}) == 3")
    verdict = verifier("def area(rows): return 3", Problem("p", "", tests))
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.VERIFIER_ERROR, "unsupported"), verdict.detail


def test_bytes_that_are_none_are_no_message(verifier: UnitTestVerifier) -> None:
    """Where test code is watched, which looks into what comes before it is decoded."""
    check = "def check(f):\n    try: f(-2)\n    except ValueError: pass\n    assert f(2) == 11"
    for wire in ("['b64', 7]", "['value', ['b64']]"):
        for program in (take_over(resolved=wire), take_over(answer=f"send(['returned', {wire}, nothing])")):
            verdict = verifier(program, Problem("p", "", CheckTests("solve", check)))
            assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "protocol"), verdict.detail


CHOSEN = {
    "a class that is no exception": (
        "class TooSmall: pass\ndef area(n): return 0",
        "from solution import TooSmall, area\ndef test_it():\n    class Negative(TooSmall): pass\n    assert area(2) == 4",
    ),
    "the same at the left margin": (
        "class TooSmall: pass\ndef area(n): return 0",
        "from solution import TooSmall, area\nclass Negative(TooSmall): pass\ndef test_it(): assert area(2) == 4",
    ),
    "a stream of bytes": (
        "import io\ndef log(): return io.BytesIO()\ndef greet(): pass",
        "import contextlib, solution\ndef test_it():\n    out = solution.log()\n    with contextlib.redirect_stdout(out): solution.greet()\n    assert out.getvalue() == 'hello'",
    ),
}
"""What can be used here if the program makes it something else."""


@pytest.mark.parametrize(("program", "test"), CHOSEN.values(), ids=CHOSEN)
def test_what_is_not_supported_for_what_the_program_has_made_fails_it(
    verifier: UnitTestVerifier, program: str, test: str
) -> None:
    verdict = verifier(program, Problem("p", "", FunctionTests(test)))
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "unsupported"), verdict.detail


def test_a_stream_of_bytes_of_the_tests_own_is_their_error(verifier: UnitTestVerifier) -> None:
    test = "import contextlib, io, solution\ndef test_it():\n    out = solution.log(io.BytesIO())\n    with contextlib.redirect_stdout(io.BytesIO()): solution.log(out)"
    verdict = verifier("def log(out): return out", Problem("p", "", FunctionTests(test)))
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.VERIFIER_ERROR, "unsupported"), verdict.detail


CHAINS = {
    "defaultdicts": """'["dd",1,1,["r",%d]]'""",
    "deques": """'["q",null,["r",%d]]'""",
    "slices in deques": """'["q",null,["sl",["r",%d],1,1]]'""",
}


@pytest.mark.parametrize("link", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize("place", ["args", "contents"])
def test_containers_that_nest_by_references_do_not_crash_the_tester(
    verifier: UnitTestVerifier, link: str, place: str
) -> None:
    """To free a chain of them takes more stack than there is."""
    if place == "args":
        items = f"','.join({link} % (n + 1) for n in range(400_000))"
        error = """'{"type":"E","class":"ValueError","bases":[],"message":"","args":["t",["q",null,["dd",1],' + ITEMS + ']]}'"""
        message = "'[\"raised\",' + " + error.replace("ITEMS", items) + " + ',[]]'"
    else:
        items = f"','.join('[%d,' % (2*n+1) + {link} % (2*n+3) + ']' for n in range(300_000))"
        message = f"""'["returned",["r",1],[' + {items} + ',[600001,["q",null]]]]'"""
    verdict = verifier(
        take_over(answer=f"send(({message}).encode())"), Problem("p", "", CallTests("solve", (CallCase((2,), 11),)))
    )
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "protocol"), verdict.detail
    assert "in one another" in str(verdict.detail["reason"])


def test_slices_that_nest_in_slices_count_too(verifier: UnitTestVerifier) -> None:
    link = """'["q",null,' + '["sl",' * 90 + '["r",%d]' + ',1,1]' * 90 + ']'"""
    items = f"','.join('[%d,' % (2*n+1) + ({link}) % (2*n+3) + ']' for n in range(1_000))"
    answer = f"""send(('["returned",["r",1],[' + {items} + ',[2001,["q",null]]]]').encode())"""
    verdict = verifier(take_over(answer=answer), Problem("p", "", CallTests("solve", (CallCase((2,), 11),))))
    assert "like slice in one another" in str(verdict.detail["reason"]), verdict.detail


def test_containers_that_hold_many_are_plain_data(verifier: UnitTestVerifier) -> None:
    program = "from collections import defaultdict, deque\ndef table(n): return defaultdict(deque, {i: deque([i]) for i in range(n)})"
    test = "from solution import table\ndef test_it():\n    found = table(30_000)\n    assert len(found) == 30_000 and list(found[7]) == [7]"
    assert verifier(program, Problem("p", "", FunctionTests(test))).outcome is Outcome.CORRECT
