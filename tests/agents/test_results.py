"""Evaluations read back, completions of other tools graded, runs judged anew and compared, and data sets that overlap."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import verifiers
from agents.runs.at_k import count_votes, estimate_pass_at
from agents.runs.comparison import compare_measures, compare_runs, pass_measure, score_measure, task_differences
from agents.runs.completions import ExternalCompletion, read_completions
from agents.runs.contamination import overlaps
from agents.runs.evaluation_record import COLUMNS, SAMPLES, EvaluationRecord, Sample, recorded_completion, sample_line
from agents.runs.files.json_files import plain
from agents.runs.judging import match_problems, rejudge
from agents.runs.reading import RecordedRun, paired_scores
from rlvr_envs.tasks import Addition, Hangman, Sort
from rlvr_envs.tasks.hangman import HangmanVerifier
from tests import recorded
from tests.commands import Command
from verifiers import DataError, InvalidArgumentError, Message, MissingDataError, Outcome, Problem, Verdict, dialogue_of
from verifiers.types import Completion, ToolMessage

PROBLEMS = Sort("test", size=40)


def run_of(folder: Path, scores: Sequence[Sequence[float | None]], **settings: Any) -> RecordedRun:
    """A record with the given scores of each problem's samples, None where the verifier broke."""
    with EvaluationRecord(folder, settings={"env": "rlvr/Sort-v0", "split": "test", **settings}) as record:
        record.begin({"problems": len(scores), "samples": max(map(len, scores))})
        for index, of_problem in enumerate(scores):
            for number, score in enumerate(of_problem):
                outcome = Outcome.VERIFIER_ERROR if score is None else Outcome.CORRECT if score else Outcome.INCORRECT
                verdict = Verdict.of(outcome, "1", detail={"reason": "it broke"})
                place: dict[str, Any] = {"problem": index, "problem_id": f"p{index}", "sample": number}
                sample = Sample.judged(verdict, score=score or 0.0, **place)
                record.add(sample_line(sample, "1", verdict, PROBLEMS[index]))
    return RecordedRun.read(folder)


