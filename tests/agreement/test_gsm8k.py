"""GSM8K by lm-eval's task and by the environment's verifier, on the same completions."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lm_eval", reason="needs lm-eval, in the environment of make test-agreement")

import lm_eval

from tests.agreement.answers import FORMS, gold_of
from tests.agreement.tally import Judged, assert_documented, disagreements, table

PROBLEMS, SAMPLES = 300, 6
FILTERS = {"strict-match": "gsm8k_strict", "flexible-extract": "gsm8k_flexible"}
"""lm-eval's two readings, and the preset of the math verifier that stands for each."""
RLVR = Path(sys.executable).parent / "rlvr"


@dataclass(frozen=True)
class Completion:
    text: str
    form: str
    right: bool


@dataclass(frozen=True)
class Logged:
    """What was made, and what lm-eval logged of it."""

    completions: dict[tuple[int, int], Completion]
    """By problem and sample."""
    verdicts: dict[str, dict[tuple[int, int], tuple[str, bool]]]
    """By filter: the number that it read, and whether lm-eval's `exact_match` is 1."""
    file: Path
    """All that lm-eval logged."""


def completions(rows: list[dict[str, str]]) -> dict[tuple[int, int], Completion]:
    """Every form in turn, so that each has as many problems as any other and no problem has all."""
    made: dict[tuple[int, int], Completion] = {}
    forms = list(FORMS.items())
    for problem, row in enumerate(rows):
        gold = gold_of(row["answer"])
        for sample in range(SAMPLES):
            form, write = forms[(problem * SAMPLES + sample) % len(forms)]
            text, stated = write(gold)
            made[problem, sample] = Completion(text, form, stated == gold.value)
    return made


