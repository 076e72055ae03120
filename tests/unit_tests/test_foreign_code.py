# ruff: noqa: E501 - a program reads best on one line
"""Text of the program that test code would run as code, among the expected values and the report."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from verifiers import Outcome, Problem, Verdict
from verifiers.unit_tests import AssertTests, CheckTests, FunctionTests, UnitTestVerifier


@pytest.fixture(scope="module")
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(timeout_s=5, memory_mib=512)
    yield verifier
    verifier.close()


FORGERY = '__import__(\'os\').write(6, b\'{"total":1}\\n{"passed":true,"name":"x"}\\n{"done":true}\\n\') and __import__(\'os\')._exit(0)'


def judge(verifier: UnitTestVerifier, program: str, body: str, imports: str = "") -> Verdict:
    test = f"from solution import f\n{imports}\ndef test_it():\n    {body}\n"
    return verifier(program, Problem("p", "", FunctionTests(test)))


RETURNED = f"def f(*_): return {FORGERY!r}"
ANNOTATED = f"def f(x): return 0\nf.__annotations__ = {{'x': {FORGERY!r}}}"
HOSTILE = {
    "eval": (RETURNED, "assert eval(f(3)) == 777", ""),
    "eval of bytes": (RETURNED, "assert eval(f(3).encode()) == 777", ""),
    "exec": (RETURNED, "exec(f(3)); assert False", ""),
    "compile": (RETURNED, "exec(compile(f(3), 'x', 'exec')); assert False", ""),
    "a tree": (RETURNED, "exec(compile(ast.parse(f(3)), 'x', 'exec')); assert False", "import ast"),
    "get_type_hints": (ANNOTATED, "assert get_type_hints(f) == {'x': 777}", "from typing import get_type_hints"),
    "get_annotations": (ANNOTATED, "assert get_annotations(f, eval_str=True) == {'x': 777}", "from inspect import get_annotations"),
    "timeit": (RETURNED, "assert timeit.timeit(f(3), number=1) == 777", "import timeit"),
    "pickle": (f"import pickle\nclass E:\n    def __reduce__(self): return eval, ({FORGERY!r},)\ndef f(x): return pickle.dumps(E())", "assert pickle.loads(f(3)) == 777", "import pickle"),
    "marshal": ("import marshal\ndef f(x): return marshal.dumps((lambda: 0).__code__)", "assert marshal.loads(f(3)) == 777", "import marshal"),
    "a name of the test": ("def f(x): return 'expected'", "expected = 777; assert eval(f(3)) == expected", ""),
    "an attribute": ("def f(x): return 'f.__class__'", "assert eval(f(3)) == 777", ""),
    "a call by what is built in": (RETURNED, "assert Counter(map(eval, [f(3)])) == {777: 1}", "from collections import Counter"),
    "a call by pytest": (RETURNED, "with pytest.raises(ZeroDivisionError): pytest.raises(ValueError, eval, f(3))", "import pytest"),
    "a call by a mock": (RETURNED, "assert Mock(side_effect=eval)(f(3)) == 777", "from unittest.mock import Mock"),
    "in a handler": (RETURNED, "with pytest.raises(Exception): eval(f(3))", "import pytest"),
    "a builtin's name": ("def f(x): return 'sum'", "sum = 777; assert eval(f(3)) == sum", ""),
    "in pieces": (f"def f(x): return list({FORGERY!r})", "assert eval(''.join(f(3))) == 777", ""),
    "another encoding": ("def f(x): return b'# coding: utf-7\\n+AF8-+AF8-import+AF8-+AF8-(+ACc-os+ACc-).+AF8-exit(0)'", "exec(compile(f(3), 'x', 'exec')); assert False", ""),
    "a call of a keyword": ("def f(x): return 'max([1], key=print)'", "assert eval(f(3)) == 777", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_text_of_the_program_is_not_run(verifier: UnitTestVerifier, name: str) -> None:
    verdict = judge(verifier, *HOSTILE[name])
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "unsupported"), verdict.detail
    assert verdict.detail["failure"] == "unsupported"
    assert "may not run" in str(verdict.detail["reason"])


@pytest.mark.parametrize("kind", ["check", "asserts"])
def test_nor_in_other_kinds_of_tests(verifier: UnitTestVerifier, kind: str) -> None:
    body = "assert get_type_hints({}) == {{'x': 777}}"
    if kind == "check":
        source = f"from typing import get_type_hints\ndef check(candidate):\n    {body.format('candidate')}\n"
        tests: AssertTests | CheckTests = CheckTests("f", source)
    else:
        tests = AssertTests((body.format("f"),), "from typing import get_type_hints")
    verdict = verifier(ANNOTATED, Problem("p", "", tests))
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "unsupported"), verdict.detail


FORMULA = """
FORMULA = "[each for each in ().__class__.__base__.__subclasses__() if False] or 777"
def f(): return 5
"""


@pytest.mark.parametrize("formula", ["solution.FORMULA", "FORMULA", "LOCAL"])
def test_a_text_that_the_program_defines_is_its_own_too(verifier: UnitTestVerifier, formula: str) -> None:
    test = f"import solution\nfrom solution import FORMULA\nfrom solution import FORMULA as LOCAL\ndef test_it():\n    assert eval({formula}) == 777\n"
    named = AssertTests(("assert eval(FORMULA) == 777",))
    for tests in (FunctionTests(test), named):
        verdict = verifier(FORMULA, Problem("p", "", tests))
        assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "unsupported"), verdict.detail


HONEST = {
    "arithmetic": ("def f(n): return '(1 + 2) * ' + str(n)", "assert eval(f(4)) == 12", ""),
    "calls of builtins": ("def f(): return 'max([3, 1]) + math.sqrt(4)'", "assert eval(f()) == 5", "import math"),
    "own text": ("def f(n): return n + 1", "assert eval('f(1) + 1') == 3", ""),
    "own text of short words": ("def f(n): return 'f' * n", "assert f(2) == 'ff' and eval('f(1)') == 'f' and eval('len(f(3))') == 3", ""),
    "own text, indented": ("def f(n): return n + 1", "scope = {'f': f}; exec('''\n        x = f(1)\n        y = f(x)'''.replace('        ', ''), scope); assert scope['y'] == 3", ""),
    "a literal": ("def f(): return \"{'a': [1, (2,)]}\"", "assert ast.literal_eval(f()) == {'a': [1, (2,)]}", "import ast"),
    "named tuples": ("def f(p): return p.x", "assert f(namedtuple('P', 'x y')(1, 2)) == 1", "from collections import namedtuple"),
    "dataclasses": ("def f(p): return p.x", "D = make_dataclass('D', ['x']); D.__module__ = 'tests'; assert f(D(1)) == 1", "from dataclasses import make_dataclass"),
    "annotations": ("from __future__ import annotations\nfrom typing import Optional\ndef f(x: int, y: Optional[list[str]]) -> str: return ''", "assert get_type_hints(f) == {'x': int, 'y': Optional[list[str]], 'return': str}", "from typing import get_type_hints, Optional"),
    "a pickle of plain data": ("import pickle\ndef f(x): return pickle.dumps({'a': {x}})", "assert pickle.loads(f(3)) == {'a': {3}}", "import pickle"),
    "mocks": ("def f(g): return g(1)", "m = Mock(return_value=3); assert f(m) == 3; m.assert_called_once_with(1)", "from unittest.mock import Mock"),
    "specified mocks": ("def g(x): return x\ndef f(x): return g(x)", "with patch('solution.g', autospec=True) as m:\n        m.return_value = 5\n        assert f(1) == 5", "from unittest.mock import patch"),
    "forward references": ("class Node:\n    def __init__(self, x): self.x = x\ndef f(x): return Node(x)", "tree = Tree(None); assert get_type_hints(Tree.__init__)['left'] == Optional[Tree] and f(1).x == 1", "from typing import Optional, List, TypeVar, get_type_hints\nT = TypeVar('T', bound='Tree')\nclass Tree:\n    def __init__(self, left: Optional['Tree']) -> 'List[Tree]': pass"),
    "timings": ("def f(x): return x", "assert timeit.timeit(lambda: f(1), number=2) < 5 and timeit.timeit('g(1)', globals={'g': f}, number=2) < 5", "import timeit"),
    "texts that tests make": ("def f(x): return x", "assert [eval(f'f({n}) + 1') for n in (1, 2)] == [2, 3] and eval('f')(2) == 2", ""),
    "values that tests show": ("def f(p): return p", "p = Point(1, 2); assert eval(repr(p)) == p and pickle.loads(pickle.dumps(uuid.UUID(int=3))).int == 3", "import pickle, uuid\nfrom dataclasses import dataclass\n@dataclass\nclass Point:\n    x: int\n    y: int"),
    "coroutines": ("async def f(x): return x + 1", "assert asyncio.run(f(1)) == 2", "import asyncio"),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_what_only_computes_is_run(verifier: UnitTestVerifier, name: str) -> None:
    verdict = judge(verifier, *HONEST[name])
    assert verdict.outcome is Outcome.CORRECT, verdict.detail


def test_a_prompt_may_end_inside_a_statement(verifier: UnitTestVerifier) -> None:
    source = "def check(candidate):\n    assert candidate('n') == 'n' and eval('str(1 + 1)') == '2' and eval('math.pi > 3')\n"
    tests = CheckTests("f", source, "import math\n\ndef f(n):\n")
    assert verifier("    return n", Problem("p", "", tests)).outcome is Outcome.CORRECT


LYING_NAME = """
import sys, types
class N:
    def isidentifier(self): return True
    def __str__(self): return "g(): pass\\nraise SystemExit\\ndef h"
