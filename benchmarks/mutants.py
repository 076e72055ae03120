"""The share of seeded faults that the tests find: each mutant changes one place of a module, and its tests should fail.

A mutant changes a comparison, an arithmetic or boolean operator, a constant or a returned value, turns a condition round, or
removes a statement. It runs in a scratch copy of a committed revision, so that two revisions of the tests are compared on the
same mutants. Only the named tests run, not all of `make test`: what others would find counts as surviving here.

    python benchmarks/mutants.py [--each 9] [--seed 0] [--revision HEAD] [--only losses kl]
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import cache_from_source
from pathlib import Path

ROOT = Path(__file__).parent.parent
Edit = Callable[[], object]
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
REMOVED = (ast.AugAssign, ast.Raise, ast.If, ast.Continue, ast.Break)
"""Statements that a program can lack; without an assignment it would fail at once."""
STAYS = ("annotation", "returns", "decorator_list", "exc")
"""Fields that do not compute: of definitions, and the message of an error."""
STATEMENTS = ("body", "orelse", "finalbody")


AGENTS, ENVS = "tests/agents/test_", "tests/envs/test_"
VERIFIERS, MATH = "tests/verifiers/test_", "tests/math/test_math_"
REFERENCE = f"{AGENTS}numpy_reference.py"
SUBJECTS: dict[str, tuple[str, list[str]]] = {
    "advantages": ("agents/advantages.py", [f"{AGENTS}advantages.py", REFERENCE, f"{AGENTS}turn_credit.py"]),
    "losses": ("agents/losses.py", [f"{AGENTS}losses.py", REFERENCE, f"{AGENTS}metrics.py", f"{AGENTS}dpo.py"]),
    "kl": ("agents/kl.py", [f"{AGENTS}losses.py", REFERENCE]),
    "statistics": (
        "verifiers/statistics.py",
        [f"{VERIFIERS}statistics.py", f"{AGENTS}clusters.py", f"{AGENTS}evaluation.py"],
    ),
    "streams": ("rlvr_envs/streams.py", [f"{ENVS}streams.py", f"{ENVS}turn_ends.py"]),
    "composition": ("verifiers/composition.py", [f"{VERIFIERS}composition.py", "tests/data/test_data_layouts.py"]),
    "completion": ("verifiers/completion/*.py", ["tests/completion", f"{MATH}extract.py", f"{MATH}completions.py"]),
}
"""For each subject, a pattern of modules and the files of the core's tests that are meant to find their faults."""


def edits(node: ast.AST) -> Iterator[tuple[int, Edit]]:
    """Every change of one place below a node, with the number of its line; docstrings, annotations and messages stay."""
    yield from ((getattr(node, "lineno", 0), edit) for edit in edits_of(node))
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in STAYS and not is_docstring(child):
                yield from edits(child)


def edits_of(node: ast.AST) -> Iterator[Edit]:
    match node:
        case ast.Compare(ops=[operator, *others]):
            yield lambda: setattr(node, "ops", [COMPARISONS[type(operator)](), *others])
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if type(operator) in ARITHMETIC:
            yield lambda: setattr(node, "op", ARITHMETIC[type(operator)]())
        case ast.BoolOp(op=operator):
            yield lambda: setattr(node, "op", ast.Or() if isinstance(operator, ast.And) else ast.And())
        case ast.If(test=test) | ast.IfExp(test=test):
            yield lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), test))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield lambda: setattr(node, "op", ast.Not()) or setattr(node, "operand", ast.UnaryOp(ast.Not(), operand))
        case ast.UnaryOp(op=ast.USub()):
            yield lambda: setattr(node, "op", ast.UAdd())
        case ast.Return(value=ast.expr()):
            yield lambda: setattr(node, "value", ast.Constant(None))
        case ast.Constant(value=bool(value)):
            yield lambda: setattr(node, "value", not value)
        case ast.Constant(value=int(value) | float(value)):
            yield lambda: setattr(node, "value", value + 1)
        case ast.Constant(value=str(value)):
            yield lambda: setattr(node, "value", f"{value}x")
    for field in STATEMENTS if isinstance(node, ast.stmt) else ():
        block = getattr(node, field, [])
        for index, statement in enumerate(block):
            is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
            if is_call or isinstance(statement, REMOVED):
                yield lambda block=block, index=index: block.__setitem__(index, ast.Pass())


