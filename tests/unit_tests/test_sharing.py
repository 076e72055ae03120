"""Containers that program and tests share: what either changes, both see, as in one process."""

from __future__ import annotations

import json
import textwrap

import pytest
from verifiers.unit_tests.sandbox.protocol import shared_containers as sharing
from verifiers.unit_tests.sandbox.protocol.codec import NotPlainError
from verifiers.unit_tests.sandbox.protocol.shared_containers import ShortenedError, Table

from tests.sandbox import Case, cases, fenced, judge, load
from verifiers import Outcome, Verdict
from verifiers.unit_tests import AssertTests, CallCase, CallTests, CheckTests, FunctionTests, UnitTestVerifier

DATA = load("unit_tests/sharing")
pytestmark = pytest.mark.sandbox(timeout_s=20, memory_mib=1024)


def on_both_sides(verifier: UnitTestVerifier, program: str, body: str, head: str = "") -> Verdict:
    """The verdict where the program runs in another process than the test."""
    lines = textwrap.indent(body, "    ")
    tests = FunctionTests(f"import solution\nfrom solution import *\n{head}\ndef test_it():\n{lines}\n")
    return judge(verifier, fenced(program), tests)


def holds_in_one_process(program: str, body: str) -> bool:
    """Whether the test holds where program and test share a namespace."""
    lines = textwrap.indent(body, "    ")
    namespace: dict[str, object] = {}
    exec(f"{program}\nclass solution: DB = globals().get('DB')\ndef test_it():\n{lines}\n", namespace)
    test = namespace["test_it"]
    assert callable(test)
    try:
        test()
    except AssertionError:
        return False
    return True


KEEPER = DATA["same"]["program"]


@pytest.mark.parametrize("body", DATA["same"]["bodies"])
def test_a_container_is_the_same_on_both_sides(verifier: UnitTestVerifier, body: str) -> None:
    verdict = on_both_sides(verifier, KEEPER, body)
    holds = holds_in_one_process(KEEPER, body)
    assert verdict.outcome is (Outcome.CORRECT if holds else Outcome.INCORRECT), verdict.detail


def test_fixtures_reset_what_the_program_keeps(verifier: UnitTestVerifier) -> None:
    head = """
import pytest
@pytest.fixture(autouse=True)
def clean():
    solution.DB.clear()
    yield
    assert DB
"""
    assert on_both_sides(verifier, KEEPER, "put(1); assert solution.DB == {1: 1}", head).outcome is Outcome.CORRECT
    leaking = KEEPER + "def put(x): global DB; DB = {0: 0, x: x}"
    assert on_both_sides(verifier, leaking, "put(1); assert solution.DB == {1: 1}", head).outcome is Outcome.INCORRECT


def test_an_instance_of_a_derived_class_is_filled_past_its_methods(verifier: UnitTestVerifier) -> None:
    program = """
class Row(list):
    def append(self, x): raise OSError
    extend = clear = append
class Box(dict): pass
row = Row([1]); box = Box(a=row)
def get(): return box
def show(): return repr(box), type(row).__name__, row is box.get('a')
"""
    body = "b = get(); list.append(b['a'], 2); b['k'] = 1; assert show() == (\"{'a': [1, 2], 'k': 1}\", 'Row', True)"
    assert on_both_sides(verifier, program, body).outcome is Outcome.CORRECT


CALLS = DATA["loops"]["program"]


@pytest.mark.parametrize("case", cases(DATA["loops"]))
def test_a_loop_of_calls_costs_in_proportion(verifier: UnitTestVerifier, case: Case) -> None:
    def cost(n: int) -> float:
        assert isinstance(case.tests, FunctionTests)
        tests = FunctionTests(case.tests.test.replace("N", str(n)))
        verdict = judge(verifier, fenced(case.program), tests)
        assert verdict.outcome is Outcome.CORRECT, verdict.detail
        return verdict.cost["cpu_seconds"]

    assert cost(5_000) < 20 * cost(500) + 0.25


