"""What breaks because of what a program has chosen is the program's failure: none has its own tests left out."""

from __future__ import annotations

import pytest

from tests.adversarial.test_protocol import take_over
from tests.sandbox import Case, cases, judge, load
from verifiers import Outcome
from verifiers.unit_tests import CheckTests, FunctionTests, UnitTestVerifier

DATA = load("adversarial/blame")
pytestmark = pytest.mark.sandbox(timeout_s=30, memory_mib=1024)


DEEP = "x = 0\nfor _ in range(1001): x = (x,)\n"


@pytest.mark.parametrize("argument", ["[0] * 9_000_000", "x"])
def test_what_the_tests_make_too_large_is_not_supported(verifier: UnitTestVerifier, argument: str) -> None:
    tests = FunctionTests(f"from solution import area\n{DEEP}def test_area(): assert area({argument}) == 3")
    verdict = judge(verifier, "def area(rows): return 3", tests)
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.VERIFIER_ERROR, "unsupported"), verdict.detail


@pytest.mark.parametrize(
    "case", [case for name in ("back and forth", "chosen", "said", "led") for case in cases(DATA[name])]
)
def test_no_program_has_its_tests_left_out(verifier: UnitTestVerifier, case: Case) -> None:
    """By an answer that can't be sent on, or by what is not supported for what it has made."""
    case.check(verifier)


CHAINS = {
    "lists": """'["l",%d,null,["r",%d]]'""",
    "defaultdicts": """'["dd",%d,null,null,1,["r",%d]]'""",
    "deques": """'["q",%d,null,["r",%d]]'""",
}


@pytest.mark.parametrize("link", CHAINS.values(), ids=CHAINS)
def test_containers_that_nest_by_references_do_not_break_the_tests(verifier: UnitTestVerifier, link: str) -> None:
    """To free a chain of them may take more stack than there is."""
    items = f"','.join({link} % (2 * n + 3, 2 * n + 1) for n in range(100_000))"
    answer = f"""send(('["returned",[],[],["t",["q",1,null],' + {items} + '],[]]').encode())"""
    tests = CheckTests("solve", "def check(f):\n    last = f(2)[-1]\n    del last\n    assert len(f(3)) == 5\n")
    verdict = judge(verifier, take_over(answer=answer), tests)
    assert verdict.outcome is Outcome.INCORRECT, verdict.detail


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