def written(path: Path, lines: Sequence[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


# Reading


def test_of_a_sample_that_was_made_again_the_last_line_counts_and_an_unfinished_line_does_not(tmp_path: Path) -> None:
    run_of(tmp_path / "run", [[None, 1.0], [0.0]])
    path = tmp_path / "run" / SAMPLES
    lines = path.read_text().splitlines()
    again = json.loads(lines[0]) | {"score": 1.0, "outcome": "correct", "error": None}
    content = "\n".join([*lines, json.dumps(again), lines[1][:40]])
    path.write_text(content)
    run = RecordedRun.read(tmp_path / "run")
    scores = [(row["problem"], row["sample"], row["score"]) for row in run.rows]
    assert scores == [(0, 0, 1.0), (0, 1, 1.0), (1, 0, 0.0)]
    assert run.problem_scores() == {"p0": 1.0, "p1": 0.0}
    assert path.read_text() == content  # reading changes nothing


def test_what_is_no_evaluation_and_damaged_lines_are_named(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="holds no evaluation"):
        RecordedRun.read(tmp_path)
    run_of(tmp_path / "run", [[1.0], [0.0]])
    path = tmp_path / "run" / SAMPLES
    text = path.read_text()
    path.write_text(text + '{"problem": "x"}\n')
    with pytest.raises(DataError, match=r"samples\.jsonl, line 3 is damaged"):
        RecordedRun.read(tmp_path / "run")
    path.write_text(text.replace('"p1"', '"p0"'))
    with pytest.raises(DataError, match="problems 0 and 1 have one id, 'p0'"):
        RecordedRun.read(tmp_path / "run").problem_scores()


# Completions of other tools

TEXTS = [("first", "second"), ("third", "fourth")]
"""Two completions for each of two problems."""


LM_EVAL = [{"doc_id": index, "resps": [texts], "filtered_resps": ["1"]} for index, texts in enumerate(TEXTS)]
FILTERED = [{**line, "filter": name} for name in ("strict-match", "flexible-extract") for line in LM_EVAL]
"""As GSM8K's samples are logged: all that one filter made of the completions, then the same for the other."""


def batch_line(index: int, texts: tuple[str, ...]) -> dict[str, Any]:
    choices = [{"message": {"role": "assistant", "content": text}} for text in texts]
    response = {"status_code": 200, "body": {"choices": choices}}
    return {"id": f"batch_req_{index}", "custom_id": str(index), "response": response, "error": None}


def inspect_sample(index: int, epoch: int, content: object) -> dict[str, Any]:
    return {"id": index, "epoch": epoch, "output": {"choices": [{"message": {"content": content}}]}}


INSPECT = [
    inspect_sample(index, 1 + epoch, text if epoch == 0 else [{"type": "reasoning"}, {"type": "text", "text": text}])
    for index, texts in enumerate(TEXTS)
    for epoch, text in enumerate(texts)
]


def inspect_archive(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", "{}")
        for sample in reversed(INSPECT):
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plain.jsonl", [{"problem": index, "completion": texts} for index, texts in enumerate(TEXTS)]),
        ("plain.json", [{"problem": index, "completion": texts} for index, texts in enumerate(TEXTS)]),
        ("harness.jsonl", LM_EVAL),
        ("filters.jsonl", FILTERED),
        ("batch.jsonl", [batch_line(index, texts) for index, texts in enumerate(TEXTS)]),
        ("log.json", {"version": 2, "status": "success", "samples": INSPECT}),
        ("log.eval", None),
    ],
)
def test_every_format_gives_each_problem_its_completions_in_order(name: str, content: Any, tmp_path: Path) -> None:
    path = tmp_path / name
    if path.suffix == ".eval":
        inspect_archive(path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(content))
    else:
        written(path, content)
    result = {(index, sample): each.text for index, sample, each in match_problems(read_completions(path), PROBLEMS)}
    assert result == {(index, sample): text for index, texts in enumerate(TEXTS) for sample, text in enumerate(texts)}


def test_without_a_name_lines_answer_the_problems_in_order_and_ids_name_them(tmp_path: Path) -> None:
    bare = [{"completion": "a"}, {"completion": "b"}]
    named = [{"problem_id": PROBLEMS[7].id, "completion": "a"}] * 2
    for lines, matched in ((bare, [(0, 0), (1, 0)]), (named, [(7, 0), (7, 1)])):
        completions = read_completions(written(tmp_path / "file.jsonl", lines))
        assert [(index, sample) for index, sample, _ in match_problems(completions, PROBLEMS)] == matched
    for problem in (40, -1, "sort/test/no-such", "40"):
        with pytest.raises(DataError, match="no problem of this split is"):
            match_problems([ExternalCompletion(problem, "x", "file, line 1")], PROBLEMS)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"text": "x"}, r"\['text'\]: expected one of 'completion', 'resps', 'custom_id', 'output', or .* --columns"),
        ({"output": {"choices": []}}, "line 1 has no 'id' and 'output', as the samples of an Inspect log"),
        ({"completion": 3}, "line 1: a completion must be text, got 3"),
        ({"completion": []}, "line 1 holds no completion"),
        ({"completion": "x", "id": 1.5}, "named by its id or index, got 1.5"),
        ({"resps": [["x"]]}, "has 'resps' and no 'doc_id'"),
        ({"custom_id": "1", "response": None, "error": {"code": "expired"}}, "is a failed request .*expired"),
        ({"custom_id": "1", "response": {"status_code": 429, "body": {}}}, "is a failed request .*429"),
        (["x"], "line 1: expected one JSON object on each line, got a list"),
        (None, "the file holds no rows"),
        ({"samples": []}, "holds no completions"),
        ({"status": "started"}, "has no list of 'samples'"),
    ],
)
def test_what_holds_no_completion_is_an_error_that_says_where(tmp_path: Path, line: Any, message: str) -> None:
    path = tmp_path / ("log.json" if {"samples", "status"} & {*(line or [])} else "file.jsonl")
    with pytest.raises(DataError, match=message):
        read_completions(written(path, [line] if line else []))


