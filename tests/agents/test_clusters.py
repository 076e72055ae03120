"""Problems with equal prompts are one cluster in every interval, test and report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from agents import CausalLMPolicy, PolicyConfig, evaluate, tiny_model
from agents.runs.at_k import estimate_maj_at, estimate_pass_at
from agents.runs.clusters import problem_cluster
from agents.runs.comparison import compare_measures, score_measure
from agents.runs.completions import ExternalCompletion
from agents.runs.dataset_statistics import DatasetStatistics
from agents.runs.evaluation import summarize_evaluation
from agents.runs.evaluation_record import MANIFEST, EvaluationRecord, Sample
from agents.runs.judging import judge
from agents.runs.leaderboard import LeaderboardCell
from agents.runs.reading import RecordedRun
from rlvr_envs import ByteTokenizer, TokenVectorEnv
from rlvr_envs.data import ProblemDataset
from rlvr_envs.tasks import Addition
from rlvr_envs.tasks.guess_number import GuessNumber
from tests.commands import Command
from tests.envs.helpers import streams
from tests.recorded import row, run_of
from verifiers import Message, Outcome, Problem, make
from verifiers.statistics import compare, mean_interval, score_interval, share_interval

RIGHT, WRONG = Outcome.CORRECT, Outcome.INCORRECT


def tiny_policy() -> CausalLMPolicy:
    sizes: dict[str, int] = {"layers": 1, "hidden_size": 16, "heads": 2, "intermediate_size": 32, "max_tokens": 32}
    return CausalLMPolicy(tiny_model(ByteTokenizer().vocab_size, **sizes), PolicyConfig(temperature=0.0))


def repeated(scores: Sequence[float], times: int) -> list[Sample]:
    """One sample of each of some problems, which are asked `times` times."""
    return [
        Sample(
            number, f"p{number}", 0, 0, str(RIGHT if score else WRONG), score, "1", 1, False, None, False,
            cluster=f"c{number % len(scores)}",
        )
        for number, score in enumerate(list(scores) * times)
    ]  # fmt: skip


def test_equal_prompts_are_one_cluster_and_hidden_problems_are_not() -> None:
    text, messages = Problem("a", "1+1=", "2"), Problem("b", (Message("user", "1+1="),), "2")
    assert problem_cluster(text) == problem_cluster(Problem("c", "1+1=", "two", {"level": 3}))
    assert problem_cluster(messages) == problem_cluster(Problem("d", (Message("user", "1+1="),), None))
    assert len({problem_cluster(problem) for problem in (text, messages, Problem("e", "1+2=", "2"))}) == 3
    assert problem_cluster(GuessNumber("test")[0]) is None
    assert problem_cluster(None) is None


def test_a_problem_that_is_asked_seven_times_counts_once() -> None:
    scores = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0]
    once, often = summarize_evaluation(repeated(scores, 1), 9, 1), summarize_evaluation(repeated(scores, 7), 63, 1)
    assert often.interval == pytest.approx(once.interval, rel=1e-9)
    assert (often.problems, often.distinct, often.approximate) == (63, 9, once.approximate)
    assert often.summary()["distinct"] == 9
    assert str(often).endswith("(63 problems x 1, 9 clusters)")
    assert str(once).endswith("(9 problems x 1)")
    assert once.interval == pytest.approx((share_interval(scores).low, share_interval(scores).high), abs=0)


def test_pass_at_k_and_majority_votes_count_a_problem_once() -> None:
    scores = [1.0, 0.0, 0.0, 1.0, 1.0]
    votes = [[0] if score else [1] for score in scores]
    together = estimate_maj_at(votes * 6, 1, list("abcde") * 6)
    assert together.problems == 30
    for once, often in (
        (estimate_pass_at(repeated(scores, 1), 1), estimate_pass_at(repeated(scores, 6), 1)),
        (estimate_maj_at(votes, 1), together),
    ):
        assert (often.interval.low, often.interval.high) == pytest.approx((once.interval.low, once.interval.high))


def test_evaluations_record_the_clusters_of_their_problems(tmp_path: Path) -> None:
    problems = [Problem(f"p{index}", "QR"[index % 2], "a") for index in range(8)]
    env = TokenVectorEnv(streams(4, problems))
    with EvaluationRecord(tmp_path / "run") as record:
        result = evaluate(env, tiny_policy(), record=record)
    assert (result.problems, result.distinct) == (8, 2)
    run = RecordedRun.read(tmp_path / "run")
    assert len(set(run.problem_clusters().values())) == 2
    assert json.loads((tmp_path / "run" / MANIFEST).read_text())["summary"]["distinct"] == 2
    assert {sample.cluster for sample in run.samples()} == {problem_cluster(problem) for problem in problems}
    with EvaluationRecord(tmp_path / "run", resume=True) as record:
        assert evaluate(env, tiny_policy(), record=record).distinct == 2


def two_runs(folder: Path, times: int) -> list[RecordedRun]:
    scores = {"a": [0.0, 0.0, 1.0, 0.0, 1.0, 0.0], "b": [1.0, 1.0, 1.0, 0.0, 1.0, 1.0]}
    return [
        run_of(folder / name, [
            row(number, score=score, prompt=f"{number % 6}+2=") for number, score in enumerate(of_run * times)
        ])
        for name, of_run in scores.items()
    ]  # fmt: skip


def test_comparisons_count_a_problem_once(tmp_path: Path, rlvr: Command) -> None:
    once, often = (
        compare_measures(runs, [score_measure(runs)])[0]
        for runs in (two_runs(tmp_path / "once", 1), two_runs(tmp_path / "often", 8))
    )
    assert (once.problems, once.distinct, often.problems, often.distinct) == (6, 6, 48, 6)
    first, second = once.rows[1].comparison, often.rows[1].comparison
    assert (second.p_value, second.units) == (first.p_value, 6)
    assert (second.interval.low, second.detectable) == pytest.approx((first.interval.low, first.detectable))
    code, output, _ = rlvr("compare", tmp_path / "often" / "a", tmp_path / "often" / "b")
    assert code == 0
    assert "means over 48 problems, 6 clusters, 95 % intervals over problems, approximate" in output


def test_one_problem_that_is_asked_often_shows_no_difference(tmp_path: Path) -> None:
    runs = [
        run_of(tmp_path / name, [row(number, score=score, prompt="?") for number in range(20)])
        for name, score in (("a", 0.0), ("b", 1.0))
    ]
    (of_scores,) = compare_measures(runs, [score_measure(runs)])
    assert of_scores.rows[1].interval == score_interval([1.0], None)
    assert of_scores.rows[1].p_value == 1
    assert "can be shown by one problem (+1.000" in of_scores.rows[1].sentence(runs[0])


def test_the_leaderboard_counts_a_problem_once(tmp_path: Path) -> None:
    once, often = (LeaderboardCell("m", "e", (two_runs(tmp_path / str(n), n)[0],)) for n in (1, 8))
    assert (often.interval.low, often.interval.high) == pytest.approx((once.interval.low, once.interval.high))
    assert (often.summary()["problems"], often.summary()["distinct"]) == (48, 6)
    assert str(often).endswith("], 48 problems, 6 clusters")
    assert "clusters" not in str(once)


def test_data_sets_and_completions_from_elsewhere_know_the_clusters_of_their_problems(
    tmp_path: Path, rlvr: Command
) -> None:
    problems = (Problem("a", "1+1=", "2"), Problem("b", "1+1=", "2"), Problem("c", "3-1=", "2"))
    assert ProblemDataset("mine", "test", problems).distinct == 2
    counts = DatasetStatistics(lambda problem: len(problem.prompt), "characters", make("numeric"), "numeric")
    counts.add(problems)
    assert (counts.report()["problems"], counts.report()["distinct"]) == (3, 2)
    assert Addition("test", digits=1).distinct == 9
    assert GuessNumber("test").distinct == len(GuessNumber("test"))
    placed = [(index, 0, ExternalCompletion(index, "2", "file")) for index in range(2)]
    samples = [sample for sample, _ in judge(placed, problems, make("numeric"))]
    assert {sample.cluster for sample in samples} == {problem_cluster(problems[0])}
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(f"{json.dumps({'prompt': one.prompt, 'answer': '2'})}\n" for one in problems))
    columns = "columns={'prompt': 'prompt', 'reference': 'answer'}"
    _, output, _ = rlvr("check-dataset", "Text", "--split", "test", "--args", f"dataset={file}", columns)
    assert "test: 3 problems, 2 clusters: those with equal prompts are one cluster" in output


def test_what_rounding_leaves_of_a_cluster_is_no_variance() -> None:
    """Two clusters whose scores have the same mean: their deviations cancel, but for the last digits."""
    shares = [0.1, 0.2, 0.6, 0.6, 0.2, 0.1]
    interval = share_interval(shares, list("aaabbb"))
    assert interval.high - interval.low > 0.5
    zero = compare(shares, shares[3:] + shares[:3], list("aaabbb"))
    assert (zero.p_value, zero.units) == (1, 2)


def test_few_clusters_are_said_to_be_few() -> None:
    scores, clusters = [2.0, 3.0] * 50, [number % 10 for number in range(100)]
    assert not score_interval(scores).approximate
    assert score_interval(scores, clusters).approximate
    assert mean_interval(scores, ["one"] * 100).approximate
