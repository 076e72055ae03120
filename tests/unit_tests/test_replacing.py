# ruff: noqa: E501 - a program reads best on one line
"""What tests replace, capture and seed has its effect on the program, and gives it no say in the verdict."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pytest

from verifiers import Outcome, Problem, Verdict
from verifiers.unit_tests import AssertTests, CheckTests, FunctionTests, UnitTestVerifier
from verifiers.unit_tests.sandbox.tester.test_files.patch_mirroring import may_replace


@pytest.fixture(scope="module")
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(timeout_s=2, partial_credit=True)
    yield verifier
    verifier.close()


def test_what_a_test_keeps_in_itself_replaces_nothing() -> None:
    assert not any(map(may_replace, ("self.items = []", "cls.tree: object = 5", "assert solution.f(1) == 5", "x = 5")))
    assert all(
        map(may_replace, ("sys.stdout = out", "self.time.sleep = fake", "solution.RATE: int = 5", "random.seed(5)"))
    )


def judge(verifier: UnitTestVerifier, program: str, test: str) -> Verdict:
    return verifier(program, Problem("p", "", FunctionTests(test)))


PROGRAM = """
import json, os, random, sys, time
from datetime import datetime
import datetime as dt
RATE = 1
class Store:
    def load(self): raise OSError("no disk")
    def size(self): return len(self.load())
