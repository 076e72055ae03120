# ruff: noqa: E501 - a program reads best on one line
"""What the sandbox does not do is told from a wrong answer, and scores 0 wherever the program chooses it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from verifiers import Outcome, Problem, Verdict
from verifiers.unit_tests import FunctionTests, UnitTestVerifier


@pytest.fixture(scope="module")
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(timeout_s=2, memory_mib=256)
    yield verifier
    verifier.close()


def judge(verifier: UnitTestVerifier, program: str, body: str, head: str = "") -> Verdict:
    lines = "\n    ".join(body.split("\n"))
    test = f"import solution\nfrom solution import *\n{head}\ndef test_it():\n    {lines}"
    return verifier(program, Problem("p", "", FunctionTests(test)))


MONEY = """
class Money:
    def __init__(self, n): self.n = n
    def __eq__(self, other): return self.n == getattr(other, "n", other)
    def __add__(self, other): return Money(self.n + getattr(other, "n", other))
    def __lt__(self, other): return self.n < other
    def __contains__(self, other): return True
    def startswith(self, text): return True
def make(n): return Money(n)
"""


@pytest.mark.parametrize(
    "body",
    ["assert make(3) == 3", "assert 3 == make(3)", "assert make(3) in [2, 3]", "assert make(3) + 1 == make(4)", "assert make(3) < 4", "assert 3 in make(3)", "assert make(3).startswith('a')", "import copyreg, pickle\npickle.dumps(make(3))"],
)  # fmt: skip
def test_operators_with_plain_values_are_not_supported(verifier: UnitTestVerifier, body: str) -> None:
    verdict = judge(verifier, MONEY, body)
    assert (verdict.outcome, verdict.score, verdict.detail["failure"]) == (Outcome.INCORRECT, 0, "unsupported")
    assert verdict.detail["cases"][0]["failure"] == "unsupported"  # type: ignore[index]  # cases are a tuple of dicts


CHAIN = """
class Chain:
    def __init__(self): self.seen = []
    def push(self, item):
        self.seen.append(item)
        return self
    def __eq__(self, other): return self.seen == other
    def __add__(self, other): return self.seen + other
"""


def test_a_method_that_returns_its_object_takes_its_operators_away(verifier: UnitTestVerifier) -> None:
    """Else a function that returns what a test has made would be its own judge."""
    assert judge(verifier, CHAIN, "c = Chain()\nc.push(1)\nc.push(2).push(3)\nassert c.seen == [1, 2, 3]").score == 1
    for body in ("c = Chain()\nc.push(1)\nassert c == [1]", "c = Chain()\nc.push(1)\nassert c + [] == [1]"):
        verdict = judge(verifier, CHAIN, body)
        assert (verdict.score, verdict.detail["failure"]) == (0, "unsupported")
    assert judge(verifier, CHAIN, "c = Chain()\nc.seen.append(1)\nassert c == [1] and c + [2] == [1, 2]").score == 1


@pytest.mark.parametrize(
    "body",
    [
        "assert make(3) == make(4)",
        "assert make(3).n == 4",
        "assert make(3) is None",
        "assert make(3) == make(3)\nassert 0",
    ],
)
def test_what_is_supported_is_wrong_or_right(verifier: UnitTestVerifier, body: str) -> None:
    assert judge(verifier, MONEY, body).detail["failure"] == "wrong_answer"
    plain = "class Plain: pass\ndef make(n): return Plain()"
    assert judge(verifier, plain, "assert make(3) == 3").detail["failure"] == "wrong_answer"


@pytest.mark.parametrize(
    ("program", "body"),
    [
        ("from threading import Thread\ndef run():\n    class Own(Thread): pass\n    return Own().x", "with patch('solution.Thread', Fake): assert solution.run() == 5"),
        ("import datetime\ndef run(): return isinstance(5, datetime.date)", "with patch('solution.datetime.date', Fake): assert not solution.run()"),
        ("def run(x): return x._y", "assert solution.run(Fake()) == 5"),
        ("def run(x): x.x += 1", "fake = Fake(); solution.run(fake); assert fake.x == 6"),
    ],
)  # fmt: skip
def test_classes_of_the_tests_are_none_for_the_program(verifier: UnitTestVerifier, program: str, body: str) -> None:
    head = "import datetime\nfrom unittest.mock import patch\nclass Fake:\n    x = _y = 5"
    verdict = judge(verifier, program, body, head)
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "unsupported")


@pytest.mark.parametrize(
    "program",
    [
        "def make(n): return 'open(7)'",
        "import pickle\ndef make(n): return pickle.dumps(len)",
        "import sys\nclass UnsupportedUseError(Exception): pass\ndef make(n): raise UnsupportedUseError",
        "import sys\ndef make(n):\n    raise next(m for k, m in sys.modules.items() if k == 'x')",
        "import gc\ndef make(n): raise next(c for c in gc.get_objects() if getattr(c, '__name__', '') == 'UnsupportedUseError')",
        "import gc\ndef make(n): raise next((c for c in gc.get_objects() if getattr(c, '__name__', '') == 'UnsupportedTestError'), ValueError)",
    ],
)  # fmt: skip
def test_no_program_has_its_tests_left_out(verifier: UnitTestVerifier, program: str) -> None:
    for body in (
        "value = make(1)\nassert (eval(value) if isinstance(value, str) else pickle.loads(value)) == 5",
        "make(1)\nassert 0",
    ):
        verdict = judge(verifier, program, body, "import pickle")
        assert verdict.outcome is Outcome.INCORRECT, verdict.detail


def test_what_no_program_can_pass_is_the_tests_fault(verifier: UnitTestVerifier) -> None:
    for body in ("import pytest\npytest.importorskip('x')", "make(open('/dev/null'))"):
        verdict = judge(verifier, MONEY, body)
        assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.VERIFIER_ERROR, "unsupported"), verdict.detail