def test_a_container_that_is_only_compared_never_crosses(verifier: UnitTestVerifier) -> None:
    program = """
SEEN = []
class Vec:
    def __init__(self, *xs): self.xs = xs
    def __eq__(self, other):
        if isinstance(other, list):
            SEEN.append(other); other.append(9)
        return list(self.xs) == other
def f(): return [1]
def seen(): return len(SEEN)
def spoil():
    for each in SEEN: each.clear()
"""
    verdict = on_both_sides(verifier, program, "want = [1]; assert f() == want; assert want == f(); assert seen() == 0")
    assert verdict.score == 1, verdict.detail
    body = "want = [1, 2]; v = Vec(1, 2); assert not v == want; spoil(); v.xs; assert want == [1, 2] and seen() == 0"
    verdict = on_both_sides(verifier, program, body)
    assert verdict.score == 1, verdict.detail


@pytest.mark.parametrize("program", DATA["emptying"].values(), ids=DATA["emptying"])
@pytest.mark.parametrize("case", cases(DATA["ended"]))
def test_no_program_ends_a_loop_early(verifier: UnitTestVerifier, program: str, case: Case) -> None:
    assert judge(verifier, fenced(case.program), case.tests).outcome is Outcome.CORRECT
    case.check(verifier, fenced(program))


FORGERS = [
    ("self._shared._entries", "{0: ['l', 5]}"),
    ("contents", "[[0, ['d', 1, 2]]]"),
    ("contents", "[[0, ['l', 1, 2, 3]], [2, ['l']], [4, ['l']]]"),
    ("contents", "[[-1, ['l']]]"),
    ("contents", "[['x', ['l']]]"),
    ("contents", "[[True, ['l']]]"),
    ("contents", "[[1, ['zz']]]"),
    ("contents", "[[1, ['l', ['r', 99]]]]"),
    ("contents", "[[[], ['l']]]"),
    ("contents", "7"),
]


@pytest.mark.parametrize("forged", sorted({contents for name, contents in FORGERS if name == "contents"}))
def test_forged_contents_gain_nothing(verifier: UnitTestVerifier, forged: str) -> None:
    program = f"""
import gc, sys
module = next(m for n, m in sys.modules.items() if n.endswith('sandbox.protocol.shared_containers'))
module.Writer.contents = lambda self: {forged}
def f(a, b=None): return a
"""
    body = "mine = [1, 2]; kept = [3]; f(mine); f(kept); f(0); want = [1, 2]; assert f(mine) == [2, 1]"
    verdict = on_both_sides(verifier, program, body)
    assert verdict.outcome is Outcome.INCORRECT, verdict.detail


def test_expected_values_are_out_of_reach_of_forged_contents(verifier: UnitTestVerifier) -> None:
    program = """
import sys
module = next(m for n, m in sys.modules.items() if n.endswith('sandbox.protocol.shared_containers'))
old = module.Writer.contents
module.Writer.contents = lambda self: old(self) + [[n, ['l', 0]] for n in range(0, 40, 2) if n in self._table._entries]
def f(a): return [0]
"""
    assert on_both_sides(verifier, program, "a, want = [5], [6]; assert f(a) == want").outcome is Outcome.INCORRECT


def test_checks_and_asserts_share_what_they_keep(verifier: UnitTestVerifier) -> None:
    program = """
made = []
def f(x=None):
    made.append(x)
    return made
DB = []
def put(x): DB.append(x)
"""
    for test in (
        "def check(candidate):\n    assert candidate(1) == candidate(2)",
        "def check(candidate):\n    a = candidate(1)\n    candidate(2)\n    assert a == [1, 2]",
        "def check(candidate):\n    candidate(1).clear()\n    assert candidate(2) == [2]",
    ):
        assert judge(verifier, program, CheckTests("f", test)).score == 1
        assert judge(verifier, program.replace("return made", "return list(made)"), CheckTests("f", test)).score == 0
    asserts = AssertTests(("assert put(1) is None", "assert DB == [1]"))
    assert judge(verifier, program, asserts).score == 1
    calls = CallTests("f", (CallCase((1,), [1]), CallCase((2,), [1, 2])))
    assert judge(verifier, program, calls).score == 1


def _refuse(value: object) -> None:
    if value is not None and not isinstance(value, list | dict | tuple | set):
        raise NotPlainError("no")


def _pass(sender: Table, receiver: Table, value: object) -> object:
    writer = sender.writer()
    message = json.loads(json.dumps([writer.encode(value), writer.contents()]))
    writer.commit()
    receiver.apply(message[1])
    return receiver.reader().decode(message[0])