def fetch(url="u"): raise OSError("no net")
def total(): return fetch() + RATE
def twice(): return [fetch(url) for url in ("a", "b")]
def ask(): return int(input("? ")) + 1
def lines(): return [line.strip() for line in sys.stdin]
def hello(name="you"): print("hello", name); print("oops", file=sys.stderr); return 1
def dice(): return random.randint(1, 6) + random.randint(1, 6)
def draw(): return [random.random() for _ in range(3)]
def stamp(): return time.time(), dt.date.today().year
def home(): return os.environ.get("APP_HOME", "none")
def dump(x): return json.dumps(x)
def nap(): time.sleep(0.001); return True
"""

HONEST = {
    "patch": "with patch('solution.fetch', return_value=5) as fake:\n        assert solution.total() == 6\n    fake.assert_called_once_with()",
    "patch ends": "with patch('solution.fetch', return_value=5): assert solution.total() == 6\n    with pytest.raises(OSError): solution.total()",
    "patch sees arguments": "with patch('solution.fetch', side_effect=lambda url: url * 2) as fake:\n        assert solution.twice() == ['aa', 'bb']\n    assert [each.args for each in fake.call_args_list] == [('a',), ('b',)]",
    "patch raises": "with patch.object(solution, 'fetch', side_effect=KeyError('k')), pytest.raises(KeyError): solution.total()",
    "patch a method": "with patch.object(solution.Store, 'load', return_value='abc'): assert solution.Store().size() == 3\n    with pytest.raises(OSError): solution.Store().size()",
    "patch a plain value": "with patch('solution.RATE', 10), patch('solution.fetch', return_value=5): assert solution.total() == 15\n    assert solution.RATE == 1",
    "assign": "solution.RATE = 5\n    solution.fetch = lambda: 2\n    assert solution.total() == 7 and solution.RATE == 5",
    "delete": "del solution.RATE\n    assert not hasattr(solution, 'RATE')\n    with pytest.raises(OSError): solution.total()",
    "input": "with patch('builtins.input', return_value='3'): assert solution.ask() == 4",
    "inputs": "with patch('builtins.input', side_effect=['3', '5']) as fake: assert (solution.ask(), solution.ask()) == (4, 6)\n    assert fake.call_count == 2 and fake.call_args.args == ('? ',)",
    "assign input": "builtins.input = lambda prompt='': '7'\n    assert solution.ask() == 8",
    "input ends": "with patch('builtins.input', return_value='3'): assert solution.ask() == 4\n    with pytest.raises(EOFError): solution.ask()",
    "stdin": "with patch('sys.stdin', io.StringIO('a\\nb\\n')): assert solution.lines() == ['a', 'b']",
    "input from stdin": "sys.stdin = io.StringIO('4\\n6\\n')\n    assert (solution.ask(), solution.ask()) == (5, 7)",
    "redirect": "b = io.StringIO()\n    with redirect_stdout(b): solution.hello()\n    solution.hello('nobody')\n    assert b.getvalue() == 'hello you\\n'",
    "redirect twice": "b = io.StringIO()\n    with redirect_stdout(b):\n        solution.hello('a'); print('between'); solution.hello('b')\n    assert b.getvalue() == 'hello a\\nbetween\\nhello b\\n'",
    "patch stdout": "with patch('sys.stdout', new_callable=io.StringIO) as b: solution.hello()\n    assert b.getvalue().strip() == 'hello you'",
    "swap stdout": "old, sys.stdout = sys.stdout, io.StringIO()\n    try:\n        solution.hello(); text = sys.stdout.getvalue()\n    finally: sys.stdout = old\n    assert text == 'hello you\\n'",
    "patch print": "with patch('builtins.print') as fake: solution.hello()\n    assert fake.call_args_list[0].args == ('hello', 'you')",
    "random": "with patch('random.randint', side_effect=[2, 3]): assert solution.dice() == 5",
    "random of the program": "with patch('solution.random.randint', return_value=4): assert solution.dice() == 8",
    "seed": "random.seed(5)\n    a = solution.draw()\n    random.seed(5)\n    assert solution.draw() == a != solution.draw()",
    "seed gives known numbers": "random.seed(5)\n    known = random.Random(5)\n    assert solution.draw() == [known.random() for _ in range(3)]",
    "time": "with patch('time.time', return_value=100.5): assert solution.stamp()[0] == 100.5",
    "sleep": "with patch('time.sleep') as fake: assert solution.nap()\n    fake.assert_called_once_with(0.001)",
    "environment": "with patch.dict('os.environ', {'APP_HOME': '/a'}): assert solution.home() == '/a'\n    assert solution.home() == 'none'",
    "a module's function": "with patch('json.dumps', return_value='x'): assert solution.dump([1]) == 'x'\n    assert solution.dump([1]) == '[1]'",
    "warnings of its own": "import warnings\n    with warnings.catch_warnings():\n        warnings.simplefilter('ignore')\n        assert solution.dump(1) == '1'",
}
IMPORTS = "import builtins, io, os, random, sys, time\nimport pytest\nfrom contextlib import redirect_stdout\nfrom unittest.mock import patch, MagicMock\nimport solution\n"


WRONG = "RATE = 2\nclass Store: size = load = lambda s: 0\n" + "".join(
    f"def {name}(*a, **k): return None\n"
    for name in ("fetch", "total", "twice", "ask", "lines", "hello", "dice", "draw", "stamp", "home", "dump", "nap")
)
LASTING = ("assign", "delete", "assign input", "input from stdin")
"""Tests that leave behind what they replace."""


@pytest.mark.parametrize("names", [HONEST.keys() - LASTING, *([name] for name in LASTING)])
def test_what_a_test_replaces_is_replaced_for_the_program(verifier: UnitTestVerifier, names: Collection[str]) -> None:
    functions = {f"test_{name.replace(' ', '_')}".replace("'", ""): HONEST[name] for name in sorted(names)}
    test = IMPORTS + "".join(f"def {name}():\n    {body}\n" for name, body in functions.items())
    verdict = judge(verifier, PROGRAM, test)
    assert verdict.score == 1, verdict.detail
    assert verdict.detail["total"] == len(names)
    wrong = judge(verifier, WRONG, test)
    assert (wrong.score, wrong.detail["total"]) == (0, len(names)), wrong.detail


FAKES = """
from unittest.mock import ANY, DEFAULT, MagicMock, mock_open, patch
import pytest, solution, unittest

