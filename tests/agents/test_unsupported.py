"""What a verifier does not support is counted in every report."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from agents.learn.metrics import summarize
from agents.learn.verifier_errors import VerifierWatch
from agents.runs.evaluation import summarize_evaluation
from agents.runs.evaluation_record import Sample
from agents.runs.verdicts import is_unsupported
from agents.types import Trajectory
from tests.agents.trajectories import trajectory
from tests.commands import Command
from verifiers import Outcome, Verdict

UNSUPPORTED = Verdict.of(Outcome.INCORRECT, detail={"failure": "unsupported"})
WRONG = Verdict.of(Outcome.INCORRECT, detail={"failure": "wrong_answer"})
BROKEN = Verdict.of(Outcome.VERIFIER_ERROR, detail={"failure": "unsupported", "reason": "no"})


def test_which_verdicts_count() -> None:
    part = {"outcome": Outcome.INCORRECT, "detail": {"failure": "unsupported"}}
    composed = Verdict(0.5, Outcome.SCORED, detail={"parts": {"tests": part, "other": {"detail": None}}})
    assert [is_unsupported(verdict) for verdict in (UNSUPPORTED, WRONG, BROKEN, composed)] == [True, False, False, True]


def test_training_and_evaluation_count_them() -> None:
    verdicts = (UNSUPPORTED, WRONG, UNSUPPORTED)
    episodes = [trajectory([0, 1], rewards=[0.0, 0.0], verdict=verdict) for verdict in verdicts]
    assert summarize(episodes)["unsupported"] == 2
    rows = [Sample.of(episode, problem=0, sample=number) for number, episode in enumerate(episodes)]
    result = summarize_evaluation(rows, 1, 3, trajectories=episodes)
    assert result.summary()["unsupported"] == 2
    assert "2 unsupported by the verifier" in str(result)


def test_training_names_a_problem_whose_every_completion_was_unsupported_once() -> None:
    def episode(problem: str, verdict: Verdict) -> Trajectory:
        return dataclasses.replace(trajectory([0, 1], rewards=[0.0, 0.0], verdict=verdict), problem_id=problem)

    watch = VerifierWatch(1.0)
    pairs = {"never": (UNSUPPORTED, UNSUPPORTED), "sometimes": (UNSUPPORTED, WRONG), "single": (UNSUPPORTED,)}
    batch = [episode(problem, verdict) for problem, verdicts in pairs.items() for verdict in verdicts]
    (message,) = watch.unsupported(batch)
    assert "every completion of problem 'never'" in message
    assert watch.unsupported(batch) == []


def test_check_dataset_lists_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rlvr: Command) -> None:
    gold = "    class N:\n        def __eq__(self, other): return other == 2 * x\n    return N()\n"
    row = {"prompt": "def double(x):\n", "entry_point": "double", "test": "def check(c):\n    assert c(2) == 4\n"}
    rows = [
        {**row, "task_id": f"HumanEval/{number}", "canonical_solution": solution}
        for number, solution in enumerate(("    return 2 * x\n", gold))
    ]
    (tmp_path / "humaneval").mkdir()
    (tmp_path / "humaneval" / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setenv("RLVR_DATA_DIR", str(tmp_path))
    code, output, _ = rlvr("check-dataset", "HumanEval")
    assert code == 1
    assert "1 of 2 gold completions pass, 1 incorrect" in output
    assert "test: the verifier does not support the tests of HumanEval/1" in output
