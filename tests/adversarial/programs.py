"""Hostile programs, by class. Each is to define `solve(n)`, which should return n * n + 7, and none does."""

from __future__ import annotations

import textwrap

from tests.sandbox import load

HONEST = """
def solve(n):
    return n * n + 7
"""
THREADS = """
import threading
def f(n):
    started, go = 0, threading.Event()
    threading.stack_size(32768)
    try:
        while started < 5000:
            threading.Thread(target=go.wait).start()
            started += 1
    except RuntimeError: pass
    go.set()
    return started
"""
"""Counts the threads that it can start."""

_SEND = """import os
def send(data):
    for fd in range(3, 16):
        try: os.write(fd, data)
        except OSError: pass
"""
"""Goes before a program that calls `send`: whichever descriptor leads to its tester, this finds it."""

_DATA = load("adversarial/hostile")
_MADE: dict[str, list[str]] = {
    "broken source": [
        "def solve(n) return n",
        "(" * 10000,
        "[" * 150 + "]" * 150 + "\n" + "-" * 100000 + "1",
        "def solve(n):\n\treturn n\n        return n",
        "def solve(n):\n    return '\x00'",
        "\ud800",
        "x = " + "+".join(["1"] * 50000),
        "x = " + "[" + "0," * 1000000 + "]",
        "a" * 3000000,
        "solve = 3",
        "solve = None\ndel solve",
        "async def solve(n): return n * n + 7",
        "def solve(): return 1",
        "def solve(n):\n    yield n * n + 7",
        "lambda: (yield)",
        "import this_is_no_module\ndef solve(n): return n * n + 7",
        "# coding: rot13\ndef solve(n): return 1",
        "from __future__ import braces",
        "def solve(n):\n" + "".join(" " * d + "if n:\n" for d in range(1, 130)) + " " * 130 + "return 1",
    ],
    "strange source": [
        "def solve(n): return 0\n" + "#" * (20 << 20),
        "def solve(n): return 0\n" + "\n".join(f"def f{i}(): return {i}" for i in range(50000)),
        "def solve(n): return " + "(" * 90 + "0" + ")" * 90 + "\nx = " + "-" * 9000 + "1",
        "solve = " + "lambda: " * 3000 + "0",
        "def solve(n): return f'{{{{{{n}}}}}}'",
        "def solve(n): return '\udcff\udcfe'",
        "\ufeffdef solve(n): return 0",
        "\fdef solve(n): return 0",
        "def solve(n):\n\tif n:\n        return 0\n\treturn 1",
        "def solve(n):\n    print 'hi'\n    return n",
        "def solve(n):\n    match n:\n" + "".join(f"        case {i}: return {i}\n" for i in range(5000)),
    ],
}
"""Whole programs that are too long, or too odd, to be written down."""
_ORDER = (
    *("early exits", "patched builtins", "poisoned modules", "broken source", "loading", "patched modules", "names"),
    *("loading 2", "strange source"),
)
"""Which program meets which kind of tests depends on it."""


def programs() -> list[tuple[str, str]]:
    """Every hostile program as (name, source); CANARY and TARGET in the text stand for a file and a folder."""
    wrapped = {
        kind: ["def solve(n):\n" + textwrap.indent(body, "    ") for body in group]
        for kind, group in _DATA["bodies"].items()
    }
    whole = _DATA["files"] | _MADE
    assert {*whole} == {*_ORDER}
    return [
        (f"{kind} {number}", _SEND + source if "send(" in source else source)
        for groups in (wrapped, {kind: whole[kind] for kind in _ORDER})
        for kind, group in groups.items()
        for number, source in enumerate(group, 1 if groups is wrapped else 101)
    ]