class Session(dict):
    log = []
    def __enter__(self): return self
    def __exit__(self, kind, error, trace): self.log.append(kind is None); return kind is not None
class Database:
    rows = (1, 2)
    def __init__(self): self.session = Session(a=5)
    def __iter__(self): yield from self.rows
    def __len__(self): return 7
    def __contains__(self, key): return key == "a"
    def __getitem__(self, key): return key * 2

def test_fake():
    service = solution.Service(Database())
    assert service.get("a") == 5 and service.all() == [1, 2] and service.size() == 7 and service.has("a") and not service.has("b")
    assert service.item("x") == "xx" and Session.log == [True]

def test_fake_swallows():
    assert solution.Service(Database()).fail() == "swallowed" and Session.log[-1] is False

def test_mock():
    database = MagicMock()
    database.session.__enter__.return_value.get.return_value = 5
    database.__iter__.return_value = [1]
    database.__len__.return_value = 3
    database.__contains__.return_value = True
    database.__getitem__.side_effect = lambda key: key
    service = solution.Service(database)
    assert service.get("a") == 5 and service.all() == [1] and service.size() == 3 and service.has(9) and service.item(4) == 4

def test_open():
    with patch("builtins.open", mock_open(read_data="a\\nb\\n")) as fake:
        assert solution.read("p") == "a\\nb\\n" and solution.lines("p") == ["a", "b"]
        solution.write("q", "text")
    fake.assert_called_with("q", "w")
    fake().write.assert_called_once_with("text")
    with pytest.raises(OSError): solution.read("p")

def test_url():
    with patch("urllib.request.urlopen") as urlopen:
        urlopen.return_value.__enter__.return_value.read.return_value = b"page"
        assert solution.page("u") == "page"
    urlopen.assert_called_once_with("u")

@pytest.mark.parametrize("year", [1999, 2000])
@patch("solution.date")
@patch("solution.page", return_value="x")
def test_decorators(page, date, year):
    date.today.return_value.year = year
    assert solution.year() == (year, "x")

class TestIt:
    @patch("solution.RATE", 5)
    @patch("os.path.exists", return_value=True)
    def test_method(self, exists): assert solution.exists("/none") and solution.RATE == 5

    @patch("solution.os.path.exists", return_value=True)
    def test_through_the_program(self, exists): assert solution.exists("/none")

    def test_ended(self): assert not solution.exists("/none") and solution.RATE == 1

class Case(unittest.TestCase):
    def setUp(self):
        patcher = patch("solution.page", autospec=True, return_value="spec")
        patcher.start()
        self.addCleanup(patcher.stop)

    def test_started(self): self.assertEqual(solution.year()[1], "spec")
"""
SERVICE = """
import os.path, urllib.request
from datetime import date
RATE = 1
class Service:
    def __init__(self, db): self.db = db
    def get(self, key):
        with self.db.session as s: return s.get(key)
    def fail(self):
        with self.db.session: raise ValueError("x")
        return "swallowed"
    def all(self): return [row for row in self.db]
    def size(self): return len(self.db)
    def has(self, key): return key in self.db
    def item(self, key): return self.db[key]
def page(url="u"):
    with urllib.request.urlopen(url) as answer: return answer.read().decode()
def read(path):
    with open(path) as file: return file.read()
def lines(path):
    with open(path) as file: return [line.strip() for line in file]
def write(path, text):
    with open(path, "w") as file: file.write(text)
