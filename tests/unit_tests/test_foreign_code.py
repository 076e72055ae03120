"""Text of the program that test code would run as code, among the expected values and the report."""

from __future__ import annotations

import pytest

from tests.sandbox import judge
from verifiers import Outcome
from verifiers.unit_tests import AssertTests, CheckTests, FunctionTests, UnitTestVerifier

pytestmark = pytest.mark.sandbox(timeout_s=5)
REPORT = '{"total":1}\\n{"passed":true,"name":"x"}\\n{"done":true}\\n'
SCRIPT = f"""
import os
for descriptor in range(3, 16):
    try: os.write(descriptor, b'{REPORT}')
    except OSError: pass
os._exit(0)
"""
FORGERY = f"exec({SCRIPT!r})"
PROGRAM = f"""
import pickle
TEXT = {FORGERY!r}
class P:
    def __reduce__(self): return exec, ({SCRIPT!r},)
def text(*args): return TEXT
def pickled(): return pickle.dumps(P())
def annotated(x): pass
annotated.__annotations__ = {{"x": TEXT}}
"""
BODIES = {
    "eval": "assert eval(text()) == 777",
    "exec": "exec(text())",
    "compile": "exec(compile(text(), 'test.py', 'exec'))",
    "by another name": "import builtins\n    assert getattr(builtins, 'ev' + 'al')(text()) == 777",
    "a pickle": "import pickle\n    assert pickle.loads(pickled()) == 777",
    "annotations": "import typing\n    assert typing.get_type_hints(annotated) == {'x': 777}",
    "a code object": "import types\n    types.FunctionType(compile(text(), 'test.py', 'exec'), {})()",
    "names of fields": "import collections\n    assert collections.namedtuple('P', text())",
    "a module": "import importlib\n    assert importlib.import_module(text())",
    "a line of doctest": "import doctest\n    assert doctest.script_from_examples(text()) == text() == ''",
    "timings": "import timeit\n    assert timeit.timeit(text(), number=1) == 0",
}
CONSTANT = "assert eval(TEXT) == 777"


@pytest.mark.parametrize("body", [*BODIES.values(), CONSTANT], ids=[*BODIES, "a constant"])
@pytest.mark.parametrize("kind", ["file", "check", "asserts"])
def test_text_of_the_program_is_not_run(verifier: UnitTestVerifier, kind: str, body: str) -> None:
    names = "TEXT, annotated, pickled, text"
    tests = {
        "file": FunctionTests(f"from solution import {names}\ndef test_it():\n    text()\n    {body}\n"),
        "check": CheckTests("text", f"def check(text):\n    text()\n    {body}\n"),
        "asserts": AssertTests(
            (f"def test_it():\n    text()\n    {body}\ntest_it()",), entry_points=tuple(names.split(", "))
        ),
    }[kind]
    verdict = judge(verifier, PROGRAM, tests)
    assert verdict.outcome is Outcome.INCORRECT or verdict.detail["failure"] == "unsupported", verdict.detail
    assert verdict.detail["passed"] == 0, "text of the program has written to the report"


ASSERTING = """
from solution import each
def test_it():
    def check(x): assert x == "expected"
    each(check)
"""


@pytest.mark.parametrize(
    ("program", "outcome"),
    [
        ("def each(check): check('expected')", Outcome.CORRECT),
        ("def each(check): check('other')", Outcome.INCORRECT),
        ("def each(check):\n    try: check('other')\n    except BaseException: pass", Outcome.INCORRECT),
        (
            "def each(check):\n    try: check('other')\n    except AssertionError as e: check(str(e)[-8:])",
            Outcome.INCORRECT,
        ),
    ],
)
def test_an_assertion_in_a_callback_counts_and_tells_nothing(
    verifier: UnitTestVerifier, program: str, outcome: Outcome
) -> None:
    verdict = judge(verifier, program, FunctionTests(ASSERTING))
    assert verdict.outcome is outcome, verdict.detail
