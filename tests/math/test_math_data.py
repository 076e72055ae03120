"""Gold answers of the public data sets, judged by this verifier: each must pass, and answers of other rows must not."""

import json
import os
import random
from pathlib import Path

import pytest

from verifiers import Outcome, Problem
from verifiers.math import PRESETS, MathVerifier

verifier = MathVerifier()


def rows(name, split="test"):
    folder = os.environ.get("RLVR_DATA_DIR")
    if not folder:
        pytest.skip("RLVR_DATA_DIR is not set: it names the folder that holds the data sets")
    return [json.loads(line) for line in (Path(folder) / name / f"{split}.jsonl").read_text().splitlines()]


def failures(cases):
    return [
        (gold, verdict)
        for completion, prompt, gold in cases
        if (verdict := verifier(completion, Problem("", prompt, gold))).score != 1
    ]


def test_math():
    extract = PRESETS["default"]
    solved = [row for row in rows("math") if "not boxed the correct answer" not in row["solution"]]  # one row
    assert failures((row["solution"], row["problem"], extract(row["solution"]).answer) for row in solved) == []


def test_math_500():
    assert failures((row["solution"], row["problem"], row["answer"]) for row in rows("math500")) == []


@pytest.mark.parametrize("split", ["train", "test"])
def test_gsm8k(split):
    assert failures((row["answer"], row["question"], row["answer"]) for row in rows("gsm8k", split)) == []


@pytest.mark.parametrize("preset", ["gsm8k_strict", "gsm8k_flexible"])
def test_gsm8k_presets(preset):
    judge = MathVerifier(extraction=preset)
    for row in rows("gsm8k"):
        assert judge(row["answer"], Problem("", row["question"], row["answer"])).outcome is Outcome.CORRECT


def test_aime24_and_amc23():
    assert failures((row["solution"], row["problem"], row["answer"]) for row in rows("aime24")) == []
    assert failures((f"The answer is {row['answer']}.", row["problem"], row["answer"]) for row in rows("amc23")) == []


def test_copying_the_prompt_of_math_500_scores_only_literals():
    for row in rows("math500"):
        for expression in row["problem"].split("$")[1::2]:
            finding = verifier.compare(expression, row["answer"], Problem("", row["problem"], row["answer"]))
            if finding.outcome is Outcome.CORRECT:
                assert not any(sign in expression.strip("-") for sign in "+-*=!") or expression == row["answer"], row[
                    "answer"
                ]


@pytest.mark.parametrize(("seed", "count"), [(0, 2_000), pytest.param(1, 40_000, marks=pytest.mark.long)])
def test_answers_of_other_rows_are_wrong(seed, count):
    golds = [row["answer"] for row in rows("math500")]
    generator = random.Random(seed)
    for _ in range(count):
        gold, answer = generator.sample(golds, 2)
        finding = verifier.compare(answer, gold)
        assert finding.outcome in (Outcome.CORRECT, Outcome.INCORRECT)
        if finding.outcome is Outcome.CORRECT:
            assert verifier.compare(gold, answer).outcome is Outcome.CORRECT
