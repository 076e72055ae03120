"""Which contract a problem's tests get, and how a data set reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rlvr_envs
from tests.commands import Command
from verifiers import DataError, InvalidArgumentError, Outcome, Problem
from verifiers.unit_tests import (
    AssertTests,
    CheckTests,
    FunctionTests,
    Tests,
    UnitTestVerifier,
    contract_of,
    with_contract,
)

PLAIN = "from solution import f\ndef test_it(): assert f() == 7\n"
FIXTURE = "from solution import f\ndef test_it(tmp_path): assert f() == 7 and tmp_path.is_dir()\n"
CHECK = "def check(candidate):\n    import inspect\n    assert candidate() == 7 and inspect.isfunction(candidate)\n"
SEVEN = "def f(): return 7"
ROWS: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "both": ({"test": PLAIN}, SEVEN, "separate", "passes"),
    "marked": ({"test": PLAIN, "together": True}, SEVEN, "separate", "passes"),
    "fixture": ({"test": FIXTURE}, SEVEN, "together", "passes; separate: unsupported"),
    "inspects": ({"entry_point": "f", "test": CHECK}, SEVEN, "together", "passes; separate: unsupported"),
    "wrong": ({"test": FIXTURE, "together": True}, "def f(): return 8", "together", "fails; separate: unsupported"),
    "asserts": ({"asserts": ["assert f() == 8"]}, SEVEN, "separate", "fails; separate: wrong_answer"),
    "unreadable": ({"test": FIXTURE, "files": {"../x.py": ""}}, SEVEN, "separate", "files are named like"),
}
COLUMNS = "columns={'prompt': 'ask', 'reference': 'tests', 'gold_completion': 'gold', 'id': 'id'}"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    rows = [{"id": name, "ask": name, "tests": tests, "gold": gold} for name, (tests, gold, _, _) in ROWS.items()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def load(data: Path, contracts: Any) -> dict[str, Problem]:
    columns = {"prompt": "ask", "reference": "tests", "gold_completion": "gold", "id": "id"}
    found = rlvr_envs.data.text.load(data, columns=columns, contracts=contracts)
    return {found[index].id: found[index] for index in range(len(found))}


def test_the_reference_decides_and_the_data_set_reads_it(data: Path, tmp_path: Path, rlvr: Command) -> None:
    out = tmp_path / "contracts.jsonl"
    arguments = ["check-dataset", "Text", "--split", "train", "--args", f"dataset={data}", COLUMNS]
    arguments += ["--verifier", "unit_tests", "--contract", "auto", "--out", str(out)]
    code, output, _ = rlvr(*arguments)
    assert code == 1
    assert "4 of 7 gold completions pass, 2 incorrect" in output
    assert f"4 separate and 3 together, as {out} says" in " ".join(output.split())
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["id"] for line in lines] == [*ROWS]
    for line in lines:
        _, _, contract, reason = ROWS[line["id"]]
        assert (line["contract"], reason in line["reason"]) == (contract, True), line
    problems = load(data, out)
    for name in (name for name in ROWS if name != "unreadable"):
        assert contract_of(problems[name].reference) == ROWS[name][2]
    # The file is no permission.
    verifier = UnitTestVerifier(workers=1)
    with pytest.raises(InvalidArgumentError, match="allow_together=True"):
        verifier(SEVEN, problems["fixture"])
    assert verifier(SEVEN, problems["marked"]).outcome is Outcome.CORRECT
    verifier.close()
    kept = out.read_text()
    code, _, errors = rlvr("check-dataset", "Addition", "--contract", "auto", "--overwrite", "--out", out)
    assert (code, "--verifier unit_tests" in errors) == (2, True)
    assert out.read_text() == kept
    code, _, errors = rlvr(*arguments)  # the file is there
    assert (code, "--overwrite" in errors) == (2, True)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": "other", "contract": "separate"}], "ids is of"),
        ([{"id": "asserts", "contract": "together"}], "'asserts': together with"),
        ([{"id": "both", "contract": "both"}], "got 'both'"),
        ([{"id": "both", "contract": contract} for contract in ("separate", "together")], "line 2"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(rows: list[Any], message: str, data: Path, tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=message):
        load(data, tmp_path / "c.jsonl")
    with pytest.raises(InvalidArgumentError, match="got 3 for"):
        load(data, 3)


AREA = "def check(c):\n    assert c(1) == math.pi\n"
OTHER = "def check(c):\n    from other import n\n    assert c() == n\n"
PREFIX = "import math\ndef area(r):\n"
CLASS = "class Solution:\n    def area(self, r):\n        return 3 * r * r"


@pytest.mark.parametrize(
    ("tests", "right", "wrong"),
    [
        (CheckTests("area", AREA, PREFIX), "    return math.pi * r * r", "    return math.pi * r * 2"),
        (CheckTests("Solution().area", "def check(c):\n    assert c(r=2) == 12\n"), CLASS, CLASS.replace("3", "4")),
        (CheckTests("_f", OTHER, files={"other.py": "n = 3"}), "def _f(): return 3", "def f(): return 3"),
    ],
)
def test_a_check_judges_alike_under_both(tests: Tests, right: str, wrong: str) -> None:
    verifier = UnitTestVerifier(workers=1, allow_together=True)
    for contract in ("separate", "together"):
        problem = Problem("p", "", with_contract(tests, contract))
        assert contract_of(problem.reference) == contract
        assert verifier(right, problem).outcome is Outcome.CORRECT, verifier(right, problem).detail
        assert verifier(wrong, problem).outcome is Outcome.INCORRECT
    verifier.close()


def test_what_has_no_other_contract_says_so() -> None:
    with pytest.raises(InvalidArgumentError, match="got AssertTests"):
        with_contract(AssertTests(("assert f() == 1",)), "together")
    file = FunctionTests(PLAIN, together=True)
    assert with_contract(with_contract(file, "separate"), "together") == file
