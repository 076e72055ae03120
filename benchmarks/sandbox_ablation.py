"""What each mechanism of the sandbox buys: programs right and CPU time per program, with it and without it.

Programs are the reference solutions of HumanEval and MBPP, if `RLVR_DATA_DIR` names a folder that holds them, and the projects
in the folders given by `--tests`. Each of their subfolders is a project: files named `test_*.py` or `*_test.py` are test files,
other Python files are the program (`.meta/example.py`, as Exercism has it, is the module that the test file imports). All these
programs are right, so one that passes only without a mechanism is what the mechanism costs. CPU time is that of all processes
per program of HumanEval, or of a small set where that is missing; each round runs all programs with the mechanism and without.

    python benchmarks/sandbox_ablation.py [--tests FOLDER ...] [--only NAME ...] [--rounds 7] [--list]
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox import load_tasks, tree_cpu_s

from verifiers import Outcome, Problem
from verifiers.sandbox import worker
from verifiers.unit_tests import AssertTests, CheckTests, FunctionTests, UnitTestVerifier

BOOT = worker._BOOT
BEFORE_MAIN = "    main()\n"
assert BEFORE_MAIN in BOOT
TIMEOUT_S = 3.0
JAIL, TESTS = "verifiers.sandbox", "verifiers.unit_tests.separate"
NOTHING = "lambda *args, **kwargs: None"
PATCHES = {
    "page_pinning": f"from {JAIL}.server import start; start.pin_written_by = {NOTHING}",
    "cpu_affinity": f"from {JAIL}.server import affinity; affinity.Placement.begin = {NOTHING}",
    "idle_detection": f"from {JAIL}.server import idle; idle.Idleness.add = {NOTHING}",
    "devices": f"from {JAIL}.isolation import devices; devices.install = {NOTHING}",
    "side_effects": f"from {TESTS} import serve; serve._leave_no_trace = lambda tests: False",
    "kept_containers": f"""
from {TESTS} import known
known.Known.look = lambda self, look=known.Known.look: (look(self)[0], [*self._entries])
""",
    "changed_containers": f"from {TESTS} import known; known.Known.look = lambda self: ([], [*self._entries])",
    "callbacks": f"from {TESTS} import conversation; conversation._FUNCTIONS = ()",
    "prefix_objects": f"from {TESTS} import judging; judging.classes_of = lambda names, module: frozenset()",
}
"""For each mechanism, what switches it off in the fork server before its start. Most of what only keeps a program from choosing
its verdict is left out: where all programs are right it could only cost."""


@dataclass(frozen=True, slots=True)
class Task:
    """A right program and its tests."""

    suite: str
    name: str
    completion: str
    tests: CheckTests | AssertTests | FunctionTests


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a task."""

    right: bool
    passed: int
    """Cases."""


def human_eval(count: int) -> Iterator[Task]:
    for number, task in enumerate(load_tasks(count)):
        yield Task("HumanEval", f"HumanEval/{number}", task.completion, task.tests)


def mbpp() -> Iterator[Task]:
    for path in sorted((Path(os.environ.get("RLVR_DATA_DIR", "")) / "mbpp").glob("*.jsonl")):
        for row in map(json.loads, path.read_text().splitlines()):
            tests = AssertTests(tuple(row["test_list"]), row["test_setup_code"])
            yield Task("MBPP", f"MBPP/{row['task_id']}", f"```python\n{row['code']}\n```", tests)


def projects(folder: Path) -> Iterator[Task]:
    for project in sorted(path for path in folder.iterdir() if path.is_dir()):
        sources = {path: path.read_text(errors="replace") for path in sorted(project.rglob("*.py")) if path.is_file()}
        tests = {path: text for path, text in sources.items() if re.fullmatch(r"test_.*|.*_test", path.stem)}
        program = {
            path_in_program(path.relative_to(project)): text for path, text in sources.items() if path not in tests
        }
        for path, text in tests.items():
            example = program.get(".meta/example.py")
            files = program if example is None else {f"{path.stem.removesuffix('_test')}.py": example}
            task = project_task(f"{project.name}/{path.stem}", files, text)
            if task is not None:
                yield task


def path_in_program(path: Path) -> str:
    return path.as_posix().removeprefix("src/")


def project_task(name: str, program: Mapping[str, str], test: str) -> Task | None:
    """The task of one test file; None if the file imports nothing of the program, or is no Python."""
    files = {path: text for path, text in program.items() if re.fullmatch(r"(?:[A-Za-z_]\w*/)*[A-Za-z_]\w*\.py", path)}
    roots = {re.split(r"[/.]", path)[0] for path in files}
    try:
        imported = [root for root in imported_roots(ast.parse(test)) if root in roots]
    except SyntaxError:
        return None
    main = [path for root in imported[:1] for path in (f"{root}.py", f"{root}/__init__.py") if path in files]
    if not main:
        return None
    modules = tuple(dict.fromkeys(imported))
    fence = "`" * 8  # docstrings have shorter ones
    ordered = [*(path for path in files if path != main[0]), main[0]]
    blocks = [f"{fence}python {path}\n{files[path]}\n{fence}" for path in ordered if files[path].strip()]
    return Task("projects", name, "\n\n".join(blocks), FunctionTests(test, modules[0], modules=modules[1:]))


