"""The published rows, where `RLVR_DATA_DIR` names a folder that has them."""

from __future__ import annotations

import ast
import json
import os
import re
from pathlib import Path

import pytest

from rlvr_envs import data, tasks
from verifiers import Problem
from verifiers.completion.explicit import boxes
from verifiers.unit_tests import AssertTests, CheckTests

FOLDER = os.environ.get("RLVR_DATA_DIR")  # read before the fixture of this folder removes it
pytestmark = pytest.mark.skipif(not FOLDER, reason="needs RLVR_DATA_DIR, a folder with the published rows")


def problems(name: str, split: str = "test") -> data.ProblemDataset:
    assert FOLDER is not None
    if not (Path(FOLDER) / name).is_dir():
        pytest.skip(f"{FOLDER} has no folder {name}")
    return tasks.load(name, split, data_dir=FOLDER)


def lines(name: str, split: str = "test") -> list[dict[str, str]]:
    text = (Path(str(FOLDER)) / name / f"{split}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


@pytest.mark.parametrize(
    ("name", "split", "count"),
    [
        ("gsm8k", "train", 7473),
        ("gsm8k", "test", 1319),
        ("math", "test", 5000),
        ("math500", "test", 500),
        ("aime24", "test", 30),
        ("amc23", "test", 40),
        ("humaneval", "test", 164),
        ("mbpp", "train", 374),
        ("mbpp", "validation", 90),
        ("mbpp", "test", 500),
        ("mbpp", "prompt", 10),
    ],
)
def test_every_row_loads(name: str, split: str, count: int) -> None:
    loaded = problems(name, split)
    assert len(loaded) == count == tasks.SOURCES[name].sizes[split]
    assert all(isinstance(problem.prompt, str) and problem.prompt.strip() for problem in loaded)
    assert all(isinstance(problem.metadata["gold_completion"], str) for problem in loaded)
    assert len(loaded.fingerprint) == 64


@pytest.mark.parametrize("split", ["train", "test"])
def test_gsm8k_references_are_numbers_that_end_the_solution(split: str) -> None:
    for problem, row in zip(problems("gsm8k", split), lines("gsm8k", split), strict=True):
        assert re.fullmatch(r"-?\d[\d,]*(\.\d+)?", str(problem.reference)), problem.id
        assert row["answer"].endswith(f"#### {problem.reference}"), problem.id


def test_the_last_box_is_the_published_answer_of_math500() -> None:
    """MATH-500 has both the solution and the answer, so it tells whether `boxes` finds the right one."""
    differ = [
        problem.id
        for problem in problems("math500")
        if boxes(str(problem.metadata["gold_completion"]))[-1][2] != problem.reference
    ]
    assert differ == []


def test_math_references_are_balanced() -> None:
    for problem in problems("math"):
        braces = re.sub(r"\\.", "", str(problem.reference))
        assert braces.count("{") == braces.count("}"), problem.id


def test_competition_answers_are_integers() -> None:
    aime = [str(problem.reference) for problem in problems("aime24")]
    assert all(re.fullmatch(r"\d{3}", answer) for answer in aime)
    assert "025" in aime
    assert all(re.fullmatch(r"-?\d+", str(problem.reference)) for problem in problems("amc23"))


def defined_names(program: str) -> set[str]:
    tree = ast.parse(program)
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_humaneval_golds_complete_their_prompts() -> None:
    for problem in problems("humaneval"):
        tests = problem.reference
        assert isinstance(tests, CheckTests)
        assert tests.prefix == problem.prompt
        assert tests.entry_point in defined_names(tests.prefix + str(problem.metadata["gold_completion"])), problem.id
        assert "check" in defined_names(tests.test), problem.id


def fenced_program(problem: Problem) -> str:
    fenced = re.fullmatch(r"```python\n(.*)\n```", str(problem.metadata["gold_completion"]), re.DOTALL)
    assert fenced is not None, problem.id
    return fenced[1]


@pytest.mark.filterwarnings("ignore:invalid escape sequence")  # some published programs have them
@pytest.mark.parametrize("split", tasks.SOURCES["mbpp"].splits)
def test_mbpp_golds_are_programs_and_prompts_show_the_tests(split: str) -> None:
    for problem in problems("mbpp", split):
        tests = problem.reference
        assert isinstance(tests, AssertTests)
        assert tests.asserts, problem.id
        assert all(line in str(problem.prompt) for line in tests.asserts), problem.id
        assert any(name in tests.asserts[0] for name in defined_names(fenced_program(problem))), problem.id


def test_mbpp_counts_of_special_rows() -> None:
    everything = [problem for split in tasks.SOURCES["mbpp"].splits for problem in problems("mbpp", split)]
    with_setup = [problem.id for problem in everything if getattr(problem.reference, "setup", "")]
    assert len({problem.id for problem in everything}) == 974
    assert sorted(with_setup) == ["mbpp/367", "mbpp/927"]