class function:
    reads = 0
    def __call__(self, x): return 0
    @property
    def __name__(self):
        function.reads += 1
        return "f" if function.reads < 3 else N()
frame = sys._getframe()
while frame:
    if "describe_type_of" in frame.f_globals:
        frame.f_globals["describe_type_of"].__globals__["STANDARD_CLASSES"]["function"] = function
    frame = frame.f_back
f = function()
"""


def test_a_name_that_is_no_text_is_none(verifier: UnitTestVerifier) -> None:
    body = "m = create_autospec(f, return_value=3); assert m(1) == 3; assert f(2) == 4"
    assert judge(verifier, LYING_NAME, body, "from unittest.mock import create_autospec").score == 0


@pytest.mark.parametrize(
    "program", ["import unittest.mock as helper", "import timeit as helper", "import os as helper"]
)
def test_the_program_does_not_choose_which_module_a_name_of_the_tests_is(
    verifier: UnitTestVerifier, program: str
) -> None:
    verdict = verifier(program, Problem("p", "", AssertTests(("assert helper.ANY == 5", "assert helper.timeit('1')"))))
    assert verdict.outcome is Outcome.INCORRECT, verdict.detail


def test_a_module_that_only_computes_may_have_another_name(verifier: UnitTestVerifier) -> None:
    program = "import math as m\ndef area(r): return m.pi * r * r"
    verdict = verifier(program, Problem("p", "", AssertTests(("assert area(1) == m.pi",))))
    assert verdict.outcome is Outcome.CORRECT, verdict.detail


LYING_SET = """
class S:
    def difference(self, other):
        self.items = list(other)
        return set()
    def __iter__(self): return iter(self.items)
    def __len__(self): return 3