def is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def mutant(source: str, number: int) -> tuple[int, str]:
    """The line and the text of a module's mutant; what the module's own formatting was is lost."""
    tree = ast.parse(source)
    line, edit = list(edits(tree))[number]
    edit()
    return line, ast.unparse(ast.fix_missing_locations(tree))


class Scratch:
    """A copy of a revision in which tests run."""

    def __init__(self, folder: Path, revision: str) -> None:
        self.folder = folder
        archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True)
        subprocess.run(["tar", "x", "-C", str(folder)], input=archive.stdout, check=True)
        self.environment = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}

    def fails(self, tests: list[str], timeout_s: float) -> bool:
        """Whether a test fails, or they take longer than the limit."""
        pytest = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--part", "core"]
        command = [*pytest, *(test for test in tests if (self.folder / test).exists())]
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=self.environment, capture_output=True, timeout=timeout_s, check=False
            )
        except subprocess.TimeoutExpired:
            return True
        return done.returncode != 0

    def kills(self, path: Path, text: str, tests: list[str], timeout_s: float) -> bool:
        """Whether the tests find that a module's text is another."""
        source = path.read_text(encoding="utf-8")
        for changed in (text, source):
            Path(cache_from_source(str(path))).unlink(missing_ok=True)
            path.write_text(changed, encoding="utf-8")
            if changed is text:
                killed = self.fails(tests, timeout_s)
        return killed


def measure(scratch: Scratch, name: str, each: int, seed: int) -> tuple[int, int]:
    """How many mutants of a subject there are and are killed; what survives is printed."""
    pattern, tests = SUBJECTS[name]
    started = time.monotonic()
    if scratch.fails(tests, 3600):
        raise SystemExit(f"the tests of {name} fail, or are none, without a fault: {' '.join(tests)}")
    timeout_s = 30 + 4 * (time.monotonic() - started)
    paths = sorted(scratch.folder.glob(pattern))
    places = [(path, n) for path in paths for n in range(len(list(edits(ast.parse(path.read_text(encoding="utf-8"))))))]
    drawn = random.Random(f"{seed} {name}").sample(places, min(each, len(places)))
    killed = 0
    for path, number in drawn:
        line, text = mutant(path.read_text(encoding="utf-8"), number)
        if scratch.kills(path, text, tests, timeout_s):
            killed += 1
        else:
            print(f"survives: {path.relative_to(scratch.folder)}:{line}, change {number}", file=sys.stderr, flush=True)
    return len(drawn), killed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=9, help="mutants of each subject")
    parser.add_argument("--seed", type=int, default=0, help="chooses the mutants")
    parser.add_argument("--revision", default="HEAD", help="of the repository, whose sources and tests are taken")
    parser.add_argument("--only", nargs="*", choices=sorted(SUBJECTS), default=list(SUBJECTS), help="what to measure")
    arguments = parser.parse_args()
    print("| module | mutants | killed | share |\n|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        scratch, total = Scratch(Path(folder), arguments.revision), [0, 0]
        for name in arguments.only:
            row = measure(scratch, name, arguments.each, arguments.seed)
            total = [sum(pair) for pair in zip(total, row, strict=True)]
            print_row(name, *row)
        print_row("all", *total)


def print_row(name: str, drawn: int, killed: int) -> None:
    print(f"| {name} | {drawn} | {killed} | {killed / max(drawn, 1):.0%} |", flush=True)


if __name__ == "__main__":
    main()
