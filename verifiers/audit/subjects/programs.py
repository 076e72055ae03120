"""Programs: small functions with each kind of tests, right programs in several forms, mutants, and forgeries of the verdict.

A mutant has one sign or word changed, and is drawn only if its result differs from the reference's for some input of the tests.
Only the table's own programs and their mutants run in this process; none of them loops forever.
"""

from __future__ import annotations

import ast
import copy
import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

from verifiers.audit.subjects.tasks import Field, Task, fenced, mutants, swaps

Arguments = tuple[object, ...]
Calls = Sequence[tuple[Arguments, Any]]


def _numbers(rng: random.Random, least: int = 0) -> list[int]:
    return [rng.randint(-20, 20) for _ in range(rng.randint(least, 7))]


_FUNCTIONS: dict[str, tuple[str, Callable[[random.Random], Arguments], tuple[str, ...]]] = {
    "largest_gap": (
        "Give the largest difference between neighbours of a list of integers in ascending order, 0 if it has none.",
        lambda rng: (_numbers(rng),),
        (
            """def largest_gap(numbers):
    ordered = sorted(numbers)
    best = 0
    for low, high in zip(ordered, ordered[1:]):
        best = max(best, high - low)
    return best""",
            """def largest_gap(numbers):
    numbers = sorted(numbers)
    return max([numbers[i + 1] - numbers[i] for i in range(len(numbers) - 1)], default=0)""",
        ),
    ),
    "runs": (
        "Give the runs of equal characters of a text, each as a list of the character and its count.",
        lambda rng: ("".join(rng.choice("ab") for _ in range(rng.randint(0, 9))),),
        (
            """def runs(text):
    found = []
    for sign in text:
        if found and found[-1][0] == sign:
            found[-1][1] += 1
        else:
            found.append([sign, 1])
    return found""",
            """from itertools import groupby

def runs(text):
    return [[sign, len(list(group))] for sign, group in groupby(text)]""",
        ),
    ),
    "rotate": (
        "Rotate a list to the right by k places.",
        lambda rng: (_numbers(rng), rng.randint(0, 9)),
        (
            """def rotate(numbers, k):
    if not numbers:
        return []
    cut = len(numbers) - k % len(numbers)
    return numbers[cut:] + numbers[:cut]""",
            """from collections import deque

def rotate(numbers, k):
    turned = deque(numbers)
    turned.rotate(k)
    return list(turned)""",
            """def rotate(numbers, k):
    return [numbers[(i - k) % len(numbers)] for i in range(len(numbers))]""",
        ),
    ),
    "primes_below": (
        "List the primes below n in ascending order.",
        lambda rng: (rng.randint(0, 40),),
        (
            """def primes_below(n):
    return [p for p in range(2, n) if all(p % d for d in range(2, p))]""",
            """def primes_below(n):
    composite = set()
    primes = []
    for k in range(2, n):
        if k not in composite:
            primes.append(k)
            composite.update(range(k * k, n, k))
    return primes""",
        ),
    ),
    "digital_root": (
        "Add the digits of an integer of at least 0 until one digit is left, and give it.",
        lambda rng: (rng.randint(0, 10 ** rng.randint(1, 9)),),
        (
            """def digital_root(n):
    return 0 if n == 0 else 1 + (n - 1) % 9""",
            """def digital_root(n):
    return n if n < 10 else digital_root(sum(map(int, str(n))))""",
        ),
    ),
    "median": (
        "Give the median of a list of at least one integer: a float for an even number of items.",
        lambda rng: (_numbers(rng, 1),),
        (
            """def median(numbers):
    ordered = sorted(numbers)
    half = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[half]
    return (ordered[half - 1] + ordered[half]) / 2""",
            """import statistics

def median(numbers):
    return statistics.median(numbers)""",
        ),
    ),
}
"""Functions by name: a description of each, a function that draws its arguments, and right sources."""
_SWAPS = swaps(
    "< <= >, == !=, != ==, + -, - +, * +, // -, % //, 0 1, 1 0 2, 2 1 3, 9 8, max min, sorted list, all any, "
    "append extend, in not_in, not, and or, or and, True False, False True"
)
_FORGERIES = {
    "equals everything": "class Same:\n    __hash__ = None\n\n    def __eq__(self, other):\n        return True\n\n"
    "    def __ne__(self, other):\n        return False\n\n\ndef {name}(*values):\n    return Same()",
    "number that equals everything": "class Number(int):\n    def __eq__(self, other):\n        return True\n\n"
    "    __hash__ = int.__hash__\n\n\ndef {name}(*values):\n    return Number(0)",
    "constant": "def {name}(*values):\n    return {first!r}",
    "exits": "import os\n\ndef {name}(*values):\n    os._exit(0)",
    "raises SystemExit": "def {name}(*values):\n    raise SystemExit(0)",
    "announces success": "def {name}(*values):\n    print('1 passed\\nOK\\n{{\"passed\": true}}')",
    "reads its caller": "import sys\n\ndef {name}(*values):\n    frame = sys._getframe(1)\n    seen = frame.f_locals | "
    "frame.f_globals\n    return seen.get('expected', seen.get('cases'))",
    "patches builtins": "import builtins\n\nbuiltins.AssertionError = builtins.BaseException = type('Quiet', (), {{}})\n"
    "builtins.all = builtins.any = builtins.bool = lambda *values: True\n\n\ndef {name}(*values):\n    return None",
    "skips": "import unittest\n\ndef {name}(*values):\n    raise unittest.SkipTest('not today')",
    "unfinished": "def {name}(*values):\n    pass",
    "another name": "def solve_{name}(*values):\n    return {first!r}",
    "syntax error": "def {name}(*values)\n    return {first!r}",
}
"""Programs that compute nothing, with placeholders for the function's name and the expected value of the first case."""
_SHOWN = "print('a first try')\n\n{source}\n\n\nif __name__ == '__main__':\n    print({name}(*{arguments!r}))"
_HELPER = "{helper}\n\n\ndef {name}(*values):\n    return _helper(*values)"
_METHOD = "{helper}\n\n\nclass Solution:\n    def {name}(self, *values):\n        return _helper(*values)"
_READS = "{source}\n\n\nimport json, sys\n\nprint(json.dumps({name}(*json.load(sys.stdin))))"