def year(): return date.today().year, page()
def exists(path): return os.path.exists(path)
"""


def test_fakes_and_mocks(verifier: UnitTestVerifier) -> None:
    verdict = judge(verifier, SERVICE, FAKES)
    assert (verdict.score, verdict.detail["total"]) == (1, 11), verdict.detail
    wrong = "RATE = 2\ndef page(*a): pass\nread = lines = write = page\ndef year(): return 1, 2\ndef exists(p): return p\nclass date: today = lambda: 0\nclass Service:\n    def __init__(self, db): pass\n    def __getattr__(self, name): return lambda *a: None\nimport os"
    assert judge(verifier, wrong, FAKES).score == pytest.approx(2 / 11), (
        "nothing but to find the path that it says exists"
    )


MONKEYPATCH = """
import os, time
import pytest, solution

@pytest.fixture
def offline(monkeypatch):
    monkeypatch.setattr(solution, "fetch", lambda url="": 4)
    return monkeypatch

def test_attributes(offline):
    offline.setattr("solution.RATE", 10)
    assert solution.total() == 14
    offline.undo()
    assert solution.RATE == 1

def test_restored():
    with pytest.raises(OSError): solution.total()

def test_methods(monkeypatch):
    monkeypatch.setattr(solution.Store, "load", lambda self: "abc")
    assert solution.Store().size() == 3

def test_restored_methods():
    with pytest.raises(OSError): solution.Store().size()

