"""The layer for test code that may do anything lies above the tester: only what starts processes names it."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from verifiers.unit_tests import jobs

from verifiers import Outcome, Problem, Verdict
from verifiers.sandbox import worker
from verifiers.unit_tests import (
    CallCase,
    CallTests,
    CheckTests,
    FunctionTests,
    StdioCase,
    StdioTests,
    UnitTestVerifier,
)
from verifiers.unit_tests.tests import Tests

HOME = Path(jobs.__file__).parent.parent
LAYER = HOME / "sandbox" / "tester" / "test_files"
NAMED_IN = {HOME / "sandbox" / "roles.py"}
CORE = sorted(path for path in HOME.rglob("*.py") if LAYER not in path.parents)

PACKAGE = "verifiers.unit_tests.sandbox"
SQUARE = "def square(x):\n    return x * x\n"
TEST_FILE = FunctionTests("from solution import square\ndef test_it(): assert square(3) == 9\n")


def judge(verifier: UnitTestVerifier, program: str, tests: Tests) -> Verdict:
    return verifier(f"```python\n{program}\n```", Problem("problem", "", tests))


def run_in_new_interpreter(script: str) -> str:
    folders = {**worker.OWN_FOLDER, PACKAGE: str(HOME / "sandbox")}
    script = f"import sys\nexec(open(sys.argv.pop(1)).read())\n{script}"
    command = [sys.executable, "-s", "-S", "-P", "-c", script, worker.BOOT_FILE, json.dumps(folders)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(timeout_s=2, workers=1)
    yield verifier
    verifier.close()


def test_every_module_of_the_core_is_imported_without_the_layer() -> None:
    modules = [path.relative_to(HOME).with_suffix("") for path in CORE if HOME / "sandbox" in path.parents]
    for other in ("protocol/arrays", "protocol/frames", "roles"):
        modules.remove(Path("sandbox", other))
    names = [".".join(("verifiers.unit_tests", *module.parts)).removesuffix(".__init__") for module in modules]
    assert f"{PACKAGE}.tester.tester" in names
    script = f"import importlib\nfor name in {names}: importlib.import_module(name)\n"
    script += "print('test_files' in ' '.join(sys.modules))"
    assert run_in_new_interpreter(script) == "False\n"


def reached(path: Path) -> Iterator[str]:
    """Parts of the names of what a file imports, and texts that could be such a name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from [*(node.module or "").split("."), *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            yield from [part for alias in node.names for part in alias.name.split(".")]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"\btest_files\b", node.value)


def test_only_what_starts_processes_names_the_layer() -> None:
    names = {LAYER.name, *(path.stem for path in LAYER.glob("*.py") if path.stem != "__init__")}
    assert len(names) > 7
    assert {path for path in CORE if not names.isdisjoint(reached(path))} == NAMED_IN


def test_the_core_names_no_class_of_the_layer() -> None:
    trees = [ast.parse(path.read_text()) for path in LAYER.glob("*.py")]
    classes = {node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)}
    assert {"OwnProcessTester", "Mirror", "ProgramFinder"} <= classes
    for path in {*CORE} - NAMED_IN:
        nodes = list(ast.walk(ast.parse(path.read_text())))
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        assert not names & classes, path


def test_programs_find_no_part_of_the_runtime_after_a_test_file(verifier: UnitTestVerifier) -> None:
    assert judge(verifier, SQUARE, TEST_FILE).outcome is Outcome.CORRECT
    parts = "('sandbox', 'verifiers', 'test_files', 'pytest')"
    program = f"import sys\nprint([name for name in sys.modules if any(part in name for part in {parts})])"
    assert judge(verifier, program, StdioTests((StdioCase("", "[]"),))).outcome is Outcome.CORRECT


@pytest.mark.parametrize(
    "line", ["import pytest", "from pytest import approx", "pytest = __import__('pytest')"], ids=lambda line: line[:11]
)
def test_a_check_that_uses_pytest_gets_it(verifier: UnitTestVerifier, line: str) -> None:
    tests = CheckTests(
        "square", f"{line}\ndef check(f):\n    import pytest\n    assert f(0.1) == pytest.approx(0.01)\n"
    )
    assert judge(verifier, SQUARE, tests).outcome is Outcome.CORRECT
    assert judge(verifier, "def square(x): return x", tests).outcome is Outcome.INCORRECT


def test_files_of_one_problem_are_not_there_for_the_tests_of_the_next(verifier: UnitTestVerifier) -> None:
    files = {"helper.py": "NINE = 9\n"}
    calls = CallTests("square", (CallCase((3,), 9),), files=files)
    check = "import helper\ndef check(f):\n    assert f(3) == helper.NINE\n"
    assert judge(verifier, SQUARE, calls).outcome is Outcome.CORRECT
    assert judge(verifier, SQUARE, CheckTests("square", check, files=files)).outcome is Outcome.CORRECT
    assert judge(verifier, SQUARE, CheckTests("square", check)).outcome is Outcome.VERIFIER_ERROR