def test_tables_agree_and_forget() -> None:
    here, there = Table(_refuse, _refuse, first=0), Table(_refuse, _refuse, first=1)
    mine: list[object] = [1, {"k": []}]
    theirs = _pass(here, there, mine)
    assert theirs == mine
    assert _pass(here, there, mine) is theirs
    assert _pass(there, here, theirs) is mine
    writer = here.writer()
    assert writer.contents() == [], "nothing has changed"
    mine[0] = True
    assert here.writer().contents() == [[0, ["l", True, ["r", 2]]]]
    _pass(here, there, None)
    assert theirs[0] is True  # type: ignore[index]  # a list
    assert here.release() == []
    del mine
    dropped = here.release()
    assert dropped == [0, 2, 4]
    there.forget(dropped)
    again = _pass(there, here, theirs)
    assert again == [True, {"k": []}]


@pytest.mark.parametrize("kept", [True, False])
def test_many_containers_leave_few_shared(kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_EFFORT", 1 << 12)
    here, there = Table(_refuse, _refuse, first=0), Table(_refuse, _refuse, first=1)
    results, old = [], [3]
    _pass(here, there, old)
    for number in range(500):
        there.forget(here.release())
        result = _pass(there, here, [number, [number]])
        _pass(here, there, None)
        results.append(result if kept else None)
        del result
    here.release()
    old.append(4)
    assert len(here.release()) < (200 if kept else 10)
    assert here.writer().contents() == [], "what did not cross for long goes on as a copy"
    assert not kept or results[5] == [5, [5]]


def test_a_large_structure_stays_shared(verifier: UnitTestVerifier) -> None:
    program = CALLS.replace("self.seen = []", "self.big = [[i] for i in range(2000)]")
    body = "k = K(); b = k.big\nfor i in range(200): k.get(i)\nb[5].append(1); assert k.big[5] == [5, 1] and k.big is b"
    assert on_both_sides(verifier, program, body).outcome is Outcome.CORRECT


def test_a_message_that_cannot_be_sent_shares_nothing() -> None:
    here, there = Table(_refuse, _refuse, first=0), Table(_refuse, _refuse, first=1)
    writer = here.writer()
    mine = [1]
    with pytest.raises(NotPlainError):
        writer.items([mine, object()])
    writer.abandon()
    assert _pass(here, there, mine) == [1]


def test_a_loop_over_a_container_is_not_cut_short() -> None:
    here, there = Table(_refuse, _refuse, first=0), Table(_refuse, _refuse, first=1)
    mine = [1, 2, 3]
    theirs = _pass(here, there, mine)
    assert isinstance(theirs, list)
    iterator = iter(mine)
    theirs.append(4)
    _pass(there, here, None)
    theirs[:] = [7, 8, 9, 10]
    _pass(there, here, None)
    assert next(iterator) == 7
    theirs.pop()
    with pytest.raises(ShortenedError, match="list changed size"):
        _pass(there, here, None)


def test_a_loop_over_a_set_that_gets_other_items_fails() -> None:
    here, there = Table(_refuse, _refuse, first=0), Table(_refuse, _refuse, first=1)
    mine = {1, 2, 3}
    theirs = _pass(here, there, mine)
    assert isinstance(theirs, set)
    iterator = iter(mine)
    theirs.remove(2)
    theirs.add(64)
    with pytest.raises(ShortenedError, match="set changed size"):
        _pass(there, here, None)
    del iterator
    theirs.clear()
    _pass(there, here, None)
    assert mine == set()


def test_what_a_callback_returns_may_be_the_programs_own(verifier: UnitTestVerifier) -> None:
    test = """def check(candidate):
    assert candidate(["a"], lambda x: candidate(list("12"), lambda y: x + y)) == [["a1", "a2"]]
    kept = []
    def keep(x):
        kept.append(candidate([x], lambda y: [y]))
        return kept[-1]
    result = candidate([1, 2], keep)
    assert result == [[[1]], [[2]]] == kept and all(a is b for a, b in zip(result, kept))
"""
    program = "def f(xs, g): return [g(x) for x in xs]"
    assert judge(verifier, program, CheckTests("f", test)).outcome is Outcome.CORRECT