def run_lm_eval(folder: Path, data: Path, made: dict[tuple[int, int], Completion]) -> list[dict[str, Any]]:
    """Run lm-eval's own GSM8K task on local rows, once for each sample, and read what it logs."""
    original = Path(str(lm_eval.__file__)).parent / "tasks" / "gsm8k" / "gsm8k.yaml"
    files = {split: str(data / "gsm8k" / f"{split}.jsonl") for split in ("train", "test")}
    tasks = [f"sample{number}" for number in range(SAMPLES)]
    for task in tasks:
        local = {"dataset_path": "json", "dataset_name": None, "dataset_kwargs": {"data_files": files}}
        settings = {"include": str(original), "task": task, "tag": None, "num_fewshot": 0, **local}
        (folder / f"{task}.yaml").write_text(json.dumps(settings))  # JSON is YAML
    answers = {task: [made[problem, number].text for problem in range(PROBLEMS)] for number, task in enumerate(tasks)}
    (folder / "answers.json").write_text(json.dumps(answers))
    command = [sys.executable, str(Path(__file__).parent / "replay.py"), "--model", "replay"]
    command += ["--model_args", f"file={folder / 'answers.json'}", "--limit", str(PROBLEMS), "--log_samples"]
    command += ["--output_path", str(folder / "logs"), "--tasks", *(str(folder / f"{task}.yaml") for task in tasks)]
    environment = {**os.environ, "HF_HOME": str(folder / "hub"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = []
    for number, task in enumerate(tasks):
        (file,) = (folder / "logs").rglob(f"samples_{task}_*.jsonl")
        lines += [{**json.loads(line), "sample": number} for line in file.read_text().splitlines()]
    return lines


@pytest.fixture(scope="module")
def logged(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Logged:
    folder = tmp_path_factory.mktemp("lm-eval")
    rows = [json.loads(line) for line in (data / "gsm8k" / "test.jsonl").read_text().splitlines()[:PROBLEMS]]
    made = completions(rows)
    lines = run_lm_eval(folder, data, made)
    verdicts: dict[str, dict[tuple[int, int], tuple[str, bool]]] = {name: {} for name in FILTERS}
    for line in lines:
        key = (line["doc_id"], line["sample"])
        assert line["resps"] == [[made[key].text]]
        verdicts[line["filter"]][key] = (line["filtered_resps"][0], line["exact_match"] == 1)
    assert all(by_key.keys() == made.keys() for by_key in verdicts.values())
    file = folder / "logged.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return Logged(made, verdicts, file)


Rows = dict[tuple[int, int], dict[str, Any]]


def graded(logged: Logged, *arguments: str) -> Rows:
    """The lines of the record that `rlvr grade` makes of lm-eval's log, by problem and sample."""
    out = logged.file.with_suffix("") / "-".join(("graded", *arguments)).replace("=", "-")
    done = subprocess.run(
        [RLVR, "grade", logged.file, "--env", "GSM8K", "--out", out, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (out / "samples.jsonl").read_text().splitlines()]
    return {(line["problem"], line["sample"]): line for line in lines}


@pytest.fixture(scope="module")
def verdicts(logged: Logged) -> Rows:
    """What the environment's own verifier says."""
    rows = graded(logged)
    assert rows.keys() == logged.completions.keys()
    return rows


@pytest.mark.parametrize("name", FILTERS)
def test_the_preset_agrees_on_every_completion(logged: Logged, name: str) -> None:
    rows = graded(logged, "--verifier", "math", "--verifier-args", f"extraction={FILTERS[name]}")
    assert rows.keys() == logged.completions.keys()
    theirs = {key: accepted for key, (_, accepted) in logged.verdicts[name].items()}
    assert [(logged.completions[key], row["outcome"]) for key, row in rows.items() if row["score"] != theirs[key]] == []
    assert 0 < sum(theirs.values()) < len(theirs)


# Why the verifier of the environment and lm-eval disagree.

NOT_READ = "the mark is not `#### ` and a digit or a minus sign"
FIRST = "of several `####` the first counts"
AS_TEXT = "equal numbers are written differently"
REST = "what stands behind the number is left out"
THOUGHT = "what an unclosed thought says counts"
UNMARKED = "a number counts that is not said to be the answer"
BEHIND = "a number behind the answer counts"
PART = "of the answer the last digits count"


def number(text: str) -> Fraction | None:
    try:
        return Fraction(text.replace(",", "").replace("$", "").removesuffix("."))
    except ValueError:
        return None


def strict_kind(text: str, read: str, row: dict[str, Any], gold: int) -> str | None:
    """Why strict match disagrees with a verdict; None where nothing that is known explains it."""
    marks = re.findall(r"#### (-?[0-9.,]+)([^\n]*)", text)
    if row["outcome"] == "no_answer":
        return THOUGHT if "<think>" in text and "</think>" not in text else None
    if read == "[invalid]":
        return NOT_READ
    if len(marks) > 1 and number(marks[0][0]) != number(marks[-1][0]):
        return FIRST
    if row["score"] == 1:
        return AS_TEXT if number(read) == gold else None
    return REST if marks[0][1] else None


def flexible_kind(text: str, read: str, row: dict[str, Any], gold: int) -> str | None:
    """Why flexible extract disagrees with a verdict; None where nothing that is known explains it."""
    if row["outcome"] == "no_answer":
        return THOUGHT if "<think>" in text and "</think>" not in text else UNMARKED
    answer = row["answer"]
    if answer in text[: text.rindex(read)]:
        return BEHIND
    if row["score"] == 1 and number(read) == gold:
        return AS_TEXT
    return PART if read.strip(".,$") != answer and read.strip(".,$") in answer else None


EXPLAIN = {"strict-match": strict_kind, "flexible-extract": flexible_kind}
EXPLAINED = {
    "strict-match": {(NOT_READ, True), (FIRST, True), (FIRST, False), (AS_TEXT, True), (REST, False), (THOUGHT, False)},
    "flexible-extract": {
        (AS_TEXT, True),
        (BEHIND, True),
        (BEHIND, False),
        (PART, True),
        (PART, False),
        (THOUGHT, False),
        (UNMARKED, False),
    },
}
"""The kinds of disagreement with each, and whether it is we who accept."""


def test_every_disagreement_has_an_explanation(logged: Logged, verdicts: Rows) -> None:
    lines: list[tuple[object, ...]] = []
    for name, explain in EXPLAIN.items():
        judged = []
        for key, completion in logged.completions.items():
            read, theirs = logged.verdicts[name][key]
            row, ours = verdicts[key], verdicts[key]["score"] == 1
            gold = int(row["reference"].replace(",", ""))
            kind = None if theirs == ours else explain(completion.text, read, row, gold)
            judged.append(Judged(f"{key} {completion.form}: {read}", theirs, ours, kind))
        counts = disagreements(judged)
        assert set(counts) == EXPLAINED[name]
        for (kind, ours), count in sorted(counts.items()):
            lines.append((name, kind, "–" if ours else count, count if ours else "–"))
    assert_documented(table(("filter of lm-eval", "why", "only lm-eval accepts", "only we accept"), lines))


def test_only_right_answers_that_are_marked_are_accepted(logged: Logged, verdicts: Rows) -> None:
    unmarked = {"a sentence that ends with 7"}
    for key, row in verdicts.items():
        completion = logged.completions[key]
        expected = completion.right and completion.form not in unmarked
        assert (row["score"] == 1) == expected, (completion, row["detail"])


def test_right_and_wrong_answers_that_each_accepts(logged: Logged, verdicts: Rows) -> None:
    accepting = {
        "rlvr-envs": {key for key, row in verdicts.items() if row["score"] == 1},
        **{
            f"lm-eval, {name}": {key for key, (_, accepted) in verdicts_of.items() if accepted}
            for name, verdicts_of in logged.verdicts.items()
        },
    }
    right = {key for key, completion in logged.completions.items() if completion.right}
    wrong = logged.completions.keys() - right
    lines = [(name, len(keys & right), len(keys & wrong)) for name, keys in accepting.items()]
    assert_documented(
        table(("grader", f"of {len(right)} right answers accepts", f"of {len(wrong)} others accepts"), lines)
    )
