"""Completions for HumanEval and MBPP: the benchmarks' own solutions, mutants of them, and programs that compute nothing."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass
from typing import Any

from tests.agreement.mutants import mutant
from verifiers import Verdict

SOLUTION, MUTANT, WHOLE, FENCED = "the benchmark's solution", "a mutant", "a whole program", "a fenced program in prose"
EQUAL, NONE, EXIT, ENDLESS, SYNTAX_ERROR = (
    "an object that equals everything",
    "`None`",
    "the process ends with status 0",
    "an endless loop",
    "a syntax error",
)
"""The forms of completions; those of the last five are the same for every problem."""

JUDGE = "the program's own `==` decides"
"""Why other graders accept an object that equals everything."""

_HOLLOW = {
    EQUAL: """
class Anything:
    def __eq__(self, other):
        return True
    def __ne__(self, other):
        return False
    def __hash__(self):
        return 0
return Anything()
""",
    NONE: "return None\n",
    EXIT: "import sys\nsys.exit(0)\n",
    ENDLESS: "while True:\n    pass\n",
    SYNTAX_ERROR: "return (\n",
}
_ENDLESS_EVERY = 400
"""Of how many problems one gets an endless loop, which costs its whole time limit with each grader."""
_HOLLOW_EVERY = 4
_FENCED_EVERY = 4


@dataclass(frozen=True)
class Program:
    problem: str
    """The problem's id."""
    form: str
    text: str

    def __str__(self) -> str:
        return f"{self.problem}, {self.form}"


def is_told_apart(program: Program, verdict: Verdict) -> bool:
    """Whether it is an object that equals everything, to which we pay nothing: its `==` is never asked."""
    return program.form == EQUAL and verdict.detail["failure"] in ("wrong_answer", "unsupported")


def _fenced(program: str) -> str:
    return f"This function does it:\n\n```python\n{program}\n```\n\nIt passes the tests."


def _body(program: str, function: str) -> str:
    """What a function does behind its docstring, indented."""
    named = [node for node in ast.walk(ast.parse(program)) if isinstance(node, ast.FunctionDef)]
    statements = [node for node in named if node.name == function][-1].body[1:]
    return textwrap.indent("".join(f"{ast.unparse(statement)}\n" for statement in statements), "    ")


def _hollow(number: int) -> list[tuple[str, str]]:
    """The hollow function that a problem gets, if it gets one: its form, and its indented body."""
    if number % _HOLLOW_EVERY:
        return []
    form = ENDLESS if number % _ENDLESS_EVERY == 0 else (EQUAL, NONE, EXIT, SYNTAX_ERROR)[number // _HOLLOW_EVERY % 4]
    return [(form, textwrap.indent(_HOLLOW[form], "    "))]


def human_eval(rows: list[dict[str, Any]]) -> list[Program]:
    """Completions of HumanEval's prompts."""
    programs = []
    for number, row in enumerate(rows):
        task, prompt, function = row["task_id"], row["prompt"], row["entry_point"]
        whole = prompt + row["canonical_solution"]
        texts = [(SOLUTION, row["canonical_solution"]), (WHOLE, f"\n{whole}")]
        if number % _FENCED_EVERY == 0:
            texts.append((FENCED, _fenced(whole)))
        for seed in (f"{task} first", f"{task} second"):
            changed = mutant(whole, function, seed, prompt.count("\n") + 1)
            if changed is not None:
                texts.append((MUTANT, _body(changed, function)))
        texts += _hollow(number)
        programs += [Program(task, form, text) for form, text in texts]
    return programs


def mbpp(rows: list[dict[str, Any]]) -> list[Program]:
    """Programs for MBPP's tasks."""
    programs = []
    for number, row in enumerate(rows):
        task, code = f"mbpp/{row['task_id']}", row["code"].replace("\r\n", "\n")
        function = _tested(row)
        texts = [(SOLUTION, code)]
        changed = mutant(code, function, task)
        if changed is not None:
            texts.append((MUTANT, changed))
        texts += [(form, f"def {function}(*arguments):\n{body}") for form, body in _hollow(number)]
        programs += [Program(task, form, text) for form, text in texts]
    return programs


def _tested(row: dict[str, Any]) -> str:
    """The function of a program that its first test calls, the outermost where there are several."""
    defined = {node.name for node in ast.walk(ast.parse(row["code"])) if isinstance(node, ast.FunctionDef)}
    called = [node.id for node in ast.walk(ast.parse(row["test_list"][0])) if isinstance(node, ast.Name)]
    return next(name for name in called if name in defined)
