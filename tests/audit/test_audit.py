"""The audit as a whole: its report, its options, the command, and the project's own verifier."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest

import rlvr_envs
from agents.commands.main import main
from tests.audit import broken
from verifiers import AuditReport, InvalidArgumentError, Problem, UnknownNameError, audit_verifier
from verifiers.audit import ATTACKS, TRANSFORMATIONS, Check, Label, ReportRow, write_card
from verifiers.audit.report import percentages

GOLDS = (
    "7",
    r"\frac{10}{11}",
    "(1,2)",
    r"(-\infty,5]",
    "1,-2",
    r"3\sqrt{5}",
    r"\text{(C)}",
    r"6r^2-4r",
    "52_8",
    "1.25",
)
SLOW = ("huge", "long")


def problems(*golds: object) -> list[Problem]:
    return [Problem(f"p{index}", "What is it?", gold) for index, gold in enumerate(golds)]


def timeless(report: AuditReport) -> dict[str, object]:
    findings = [dataclasses.replace(finding, seconds=0.0) for finding in report.findings]
    return dataclasses.asdict(dataclasses.replace(report, findings=tuple(findings), seconds={}, slowest=()))


def test_wilson_bounds_by_hand() -> None:
    bounds = [ReportRow("attack", Label.WRONG, cases, wrong).bounds for wrong, cases in [(5, 10), (0, 0)]]
    assert bounds == [pytest.approx((0.236593, 0.763407), abs=1e-6), (0.0, 1.0)]


def test_the_same_seed_gives_the_same_report() -> None:
    one, two = (
        audit_verifier(broken.first_number_wins, problems(*GOLDS), limit=5, seed=3, skip=SLOW) for _ in range(2)
    )
    assert timeless(one) == timeless(two)
    assert one.findings


def test_the_card_counts_and_shows_the_worst() -> None:
    report = audit_verifier(broken.substring_match, problems("12"), skip=SLOW)
    card = str(report)
    (hedges,) = (row for row in report.rows if row.family == "hedge")
    assert (hedges.cases, hedges.wrong) == (4, 4)
    assert "100.00 % [51.01, 100.00]" in card  # four of four
    assert "[false positive] hedge, p0: gold '12', answer '12 or 13'" in card
    data = json.loads(json.dumps(report.to_dict()))
    assert len(data["findings"]) == len(report.findings)
    assert data["clean"] is False


def test_the_card_of_a_page_has_rates_by_kind_and_the_smallest_failures(tmp_path: Path) -> None:
    report = audit_verifier(broken.substring_match, problems("12", "(1,2)", r"\text{<b>}"), skip=SLOW)
    kinds = {(row.family, row.label): row for row in report.kind_rows}
    for label in (Label.WRONG, Label.CORRECT):
        rows = [row for (_, other), row in kinds.items() if other is label]
        assert sum(row.cases for row in rows) == report.total(label).cases
        assert sum(row.wrong for row in rows) == report.total(label).wrong > 0
    assert {"integer", "tuple"} <= {kind for kind, _ in kinds}
    smallest = min(report.findings_of(Check.FALSE_POSITIVE), key=lambda one: len(one.gold) + len(one.answer))
    for suffix, escaped in ((".md", smallest.answer), (".html", smallest.answer)):
        path = tmp_path / f"card{suffix}"
        write_card(report, path)
        text = path.read_text(encoding="utf-8")
        row = report.total(Label.WRONG)
        assert percentages(row) in text
        assert escaped in text
        assert "0 of 3 golds (0.0%)" in text
        assert "\n| crash | " in text or "<td>crash</td>" in text
    assert "<function" not in text
    assert "&lt;function substring_match" in text
    assert report.unusable == 0
    none_judged = audit_verifier(_ECHOES, problems("5", "6"), answer_format="ANSWER", skip=(*SLOW, "marking"))
    assert none_judged.unusable == none_judged.golds == 2
    with pytest.raises(InvalidArgumentError, match=r"a file that ends in .md or .html, got 'card.txt'"):
        write_card(report, Path("card.txt"))


def test_answers_are_presented_as_the_data_set_does() -> None:
    hashes = dataclasses.replace(problems("5")[0], metadata={"gold_completion": "2+3\n#### 5"})
    boxed = dataclasses.replace(problems("5")[0], metadata={"gold_completion": r"It is $\boxed{5}$."})
    bare = dataclasses.replace(problems("5")[0], metadata={"gold_completion": "5"})
    for problem, sign in ((hashes, "#### 5"), (boxed, r"\boxed{5}"), (bare, "5")):
        report = audit_verifier(_ECHOES, [problem], skip=(*ATTACKS, *_ALL_BUT_ITSELF))
        (finding,) = report.findings_of(Check.FALSE_NEGATIVE)
        assert finding.reason.startswith(f"incorrect (answer {sign!r})")
    report = audit_verifier(_ECHOES, [bare], skip=(*ATTACKS, *_ALL_BUT_ITSELF), answer_format="<answer>ANSWER</answer>")
    assert "<answer>5</answer>" in report.findings_of(Check.FALSE_NEGATIVE)[0].reason


_ECHOES = "tests.audit.broken:echoes"
_ALL_BUT_ITSELF = tuple(name for name in TRANSFORMATIONS if name != "itself")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: audit_verifier("math", []), InvalidArgumentError, "at least one problem"),
        (lambda: audit_verifier("math", problems("5"), answer_format="x"), InvalidArgumentError, "must contain ANSWER"),
        (lambda: audit_verifier("math", problems("5"), skip=["hedges"]), UnknownNameError, "Did you mean 'hedge'"),
        (lambda: audit_verifier("math", problems(["a test"])), InvalidArgumentError, "problem 'p0' is a list"),
        (lambda: audit_verifier(lambda c, p: True, problems("5")), InvalidArgumentError, "module:attribute"),
    ],
)
def test_bad_input_is_named(call: object, error: type[Exception], message: str) -> None:
    assert callable(call)
    with pytest.raises(error, match=message):
        call()


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["audit-verifier", *arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.usefixtures("local_data")
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["--skip", "huge", "long", "nested"]
    assert run("math", "--dataset", "GSM8K", *quick) == 0
    assert "Nothing was found" in capsys.readouterr().out
    file = tmp_path / "found.json"
    assert run("tests.audit.broken:substring_match", "--dataset", "MATH500", "--json", str(file), *quick) == 1
    assert "false positive" in capsys.readouterr().out
    assert run("math", "--dataset", "GSM8K", "--card", "card.pdf") == 2
    assert "ends in .md or .html, got 'card.pdf'" in capsys.readouterr().err
    assert json.loads(file.read_text(encoding="utf-8"))["golds"] == 1


@pytest.mark.skipif("RLVR_DATA_DIR" not in os.environ, reason="RLVR_DATA_DIR names no folder with the benchmarks")
@pytest.mark.parametrize("name", ["GSM8K", "MATH500"])
def test_real_golds(name: str) -> None:
    task = rlvr_envs.environment_class(f"rlvr/{name}-v0").task
    report = audit_verifier("math", task.load(split="test"), limit=60, skip=SLOW)
    assert report.clean, str(report)
