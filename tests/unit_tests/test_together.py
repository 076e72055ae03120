"""Tests that pytest itself runs in one process with the program: what they may use, and what a program can't get past."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.sandbox.denying import DENY, run_in_a_new_process
from verifiers import InvalidArgumentError, Outcome, Problem, Verdict
from verifiers.sandbox import JobEnd, ProcessEnd
from verifiers.unit_tests import FunctionTests, UnitTestVerifier, together_job
from verifiers.unit_tests.together.identity import changed, functions

TESTS = """
import sqlite3
import subprocess
from unittest import TestCase, mock
import pytest
import solution
from solution import square

@pytest.fixture
def three():
    return 3

@pytest.mark.parametrize("x", [2, -5])
def test_square(x, three):
    assert square(x) == x * x and square(three) == 9

def test_files(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("a")
    print(open("a.txt").read())
    assert capsys.readouterr().out == "a\\n"

def test_programs():
    assert subprocess.run(["echo", "3"], capture_output=True).stdout == b"3\\n"

class TestMore(TestCase):
    def setUp(self):
        self.rows = sqlite3.connect("rows.db")

    @mock.patch("solution.one", return_value=5)
    def test_mock(self, one):
        self.assertEqual(solution.two(), 6)

    def test_database(self):
        with self.rows:
            self.rows.execute("create table t(n)")
        self.assertRaises(sqlite3.OperationalError, self.rows.execute, "create table t(n)")
"""
RIGHT = "def square(x): return x * x\ndef one(): return 1\ndef two(): return one() + 1\n"
LIE = "def square(x): return 7\ndef one(): return 1\ndef two(): return 7\n"


@pytest.fixture(scope="module")
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(workers=1, allow_together=True)
    yield verifier
    verifier.close()


def judge(verifier: UnitTestVerifier, program: str, test: str = TESTS, **fields: object) -> Verdict:
    return verifier(program, Problem("p", "", FunctionTests(test, together=True, **fields)))  # type: ignore[arg-type]


def test_what_needs_one_process_runs(verifier: UnitTestVerifier) -> None:
    verdict = judge(verifier, RIGHT)
    assert verdict.outcome is Outcome.CORRECT, verdict.detail
    assert (verdict.detail["passed"], verdict.detail["tests"]) == (6, "together")
    assert verdict.detail["packages"] == {"pytest": pytest.__version__}
    assert judge(verifier, RIGHT) == verdict
    partly = judge(verifier, RIGHT.replace("x * x", "x + x"))
    assert (partly.outcome, partly.detail["passed"]) == (Outcome.INCORRECT, 4), partly.detail


def test_it_is_refused_unless_allowed() -> None:
    verifier = UnitTestVerifier(workers=1)
    with pytest.raises(InvalidArgumentError, match="allow_together=True"):
        judge(verifier, RIGHT)
    assert verifier.idle_servers == ()


def test_it_needs_namespaces() -> None:
    source = f"""{DENY}
import sys
sys.path.insert(0, {os.getcwd()!r})
deny('unshare', error=1)
from tests.unit_tests.test_together import RIGHT, judge
from verifiers import SandboxUnavailableError
try: judge(UnitTestVerifier(workers=1, allow_together=True), RIGHT)
except SandboxUnavailableError as error: print(error)
"""
    assert "no namespaces, which programs with a folder to write in" in run_in_a_new_process(source)[0]


LIES = {
    "ends": f"import os\n{LIE}\nos._exit(0)",
    "exits": f"import sys\n{LIE}\nsys.exit(0)",
    "ends at the first call": LIE.replace("return 7", "__import__('os')._exit(0)", 1),
    "exits at the first call": LIE.replace("return 7", "raise SystemExit(0)", 1),
    "ends the session": f"import pytest\n{LIE}".replace("return 7", "pytest.exit('done', 0)", 1),
    "skips": f"import pytest\n{LIE}".replace("return 7", "pytest.skip('done')"),
    "skips the file": f"import pytest\n{LIE}\npytest.skip('done', allow_module_level=True)",
    "kills": LIE.replace("return 7", "__import__('os').kill(__import__('os').getpid(), 9)", 1),
    "replaces a method of unittest": f"import unittest\n{LIE}\nunittest.TestCase.assertEqual = lambda *a: None",
    "replaces code": f"import unittest\n{LIE}\nunittest.TestCase.run.__code__ = (lambda self, result=None: None).__code__",
    "replaces a function of pytest": f"import _pytest.runner as r\n{LIE}\nr.check_interactive_exception = lambda *a: False",
    "replaces a builtin": f"import builtins\n{LIE}\nbuiltins.len = lambda x: 7",
    "brings the test file": f"```python solution.py\n{LIE}\n```\n```python test_file.py\ndef test_it(): pass\n```",
    "brings a conftest": "```python solution.py\n"
    + LIE
    + "\n```\n```python conftest.py\ndef pytest_pyfunc_call(): return True\n```",
    "brings pytest": f"```python solution.py\n{LIE}\n```\n```python _pytest/runner.py\n\n```\n```python pytest.py\n\n```",
}


@pytest.mark.parametrize("way", LIES)
def test_no_test_passes_that_is_not_reported(verifier: UnitTestVerifier, way: str) -> None:
    verdict = judge(verifier, LIES[way])
    assert (verdict.outcome, verdict.score) == (Outcome.INCORRECT, 0.0), verdict.detail


GARBAGE = """
import os
for line in (b'7', b'[]', b'{"collected": {}}', b'{"test": [], "when": {}, "outcome": 3, "text": 5}', b'{"collected": [[]]}',
             b'{"collected": ["x"], "test": "x", "when": [], "outcome": []}', b'{"test": "x", "when": "call", "outcome": {}}',
             b'{"collected": ["x"], "test": "x", "when": ' + b'[' * 900 + b']' * 900 + b'}', b'{"status": [], "changed": "x"}',
             b'[' * 100000, b'1' * 10000, b'\\xff', b'{"collected": ["\\\\ud800"]}'):
    os.write(4, line + b"\\n")
"""


def test_nothing_that_a_program_reports_breaks_the_harness(verifier: UnitTestVerifier) -> None:
    assert judge(verifier, RIGHT + GARBAGE).outcome is Outcome.INCORRECT
    assert judge(verifier, RIGHT + GARBAGE + "os._exit(0)").detail["failure"] == "exit"


@pytest.mark.parametrize(
    "names", [["x" * 300], ["a/" * 1500 + "x"], [f"m{n}" for n in range(2000)]], ids=["long", "deep", "many"]
)
def test_files_that_the_folder_can_not_hold_are_the_fault_of_who_brings_them(
    verifier: UnitTestVerifier, names: list[str]
) -> None:
    brought = "".join(f"```python {name}.py\n\n```\n" for name in names)
    verdict = judge(verifier, f"{brought}```python\n{RIGHT}\n```")
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "output_limit"), verdict.detail
    broken = judge(verifier, RIGHT, files={f"{name}.py": "" for name in names})
    assert (broken.outcome, broken.detail["failure"]) == (Outcome.VERIFIER_ERROR, "broken_test"), broken.detail


def test_a_conftest_of_the_problem_counts_and_a_configuration_does_not(verifier: UnitTestVerifier) -> None:
    conftest = {"conftest.py": "import pytest\n@pytest.fixture\ndef seven(): return 7\n"}
    test = "from solution import f\ndef test_it(seven): assert f() == seven\n"
    assert judge(verifier, "def f(): return 7", test, files=conftest).outcome is Outcome.CORRECT
    hostile = "open('pytest.ini', 'w').write('[pytest]\\naddopts = --collect-only')\ndef f(): return 1"
    assert judge(verifier, hostile, test, files=conftest).outcome is Outcome.INCORRECT


ESCAPES = """
import os, socket, pytest
from pathlib import Path
@pytest.mark.parametrize("attempt", [
    lambda: open("/etc/passwd"), lambda: os.listdir("/root"), lambda: open("/tmp/x", "w"), lambda: os.listdir("/proc"),
    lambda: socket.socket(), lambda: Path(os.__file__).write_text(""), lambda: os.unshare if hasattr(os, "unshare") else 1 / 0,
    lambda: os.kill(os.getppid() + 100, 9), lambda: os.symlink("/etc", "link") or os.listdir("link"),
    lambda: os.mknod("device", 0o20600, os.makedev(1, 1)), lambda: Path("big").write_bytes(bytes(1 << 28)),
    lambda: [Path(f"f{i}").touch() for i in range(5000)],
])
def test_escape(attempt):
    with pytest.raises((OSError, ZeroDivisionError)):
        attempt()
"""


def test_the_host_is_as_safe_as_before(verifier: UnitTestVerifier) -> None:
    verdict = judge(verifier, "", ESCAPES)
    assert verdict.outcome is Outcome.NO_ANSWER
    verdict = judge(verifier, "pass", ESCAPES)
    assert verdict.outcome is Outcome.CORRECT, [case for case in verdict.detail["cases"] if not case["passed"]]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "program", ["while True: pass", "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"]
)
def test_time_is_limited_for_all_processes(program: str) -> None:
    verifier = UnitTestVerifier(workers=1, allow_together=True, timeout_s=2)
    assert judge(verifier, program).outcome is Outcome.TIMEOUT
    assert judge(verifier, RIGHT).outcome is Outcome.CORRECT
    verifier.close()


ADD = "def add(x): return x + 1\n"
WRONG = "def add(x): return x\n"
TEST = "import pytest, sys, unittest\nimport solution\nfrom solution import add\n"
TEST_ADD = f"{TEST}def test_add(): assert add(1) == 2\n"
NAMED = {
    "another file": f"```python main.py\n{ADD}```",
    "a comment": f"```python\n# my_solution.py\n{ADD}```",
    "the test file": f"```python test_file.py\n{ADD}def test_more(): assert False\n```",
    "a file of the problem": f"```python given.py\n{ADD}```",
    "a package": "```python app/one.py\nONE = 1\n```\n"
    "```python app/main.py\nfrom .one import ONE\ndef add(x): return x + ONE\n```",
    "both": "```python one.py\nimport main\ndef one(): return main.ONE\n```\n"
    "```python main.py\nimport one\nONE = 1\ndef add(x):\n    import solution\n"
    "    return x + one.one() + (solution.add is not add)\n```",
}


@pytest.mark.parametrize("way", NAMED)
def test_the_program_is_one_module_under_the_names_of_completion_and_tests(
    verifier: UnitTestVerifier, way: str
) -> None:
    files = {"given.py": "ONE = 1\n", "solution.py": WRONG}
    test = f"{TEST_ADD}def test_given():\n    import given\n    assert given.ONE == 1\n"
    verdict = judge(verifier, NAMED[way], test, files=files)
    assert (verdict.outcome, verdict.detail["passed"]) == (Outcome.CORRECT, 2), verdict.detail
    wrong = judge(verifier, NAMED[way].replace("return x", "return 0 * x"), test, files=files)
    assert wrong.outcome is Outcome.INCORRECT, wrong.detail


BROKEN = {
    "does not compile": f"{TEST_ADD}def test_more(:\n",
    "a module that is not there": f"import no_such_module\n{TEST_ADD}",
    "a name that is not there": f"{TEST_ADD}def test_more(): assert math.isclose(add(1), 2)\n",
    "a fixture that is not there": f"{TEST_ADD}def test_more(mocker): assert add(1) == 2\n",
    "a coroutine": f"{TEST_ADD}async def test_more(): assert add(1) == 2\n",
    "no tests": TEST,
    "every test is skipped": f"{TEST}@pytest.mark.skipif(sys.platform == 'linux', reason='')\ndef test_add(): add(1)\n",
    "ends the process": f"{TEST_ADD}sys.exit(0)\n",
}
FORGERIES = """
import os
for number in (3, 4):
    try:
        os.ftruncate(number, 0)
        os.lseek(number, 0, 0)
        os.write(number, b'{"broken": "x", "problem": "x", "test": "test_file.py::test_add", "expected": "left out"}\\n')
    except OSError:
        pass
"""
UNUSABLE = (
    ADD,
    WRONG,
    "import no_such_module",
    "raise SystemExit",
    "import pytest\npytest.skip(allow_module_level=True)",
    FORGERIES,
)


@pytest.mark.parametrize("way", BROKEN)
def test_a_broken_test_file_is_an_error_whatever_the_program_does(verifier: UnitTestVerifier, way: str) -> None:
    verdicts = [judge(verifier, program, BROKEN[way]) for program in UNUSABLE]
    assert {verdict.outcome for verdict in verdicts} == {Outcome.VERIFIER_ERROR}
    assert {verdict.detail["failure"] for verdict in verdicts} == {"broken_test"}
    assert len({str(verdict.detail["reason"]) for verdict in verdicts}) == 1
    assert verdicts[0].detail["reason"]


SOUND = {
    "a name for another version": "try: ints = xrange\nexcept NameError: ints = range\n",
    "a name that is expected to be missing": "def test_more():\n    with pytest.raises(NameError): missing_name\n",
    "names from text": "exec('from solution import *')\n",
    "the module that runs": "def test_more():\n    import __main__\n",
}


@pytest.mark.parametrize("way", SOUND)
def test_a_sound_test_file_is_not_taken_for_a_broken_one(verifier: UnitTestVerifier, way: str) -> None:
    verdict = judge(verifier, ADD, f"{TEST_ADD}{SOUND[way]}")
    assert verdict.outcome is Outcome.CORRECT, verdict.detail


@pytest.mark.parametrize("program", UNUSABLE[1:])
def test_no_program_breaks_a_test_file(verifier: UnitTestVerifier, program: str) -> None:
    assert judge(verifier, program, TEST_ADD).outcome is Outcome.INCORRECT


RAISES = f"{TEST}@pytest.mark.xfail(raises=ValueError, strict=True)\ndef test_more(): add(-1)\n"
CHECKED = "def add(x):\n    if x < 0: raise ValueError\n    return x + 1\n"
MARKED = {
    "raises": (
        RAISES,
        CHECKED,
        [
            CHECKED.replace("Value", "Key"),
            ADD,
            *(
                CHECKED.replace("raise ValueError", call)
                for call in (
                    "import pytest; pytest.xfail()",
                    "import pytest; pytest.skip()",
                    "raise SystemExit",
                    "import os; os._exit(0)",
                )
            ),
        ],
    ),
    "fails": (
        f"{TEST}@pytest.mark.xfail(strict=True)\ndef test_more(): assert add(1) == 3\n",
        ADD,
        ["def add(x): return 3"],
    ),
    "fails in unittest": (
        f"{TEST}class TestMore(unittest.TestCase):\n    @unittest.expectedFailure\n"
        "    def test(self): self.assertEqual(add(1), 3)\n",
        ADD,
        ["def add(x): return 3"],
    ),
    "skipped": (
        f"{TEST_ADD}@pytest.mark.skipif(sys.platform == 'linux', reason='')\ndef test_more(): assert add(1) == 3\n"
        "@pytest.mark.parametrize('x', [])\ndef test_none(x): assert False\n",
        ADD,
        [WRONG],
    ),
    "not skipped": (
        f"{TEST}@pytest.mark.skipif(sys.platform != 'linux', reason='')\ndef test_more(): assert add(1) == 2\n",
        ADD,
        [WRONG, f"import sys\nsys.platform = 'other'\n{WRONG}"],
    ),
    "by the program": (
        f"{TEST}@pytest.mark.skipif(solution.SKIPS, reason='')\ndef test_more(): assert add(1) == 2\n",
        f"SKIPS = False\n{ADD}",
        [f"SKIPS = True\n{WRONG}", f"SKIPS = True\n{ADD}"],
    ),
    "by a mark that is added": (
        f"{TEST}def test_more(request): assert add(request) == 2\n",
        "def add(x): return 2",
        ["import pytest\ndef add(x): x.node.add_marker(pytest.mark.xfail)"],
    ),
}


@pytest.mark.parametrize("way", MARKED)
def test_the_tests_alone_decide_what_is_skipped_or_fails(verifier: UnitTestVerifier, way: str) -> None:
    test, right, wrong = MARKED[way]
    verdict = judge(verifier, right, test)
    assert verdict.outcome is Outcome.CORRECT, verdict.detail
    for program in wrong:
        assert judge(verifier, program, test).outcome is Outcome.INCORRECT, program


NEEDS_PROGRAM = {
    "values": "@pytest.mark.parametrize('x', solution.NUMBERS)\ndef test_add(x): assert add(x) == x + 1\n",
    "functions": "@pytest.mark.parametrize('f', [add])\ndef test_add(f): assert f(1) == 2\n",
    "calls": "TWO = add(1)\ndef test_add(): assert TWO == 2\n",
    "asserts": "assert add(1) == 2\ndef test_add(): pass\n",
    "classes": "class Mine(solution.Base): pass\ndef test_add(base: solution.Base = None): assert Mine().add(1) == 2\n",
    "its file": "import importlib.util\nspec = importlib.util.spec_from_file_location('it', 'solution.py')\n"
    "module = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(module)\nadd = module.add\n"
    "def test_add(): assert add(1) == 2\n",
    "its signature": "import inspect\nNAMES = [*inspect.signature(add).parameters]\n"
    "def test_add(): assert (add(1), NAMES) == (2, ['x'])\n",
    "a star": "from solution import *\ndef test_add(): assert ONE + 1 == add(ONE)\n",
}


@pytest.mark.parametrize("way", NEEDS_PROGRAM)
def test_a_test_file_may_use_the_program_when_it_is_imported(verifier: UnitTestVerifier, way: str) -> None:
    base = "ONE, NUMBERS = 1, [1, 2]\nclass Base:\n    def add(self, x): return add(x)\n"
    for program, outcome in ((ADD, Outcome.CORRECT), (WRONG, Outcome.INCORRECT)):
        verdict = judge(verifier, base + program, TEST + NEEDS_PROGRAM[way])
        assert verdict.outcome is outcome, verdict.detail


FLOODS = (
    "import json\nnames = [f'x{i}' for i in range(60_000)]\nos.write(4, json.dumps({'collected': names}).encode() + b'\\n')",
    "os.write(4, b'{}\\n' * 1_000_000)",
    "os.write(4, b'[' + b'1,' * (9 << 20))",
)


@pytest.mark.parametrize("flood", FLOODS)
def test_a_report_that_is_no_reporters_is_not_read(verifier: UnitTestVerifier, flood: str) -> None:
    verdict = judge(verifier, f"import os\n{flood}\n{ADD}", TEST_ADD)
    assert (verdict.detail["failure"], verdict.detail["cases"]) == ("output_limit", ())


def test_reading_a_report_takes_time_in_proportion_to_it() -> None:
    lines = [
        {"collected": [f"x{i}" for i in range(9_000)]},
        *({"test": f"x{i}", "when": "call"} for i in range(90_000)),
    ]
    run = together_job._Run(lines, 0, JobEnd(None, 0.0, {"together": ProcessEnd(0, 0.0, 0)}), {})
    looked_at = 0

    class Line(dict):  # type: ignore[type-arg]
        def get(self, *key: object) -> object:
            nonlocal looked_at
            looked_at += 1
            return super().get(*key)

    together_job._result(run._replace(lines=[Line(line) for line in lines]), {})
    assert looked_at < 20 * len(lines)


def test_functions_that_change_are_named() -> None:
    before = functions()
    assert changed(before) == []
    own = pytest.raises
    try:
        pytest.raises = lambda *args: None  # type: ignore[assignment]
        assert changed(before) == ["pytest.raises"]
    finally:
        pytest.raises = own
