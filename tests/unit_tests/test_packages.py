"""Packages for programs and tests: arrays cross as data, and are compared by the tests' own numpy."""

from __future__ import annotations

import binascii
import contextlib
import pickle
from pathlib import Path

import numpy as np
import pytest

from tests.sandbox import Case, cases, fenced, judge, load
from verifiers import InvalidArgumentError
from verifiers.sandbox.packages import find_packages
from verifiers.unit_tests import (
    AssertTests,
    CallCase,
    CallTests,
    CheckTests,
    UnitTestVerifier,
)
from verifiers.unit_tests.separate import arrays, values
from verifiers.unit_tests.separate.known import Known
from verifiers.unit_tests.separate.values import Decoder

DATA = load("unit_tests/packages")
pytestmark = pytest.mark.sandbox(packages=("numpy",), timeout_s=5, memory_mib=1024, workers=1)


def check(*lines: str) -> CheckTests:
    body = "\n    ".join(lines)
    return CheckTests("f", f"import numpy as np\ndef check(f):\n    {body}\n")


def test_packages_are_not_there_by_default() -> None:
    verifier = UnitTestVerifier(workers=1)
    verdict = judge(verifier, fenced("import numpy\ndef f(x): return x"), CallTests("f", (CallCase((1,), 1),)))
    verifier.close()
    assert verdict.detail["exception"]["message"] == "No module named 'numpy'"
    assert "packages" not in verdict.detail