def f(x): return S()
"""


def test_a_result_is_not_asked_how_it_differs(verifier: UnitTestVerifier) -> None:
    test = "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n    def test_it(self): self.assertSetEqual(f(1), {1, 2})\n"
    problem = Problem("p", "", FunctionTests(test))
    assert verifier(LYING_SET, problem).outcome is Outcome.INCORRECT
    own = "from collections.abc import Set\nclass S(Set):\n    def __contains__(self, x): return x in (1, 2)\n    def __iter__(self): return iter((1, 2))\n    def __len__(self): return 2\n    def difference(self, other): return set(self) - set(other)\ndef f(x): return S()\n"
    for program in ("def f(x): return {x, 2}", own):
        assert verifier(program, problem).outcome is Outcome.CORRECT
    assert verifier("def f(x): return {x, 3}", problem).outcome is Outcome.INCORRECT


CALLBACK = """
import unittest
from solution import run
class T(unittest.TestCase):
    def test_it(self):
        seen = []
        def callback(x):
            self.assertEqual(x, 777)
            seen.append(x)
        run(callback)
        self.assertEqual(seen, [777])
"""


@pytest.mark.parametrize(
    ("program", "score"),
    [
        ("def run(g): g(777)", 1),
        ("def run(g): g(1)", 0),
        ("def run(g):\n    try: g(0)\n    except BaseException: g(777)", 0),
        ("import re\ndef run(g):\n    try: g(0)\n    except AssertionError as e: g(int(re.search(r'!= (\\d+)', str(e))[1]))", 0),
    ],
)  # fmt: skip
def test_an_assertion_in_a_callback_counts_and_tells_nothing(
    verifier: UnitTestVerifier, program: str, score: int
) -> None:
    verdict = verifier(program, Problem("p", "", FunctionTests(CALLBACK)))
    assert verdict.score == score, verdict.detail
    assert verdict.detail["failure"] in (None, "wrong_answer", "exception")
