"""`rlvr data stats`: what it counts, by hand, on rows made for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.runs.dataset_statistics import DatasetStatistics
from rlvr_envs.tasks import CLASSES
from tests.commands import Command
from verifiers import Problem, make
from verifiers.math import kind_of
from verifiers.unit_tests import AssertTests, StdioCase, StdioTests

BENCHMARKS = [cls.__name__.removesuffix("Env") for cls in CLASSES if cls.task.data_options == ("data_dir",)]


def report_of(*problems: Problem, verifier: str = "math") -> dict[str, Any]:
    statistics = DatasetStatistics(lambda problem: len(str(problem.prompt)), "characters", make(verifier), verifier)
    statistics.add(problems)
    report = statistics.report()
    assert json.loads(json.dumps(report)) == report
    return report


def test_lengths_have_quantiles() -> None:
    """Of the lengths 1 to 5: linear between the ordered values, so that 5% lies a fifth of the way from 1 to 2."""
    report = report_of(*(Problem(str(n), "x" * n, "1") for n in (5, 3, 1, 4, 2)))
    lengths = {"min": 1, "5%": 1.2, "25%": 2, "median": 3, "75%": 4, "95%": 4.8, "max": 5, "mean": 3}
    assert report["prompt_length"] == {"unit": "characters", **lengths}
    assert report["problems"] == 5


def test_repeated_prompts_are_counted_once_each_and_contradictions_named() -> None:
    prompts = [("a b", "1"), ("a b", "1"), ("a  b\n", "1"), ("A b", "1"), ("a b", "2")]
    report = report_of(*(Problem(f"p{n}", prompt, gold) for n, (prompt, gold) in enumerate(prompts)))
    assert report["repeated_prompts"] == {
        "exact": {"count": 2, "first": ["p1", "p4"]},
        "white_space": {"count": 3, "first": ["p1", "p2", "p4"]},
        "other_reference": {"count": 1, "first": ["p4"]},
    }


def test_levels_are_counted_and_many_numbers_have_quantiles() -> None:
    def metadata(n: int) -> dict[str, Any]:
        level = "hard" if n % 3 else "easy"
        return {"difficulty": level, "cf_rating": 800 + n, "level": n % 2, "tag": "x", "levels": [1]}

    problems = [Problem(str(n), str(n), "1", metadata(n)) for n in range(30)]
    levels = report_of(*problems)["levels"]
    assert sorted(levels) == ["cf_rating", "difficulty", "level"]
    assert levels["difficulty"] == {"counts": {"hard": 20, "easy": 10}}
    assert levels["level"] == {"counts": {"0": 15, "1": 15}}
    assert (levels["cf_rating"]["quantiles"]["min"], levels["cf_rating"]["quantiles"]["median"]) == (800, 814.5)
    texts = [Problem(str(n), str(n), "1", {"level": f"L{min(n, 20)}"}) for n in range(23)]
    level = report_of(*texts)["levels"]["level"]
    assert level["counts"]["L20"] == 3
    assert (len(level["counts"]), level["others"]) == (12, 9)


def test_references_that_the_verifier_can_t_read_are_named() -> None:
    report = report_of(Problem("good", "1", "7"), Problem("bad", "2", r"\frac{1}{"), Problem("none", "3", None))
    assert report["references"] == {"unreadable": 2, "number": 1}
    reason = "the gold answer cannot be read: expected a value, found 'the end'"
    assert report["unreadable_references"]["count"] == 2
    assert report["unreadable_references"]["first"][0] == {"id": "bad", "reason": reason}
    assert report["without_gold_completion"] == 3
    numbers = report_of(Problem("n", "1", "many"), verifier="numeric")
    assert numbers["references"] == {"str": 1}
    assert "needs a literal number as reference, got 'many'" in numbers["unreadable_references"]["first"][0]["reason"]


@pytest.mark.parametrize(
    ("gold", "kind"),
    [
        (r"-\frac{3}{4}", "number"),
        (0.5, "number"),
        (r"50\%", "number"),
        (r"\sqrt{2}", "expression"),
        (r"5\text{ cm}", "quantity"),
        ("(1, 2)", "tuple or interval"),
        (r"\{1, 2\}", "set"),
        ("1, 2", "list"),
        ("x = 3", "relation"),
        (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", "matrix"),
        ("all even integers", "words"),
        ([1], "unreadable"),
    ],
)
def test_kinds_of_answers(gold: object, kind: str) -> None:
    assert kind_of(gold) == kind


def test_problems_without_tests_are_named() -> None:
    tests = {"none": StdioTests(()), "no asserts": AssertTests(()), "one": StdioTests((StdioCase("", "1"),))}
    report = report_of(*(Problem(name, name, some) for name, some in tests.items()), verifier="unit_tests")
    assert report["references"] == {"StdioTests": 2, "AssertTests": 1}
    assert [problem["id"] for problem in report["without_tests"]["first"]] == ["none", "no asserts"]


def test_tests_are_read_and_the_bad_ones_named(tmp_path: Path, rlvr: Command) -> None:
    row = {"question": "?", "solutions": "", "starter_code": "", "difficulty": "interview"}
    tests = ['{"inputs": ["1"], "outputs": ["1"]}', '{"inputs": [], "outputs": []}', ""]
    (tmp_path / "apps").mkdir()
    path = tmp_path / "apps" / "train.jsonl"
    path.write_text("".join(json.dumps(row | {"input_output": text}) + "\n" for text in tests))
    command = ("data", "stats", "APPS", "--args", f"data_dir={tmp_path}")
    _, output, _ = rlvr(*command, "--json")
    (report,) = json.loads(output)["splits"].values()
    assert (report["published"], report["problems"]) == (5000, 2)
    assert report["references"] == {"StdioTests": 1, "unreadable tests": 1}
    assert report["without_tests"]["first"][0]["id"] == "apps/train/1"
    assert f"{path}, line 2: column 'input_output': it has no tests" in report["without_tests"]["first"][0]["reason"]
    _, output, _ = rlvr(*command)
    for said in ("APPS train: 2 problems, of 5000 published rows", "difficulty: interview: 2", "\n    apps/train/1: "):
        assert said in output


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_has_statistics(name: str, local_data: Path, rlvr: Command) -> None:
    code, output, _ = rlvr("data", "stats", name, "--json")
    assert code == 0
    for report in json.loads(output)["splits"].values():
        assert report["problems"] > 0
        assert report["unreadable_references"]["count"] == report["without_tests"]["count"] == 0


def test_a_file_of_one_s_own_by_its_columns_in_tokens(tmp_path: Path, rlvr: Command) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"q": "ab\u00e9", "a": "1", "level": "easy"}\n', encoding="utf-8")
    columns = "columns={'prompt': 'q', 'reference': 'a'}"
    command = ("data", "stats", "Text", "--split", "train", "--tokenizer", "byte", "--json", "--args")
    code, output, _ = rlvr(*command, f"dataset={path}", columns)
    assert code == 0
    report = json.loads(output)["splits"]["train"]
    assert (report["prompt_length"]["unit"], report["prompt_length"]["max"]) == ("tokens", 4)
    assert report["levels"] == {"level": {"counts": {"easy": 1}}}
