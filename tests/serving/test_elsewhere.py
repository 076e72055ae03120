"""Verifiers behind an address or in a program: the same verdicts as here, errors as errors, and audits of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import verifiers
from tests.serving.service import exactly, serving
from verifiers import InvalidArgumentError, Message, Outcome, Problem, UnreadableReferenceError, audit_verifier
from verifiers.audit import ATTACKS

FOUR = Problem("4", (Message("user", "2+2?"),), "4", {"level": 1})
ECHO = """
import json, sys
item = json.load(sys.stdin)
print("reading", item["id"])
if item["completion"] == "break":
    sys.exit("the pool died")
print(json.dumps({answer}))
"""


def program(folder: Path, answer: str) -> str:
    path = folder / "grade.py"
    path.write_text(ECHO.replace("{answer}", answer))
    return f"{sys.executable} {path}"


def test_a_server_gives_the_verdicts_of_its_verifier() -> None:
    with serving(token="secret-token") as client:
        address = f"http://127.0.0.1:{client.port}"
        made = verifiers.make(address, token="secret-token")
        assert made("4", FOUR) == verifiers.from_function(exactly)("4", FOUR)
        assert made("5", FOUR).outcome is Outcome.INCORRECT
        broken = made("break", FOUR)
        assert broken.outcome is Outcome.VERIFIER_ERROR
        assert "the pool died" in str(broken.detail["error"])
        refused = verifiers.make("served", address=address)("4", FOUR)
        assert "401" in str(refused.detail["error"])
    gone = made("4", FOUR)
    assert gone.outcome is Outcome.VERIFIER_ERROR
    assert "no verifier answers" in str(gone.detail["error"])


@pytest.mark.parametrize(
    ("answer", "outcome", "score"),
    [
        ('{"outcome": "correct", "answer": item["prompt"][0]["content"]}', Outcome.CORRECT, 1.0),
        ('{"outcome": "scored", "score": 0.25}', Outcome.SCORED, 0.25),
        ('item["completion"] == item["reference"]', Outcome.CORRECT, 1.0),
        ('item["metadata"]["level"] / 2', Outcome.SCORED, 0.5),
    ],
)
def test_a_program_gives_a_verdict(tmp_path: Path, answer: str, outcome: Outcome, score: float) -> None:
    verdict = verifiers.make("command", command=program(tmp_path, answer))("4", FOUR)
    assert (verdict.outcome, verdict.score) == (outcome, score)


@pytest.mark.parametrize(
    ("completion", "answer", "said"),
    [
        ("break", "1", "ended with 1: the pool died"),
        ("4", '{"outcome": "scored"}', "expected a verdict of"),
        ("4", '{"outcome": "fine", "score": 1}', "expected a verdict of"),
        ("4", '"yes"', "expected a Verdict, a bool"),
    ],
)
def test_a_program_that_gives_none_is_a_verifier_that_broke(
    tmp_path: Path, completion: str, answer: str, said: str
) -> None:
    verdict = verifiers.make("command", command=program(tmp_path, answer))(completion, FOUR)
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    assert said in str(verdict.detail["error"])


def test_bad_arguments_and_references() -> None:
    with pytest.raises(InvalidArgumentError, match="begins with http"):
        verifiers.make("served", address="localhost:8000")
    with pytest.raises(InvalidArgumentError, match="begins with http"):
        verifiers.make("served", address="http://[::1")
    with pytest.raises(InvalidArgumentError, match=r"as for a shell.*No closing quotation"):
        verifiers.make("command", command='"')
    with pytest.raises(InvalidArgumentError, match="must name a program"):
        verifiers.make("command", command=" ")
    with pytest.raises(InvalidArgumentError, match="timeout_s must be greater than 0"):
        verifiers.make("command", command="true", timeout_s=0)
    with pytest.raises(UnreadableReferenceError, match="can't be sent as JSON"):
        verifiers.make("command", command="true")("4", Problem("1", "", float("nan")))
    assert verifiers.make("command", command="no-such-program")("4", FOUR).outcome is Outcome.VERIFIER_ERROR


def test_an_audit_of_a_server_by_drawn_cases() -> None:
    with serving(verifiers.make("json_schema")) as client:
        address = f"http://127.0.0.1:{client.port}"
        report = audit_verifier(address, drawn=30, field="json_schema", skip=ATTACKS)
    assert report.clean, str(report)
    assert report.checks["false negative"] + report.checks["false positive"] == 30
