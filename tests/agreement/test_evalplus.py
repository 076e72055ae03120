"""HumanEval by EvalPlus and by the environment's verifier, on the same completions.

EvalPlus runs no tests of HumanEval's: it compares what a program returns with what the benchmark's solution returns, for inputs
that come with EvalPlus's own data. The inputs here are those of HumanEval's tests, recorded.
"""

from __future__ import annotations

import ast
import json
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("evalplus", reason="needs EvalPlus, in the environment of make test-agreement")

from tests.agreement.programs import FENCED, JUDGE, Program, is_told_apart
from tests.agreement.runs import TIMEOUT_S, rows, run_grader, write_lines
from tests.agreement.tally import compare
from verifiers import Verdict

SCRIPT = f"""
import sys
from evalplus.evaluate import evaluate
evaluate("humaneval", sys.argv[1], base_only=True, parallel=2, min_time_limit={TIMEOUT_S})
"""
FIND_ZERO = "HumanEval/32"
"""The problem for which EvalPlus has an oracle, which does not count the inputs that pass (evalplus/evalplus, pull 201)."""
UNCOUNTED = "EvalPlus passes no program for HumanEval/32"
TRUTH = "the tests ask whether a result is true, EvalPlus which value it is"
EXPLAINED = {(JUDGE, False), (UNCOUNTED, True), (TRUTH, True)}


def recorded(row: dict[str, Any]) -> list[list[Any]]:
    """The arguments of each call that a problem's tests make."""
    namespace: dict[str, Any] = {}
    exec(row["prompt"] + row["canonical_solution"] + "\n" + row["test"], namespace)
    solution, calls = namespace[row["entry_point"]], []

    def candidate(*arguments: object) -> object:
        calls.append(json.loads(json.dumps(arguments)))
        return solution(*arguments)

    random.seed(0)  # two problems have tests that draw their inputs
    namespace["check"](candidate)
    return calls


def plus_row(row: dict[str, Any]) -> dict[str, Any]:
    """A problem in EvalPlus's format, without inputs of EvalPlus's own."""
    tolerance = 1e-4 if row["task_id"] == FIND_ZERO else 0
    return {**row, "contract": "", "base_input": recorded(row), "plus_input": [], "atol": tolerance}


@pytest.fixture(scope="module")
def results(human_eval_programs: list[Program], data: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What EvalPlus says of each completion, in their order; its `sanitize` finds the programs that are fenced."""
    from evalplus.sanitize import sanitize

    folder = tmp_path_factory.mktemp("evalplus")
    problems = {row["task_id"]: row for row in rows(data, "humaneval")}
    write_lines(folder / "problems.jsonl", list(map(plus_row, problems.values())))
    samples = []
    for program in human_eval_programs:
        row = problems[program.problem]
        text = row["prompt"] + program.text
        solution = sanitize(program.text, row["entry_point"]) if program.form == FENCED else text
        samples.append({"task_id": program.problem, "solution": solution})
    write_lines(folder / "samples.jsonl", samples)
    run_grader(
        SCRIPT,
        str(folder / "samples.jsonl"),
        HUMANEVAL_OVERRIDE_PATH=str(folder / "problems.jsonl"),
        XDG_CACHE_HOME=str(folder / "cache"),
        EVALPLUS_MAX_MEMORY_BYTES=str(2 << 30),
    )
    results = json.loads((folder / "samples_eval_results.json").read_text())["eval"]
    in_turn = {task: iter(statuses) for task, statuses in results.items()}
    return [next(in_turn[program.problem])["base_status"] for program in human_eval_programs]


def asks_for_truth(test: str) -> bool:
    """Whether an assertion is a bare call of the program, or its negation."""
    for node in ast.walk(ast.parse(test)):
        match node:
            case ast.Assert(test=ast.Call(func=ast.Name("candidate"))):
                return True
            case ast.Assert(test=ast.UnaryOp(ast.Not(), ast.Call(func=ast.Name("candidate")))):
                return True
    return False


def kind(program: Program, verdict: Verdict, row: dict[str, Any]) -> str | None:
    """Why the two disagree; None where nothing that is known explains it."""
    if is_told_apart(program, verdict):
        return JUDGE
    if program.problem == FIND_ZERO:
        return UNCOUNTED
    return TRUTH if verdict.score == 1 and asks_for_truth(row["test"]) else None


def test_every_disagreement_has_an_explanation(
    human_eval_programs: list[Program], human_eval_verdicts: list[Verdict], results: list[str], data: Path
) -> None:
    problems = {row["task_id"]: row for row in rows(data, "humaneval")}
    both = zip(human_eval_programs, human_eval_verdicts, strict=True)
    kinds = [kind(program, verdict, problems[program.problem]) for program, verdict in both]
    accepted = [result == "pass" for result in results]
    assert set(compare("EvalPlus", human_eval_programs, human_eval_verdicts, accepted, kinds)) == EXPLAINED
