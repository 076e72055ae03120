"""Tests that replace builtins and names of standard modules mean the program: the runtime goes on with its own."""

from __future__ import annotations

from tests.sandbox import fenced, judge
from verifiers import Outcome
from verifiers.unit_tests import FunctionTests, UnitTestVerifier


def test_a_patched_stream_is_the_programs(verifier: UnitTestVerifier) -> None:
    test = """
import io
from unittest.mock import patch
from solution import solve
def test_it():
    with patch("io.StringIO") as stream:
        assert solve([io.BytesIO(b"s")], lambda x: x.read()) == [b"s"]
        assert not stream.called
"""
    assert (
        judge(verifier, fenced("def solve(xs, f): return [f(x) for x in xs]"), FunctionTests(test)).outcome
        is Outcome.CORRECT
    )


def test_a_patched_builtin_is_the_programs(verifier: UnitTestVerifier) -> None:
    test = """
from unittest.mock import patch
from solution import f
def test_it():
    assert f([1]) == 1
    with patch("builtins.len", lambda x: 77):
        assert f([1]) == 77
    assert f([1]) == 1
"""
    assert judge(verifier, fenced("def f(x): return len(x)"), FunctionTests(test)).outcome is Outcome.CORRECT


BROKEN = """
builtins.id builtins.hash builtins.map builtins.sorted builtins.iter builtins.zip json.dumps json.loads
os.write os.read os.pread os.fstat array.array collections.deque collections.Counter collections.OrderedDict datetime.date
datetime.datetime decimal.Decimal fractions.Fraction io.StringIO io.BytesIO threading.get_ident threading.RLock gc.collect
functools.partial importlib.import_module re.compile struct.pack inspect.signature traceback.walk_tb dataclasses.fields
posixpath.normpath operator.attrgetter keyword.iskeyword ast.parse ast.walk contextlib.suppress copy.deepcopy
"""


def test_nothing_that_tests_replace_is_used_to_run_them(verifier: UnitTestVerifier) -> None:
    test = f"""
import array, collections, datetime, decimal, importlib, io
from solution import f
ARGUMENT = [
    decimal.Decimal(3), datetime.date(2020, 1, 1), collections.deque([1]), array.array("b", [1]), io.StringIO("x"), 1 << 2000
]
def nothing(*args, **kwargs):
    raise ZeroDivisionError
def test_it():
    targets = []
    for name in {BROKEN!r}.split():
        module, _, attribute = name.rpartition(".")
        module = importlib.import_module(module)
        targets.append((module, attribute, getattr(module, attribute), setattr))
    for target in targets:
        setattr(target[0], target[1], nothing)
    try:
        result = f(ARGUMENT)
    finally:
        for target in targets:
            target[3](target[0], target[1], target[2])
    assert result == [ARGUMENT, 7]
    assert result[0][2] is ARGUMENT[2]
"""
    assert judge(verifier, fenced("def f(x): return [x, 7]"), FunctionTests(test)).outcome is Outcome.CORRECT


def test_no_file_of_the_program_has_the_runtimes_own_names(verifier: UnitTestVerifier) -> None:
    program = """# util.py
import io, sys
def g(x): return len(x), type(io.StringIO()).__name__, io is sys.modules["io"]
```
```python
import os.path as p, util
def f(): return [type(__builtins__).__name__, type(util.__builtins__).__name__, p.exists("/no"), util.g([])]"""
    test = """
from unittest.mock import patch
from solution import f
def test_it():
    assert f() == ["module", "dict", False, (0, "StringIO", True)]
    with patch("builtins.len", lambda x: 77), patch("os.path.exists", lambda x: 5):
        result = f()
    assert result[2:] == [5, (77, "StringIO", True)]
"""
    assert judge(verifier, fenced(program), FunctionTests(test)).outcome is Outcome.CORRECT
