# ruff: noqa: E501 - a program reads best on one line
"""Containers that program and tests share: what either changes, both see, as in one process."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from verifiers import Outcome, Problem, Verdict
from verifiers.unit_tests import AssertTests, CallCase, CallTests, CheckTests, FunctionTests, UnitTestVerifier
from verifiers.unit_tests.sandbox.protocol import shared_containers as sharing
from verifiers.unit_tests.sandbox.protocol.codec import NotPlainError
from verifiers.unit_tests.sandbox.protocol.shared_containers import ShortenedError, Table


@pytest.fixture(scope="module")
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(timeout_s=5)
    yield verifier
    verifier.close()


def judge(verifier: UnitTestVerifier, program: str, body: str, head: str = "") -> Verdict:
    lines = "\n    ".join(body.split("\n"))
    test = f"import solution\nfrom solution import *\n{head}\ndef test_it():\n    {lines}\n"
    return verifier(f"```python\n{program}\n```", Problem("p", "", FunctionTests(test)))


def in_one_process(program: str, body: str, head: str = "") -> bool:
    """Whether the test holds where program and test share a namespace."""
    lines = "\n    ".join(body.split("\n"))
    namespace: dict[str, object] = {}
    exec(f"{program}\nclass solution: DB = globals().get('DB')\n{head}\ndef test_it():\n    {lines}\n", namespace)
    test = namespace["test_it"]
    assert callable(test)
    try:
        test()
    except AssertionError:
        return False
    return True


KEEPER = """
class N:
    def __init__(self, a=None, shared=[]):
        self.a = [] if a is None else a
        self.shared = shared
        self.d = {}
        self.deep = [[1], {"k": [2]}]
    def get(self): return self.a
    def copy(self): return list(self.a)
    def add(self, x): self.a.append(x)
    def each(self, f):
        for x in self.a: f(x)
    def show(self, f): f(self.a); return len(self.a)
    def run(self, f): f(); return self.a[-1]
    def sees(self): return f"{self.a} {self.d} {self.deep}"
DB = {0: 0}
def put(x): DB[x] = x
def last(values=[]):
    values.append(len(values))
    return values
