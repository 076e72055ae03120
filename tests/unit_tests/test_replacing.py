"""What tests replace, capture and seed has its effect on the program, and gives it no say in the verdict."""

from __future__ import annotations

import textwrap
from collections.abc import Collection

import pytest

from tests.sandbox import Case, cases, judge, load
from verifiers import Outcome
from verifiers.unit_tests import AssertTests, CheckTests, FunctionTests, UnitTestVerifier

DATA = load("unit_tests/replacing")
pytestmark = pytest.mark.sandbox(partial_credit=True)


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
IMPORTS = """
import builtins, io, os, random, sys, time
import pytest
from contextlib import redirect_stdout
from unittest.mock import patch, MagicMock
import solution
"""


WRONG = "RATE = 2\nclass Store: size = load = lambda s: 0\n" + "".join(
    f"def {name}(*a, **k): return None\n"
    for name in ("fetch", "total", "twice", "ask", "lines", "hello", "dice", "draw", "stamp", "home", "dump", "nap")
)
LASTING = ("assign", "delete", "assign input", "input from stdin")
"""Tests that leave behind what they replace."""


@pytest.mark.parametrize("names", [DATA["replaced"].keys() - LASTING, *([name] for name in LASTING)])
def test_what_a_test_replaces_is_replaced_for_the_program(verifier: UnitTestVerifier, names: Collection[str]) -> None:
    test = IMPORTS
    for name in sorted(names):
        function = f"test_{name.replace(' ', '_')}".replace("'", "")
        test += f"def {function}():\n{textwrap.indent(DATA['replaced'][name], '    ')}\n"
    verdict = judge(verifier, PROGRAM, FunctionTests(test))
    assert verdict.score == 1, verdict.detail
    assert verdict.detail["total"] == len(names)
    wrong = judge(verifier, WRONG, FunctionTests(test))
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
    assert service.get("a") == 5 and service.all() == [1, 2] and service.size() == 7
    assert service.has("a") and not service.has("b")
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
    verdict = judge(verifier, SERVICE, FunctionTests(FAKES))
    assert (verdict.score, verdict.detail["total"]) == (1, 11), verdict.detail
    wrong = """
RATE = 2
def page(*a): pass
read = lines = write = page
def year(): return 1, 2
def exists(p): return p
class date: today = lambda: 0
class Service:
    def __init__(self, db): pass
    def __getattr__(self, name): return lambda *a: None
import os
"""
    assert judge(verifier, wrong, FunctionTests(FAKES)).score == pytest.approx(2 / 11), (
        "nothing but to find the path that it says exists"
    )


RESTORED = """
import os, time
from unittest.mock import patch
import pytest, solution

@pytest.fixture
def offline():
    with patch.object(solution, "fetch", lambda url="": 4), patch("solution.RATE", 10):
        yield

def test_attributes(offline):
    assert solution.total() == 14

def test_restored():
    assert solution.RATE == 1
    with pytest.raises(OSError): solution.total()

def test_methods():
    with patch.object(solution.Store, "load", lambda self: "abc"):
        assert solution.Store().size() == 3
    with pytest.raises(OSError): solution.Store().size()

def test_builtins():
    answers = iter(["1", "2"])
    with patch("builtins.input", lambda prompt: next(answers)), patch.object(time, "time", lambda: 5.5):
        assert (solution.ask(), solution.ask()) == (2, 3) and solution.stamp()[0] == 5.5

def test_environment():
    with patch.dict(os.environ, {"APP_HOME": "/a"}):
        assert solution.home() == "/a"
        os.environ["APP_HOME"] = "/b"
        assert solution.home() == "/b"
        del os.environ["APP_HOME"]
        assert solution.home() == "none"
    assert solution.home() == "none"

def test_deleted():
    fetch = solution.fetch
    del solution.fetch
    with pytest.raises(NameError): solution.total()
    solution.fetch = fetch
    with pytest.raises(AttributeError): patch.object(solution, "nothing", 1).start()

def test_items():
    table = {"a": 1}
    with patch.dict(table, {"b": 2}, clear=True):
        assert solution.dump(table) == '{"b": 2}'
    assert table == {"a": 1}
"""


def test_what_is_replaced_is_restored(verifier: UnitTestVerifier) -> None:
    verdict = judge(verifier, PROGRAM, FunctionTests(RESTORED))
    assert (verdict.score, verdict.detail["total"]) == (1, 7), verdict.detail
    assert judge(verifier, WRONG, FunctionTests(RESTORED)).score == 0


def test_monkeypatch_is_not_supported(verifier: UnitTestVerifier) -> None:
    test = "import solution\ndef test_it(monkeypatch): monkeypatch.setattr(solution, 'RATE', 2)"
    verdict = judge(verifier, PROGRAM, FunctionTests(test))
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.VERIFIER_ERROR, "unsupported"), verdict.detail
    assert verdict.detail["reason"] == "the fixture 'monkeypatch' is neither defined in the test file nor supported"


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
    assert judge(verifier, PROGRAM, FunctionTests(CAPSYS)).score == 1
    assert judge(verifier, "def hello(*a): print('hallo')", FunctionTests(CAPSYS)).score == 0


def test_output_and_seeds_in_checks_and_asserts(verifier: UnitTestVerifier) -> None:
    check = (
        "import io, sys\n"
        "def check(c):\n"
        "    old = sys.stdout\n"
        "    sys.stdout = b = io.StringIO()\n"
        "    c('x')\n"
        "    sys.stdout = old\n"
        "    assert b.getvalue() == 'hello x\\n'"
    )
    seeded = """
import random
def check(c):
    random.seed(3)
    a = c()
    random.seed(3)
    assert c() == a
"""
    asserts = AssertTests(("assert (random.seed(1), draw())[1] == (random.seed(1), draw())[1]",), setup="import random")
    for tests in (CheckTests("hello", check), CheckTests("draw", seeded), asserts):
        assert judge(verifier, PROGRAM, tests).score == 1
        assert judge(verifier, WRONG.replace("None", "time.perf_counter()") + "import time", tests).score == 0


@pytest.mark.parametrize("case", cases(DATA["refused"]))
def test_what_would_not_reach_the_program_is_refused(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier, PROGRAM)


@pytest.mark.parametrize("case", cases(DATA["liars"]))
def test_a_liar_writes_nothing_it_did_not_write(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)


def test_who_writes_honestly_passes_them(verifier: UnitTestVerifier) -> None:
    tests = FunctionTests(DATA["liars"]["test_file"])
    assert judge(verifier, PROGRAM, tests).score == 1
