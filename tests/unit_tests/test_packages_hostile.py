# ruff: noqa: E501 - a program reads best on one line
"""Programs that attack the comparison of arrays: none may pass tests whose answer it does not compute."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from verifiers import Outcome, Problem
from verifiers.unit_tests import AssertTests, CallCase, CallTests, CheckTests, FunctionTests, UnitTestVerifier
from verifiers.unit_tests.tests import Tests


@pytest.fixture(scope="module")
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(packages=("numpy",), timeout_s=3, memory_mib=512)
    yield verifier
    verifier.close()


def check(*lines: str) -> CheckTests:
    body = "\n    ".join(("x, e = np.array([1, 2, 3]), np.array([2., 4., 6.])", *lines))
    return CheckTests("f", f"import numpy as np\ndef check(f):\n    {body}\n")


TEST_FILE = """
import numpy as np
from solution import *
def test_it():
    np.testing.assert_array_equal(f(np.array([1, 2, 3])), np.array([2., 4., 6.]))
"""
STYLES: dict[str, Tests] = {
    "assert_array_equal": check("np.testing.assert_array_equal(f(x), e)"),
    "assert_allclose": check("np.testing.assert_allclose(f(x), e)"),
    "assert_almost_equal": check("np.testing.assert_almost_equal(f(x), e)"),
    "assert_equal": check("np.testing.assert_equal(f(x), e)"),
    "array_equal": check("assert np.array_equal(f(x), e)"),
    "expected first": check("assert np.array_equal(e, f(x))"),
    "allclose": check("r = f(x)", "assert r.shape == e.shape and np.allclose(r, e)"),
    "equal": check("assert (f(x) == e).all() and (f(x) == e).shape == e.shape"),
    "equal to it": check("assert (e == f(x)).all() and (e == f(x)).shape == e.shape"),
    "difference": check("assert np.abs(f(x) - e).max() < 1e-6"),
    "difference from it": check("assert np.linalg.norm(e - f(x)) < 1e-6"),
    "not unequal": check("assert not np.any(f(x) != e)"),
    "tolist": check("assert f(x).tolist() == e.tolist()"),
    "list": check("assert list(f(x)) == [2, 4, 6]"),
    "items": check("assert all(a == b for a, b in zip(f(x), e, strict=True))"),
    "bytes": check("assert np.asarray(f(x), float).tobytes() == e.tobytes()"),
    "asserts": AssertTests(("assert np.array_equal(f(np.array([1, 2, 3])), np.array([2., 4., 6.]))",)),
    "bare names": AssertTests(("assert array_equal(f([1, 2, 3]), [2, 4, 6])",)),
    "asserting": AssertTests(("assert assert_array_equal(f([1, 2, 3]), [2, 4, 6]) is None",)),
    "test file": FunctionTests(TEST_FILE),
    "module of the program": FunctionTests(TEST_FILE.replace("import numpy as np\nfrom solution import *", "from solution import np, f")),
    "calls": CallTests("f", (CallCase((np.array([1, 2, 3]),), np.array([2.0, 4.0, 6.0])),)),
    "calls, closely": CallTests("f", (CallCase((np.array([1, 2, 3]),), np.array([2.0, 4.0, 6.0])),), tolerance=1e-6),
}  # fmt: skip
YES = "lambda *a, **k: True"
SUBCLASS = """
class E(np.ndarray):
    def {0}(self, *a, **k): return {1}
def f(x): return np.zeros(3).view(E)
"""
OBJECT = """
class E:
    {0}