@pytest.mark.parametrize(
    ("packages", "says"),
    [
        ("numpi", "no package 'numpi' is installed"),
        (("numpy", "numpi.linalg"), "`pip install numpi`"),
        ("json", "the standard library is always there"),
        ("numpy;os", "got 'numpy;os'"),
    ],
)
def test_what_is_no_installed_package_is_refused(packages: str | tuple[str, ...], says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        UnitTestVerifier(packages=packages)


def test_a_module_that_is_not_there_is_refused_when_servers_start() -> None:
    verifier = UnitTestVerifier(packages="numpy.no_such_part", workers=1)
    with pytest.raises(InvalidArgumentError, match=r"numpy\.no_such_part can't be imported: ModuleNotFoundError"):
        judge(verifier, fenced("def f(x): return x"), CallTests("f", (CallCase((1,), 1),)))
    assert verifier.idle_servers == ()


def test_a_package_of_ones_own_and_one_that_starts_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_package.py").write_text("def twice(x): return 2 * x")
    (tmp_path / "starts_thread.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()"
    )
    monkeypatch.syspath_prepend(tmp_path)
    tests = CallTests("f", (CallCase((3,), 6),))
    with contextlib.closing(UnitTestVerifier(packages="own_package", workers=1)) as verifier:
        verdict = judge(verifier, fenced("from own_package import twice as f"), tests)
    assert (verdict.score, verdict.detail["packages"]) == (1, {"own_package": ""})
    with pytest.raises(InvalidArgumentError, match="starts_thread starts a thread when it is imported"):
        judge(UnitTestVerifier(packages="starts_thread", workers=1), fenced("x = 1"), tests)


def test_only_packages_and_what_they_require_are_found() -> None:
    found = find_packages("gymnasium")
    assert {"gymnasium", "numpy", "cloudpickle"} <= {*found.modules}
    assert not {"pytest", "torch", "verifiers"} & {*found.modules}
    assert pickle.loads(pickle.dumps(found)) == found


def test_what_else_is_installed_is_neither_imported_nor_read(verifier: UnitTestVerifier) -> None:
    pytest_file = pytest.__file__
    program = f"""
import importlib.util, sys
sys.path.append({pytest_file.rpartition("/pytest/")[0]!r})
def f(name):
    try: return importlib.util.find_spec(name) is not None
    except ImportError: return False
def read():
    try: return open({pytest_file!r}).read(10)
    except OSError as error: return type(error).__name__
"""
    tests = check("assert f('numpy')", "assert not f('pytest')")
    assert judge(verifier, fenced(program), tests).score == 1
    refused = judge(
        verifier, fenced(program), AssertTests(("assert read() in ('PermissionError', 'FileNotFoundError')",))
    )
    assert refused.score == 1, dict(refused.detail)


def test_numpy_has_one_thread_and_its_memory_is_no_programs() -> None:
    verifier = UnitTestVerifier(packages="numpy", memory_mib=64, workers=1)
    program = """
import os, threading, numpy as np
def f(n):
    a = np.ones((n, n)) @ np.ones((n, n))
    return [int(a[0, 0]), threading.active_count(), "OPENBLAS_NUM_THREADS" in os.environ]
"""
    verdict = judge(verifier, fenced(program), CallTests("f", (CallCase((300,), [300, 1, True]),)))
    too_much = judge(verifier, fenced(program), CallTests("f", (CallCase((3000,), None),)))
    verifier.close()
    assert verdict.score == 1, dict(verdict.detail)
    assert too_much.detail["failure"] == "memory"


@pytest.mark.parametrize("case", cases(DATA["right"]))
def test_right_programs_pass(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier, fenced(case.program))


@pytest.mark.parametrize(
    ("body", "expected", "tolerance", "passes"),
    [
        ("np.array([1, 2])", np.array([1, 2]), None, True),
        ("np.array([1., 2.])", np.array([1, 2]), None, True),
        ("np.array([[1, 2]])", np.array([1, 2]), None, False),
        ("[1, 2]", np.array([1, 2]), None, False),
        ("np.array([1, 2])", [1, 2], None, False),
        ("[np.array([1]), 2]", [np.array([1]), 2], None, True),
        ("{'a': np.ones(2)}", {"a": np.zeros(2)}, None, False),
        ("{'a': np.ones(2), 'b': 1}", {"a": np.ones(2)}, None, False),
        ("np.array([0.1 + 0.2])", np.array([0.3]), 1e-9, True),
        ("np.float32(0.5)", 0.5000001, 1e-5, True),
        ("np.array([np.nan])", np.array([np.nan]), None, True),
        ("[np.float64(np.nan)]", [float("nan")], 1e-9, True),
        ("np.array(['2024-01-01'], 'M8[D]')", np.array(["2024-01-01"], "M8[ns]"), None, True),
        ("np.array(['1'])", np.array([1]), None, False),
        ("np.int64(6)", 6, None, True),
        ("np.array([1, None], object)", np.array([1, None], object), None, True),
    ],
)
def test_arrays_in_call_cases(
    verifier: UnitTestVerifier, body: str, expected: object, tolerance: float | None, passes: bool
) -> None:
    tests = CallTests("f", (CallCase((np.ones(1),), expected),), tolerance=tolerance)
    verdict = judge(verifier, fenced(f"import numpy as np\ndef f(x): return {body}"), tests)
    assert (verdict.score, verdict.detail["failure"]) == ((1, None) if passes else (0, "wrong_answer")), dict(
        verdict.detail
    )


@pytest.mark.parametrize(
    "body",
    [
        "np.zeros(2, 'i4,f8')",
        "np.rec.array([(1, 2)])[0]",
        "np.matrix([0, 1])",
        "np.ma.array([0, 1])",
        "np.dtypes.StringDType() and np.array(['a'], np.dtypes.StringDType())",
    ],
)
def test_what_does_not_cross_is_unsupported(verifier: UnitTestVerifier, body: str) -> None:
    for line in ("assert np.array_equal(f(), [0, 0])", "r = f(); assert isinstance(r, (np.ndarray, np.generic))"):
        verdict = judge(verifier, fenced(f"import numpy as np\ndef f(): return {body}"), check(line))
        assert (verdict.score, verdict.detail["failure"]) == (0, "unsupported"), dict(verdict.detail)


def data(content: bytes) -> str:
    return binascii.b2a_base64(content, newline=False).decode()


WIRES: list[list[object]] = [
    ["nd", 1, ["<f8", [-1]], data(bytes(8))],
    ["nd", 1, ["<f8", ["1"]], data(bytes(8))],
    ["nd", 1, ["<f8", 1], data(bytes(8))],
    ["nd", 1, ["|V8", [1]], data(bytes(8))],
    ["nd", 1, ["O", [1]], data(bytes(8))],
    ["nd", 1, ["|O", [2]], 1],
    ["nd", 1, ["f8,O", [1]], data(bytes(16))],
    ["nd", 1, ["<U2", [1]], "abc"],
    ["nd", 1, ["<U2", [1]], 7],
    ["nd", 1, ["|S1", [1]], "é" * 2],
    ["nd", 1, ["<f8", [1]], "!"],
    ["nd", 1, [["<f8"], [1]], data(bytes(8))],
    ["nd", 1, [{"names": ["a"]}, [1]], 1],
    ["nd"],
    ["ns", "<f8", ""],
    ["ns", "<f8", data(bytes(2))],
    ["ns", "|V8", "x"],
    ["ns", "<f8", 1.0],
    ["ns", "<U1", "long"],
]


@pytest.fixture
def numpy_crosses(monkeypatch: pytest.MonkeyPatch) -> None:
    for table in ("_ENCODERS", "KINDS", "KINDS_BY_TAG", "_DECODERS"):
        monkeypatch.setattr(values, table, getattr(values, table).copy())
    arrays.install()


@pytest.mark.usefixtures("numpy_crosses")
@pytest.mark.parametrize("wire", WIRES, ids=map(str, WIRES))
def test_what_is_no_array_is_not_decoded(wire: list[object]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError, IndexError, AttributeError)):
        Decoder(Known(values.content_of, 0), values.refuse).decode(wire)
