"""The interpreter: cells see those before them, nothing else remains, and the sandbox holds."""

from __future__ import annotations

import re

import pytest

from rlvr_envs.tools import PythonTool, ToolUseError


@pytest.fixture(scope="module")
def python() -> PythonTool:
    return PythonTool(timeout_s=1.0)


def run(tool: PythonTool, *cells: str) -> str:
    *earlier, last = [{"code": cell} for cell in cells]
    return tool(last, earlier)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["1 + 1"], "2"),
        (["print('é')\n'x'"], "é\n'x'"),
        (["x = 3"], "(no output)"),
        (["x = 3\nprint('once')", "x += 1", "x"], "4"),
        (["import random; a = random.random()", "a", "a"], None),
        (["x = 1\nraise ValueError('no')", "x"], "1"),
        (["import sys; sys.exit(3)", "5"], "5"),
    ],
)  # fmt: skip
def test_cells_see_what_earlier_ones_defined(python: PythonTool, cells: list[str], said: str | None) -> None:
    if said is None:
        assert run(python, *cells) == run(python, *cells[:2])
    else:
        assert run(python, *cells) == said


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("print('before')\n1 / 0", "before\ncell 1, line 2: 1 / 0\nZeroDivisionError: division by zero"),
        (
            "def f():\n    return undefined\nf()",
            "cell 1, line 2: return undefined\nNameError: name 'undefined' is not defined",
        ),
        ("1 +", "SyntaxError: invalid syntax"),
        ("while True:\n    pass", "TimeoutError: the cell took more than 1 s of CPU time"),
        ("class Error(Exception):\n    pass\nraise Error('mine')", "Error: mine"),
    ],
)
def test_a_mistake_is_answered_with_what_python_says(python: PythonTool, code: str, said: str) -> None:
    answer = run(python, code)
    for line in said.splitlines():
        assert line in answer


REFUSED = "Error|denied|not permitted|forbid"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("open('/tmp/x', 'w')", REFUSED),
        ("open('/etc/passwd').read()", REFUSED),
        ("import socket; socket.create_connection(('127.0.0.1', 1))", REFUSED),
        ("import os; os.fork()", REFUSED),
        ("import os; os.system('ls /')", REFUSED + "|-1|[1-9]\\d*"),
        ("x = [0] * 10**9", "MemoryError"),
        ("import os; os._exit(3)", "the interpreter ended"),
        ("while True: print('x' * 10**6)", "printed too much|took more than"),
        ("import signal\nsignal.setitimer(signal.ITIMER_PROF, 0)\nwhile True: pass", "took too much time"),
    ],
)
def test_the_sandbox_holds_and_limits_end_a_cell_and_say_so(python: PythonTool, code: str, said: str) -> None:
    try:
        answer = run(python, code)
    except ToolUseError as error:
        answer = f"Error: {error}" if said.startswith(REFUSED) else str(error)
    assert "root:" not in answer
    assert re.search(said, answer), answer[:300]


def test_episodes_share_nothing(python: PythonTool) -> None:
    run(python, "secret = 42\nimport builtins; builtins.leak = 43")
    assert "NameError" in run(python, "secret")
    assert "NameError" in run(python, "leak")