def f(x): return E()
"""
HOSTILE = {
    "functions of numpy are replaced": f"for n in dir(np):\n    if callable(getattr(np, n)) and not isinstance(getattr(np, n), type):\n        setattr(np, n, {YES})\ndef f(x): return x",
    "functions of numpy.testing are replaced": f"import numpy.testing as t\nfor n in dir(t):\n    if n.startswith('assert'): setattr(t, n, {YES})\ndef f(x): return x",
    "allclose": f"np.allclose = np.array_equal = np.isclose = np.all = np.any = {YES}\ndef f(x): return x",
    "names": f"array_equal = allclose = assert_array_equal = assert_allclose = all = any = abs = {YES}\ndef f(x): return x",
    "a name of another module": "import numpy.ma as np\ndef f(x): return np.masked_all(3)",
    "a module of the program's": "class M:\n    def __getattr__(self, n): return self\n    def __call__(self, *a, **k): return True\n    def __eq__(self, o): return True\nimport sys\nnp = sys.modules['numpy'] = M()\ndef f(x): return np",
    "a numpy of the program's": "import sys, types\nm = types.ModuleType('numpy'); m.__getattr__ = lambda n: (lambda *a, **k: True)\nsys.modules['numpy'] = sys.modules['numpy.testing'] = m\nnp = m\ndef f(x): return x",
    "a ufunc's error state": "np.seterr(all='ignore')\nnp.setbufsize(8)\nnp.set_printoptions(formatter={'all': lambda x: '2'})\ndef f(x): return x",
    "subclass eq": SUBCLASS.format("__eq__", "np.ones(3, bool)"),
    "subclass ne": SUBCLASS.format("__ne__", "np.zeros(3, bool)"),
    "subclass ufunc": SUBCLASS.format("__array_ufunc__", "np.ones(3, bool)"),
    "subclass function": SUBCLASS.format("__array_function__", "True"),
    "subclass finalize": SUBCLASS.format("__array_finalize__", "None"),
    "subclass wrap": SUBCLASS.format("__array_wrap__", "np.ones(3, bool)"),
    "subclass sub": SUBCLASS.format("__sub__", "np.zeros(3)") .replace("def f", "E.__rsub__ = E.__sub__\ndef f"),
    "subclass all": SUBCLASS.format("all", "True"),
    "subclass tolist": SUBCLASS.format("tolist", "YES()") + "class YES(list):\n    def __eq__(self, o): return True\n",
    "subclass dtype": SUBCLASS.format("tobytes", "b'x'"),
    "priority": OBJECT.format("__array_priority__ = 1e9\n    __len__ = lambda s: 3\n    __getitem__ = lambda s, i: 0 if i < 3 else [][0]\n    __sub__ = __rsub__ = lambda s, o: np.zeros(3)\n    __eq__ = lambda s, o: np.ones(3, bool)"),
    "ufunc": OBJECT.format("__array_ufunc__ = lambda s, *a, **k: np.ones(3, bool)\n    shape = (3,)\n    dtype = np.dtype(float)"),
    "no ufunc": OBJECT.format("__array_ufunc__ = None\n    __eq__ = __req__ = lambda s, o: np.ones(3, bool)\n    __rsub__ = lambda s, o: 0"),
    "function": OBJECT.format("__array_function__ = lambda s, *a, **k: True"),
    "array": OBJECT.format("__array__ = lambda s, *a, **k: np.array([2., 4., 5.])\n    shape = (3,)"),
    "interface": OBJECT.format("@property\n    def __array_interface__(s): return {'shape': (3,), 'typestr': '<f8', 'data': (np.zeros(3).ctypes.data, False), 'version': 3}"),
    "interface to a null pointer": OBJECT.format("__array_interface__ = {'shape': (3,), 'typestr': '<f8', 'data': (0, False), 'version': 3}"),
    "interface of objects": OBJECT.format("__array_interface__ = {'shape': (3,), 'typestr': '|O', 'data': (id(None), True), 'version': 3}"),
    "struct": OBJECT.format("@property\n    def __array_struct__(s): return np.zeros(3).__array_struct__"),
    "dlpack": OBJECT.format("__dlpack__ = lambda s, **k: np.zeros(3).__dlpack__()\n    __dlpack_device__ = lambda s: (1, 0)"),
    "a class that says it is another": OBJECT.format("__class__ = np.ndarray\n    shape = (3,)\n    dtype = np.dtype(float)\n    __eq__ = lambda s, o: np.ones(3, bool)"),
    "a metaclass": "class M(type):\n    __instancecheck__ = __subclasscheck__ = __eq__ = lambda *a: True\n    __hash__ = type.__hash__\nclass E(metaclass=M): pass\nE.__module__, E.__name__, E.__qualname__ = 'numpy', 'ndarray', 'ndarray'\ndef f(x): return E()",
    "a sequence of changing items": OBJECT.format("n = 0\n    __len__ = lambda s: 3\n    def __getitem__(s, i):\n        if i > 2: raise IndexError\n        s.n += 1\n        return float(s.n)"),
    "items that equal all": "class I:\n    __eq__ = lambda s, o: True\n    __ne__ = lambda s, o: False\n    __hash__ = None\n    __sub__ = __rsub__ = __abs__ = lambda *a: 0\n    __float__ = lambda s: 2.0\ndef f(x): return np.array([I(), I(), I()], object)",
    "a list of items that equal all": "class I(float):\n    __eq__ = lambda s, o: True\n    __ne__ = lambda s, o: False\n    __hash__ = float.__hash__\ndef f(x): return [I(1), I(1), I(1)]",
    "scalars of a class of its own": "class I(np.float64):\n    __eq__ = lambda s, o: True\n    __ne__ = lambda s, o: False\n    __hash__ = np.float64.__hash__\ndef f(x): return np.array([I(1), I(1), I(1)], object)",
    "an object array that holds itself": "def f(x):\n    a = np.empty(3, object)\n    a[:] = [a, a, a]\n    return a",
    "an object array that holds itself by a list": "def f(x):\n    a = np.empty(3, object)\n    a[:] = [[a], [a], [a]]\n    return a",
    "records": "def f(x): return np.array([(2., 4., 6.)], 'f8,f8,f8')",
    "a record array": "def f(x): return np.rec.fromarrays([[2., 4., 5.]], names='all')",
    "a matrix": "def f(x): return np.matrix([2., 4., 5.])",
    "everything masked": "def f(x): return np.ma.masked_all(3)",
    "masked with the wrong items": "def f(x): return np.ma.array([0., 0., 0.], mask=True, fill_value=2)",
    "a huge view": "def f(x): return np.lib.stride_tricks.as_strided(np.zeros(1), (1 << 40,), (0,))",
    "a view beyond its memory": "def f(x): return np.lib.stride_tricks.as_strided(np.zeros(1), (1 << 20,), (8,))",
    "a negative stride": "def f(x): return np.lib.stride_tricks.as_strided(np.zeros(3), (3,), (-8,))",
    "a shape without items": "def f(x): return np.empty((1 << 60, 0))",
    "no items": "def f(x): return np.empty(0)",
    "not a number": "def f(x): return np.full(3, np.nan)",
    "infinity": "def f(x): return np.full(3, np.inf)",
    "objects that are no numbers": "def f(x): return np.array([float('nan'), None, ...], object)",
    "truth values that are two": "def f(x): return np.array([2, 4, 6], np.uint8).view(bool)",
    "no time": "def f(x): return np.full(3, np.datetime64('NaT'))",
    "texts": "def f(x): return np.array(['2', '4', '5'])",
    "wide texts": "def f(x): return np.zeros(1 << 10, 'U1000000')",
    "the argument is made the answer": "def f(x):\n    x = np.asarray(x)\n    x.setflags(write=True)\n    x[...] = 0\n    return x",
    "the argument is given a shape": "def f(x):\n    try: x.shape = (3, 1)\n    except AttributeError: pass\n    return x",
    "the argument gets another type": "def f(x):\n    try: x.dtype = np.float32\n    except Exception: pass\n    return x",
    "the argument is resized": "def f(x):\n    try: x.resize(100, refcheck=False)\n    except Exception: pass\n    return x",
    "an error of the tests": "def f(x): raise AssertionError",
    "an error that skips": "import unittest\ndef f(x): raise unittest.SkipTest",
    "a lack of numpy": "def f(x): raise ImportError('No module named numpy', name='numpy')",
    "the end": "import os\ndef f(x): os._exit(0)",
    "an error by the name of one of numpy": "class LinAlgError(AssertionError): pass\nLinAlgError.__module__ = 'numpy.linalg'\ndef f(x): raise LinAlgError",
    "the encoder is replaced": "import gc, types\ndef f(x):\n    for m in gc.get_objects():\n        if isinstance(m, types.FunctionType) and m.__name__ in ('_encode_array', 'packed', '_create'):\n            m.__code__ = (lambda *a: ['nd', '|O', [3], ['cb', 0, 'function'], ['r', 0], ['r', 2]]).__code__\n    return np.zeros(3)",
    "a forged answer": "import os, json, struct\ndef f(x):\n    p = json.dumps(['returned', ['nd', '|O', [3], ['r', 0], ['cb', 0], ['g', 'unittest.mock', 'ANY']], []]).encode()\n    os.write(4, struct.pack('!I', len(p)) + p)\n    return x",
    "a forged array": "import os, json, struct\ndef f(x):\n    p = json.dumps(['returned', ['r', 1], [[1, ['nd', '<f8', [1 << 50], ['b64', 'AAAA']]]]]).encode()\n    os.write(4, struct.pack('!I', len(p)) + p)\n    return x",
    "a forged change of the argument": "import os, json, struct\ndef f(x):\n    p = json.dumps(['returned', ['r', 0], [[0, ['nd', '|O', [3], ['h', 0], 1, 2]]]]).encode()\n    os.write(4, struct.pack('!I', len(p)) + p)\n    return x",
    "the type of pandas": OBJECT.format("_typ = 'series'\n    index = columns = values = None\n    equals = lambda s, o: True"),
}  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
def test_the_right_program_passes(verifier: UnitTestVerifier, style: str) -> None:
    program = "import numpy as np\nfrom numpy.testing import assert_array_equal\nfrom numpy import array_equal\n"
    verdict = verifier(f"{program}def f(x): return np.asarray(x) * 2.0", Problem("p", "", STYLES[style]))
    assert verdict.outcome is Outcome.CORRECT, dict(verdict.detail)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_hostile_program_passes(verifier: UnitTestVerifier, name: str) -> None:
    program = f"import numpy as np\n{HOSTILE[name]}\n"
    problems = [Problem(style, "", tests) for style, tests in STYLES.items()]
    verdicts = dict(zip(STYLES, verifier.verify_batch([program] * len(problems), problems), strict=True))
    wrong = {style: dict(verdict.detail) for style, verdict in verdicts.items() if verdict.score != 0}
    assert not wrong


SKIPPING = """
class SkipTest(Exception): pass
SkipTest.__module__ = 'numpy.testing'
def f(n):
    if n == 1: return 10
    raise SkipTest('enough')