def imported_roots(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)


def verifier_without(mechanism: str | None, *, counts_cases: bool = False) -> UnitTestVerifier:
    """A verifier of one worker that has already started, with everything or without one mechanism."""
    lines = PATCHES[mechanism].strip().splitlines() if mechanism else []
    patch = "".join(f"    {line}\n" for line in lines)
    worker._BOOT = BOOT.replace(BEFORE_MAIN, patch + BEFORE_MAIN)
    try:
        verifier = UnitTestVerifier(workers=1, timeout_s=TIMEOUT_S, partial_credit=counts_cases)
        tests = CheckTests("one", "def check(candidate):\n    assert candidate() == 1\n")
        verdict = verifier("def one():\n    return 1\n", Problem("start", "", tests))
        assert verdict.score == 1, f"without {mechanism}: {verdict}"
        return verifier
    finally:
        worker._BOOT = BOOT


def judge(verifier: UnitTestVerifier, task: Task) -> Result:
    verdict = verifier(task.completion, Problem(task.name, "", task.tests))
    counted = verdict.outcome is not Outcome.VERIFIER_ERROR
    return Result(counted and verdict.score == 1, int(str(verdict.detail.get("passed", 0))) if counted else 0)


def results_without(mechanism: str | None, tasks: list[Task]) -> list[Result]:
    verifier = verifier_without(mechanism, counts_cases=True)
    try:
        return [judge(verifier, task) for task in tasks]
    finally:
        verifier.close()


def cpu_ms(verifier: UnitTestVerifier, tasks: list[Task]) -> float:
    before = tree_cpu_s()
    for task in tasks:
        verifier(task.completion, Problem(task.name, "", task.tests))
    return 1000 * (tree_cpu_s() - before) / len(tasks)


def paired_cpu_ms(mechanism: str, tasks: list[Task], rounds: int) -> tuple[float, float, float]:
    """Medians of the CPU time per program with everything, without the mechanism, and of the ratio in each round."""
    verifiers = verifier_without(None), verifier_without(mechanism)
    try:
        pairs = [tuple(cpu_ms(verifier, tasks) for verifier in verifiers) for _ in range(rounds + 1)][1:]
    finally:
        for verifier in verifiers:
            verifier.close()
    ratios = statistics.median(without / everything for everything, without in pairs)
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs), ratios


def report(
    mechanism: str, tasks: list[Task], everything: list[Result], cost: tuple[float, float, float] | None
) -> None:
    results = results_without(mechanism, tasks)
    cells = []
    for suite in dict.fromkeys(task.suite for task in tasks):
        pairs = [(a, b) for task, a, b in zip(tasks, everything, results, strict=True) if task.suite == suite]
        buys = sum(a.right and not b.right for a, b in pairs)
        costs = sum(b.right and not a.right for a, b in pairs)
        cases = sum(a.passed - b.passed for a, b in pairs)
        cells.append(f"{suite} buys {buys} costs {costs} ({cases:+d} cases)")
    time = f"{cost[0]:.2f} -> {cost[1]:.2f} ms ({cost[2] - 1:+.0%})" if cost else "-"
    print(f"{mechanism:18} {time:28} {'; '.join(cells)}", flush=True)
    for task, a, b in zip(tasks, everything, results, strict=True):
        if a != b:
            print(f"    {task.name}: {a.passed} cases with it, {b.passed} without", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=Path, nargs="+", default=[], help="folders of projects with test files")
    parser.add_argument(
        "--only", nargs="+", choices=PATCHES, default=list(PATCHES), help="the mechanisms to switch off"
    )
    parser.add_argument("--programs", type=int, default=164, help="how many programs of HumanEval")
    parser.add_argument("--rounds", type=int, default=7, help="pairs of runs for the CPU time; 0 for none")
    parser.add_argument("--list", action="store_true", help="say which programs are wrong with everything on")
    arguments = parser.parse_args()
    timed = list(human_eval(arguments.programs))
    tasks = [*timed, *mbpp(), *(task for folder in arguments.tests for task in projects(folder))]
    everything = results_without(None, tasks)
    for suite in dict.fromkeys(task.suite for task in tasks):
        results = [result for task, result in zip(tasks, everything, strict=True) if task.suite == suite]
        right, passed = sum(result.right for result in results), sum(result.passed for result in results)
        print(f"{suite}: {right} of {len(results)} programs right, {passed} cases passed", flush=True)
    if arguments.list:
        print("\n".join(task.name for task, result in zip(tasks, everything, strict=True) if not result.right))
    for mechanism in arguments.only:
        cost = paired_cpu_ms(mechanism, timed, arguments.rounds) if arguments.rounds else None
        report(mechanism, tasks, everything, cost)


if __name__ == "__main__":
    main()