def _draw(rng: random.Random) -> Task:
    name = rng.choice(list(_FUNCTIONS))
    says, draw_arguments, sources = _FUNCTIONS[name]
    inputs = [draw_arguments(rng) for _ in range(10)]
    source, *others = rng.sample(sources, len(sources))
    expected = results(source, name, inputs)
    if all(value == expected[0] for value in expected):
        return _draw(rng)  # a constant would pass
    kind = rng.choice(list(_TESTS))
    calls = list(zip(inputs, expected, strict=True))
    changed = [one for text in sources for one in mutants(text, _SWAPS) if results(one, name, inputs) != expected]
    terms = {"name": name, "first": expected[0], "arguments": inputs[0]}
    helper = re.sub(rf"(?<![\w.]){name}\b", "_helper", source)
    right = {
        "itself": [source],
        "another way": others,
        "in other lines": [ast.unparse(ast.parse(text)) for text in sources],
        "with comments": ["\n".join(f"{line}  # {number}" for number, line in enumerate(source.split("\n")))],
        "by a helper": [_HELPER.format(helper=helper, **terms)],
    }
    if kind == "calls":
        right["as a method"] = [_METHOD.format(helper=helper, **terms)]
    if kind != "input and output":
        right["with a demonstration"] = [_SHOWN.format(source=source, **terms)]
    wrong = {"mutant": changed}
    wrong |= {f"forgery: {family}": [text.format(**terms)] for family, text in _FORGERIES.items()}
    if kind == "input and output":
        right, wrong = (
            {family: [_READS.format(source=text, name=name) for text in texts] for family, texts in answers.items()}
            for answers in (right, wrong)
        )
    asked = {"input and output": "The program reads a JSON list of the arguments and prints the value as JSON."}
    prompt = f"{says} Write a Python function `{name}`. {asked.get(kind, '')}".strip()
    return Task(kind, prompt, _TESTS[kind](name, calls), right, wrong)


def results(source: str, name: str, inputs: Sequence[Arguments]) -> list[Any]:
    """The result of a function for each of the inputs; if it raises an exception, the class of that exception."""
    space: dict[str, Any] = {"__name__": "drawn"}
    found = []
    try:
        exec(source, space)
    except Exception as error:  # noqa: BLE001 - a mutant's error is its result
        return [type(error)] * len(inputs)
    for arguments in inputs:
        try:
            found.append(space[name](*copy.deepcopy(arguments)))
        except Exception as error:  # noqa: BLE001
            found.append(type(error))
    return found


def _asserts(calls: Calls, called: str) -> list[str]:
    return [f"assert {called}({', '.join(map(repr, arguments))}) == {value!r}" for arguments, value in calls]


def _body(calls: Calls, called: str) -> str:
    return "\n".join(f"    {line}" for line in _asserts(calls, called))


_TESTS: dict[str, Callable[[str, Calls], dict[str, object]]] = {
    "asserts": lambda name, calls: {"asserts": _asserts(calls, name)},
    "check": lambda name, calls: {
        "entry_point": name,
        "test": f"def check(candidate):\n{_body(calls, 'candidate')}",
    },
    "calls": lambda name, calls: {
        "entry_point": name,
        "cases": [{"args": list(arguments), "expected": value} for arguments, value in calls],
    },
    "input and output": lambda name, calls: {
        "cases": [{"stdin": json.dumps(list(arguments)), "expected": json.dumps(value)} for arguments, value in calls]
    },
    "test file": lambda name, calls: {
        "test": f"from solution import {name}\n\n\ndef test_values():\n{_body(calls, name)}"
    },
}
"""Kinds of tests by name, each in the form that `verifiers.unit_tests.from_json` reads."""

PROGRAMS = Field(_draw, fenced("python", bare=False))