@pytest.fixture
def sort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rlvr: Command) -> Command:
    """A command on the 40 problems, run where the files of the test are."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: rlvr(*words, "--env-args", "size=40")


def test_graded_completions_are_a_record_like_any_other(sort: Command) -> None:
    answers = [{"problem": index, "completion": [PROBLEMS[index].reference, "0"]} for index in range(4)]
    written(Path("made.jsonl"), answers)
    command = ["grade", "made.jsonl", "--env", "Sort", "--out", "graded"]
    code, printed, _ = sort(*command)
    assert code == 0
    assert "completions for 4 of 40 problems: the others are left out" in printed
    assert "score 0.500" in printed
    assert "(4 problems x 2" in printed
    run = RecordedRun.read("graded")
    assert [row["outcome"] for row in run.rows] == ["correct", "no_answer"] * 4
    assert run.rows[0]["reference"] == PROBLEMS[0].reference
    assert json.loads(Path("graded", "manifest.json").read_text())["summary"]["score"] == 0.5
    code, _, error = sort(*command)
    assert code == 2
    assert "graded holds an evaluation: replace it with --overwrite" in error
    assert "--resume" not in error
    written(Path("made.jsonl"), [{"uid": line["problem"], "response": line["completion"]} for line in answers])
    command += ["--overwrite", "--columns"]
    assert sort(*command, "response=completion")[0] == 2
    code, _, error = sort(*command, "completion=said")
    assert (code, "line 1: no column 'said'; it has ['response', 'uid']" in error) == (1, True)
    assert sort(*command, "completion=response", "problem_id=uid")[0] == 0
    assert RecordedRun.read("graded").rows == run.rows


# The same completions by another verifier


def last_word(completion: str, problem: Problem) -> bool:
    return completion.split()[-1:] == str(problem.reference).split()[-1:]


def test_judging_anew_lists_the_verdicts_that_differ_and_changes_nothing(sort: Command, rlvr: Command) -> None:
    reference = str(PROBLEMS[0].reference)
    written(Path("made.jsonl"), [{"completion": reference}, {"completion": f"We sort {PROBLEMS[1].reference}"}])
    sort("grade", "made.jsonl", "--env", "Sort", "--out", "graded")
    before = Path("graded", SAMPLES).read_bytes()
    code, printed, _ = sort("rescore", "graded", "--verifier", "tests.agents.test_results:last_word")
    assert code == 1
    assert "1 of 2 verdicts differ: {'no_answer -> correct': 1}" in printed
    assert "mean score of samples: 0.500 recorded, 1.000 now" in printed
    assert Path("graded", SAMPLES).read_bytes() == before
    code, output, _ = sort("rescore", "graded")
    assert (code, "0 of 2 verdicts differ" in output) == (0, True)
    manifest = json.loads(Path("graded", "manifest.json").read_text())
    manifest["settings"]["environment"] = {"dataset": "Sort(size=40)"}  # as rlvr eval records it
    Path("graded", "manifest.json").write_text(json.dumps(manifest))
    code, _, errors = rlvr("rescore", "graded", "--env-args", "length=3")
    assert code == 1
    assert errors.endswith("give the run's environment, split and arguments; its data set was Sort(size=40)")


def broken(completion: str, problem: Problem) -> bool:
    raise ConnectionError("the server is down")


def test_judging_anew_succeeds_only_where_every_completion_is_judged(sort: Command) -> None:
    written(Path("made.jsonl"), [{"completion": "1 2"}])
    options = ["--verifier", "tests.agents.test_results:broken"]
    for command in (["grade", "made.jsonl", "--env", "Sort", "--out", "graded"], ["rescore", "graded"]):
        code, printed, _ = sort(*command, *options)
    assert code == 1
    assert "0 of 1 verdicts differ" in printed
    assert "the verifier could not judge 1 of 1 completions: ConnectionError: the server is down" in printed
    rows = [json.loads(line) for line in Path("graded", SAMPLES).read_text().splitlines()]
    written(Path("graded", SAMPLES), [{**row, "outcome": None, "error": "no answer"} for row in rows])
    code, _, errors = sort("rescore", "graded", *options)
    assert code == 1
    assert "graded holds no completion, only failed requests: there is nothing to judge" in errors


def test_questions_beside_completions_in_another_order_are_refused_and_can_name_the_problems(sort: Command) -> None:
    """As Parquet: every completion is right, and nothing but the question says of which problem."""
    rows = [{"asked": str(one.prompt), "note": "x", "completion": str(one.reference)} for one in list(PROBLEMS)[:4]]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), "ordered.parquet")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows[::-1]), "reversed.parquet")

    def graded(*arguments: str) -> tuple[int, str]:
        code, output, errors = sort("grade", *arguments, "--env", "Sort")
        return code, " ".join((output + errors).split())

    code, said = graded("ordered.parquet")
    assert (code, "score 1.000" in said) == (0, True)
    assert "row n answers problem n; not read: asked, note" in said
    code, said = graded("reversed.parquet")
    assert code == 1
    assert "names the problem, and by its position it would be 0, while 'asked' has the question of 3" in said
    code, said = graded("reversed.parquet", "--columns", "problem_id=asked")
    assert (code, "score 1.000" in said, "row n" in said) == (0, True, False)


# Comparisons


def test_runs_are_compared_on_the_problems_they_share(tmp_path: Path) -> None:
    first = run_of(tmp_path / "a", [[0.0, 1.0], [1.0], [0.0], [None]])
    second = run_of(tmp_path / "b", [[1.0], [1.0], [1.0], [0.0]])
    problems, (base, other) = compare_runs([first, second])
    assert problems == 3  # the fourth has no score in the first run
    assert paired_scores([first, second])[1].tolist() == [[0.5, 1.0, 0.0], [1.0, 1.0, 1.0]]
    assert (base.score, base.comparison, other.score) == (0.5, None, 1.0)
    assert other.comparison == verifiers.statistics.compare([0.5, 1.0, 0.0], [1.0, 1.0, 1.0])
    assert other.sentence(first).startswith("no difference between b and a is shown (+0.500")


ODD, EVEN = ([float(index % 2 == rest) for index in range(40)] for rest in (1, 0))


@pytest.mark.parametrize(
    ("before", "after", "starts", "ends"),
    [
        (
            ODD,
            EVEN,
            "no difference between b and a is shown",
            "; one of 0.460 would be found in 4 of 5 such comparisons)",
        ),
        (ODD, [1.0] * 40, "b is better than a (+0.500", ")"),
        ([1.0] * 40, ODD, "b is worse than a (-0.500", ")"),
        (
            [0.0] * 12,
            [0.0] * 12,
            "b and a have",
            "one of the 12 problems (95 % interval of the difference -0.259 to +0.259)",
        ),
        ([2.0] * 12, [2.0] * 12, "b and a have the same score", "on every one of the 12 problems"),
    ],
)
def test_better_is_said_only_where_the_interval_lies_above_zero(
    before: list[float], after: list[float], starts: str, ends: str, tmp_path: Path
) -> None:
    runs = [run_of(tmp_path / name, [[score] for score in scores]) for name, scores in (("a", before), ("b", after))]
    sentence = compare_runs(runs)[1][1].sentence(runs[0])
    assert sentence.startswith(starts)
    assert sentence.endswith(ends)


def test_what_makes_scores_those_of_other_tasks_is_said(tmp_path: Path) -> None:
    boxed = {"prompt": {"name": "boxed"}, "verifier": "math", "reader": 1}
    runs = [
        run_of(tmp_path / "a", [[1.0]], environment={**boxed, "tokenizer": "x"}, model="m"),
        run_of(
            tmp_path / "b", [[1.0]], environment={**boxed, "prompt": {"name": "plain"}, "tokenizer": "y"}, model="n"
        ),
        run_of(tmp_path / "c", [[1.0]], environment={**boxed, "reader": 2}),
        run_of(tmp_path / "d", [[1.0]]),
    ]
    assert task_differences(runs[:2]) == ["environment.prompt.name is 'boxed' in a and 'plain' in b"]
    assert task_differences([runs[0], runs[2]]) == ["environment.reader is 1 in a and 2 in c"]
    assert task_differences([runs[2], runs[3]]) == []


def test_a_comparison_needs_two_runs_and_shared_problems(tmp_path: Path) -> None:
    run = run_of(tmp_path / "a", [[1.0]])
    with pytest.raises(InvalidArgumentError, match="at least two runs, got 1"):
        compare_runs([run])
    with pytest.raises(InvalidArgumentError, match="a run is named twice"):
        compare_runs([run, run])
    with pytest.raises(DataError, match="no problem in common of which each has a score"):
        compare_runs([run, run_of(tmp_path / "b", [[None]])])


def test_runs_are_compared_by_pass_at_k_and_all_p_values_are_adjusted_together(tmp_path: Path) -> None:
    first = run_of(tmp_path / "a", [[0.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, None, 1.0]])
    second = run_of(tmp_path / "b", [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0], [1.0, 1.0, 1.0]])
    measures = [score_measure([first, second]), pass_measure([first, second], 2), pass_measure([first, second], 3)]
    by_score, of_two, of_three = compare_measures([first, second], measures)
    assert (by_score.measure, of_two.measure, of_three.measure) == ("score", "pass@2", "pass@3")
    assert of_two.problems == 4
    assert of_two.rows[1].comparison == verifiers.statistics.compare([1 - 1 / 3, 1.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0])
    assert of_three.problems == 2  # the third has two samples in one run, the fourth in the other
    assert [row.score for row in of_three.rows] == [1.0, 1.0]
    plainly = [each.rows[1].comparison.p_value for each in (by_score, of_two, of_three)]  # type: ignore[union-attr]
    assert [each.rows[1].p_value for each in (by_score, of_two, of_three)] == verifiers.statistics.holm(plainly)
    with pytest.raises(DataError, match="a has no problem with 4 samples that are right or wrong, as pass@4 needs"):
        pass_measure([first, second], 4)


def test_the_command_compares_majority_votes_by_the_verifier_that_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rlvr: Command
) -> None:
    """Two ways to write one wrong number are one vote, which outvotes the right answer."""
    monkeypatch.chdir(tmp_path)
    totals = [int(str(Addition("test", digits=3)[index].reference)) for index in range(2)]
    for name, answers in {"a": ["{0}", "{1}", "{1}.0"], "b": ["{0}", "{1}", "{0}"]}.items():
        completions = [[answer.format(total, total - 1) for answer in answers] for total in totals]
        written(Path(f"{name}.jsonl"), [{"problem": at, "completion": texts} for at, texts in enumerate(completions)])
        rlvr("grade", f"{name}.jsonl", "--env", "Addition", "--out", name, "--env-args", "digits=3")
    command = ["compare", "a", "b", "--pass-at", "3", "--maj-at", "3"]
    code, printed, _ = rlvr(*command, "--env-args", "digits=3")
    assert code == 0
    assert "pass@3: b and a have the same score on every one of the 2 problems" in printed
    assert "maj@3: no difference between b and a is shown (+1.000" in printed
    assert rlvr(*command)[0] == 1  # other problems


def test_the_command_shows_the_first_completions_of_each_run(tmp_path: Path, rlvr: Command) -> None:
    for name, columns, texts in (
        ("before", {"outcome": "incorrect"}, ["five", "no\nidea", *["?"] * 20]),
        ("after", {"outcome": "correct", "score": 1.0}, ["4", "5", *["6"] * 20]),
    ):
        rows = [
            recorded.row(at, sample, completion=text, **columns) for at, text in enumerate(texts) for sample in (0, 1)
        ]
        recorded.run_of(tmp_path / name, [*rows, recorded.row(99, outcome="verifier_error", score=None)])
    code, printed, _ = rlvr("compare", tmp_path / "before", tmp_path / "after", "--show", "2")
    assert code == 0
    assert "before: left out: 1 errored sample" in printed
    assert "means over 22 problems" in printed
    assert "after is better than before" in printed
    assert printed.endswith(
        "── p0 ──\n2+0=  [4]\nbefore  incorrect: five\nafter   correct: 4\n"
        "── p1 ──\n2+1=  [4]\nbefore  incorrect: no | idea\nafter   correct: 5\n"
    )


def test_votes_need_a_verifier_that_the_record_names(tmp_path: Path, rlvr: Command) -> None:
    for name in "ab":
        run_of(tmp_path / name, [[1.0]], environment={"verifier": "my.module.Verifier"})
    _, _, errors = rlvr("compare", tmp_path / "a", tmp_path / "b", "--maj-at", "1")
    assert "no verifier that can be built again, but 'my.module.Verifier'" in errors


# Overlap of data sets


def test_a_problem_counts_by_the_share_of_its_ngrams() -> None:
    def share(text: str, prompt: Any, words: int = 13) -> float:
        return overlaps([text], [Problem("p", prompt, "1")], words=words)[0].share

    words = [f"w{index}" for index in range(10)]
    # Of the 7 runs of 4 words the first 4 lie within the 7 words.
    assert share(f"x {' '.join(words[:7])} y", " ".join(words), 4) == 4 / 7
    # Case and punctuation do not count, and messages are read.
    assert share("how many in all are there", (Message("user", "How many, in all, are THERE?"),), 3) == 1
    # A problem of fewer words is contaminated by a whole text alone.
    assert share("please add 2 and 3 now", "Add 2 and 3") == 0
    assert share("add 2 and 3.", "Add 2 and 3") == 1
    assert share("add 2 and 3", "") == 0
    with pytest.raises(InvalidArgumentError, match="words must be at least 2"):
        share("", "", 1)


def test_the_command_finds_a_split_in_itself(rlvr: Command) -> None:
    arguments = ["--train-args", "size=20", "--evaluation-args", "size=5", "--words", "3"]
    code, output, _ = rlvr("contamination", "Sort", "Sort", "--train-split", "test", *arguments)
    assert code == 1
    assert "5 of 5 problems share 50% or more of their 3-grams with Sort" in output


# pass@k, and the table


def rows_with(outcomes: Sequence[Sequence[Outcome]]) -> list[Sample]:
    return [
        Sample.judged(
            Verdict.of(outcome, "1", detail={"reason": "x"}), problem=index, problem_id=index, sample=number, score=0.0
        )
        for index, of_problem in enumerate(outcomes)
        for number, outcome in enumerate(of_problem)
    ]


def test_pass_at_k_leaves_out_what_is_neither_right_nor_wrong() -> None:
    right, wrong, errored = Outcome.CORRECT, Outcome.INCORRECT, Outcome.VERIFIER_ERROR
    rows = rows_with(
        [[right, wrong, wrong], [wrong, wrong, errored], [right, right, Outcome.NO_ANSWER], [errored, right, errored]]
    )
    estimate = estimate_pass_at(rows, 2)
    # 1 - C(2,2)/C(3,2) = 2/3 of the first, 0 of two wrong ones, 1 - 0 of the third; the fourth has one sample that counts.
    assert estimate.value == pytest.approx((2 / 3 + 0 + 1) / 3)
    assert (estimate.problems, estimate.left_out) == (3, 1)
    assert estimate.interval == verifiers.statistics.share_interval([2 / 3, 0, 1])
    assert str(estimate).endswith("1 problem with fewer samples left out")


def scored_rows(*of_problems: Sequence[float]) -> list[Sample]:
    rows = rows_with([[Outcome.CORRECT] * len(scores) for scores in of_problems])
    scores = [score for of_problem in of_problems for score in of_problem]
    return [replace(row, outcome="scored", score=score) for row, score in zip(rows, scores, strict=True)]


def test_scores_that_are_all_0_or_1_are_right_or_wrong() -> None:
    estimate = estimate_pass_at(scored_rows([1.0, 0.0, 0.0], [0.0, 0.0, 0.0]), 2)
    assert estimate.value == pytest.approx((2 / 3 + 0) / 2)
    assert (estimate.problems, estimate.left_out, estimate.scored) == (2, 0, 0)
    problems, exact = Addition("test"), verifiers.make("exact")
    assert isinstance(exact, verifiers.AnswerVerifier)
    votes = count_votes(scored_rows([1.0, 0.0], [0.0, 0.0]), problems, exact)
    assert [[vote == 0 for vote in of_problem] for of_problem in votes] == [[True, False], [False, False]]
    assert count_votes(scored_rows([1.0, 0.3]), problems, exact) == [[]]
    unknown = estimate_pass_at(scored_rows([1.0, 0.3], [0.0, 1.0]), 2)
    assert str(unknown).startswith("pass@2 unknown: no problem has 2 samples that are right or wrong; of 4 samples")
    assert unknown.summary()["value"] is None


def test_the_table_holds_the_last_line_of_each_sample(tmp_path: Path) -> None:
    with EvaluationRecord(tmp_path / "run") as record:
        record.begin({})
        for outcome in (Outcome.VERIFIER_ERROR, Outcome.CORRECT):
            verdict = Verdict.of(outcome, "1", detail={"reason": "x\ud800", "n": float("nan")})
            sample = Sample.judged(verdict, problem=0, problem_id="p", sample=0, score=1.0, seed=2**64 - 1)
            asked = Problem("p", (Message("user", "How?"),), 7)
            record.add(sample_line(sample, "<b>", verdict, asked))
        record.finish({})
    (row,) = pyarrow.parquet.read_table(tmp_path / "run" / "samples.parquet").to_pylist()
    assert list(row) == list(COLUMNS)
    assert (row["outcome"], row["score"], row["seed"], row["completion"]) == ("correct", 1.0, 2**64 - 1, "<b>")
    assert json.loads(row["prompt"]) == [{"role": "user", "content": "How?"}]
    assert (row["reference"], json.loads(row["detail"])) == ("7", {"reason": "x\\ud800", "n": "NaN"})


# Episodes of several turns


def test_an_episode_of_several_turns_is_recorded_shown_and_judged_with_its_turns(tmp_path: Path, rlvr: Command) -> None:
    problems = Hangman("test")
    letters = sorted(set(problems[0].reference.word))  # type: ignore[attr-defined] # a SecretWord
    said = [Message("assistant", letters[0])]
    for letter in letters[1:]:
        said += [Message("user", "\n----- 8 misses\n"), Message("assistant", letter)]
    completion = Completion(letters[-1], tuple(said))
    verdict = HangmanVerifier()(completion, problems[0])
    assert verdict.outcome is Outcome.CORRECT
    folder = tmp_path / "run"
    with EvaluationRecord(folder, settings={"env": "rlvr/Hangman-v0", "split": "test"}) as record:
        record.begin({"problems": 1, "samples": 1})
        sample = Sample.judged(verdict, problem=0, problem_id=problems[0].id, sample=0, score=1.0)
        asked = replace(problems[0], prompt=problems.in_words(problems[0]))
        record.add(sample_line(sample, completion, verdict, problems[0], asked))
    run = RecordedRun.read(folder)
    assert dialogue_of(recorded_completion(run.rows[0])) == completion.dialogue
    flips, (again,) = rejudge(run, problems, HangmanVerifier())
    assert (flips, again.outcome) == ([], Outcome.CORRECT)
    _, shown, _ = rlvr("show", folder, "0")
    assert "Find my secret English word" in shown
    assert f"dialogue of {len(said)} messages" in shown
    assert f"assistant: {letters[0]}" in shown
    with pytest.raises(DataError, match="must be a list of messages, got 'x'"):
        recorded_completion({**run.rows[0], "dialogue": "x"})
    said = [Message("assistant", "1+1"), ToolMessage("tool", "2", "calculator", "id"), Message("assistant", "2")]
    line = plain(sample_line(sample, Completion("2", tuple(said)), None, None))
    assert dialogue_of(recorded_completion(line)) == tuple(said)


def test_what_the_model_was_given_is_shown_for_every_problem(tmp_path: Path, rlvr: Command) -> None:
    settings = {"example_prompt": f"<user>{PROBLEMS[0].prompt} In a box.<assistant>"}
    run_of(tmp_path / "run", [[1.0], [0.0]], **settings)
    _, output, _ = rlvr("show", tmp_path / "run", "1")
    assert f"<user>{PROBLEMS[1].prompt} In a box.<assistant>" in output
