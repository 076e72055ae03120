"""What breaks because of what a program has chosen is the program's failure: none has its own tests left out."""

from __future__ import annotations

import pytest

from tests.adversarial.test_protocol import take_over
from tests.sandbox import Case, cases, judge, load
from verifiers import Outcome
from verifiers.unit_tests import CallCase, CallTests, CheckTests, FunctionTests, UnitTestVerifier

DATA = load("adversarial/blame")
pytestmark = pytest.mark.sandbox(timeout_s=30, memory_mib=1024)


@pytest.mark.parametrize("case", cases(DATA["back and forth"]))
def test_what_is_made_of_an_answer_and_cannot_be_sent_fails_the_program(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)


DEEP = "x = 0\nfor _ in range(1001): x = (x,)\n"


@pytest.mark.parametrize("argument", ["[0] * 9_000_000", "x"])
@pytest.mark.parametrize("head", ["from solution import area", "import solution\narea = solution.area"])
def test_what_the_tests_alone_make_too_large_is_their_error(
    verifier: UnitTestVerifier, head: str, argument: str
) -> None:
    tests = FunctionTests(f"{head}\n{DEEP}def test_area(): assert area({argument}) == 3")
    verdict = judge(verifier, "def area(rows): return 3", tests)
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.VERIFIER_ERROR, "unsupported"), verdict.detail


def test_bytes_that_are_none_are_no_message(verifier: UnitTestVerifier) -> None:
    """Where test code is watched, which looks into what comes before it is decoded."""
    check = """
def check(f):
    try: f(-2)
    except ValueError: pass
    assert f(2) == 11
"""
    for wire in ("['b64', 7]", "['value', ['b64']]"):
        for program in (take_over(resolved=wire), take_over(answer=f"send(['returned', {wire}, nothing])")):
            verdict = judge(verifier, program, CheckTests("solve", check))
            assert verdict.outcome is Outcome.INCORRECT, verdict.detail


@pytest.mark.parametrize("case", cases(DATA["chosen"]))
def test_what_is_not_supported_for_what_the_program_has_made_fails_it(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)


@pytest.mark.parametrize("case", cases(DATA["said"]) + cases(DATA["led"]))
def test_no_program_has_its_tests_left_out(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)


def test_a_stream_of_bytes_of_the_tests_own_is_their_error(verifier: UnitTestVerifier) -> None:
    test = """
import contextlib, io, solution
def test_it():
    with contextlib.redirect_stdout(io.BytesIO()): solution.log(1)
"""
    verdict = judge(verifier, "def log(out): return out", FunctionTests(test))
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
    verdict = judge(
        verifier, take_over(answer=f"send(({message}).encode())"), CallTests("solve", (CallCase((2,), 11),))
    )
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "protocol"), verdict.detail
    assert "in one another" in str(verdict.detail["reason"])


def test_slices_that_nest_in_slices_count_too(verifier: UnitTestVerifier) -> None:
    link = """'["q",null,' + '["sl",' * 90 + '["r",%d]' + ',1,1]' * 90 + ']'"""
    items = f"','.join('[%d,' % (2*n+1) + ({link}) % (2*n+3) + ']' for n in range(1_000))"
    answer = f"""send(('["returned",["r",1],[' + {items} + ',[2001,["q",null]]]]').encode())"""
    verdict = judge(verifier, take_over(answer=answer), CallTests("solve", (CallCase((2,), 11),)))
    assert "like slice in one another" in str(verdict.detail["reason"]), verdict.detail


def test_containers_that_hold_many_are_plain_data(verifier: UnitTestVerifier) -> None:
    program = (
        "from collections import defaultdict, deque\n"
        "def table(n): return defaultdict(deque, {i: deque([i]) for i in range(n)})"
    )
    test = """
from solution import table
def test_it():
    found = table(30_000)
    assert len(found) == 30_000 and list(found[7]) == [7]
"""
    assert judge(verifier, program, FunctionTests(test)).outcome is Outcome.CORRECT