def test_builtins(monkeypatch):
    answers = iter(["1", "2"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(answers))
    monkeypatch.setattr(time, "time", lambda: 5.5)
    assert (solution.ask(), solution.ask()) == (2, 3) and solution.stamp()[0] == 5.5

def test_environment(monkeypatch):
    monkeypatch.setenv("APP_HOME", "/a")
    monkeypatch.setenv("APP_HOME", "/b", prepend=":")
    assert solution.home() == "/b:/a"
    monkeypatch.delenv("APP_HOME")
    assert solution.home() == "none"
    with monkeypatch.context() as inner:
        inner.setenv("APP_HOME", "/c")
        assert solution.home() == "/c"
    assert solution.home() == "none"

def test_deleted(monkeypatch):
    monkeypatch.delattr(solution, "fetch")
    monkeypatch.delattr("solution.nothing", raising=False)
    with pytest.raises(NameError): solution.total()
    with pytest.raises(AttributeError): monkeypatch.setattr(solution, "nothing", 1)

def test_items(monkeypatch):
    table = {"a": 1}
    monkeypatch.setitem(table, "b", 2)
    monkeypatch.delitem(table, "a")
    assert solution.dump(table) == '{"b": 2}'
    monkeypatch.undo()
    assert table == {"a": 1}
"""


def test_monkeypatch(verifier: UnitTestVerifier) -> None:
    verdict = judge(verifier, PROGRAM, MONKEYPATCH)
    assert (verdict.score, verdict.detail["total"]) == (1, 8), verdict.detail
    assert judge(verifier, WRONG, MONKEYPATCH).score == 0
    refused = judge(verifier, PROGRAM, "import solution\ndef test_it(monkeypatch): monkeypatch.chdir('/')")
    assert refused.detail["reason"] == "monkeypatch.chdir is not supported"


CAPSYS = """
import pytest
from solution import hello

@pytest.fixture
def quiet(capsys):
    hello("fixture")
    capsys.readouterr()
    return capsys

def test_both(capsys):
    hello()
    print("test")
    captured = capsys.readouterr()
    assert captured.out == "hello you\\ntest\\n" and captured.err == "oops\\n"
    assert capsys.readouterr() == ("", "")

def test_again(quiet):
    hello("two"); hello("three")
    out, err = quiet.readouterr()
    assert out == "hello two\\nhello three\\n"
    with quiet.disabled(): hello("nobody")
    assert quiet.readouterr().out == ""
"""


def test_capsys(verifier: UnitTestVerifier) -> None:
    assert judge(verifier, PROGRAM, CAPSYS).score == 1
    assert judge(verifier, "def hello(*a): print('hallo')", CAPSYS).score == 0


def test_output_and_seeds_in_checks_and_asserts(verifier: UnitTestVerifier) -> None:
    check = "import io, sys\ndef check(c):\n    old = sys.stdout\n    sys.stdout = b = io.StringIO()\n    c('x')\n    sys.stdout = old\n    assert b.getvalue() == 'hello x\\n'"
    seeded = "import random\ndef check(c):\n    random.seed(3)\n    a = c()\n    random.seed(3)\n    assert c() == a"
    asserts = AssertTests(("assert (random.seed(1), draw())[1] == (random.seed(1), draw())[1]",), setup="import random")
    for tests in (CheckTests("hello", check), CheckTests("draw", seeded), asserts):
        assert verifier(PROGRAM, Problem("p", "", tests)).score == 1
        assert (
            verifier(WRONG.replace("None", "time.perf_counter()") + "import time", Problem("p", "", tests)).score == 0
        )


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        (
            "with redirect_stdout(io.TextIOWrapper(io.BytesIO())): solution.dump(1)",
            "replaces sys.stdout by a TextIOWrapper",
        ),
        ("with unittest.TestCase().assertWarns(UserWarning): solution.dump(1)", "assertWarns is not supported"),
        ("with unittest.TestCase().assertLogs(): solution.dump(1)", "assertLogs is not supported"),
        ("with warnings.catch_warnings(record=True): solution.dump(1)", "catch_warnings(record=True) is not supported"),
    ],
)
def test_what_would_not_reach_the_program_is_refused(verifier: UnitTestVerifier, test: str, reason: str) -> None:
    source = f"import unittest, warnings\nfrom unittest.mock import mock_open\n{IMPORTS}class Case(unittest.TestCase):\n    def test_it(self):\n        {test}\n"
    verdict = judge(verifier, PROGRAM, source)
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.VERIFIER_ERROR, "unsupported"), verdict.detail
    assert reason in str(verdict.detail["reason"])


LIARS = [
    "import sys\nclass Out:\n    def getvalue(self): return 'hello you\\n'\n    def write(self, text): pass\n    __eq__ = lambda *a: True\ndef hello(): sys.stdout = Out()",
    "import io, sys\nclass Out(io.StringIO):\n    def getvalue(self): return 'hello you\\n'\ndef hello(): sys.stdout = Out()",
    "import sys\ndef hello(): sys.stdout = None",
    "import sys\ndef hello(): sys.stdout.close()",
    "import sys\ndef hello(): del sys.stdout",
    "import sys\ndef hello(): sys.modules['sys'] = 5",
    "import sys\ndef hello(): sys.modules['builtins'] = sys.modules['io'] = sys.modules['sys'] = type('M', (), {'__getattr__': lambda *a: (lambda *a: True), '__eq__': lambda *a: True})()",
    "import sys\ndef hello(): sys.stdout.write('hello you\\n' * 9)",
    "import os\ndef hello(): os.write(1, b'hello you\\n'); os._exit(0)",
    "import io\nio.StringIO = None\ndef hello(): pass",
]


WRITING = (
    IMPORTS
    + """
def test_redirect():
    b = io.StringIO()
    with redirect_stdout(b): solution.hello()
    assert b.getvalue() == 'hello you\\n'
def test_print():
    with patch('builtins.print') as fake: solution.hello()
    assert fake.call_args_list[0].args == ('hello', 'you')
def test_stdout():
    with patch('sys.stdout', new_callable=io.StringIO) as b: solution.hello()
    assert b.getvalue() == 'hello you\\n'
"""
)


@pytest.mark.parametrize("program", LIARS)
def test_a_liar_writes_nothing_it_did_not_write(verifier: UnitTestVerifier, program: str) -> None:
    verdict = judge(verifier, program, WRITING)
    assert (verdict.outcome, verdict.score) == (Outcome.SCORED, 0), verdict.detail


def test_who_writes_honestly_passes_them(verifier: UnitTestVerifier) -> None:
    assert judge(verifier, PROGRAM, WRITING).score == 1