def keep(value): global kept; kept = value
def kept_is(value): return kept is value
def kept_repr(): return repr(kept)
"""
BODIES = [
    "n = N(); n.get().append(1); assert n.get() == []",
    "n = N(); n.get().append(1); assert n.get() == [1]",
    "n = N([1]); n.copy().append(2); assert n.a == [1]",
    "a = [1]; n = N(a); a.append(2); assert n.a == [1]",
    "a = [1]; n = N(a); a.append(2); assert n.a == [1, 2] and n.a is a and n.get() is n.a",
    "a = [1]; n = N(a); n.add(2); assert a == [1]",
    "a = [1]; n = N(a); n.add(2); assert a == [1, 2]",
    "a = N().shared; a.append(1); assert N().shared == []",
    "n = N(); n.d['k'] = 1; n.d['l'] = [n.d]; assert n.sees() == \"[] {'k': 1, 'l': [{...}]} [[1], {'k': [2]}]\"",
    "n = N(); n.deep[0].append(0); n.deep[1]['k'].clear(); assert n.sees() == \"[] {} [[1, 0], {'k': []}]\"",
    "n = N(); n.deep[1]['k'], n.deep[0] = n.deep[0], n.deep[1]['k']; assert n.sees() == \"[] {} [[2], {'k': [1]}]\"",
    "n = N(); inner = n.deep[0]; n.deep[0] = 5; inner.append(2); assert n.deep[0] == 5 and inner == [1, 2]",
    "n = N(); n.a.append(n); assert n.get()[0] is n and len(n.a) == 1",
    "DB.clear(); put(1); assert DB == {1: 1}",
    "put(7); assert list(DB)[-1] == 7 and DB[7] == 7",
    "assert last() is last() and last() == [0, 1, 2]",
    "r = last(); s = last(); assert r == s and r is s",
    "r = last(); r.append('x'); assert last()[-2:] == ['x', len(r) - 1]",
    "a = []; a.append(a); b = [a, a]; n = N(b); n.a.append(a); assert b[2] is a and b[0][0] is a and n.a is b",
    "a = []; b = [a]; a.append(b); n = N(a); n.add(b); assert a[1] is a[0] is b and b[0] is a; b.append(3); assert n.sees().startswith('[[[...], 3], [')",
    "a = [1]; keep(a); assert kept_is(a) and not kept_is([1]); a[:] = [True]; assert kept_repr() == '[True]'",
    "a = {1: 'x'}; keep(a); a[1] = 1.0; assert kept_repr() == '{1: 1.0}'; a[1] = 1; assert kept_repr() == '{1: 1}'",
    "a = {3, 1}; keep((a, 5)); a.add(9); assert '9' in kept_repr()",
    "from collections import deque; a = deque([1], 2); keep(a); a.extend([2, 3]); assert kept_repr() == 'deque([2, 3], maxlen=2)'",
    "from collections import OrderedDict; a = OrderedDict(a=1, b=2); keep(a); a.move_to_end('a'); assert list(N(a).get()) == ['b', 'a'] and 'b' in kept_repr()[:18]",
    "from collections import Counter; a = Counter('aab'); keep(a); a['z'] += 1; assert \"'z': 1\" in kept_repr()",
    "from collections import defaultdict; a = defaultdict(list); keep(a); a['z'].append(1); assert kept_repr().endswith(\"{'z': [1]})\")",
    "a = bytearray(b'x'); keep(a); a += b'y'; assert kept_repr() == \"bytearray(b'xy')\"",
    "from array import array; a = array('i', [1]); keep(a); a.append(2); assert kept_repr() == \"array('i', [1, 2])\"",
    "n = N([1, 2, 3]); seen = []; n.each(seen.append); assert seen == [1, 2, 3]",
    "n = N([1, 2]); assert n.show(lambda a: a.append(3)) == 3 and n.a == [1, 2, 3]",
    "n = N([1]); assert n.run(lambda: n.add(4)) == 4; assert n.run(lambda: n.a.append(5)) == 5; assert n.a == [1, 4, 5]",
    "n = N([1]); a = n.a\ndef f():\n    a.append(2); n.add(3); assert a == [1, 2, 3]\nassert n.run(f) == 3 and a == [1, 2, 3]",
    "d = N().d; keep(d)\nfor k in 'ab': d[k] = N([k])\nassert [d[k].a for k in d] == [['a'], ['b']]",
    "a = [N([i]) for i in range(3)]; n = N(a)\nfor i, each in enumerate(a): each.add(i); a[i] = each.a\nassert n.get() == [[0, 0], [1, 1], [2, 2]]",
    "a = [1, 2]; n = N(a); it = iter(a); next(it); n.add(3); assert list(it) == [2, 3]",
]


@pytest.mark.parametrize("body", BODIES)
def test_a_container_is_the_same_on_both_sides(verifier: UnitTestVerifier, body: str) -> None:
    verdict = judge(verifier, KEEPER, body)
    assert verdict.outcome is (Outcome.CORRECT if in_one_process(KEEPER, body) else Outcome.INCORRECT), verdict.detail


def test_fixtures_reset_what_the_program_keeps(verifier: UnitTestVerifier) -> None:
    head = "import pytest\n@pytest.fixture(autouse=True)\ndef clean():\n    solution.DB.clear()\n    yield\n    assert DB\n"
    assert judge(verifier, KEEPER, "put(1); assert solution.DB == {1: 1}", head).outcome is Outcome.CORRECT
    leaking = KEEPER + "def put(x): global DB; DB = {0: 0, x: x}"
    assert judge(verifier, leaking, "put(1); assert solution.DB == {1: 1}", head).outcome is Outcome.INCORRECT


def test_an_instance_of_a_derived_class_is_filled_past_its_methods(verifier: UnitTestVerifier) -> None:
    program = "class Row(list):\n    def append(self, x): raise OSError\n    extend = clear = append\nclass Box(dict): pass\nrow = Row([1]); box = Box(a=row)\ndef get(): return box\ndef show(): return repr(box), type(row).__name__, row is box.get('a')"
    body = "b = get(); b['a'].append(2); b['k'] = 1; assert show() == (\"{'a': [1, 2], 'k': 1}\", 'Row', True)"
    assert judge(verifier, program, body).outcome is Outcome.CORRECT


CALLS = "class K:\n    def __init__(self): self.seen = []\n    def get(self, i): return [i, [i]]\n    def put(self, x): self.last = x"


@pytest.mark.parametrize(
    "body",
    [
        "k = K()\nfor i in range({n}): assert k.get(i) == [i, [i]]",
        "k = K()\nfor i in range({n}): x = [i]; k.put(x); x.append(1); assert k.last == [i, 1]",
        "k = K()\nresults = [k.get(i) for i in range({n})]\nassert results[-1][0] == {n} - 1",
    ],
)
def test_a_loop_of_calls_costs_in_proportion(verifier: UnitTestVerifier, body: str) -> None:
    def cost(n: int) -> float:
        verdict = judge(verifier, CALLS, body.replace("{n}", str(n)))
        assert verdict.outcome is Outcome.CORRECT, verdict.detail
        return verdict.cost["cpu_seconds"]

    assert cost(5_000) < 20 * cost(500) + 0.25


def test_a_container_that_is_only_compared_never_crosses(verifier: UnitTestVerifier) -> None:
    program = "SEEN = []\nclass Vec:\n    def __init__(self, *xs): self.xs = xs\n    def __eq__(self, other):\n        if isinstance(other, list):\n            SEEN.append(other); other.append(9)\n        return list(self.xs) == other\ndef f(): return [1]\ndef seen(): return len(SEEN)\ndef spoil():\n    for each in SEEN: each.clear()"
    assert judge(verifier, program, "want = [1]; assert f() == want; assert want == f(); assert seen() == 0").score == 1
    body = "want = [1, 2]; v = Vec(1, 2); v == want; spoil(); v.xs; assert want == [1, 2] and seen() == 1"
    assert judge(verifier, program, body).score == 1, judge(verifier, program, body).detail


HOSTILE = [
    # What it returned is emptied as soon as the test looks at the first item.
    "class P:\n    def __init__(self, v): self.v = v\n    @property\n    def value(self): out.clear(); return self.v\nout = []\ndef f(): out[:] = [P(1), P(0), P(0)]; return out",
    "class P:\n    def __init__(self, v): self.v = v\n    @property\n    def value(self): del out[1:]; return self.v\nout = []\ndef f(): out[:] = [P(1), P(0), P(0)]; return out",
    "class P:\n    def __init__(self, v): self.v = v\n    value = 1\nclass L(list):\n    def __iter__(self): return iter(())\n    def __len__(self): return 3\n    __eq__ = lambda *a: True\ndef f(): return L([P(1)])",
]
LOOPS = [
    "r = f(); assert len(r) == 3\nfor p, want in zip(r, (1, 2, 3)): assert p.value == want",
    "r = f(); assert len(r) == 3\nfor i, p in enumerate(r): assert p.value == i + 1",
    "r = f(); assert len(r) == 3; assert all(p.value == i + 1 for i, p in enumerate(r))",
    "r = f(); assert len(r) == 3\nfor p in reversed(r): assert p.value in (1, 2, 3)\nassert r[2].value == 3",
]


@pytest.mark.parametrize("program", HOSTILE)
@pytest.mark.parametrize("body", LOOPS)
def test_no_program_ends_a_loop_early(verifier: UnitTestVerifier, program: str, body: str) -> None:
    honest = "class P:\n    def __init__(self, v): self.value = v\ndef f(): return [P(1), P(2), P(3)]"
    assert judge(verifier, honest, body).outcome is Outcome.CORRECT
    assert judge(verifier, program, body).outcome is Outcome.INCORRECT


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
    program = f"import gc, sys\nmodule = next(m for n, m in sys.modules.items() if n.endswith('sandbox.protocol.shared_containers'))\nmodule.Writer.contents = lambda self: {forged}\ndef f(a, b=None): return a"
    body = "mine = [1, 2]; kept = [3]; f(mine); f(kept); f(0); want = [1, 2]; assert f(mine) == [2, 1]"
    verdict = judge(verifier, program, body)
    assert verdict.outcome is Outcome.INCORRECT, verdict.detail


def test_expected_values_are_out_of_reach_of_forged_contents(verifier: UnitTestVerifier) -> None:
    program = "import sys\nmodule = next(m for n, m in sys.modules.items() if n.endswith('sandbox.protocol.shared_containers'))\nold = module.Writer.contents\nmodule.Writer.contents = lambda self: old(self) + [[n, ['l', 0]] for n in range(0, 40, 2) if n in self._table._entries]\ndef f(a): return [0]"
    assert judge(verifier, program, "a, want = [5], [6]; assert f(a) == want").outcome is Outcome.INCORRECT


def test_checks_and_asserts_share_what_they_keep(verifier: UnitTestVerifier) -> None:
    program = "made = []\ndef f(x=None):\n    made.append(x)\n    return made\nDB = []\ndef put(x): DB.append(x)"
    for test in (
        "def check(candidate):\n    assert candidate(1) == candidate(2)",
        "def check(candidate):\n    a = candidate(1)\n    candidate(2)\n    assert a == [1, 2]",
        "def check(candidate):\n    candidate(1).clear()\n    assert candidate(2) == [2]",
    ):
        assert verifier(program, Problem("p", "", CheckTests("f", test))).score == 1
        assert (
            verifier(program.replace("return made", "return list(made)"), Problem("p", "", CheckTests("f", test))).score
            == 0
        )
    asserts = AssertTests(("assert put(1) is None", "assert DB == [1]"))
    assert verifier(program, Problem("p", "", asserts)).score == 1
    calls = CallTests("f", (CallCase((1,), [1]), CallCase((2,), [1, 2])))
    assert verifier(program, Problem("p", "", calls)).score == 1


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
    assert judge(verifier, program, body).outcome is Outcome.CORRECT


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
    assert verifier(program, Problem("p", "", CheckTests("f", test))).outcome is Outcome.CORRECT


def test_a_container_may_be_lent_twice(verifier: UnitTestVerifier) -> None:
    test = """
from solution import Box
def test_it():
    box, limit = Box(3), [4]
    assert isinstance(box, Box)
    assert box < limit
    assert box < limit
    assert not box > limit
"""
    program = "class Box:\n    def __init__(self, n): self.n = n\n    def __lt__(self, o): return self.n < o[0]\n    def __gt__(self, o): return self.n > o[0]"
    assert verifier(program, Problem("p", "", FunctionTests(test))).outcome is Outcome.CORRECT