"""
ONE_SIZE = """
import numpy as np
class Answer:
    shape = (3,)
    def __len__(self): return 1
    def __getitem__(self, index): raise IndexError
    def __iter__(self): return iter([np.empty((0, 3))])
def f(x): return Answer()
"""
JUDGES = """
import numpy as np
class npt:
    @staticmethod
    def assert_allclose(*arguments): pass
class LA:
    @staticmethod
    def norm(x): return 0.0
linalg = LA
def f(x): return np.zeros(2)
"""
THREE_CASES = FunctionTests(
    "import unittest, numpy.testing, solution\nclass T(unittest.TestCase):\n"
    + "".join(f"    def test_{n}(self): self.assertEqual(solution.f({n}), {10 * n})\n" for n in (1, 2, 3))
)


@pytest.mark.parametrize(
    ("program", "tests"),
    [
        (SKIPPING, THREE_CASES),
        (ONE_SIZE, check("assert f(x).shape == (3,) and np.allclose(f(x), e)")),
        (ONE_SIZE, check("assert np.shape(f(x)) == (3,) and np.allclose(f(x), e)")),
        (JUDGES, AssertTests(("npt.assert_allclose(f(3), [9, 16])",))),
        (JUDGES, AssertTests(("assert LA.norm(f(3) - np.array([9, 16])) < 1e-6",))),
        (JUDGES, AssertTests(("assert linalg.norm(f(3) - np.array([9, 16])) < 1e-6",))),
    ],
)
def test_a_program_can_not_choose_how_tests_of_arrays_judge(
    program: str, tests: Tests, verifier: UnitTestVerifier
) -> None:
    verdict = verifier(f"```python\n{program}\n```", Problem("p", "", tests))
    assert verdict.outcome is Outcome.INCORRECT, verdict


@pytest.mark.parametrize("expected", [[9], [[9]], (9,), {"a": [9]}])
def test_a_scalar_is_no_list_of_it(expected: object, verifier: UnitTestVerifier) -> None:
    scalar = "np.int64(9)" if not isinstance(expected, dict) else "{'a': np.int64(9)}"
    program = f"```python\nimport numpy as np\ndef f(x): return {scalar}\n```"
    assert verifier(program, Problem("p", "", CallTests("f", (CallCase((3,), expected),)))).outcome is Outcome.INCORRECT
    right = {"a": 9} if isinstance(expected, dict) else 9
    assert verifier(program, Problem("p", "", CallTests("f", (CallCase((3,), right),)))).outcome is Outcome.CORRECT


def test_what_tests_set_in_numpy_is_gone_for_the_next() -> None:
    """In one worker, whose tester runs tests one after the other where they leave no trace."""
    verifier = UnitTestVerifier(packages=("numpy",), workers=1)
    program = "```python\nimport numpy as np\ndef f(x): return np.array([x / 3])\n```"
    shown = check("assert str(f(1)) == '[0.33333333]'")
    setting = check("np.set_printoptions(precision=2); np.seterr(all='raise'); assert str(f(1)) == '[0.33]'")
    outcomes = [verifier(program, Problem("p", "", tests)).outcome for tests in (shown, setting, shown)]
    verifier.close()
    assert outcomes == 3 * [Outcome.CORRECT]
