"""Pairs from files and from scored completions, and how scores are compared with them."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents import EvaluationRecord, PreferencePair, read_pairs
from agents.learn.metrics import summarize
from agents.losses import bradley_terry
from agents.preferences.pairs import ScoredCompletion, held_out, pairs_of, write_pairs
from agents.preferences.report import preference_report
from agents.runs.evaluation_record import Sample, sample_line
from tests.agents.rounding import ROUNDING
from tests.agents.trajectories import scored
from verifiers import DataError, InvalidArgumentError, Message, MissingDataError, Outcome, Problem, Verdict, statistics


def completion(text: str, score: float, problem: int = 0, **fields: Any) -> ScoredCompletion:
    given = {"problem_id": f"p{problem}", "prompt": f"{problem}=", "ended": True, **fields}
    return ScoredCompletion(problem=problem, text=text, score=score, **given)


def texts(pairs: list[PreferencePair]) -> list[tuple[str, str]]:
    return sorted((pair.chosen, pair.rejected) for pair in pairs)


def test_higher_scores_are_preferred_and_equal_ones_are_no_pair() -> None:
    scores = (("a", 1.0), ("b", 0.0), ("c", 0.0), ("a", 1.0), ("d", 0.5))
    rows = [completion(text, score) for text, score in scores]
    expected = [("a", "b"), ("a", "c"), ("a", "d"), ("d", "b"), ("d", "c")]
    assert texts(pairs_of(rows, per_problem=9)) == expected
    assert texts(pairs_of(rows, per_problem=9, least_gap=0.5)) == expected[:2]
    assert pairs_of([completion("a", 1.0), completion("b", 1.0)]) == []


def test_the_pairs_of_a_problem_are_drawn_whatever_the_other_problems_are() -> None:
    rows = [completion(letter, float(index), problem) for problem in range(5) for index, letter in enumerate("abcdef")]
    whole = pairs_of(rows, per_problem=3, seed=4)
    assert len(whole) == 15
    assert [pair for pair in whole if pair.problem_id == "p3"] == pairs_of(rows[18:24], per_problem=3, seed=4)
    assert texts(whole[:3]) != texts(whole[3:6])
    with pytest.raises(InvalidArgumentError, match=r"per_problem.*at least 1, got 0"):
        pairs_of(rows, per_problem=0)


PAIRS = [
    PreferencePair("1=", "1", "2"),
    PreferencePair((Message("user", "é\n?"),), "ja", "nein", problem_id="q", chosen_ended=False, rejected_ended=False),
]


def test_files_of_pairs_are_read(tmp_path: Path) -> None:
    write_pairs(tmp_path / "pairs.jsonl", PAIRS)
    assert read_pairs(tmp_path / "pairs.jsonl") == PAIRS
    pq = pytest.importorskip("pyarrow.parquet")
    user, assistant = ({"role": role, "content": content} for role, content in (("user", "2+2"), ("assistant", "4")))
    rows = [{"prompt": [user], "chosen": [assistant], "rejected": [{**assistant, "content": "5"}]}]
    pq.write_table(pytest.importorskip("pyarrow").Table.from_pylist(rows), tmp_path / "pairs.parquet")
    assert read_pairs(tmp_path / "pairs.parquet") == [PreferencePair((Message("user", "2+2"),), "4", "5")]


GOOD = {"prompt": "1=", "chosen": "1", "rejected": "2"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            {"prompt": "1=", "better": "1", "worse": "2"},
            r"line 2: no column 'chosen' or 'rejected'\. Columns found: 'prompt', 'better', 'worse'; a pair needs 'prompt', "
            "'chosen', 'rejected': rename those of the file$",
        ),
        ({**GOOD, "prompt": 3}, "'prompt' should hold text, or messages with role and content, got int"),
        ({**GOOD, "chosen": [{"role": "user", "content": "1"}]}, "a list with one message of the assistant"),
        ({**GOOD, "chosen": [{"role": "assistant", "content": "1"}] * 2}, "a list with one message of the assistant"),
        ({**GOOD, "rejected": None}, "'rejected' should hold text"),
        ({**GOOD, "chosen_ended": "no"}, "line 2: column 'chosen_ended' should hold true or false, got str"),
        ({**GOOD, "prompt": ""}, "line 2: column 'prompt' holds an empty prompt"),
        ({**GOOD, "prompt": "\ud800"}, "line 2: column 'prompt' holds half of a surrogate pair as its character 1"),
        (
            {**GOOD, "rejected": [{"role": "assistant", "content": "\ud800"}]},
            "line 2: column 'rejected.0.content' holds half of a surrogate pair",
        ),
    ],
    ids=str,
)
def test_a_damaged_pair_is_named_with_its_line(tmp_path: Path, line: Any, message: str) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(f"{json.dumps(GOOD)}\n{json.dumps(line)}\n")
    with pytest.raises(DataError, match=message):
        read_pairs(path)


def recorded(folder: Path, *rows: tuple[int, str, float, bool]) -> Path:
    """A recorded evaluation: problem, completion, score (NaN if the verifier broke), truncated."""
    with EvaluationRecord(folder, settings={"env": "rlvr/Sort-v0"}) as record:
        record.begin({})
        for number, (index, text, score, truncated) in enumerate(rows):
            broke = math.isnan(score)
            verdict = Verdict(score, Outcome.VERIFIER_ERROR if broke else Outcome.SCORED)
            problem = Problem(f"p{index}", f"{index}=", None)
            sample = Sample.judged(verdict, problem=index, problem_id=problem.id, sample=number, score=score)
            record.add(sample_line(dataclasses.replace(sample, truncated=truncated), text, verdict, problem))
    return folder


def test_a_recorded_evaluation_gives_right_against_wrong_completions(tmp_path: Path) -> None:
    rows = [(0, "1", 1.0, False), (0, "2", 0.0, True), (0, "3", math.nan, False), (1, "4", 1.0, False)]
    (pair,) = read_pairs(recorded(tmp_path / "run", *rows))
    assert pair == PreferencePair("0=", "1", "2", problem_id="p0", rejected_ended=False)


def test_what_holds_no_pairs_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "pairs.txt").touch()
    recorded(tmp_path / "run", (0, "1", 1.0, False), (1, "2", 0.0, False))
    for name, error, message in (
        ("run", DataError, "no two different completions of one problem"),
        ("nothing.jsonl", InvalidArgumentError, r"does not exist: expected a \.jsonl or \.parquet file of pairs"),
        ("empty", MissingDataError, "holds no evaluation"),
        ("pairs.txt", InvalidArgumentError, r"ends in \.jsonl, \.parquet"),
    ):
        with pytest.raises(error, match=message):
            read_pairs(tmp_path / name)


def test_held_out_pairs_share_no_problem_with_the_others() -> None:
    pairs = [PreferencePair(f"{index // 3}=", "1", str(index)) for index in range(60)]
    train, test = held_out(pairs, 0.25, seed=1)
    assert len({pair.prompt for pair in test}) == 5
    assert {pair.prompt for pair in train}.isdisjoint(pair.prompt for pair in test)
    assert sorted(train + test, key=str) == sorted(pairs, key=str)
    assert held_out(pairs, 0.25, seed=2)[1] != test
    assert len(held_out(pairs[:6], 0.01)[1]) == 3  # one problem at least
    with pytest.raises(DataError, match="3 pairs of 1 prompts can't be divided"):
        held_out(pairs[:3], 0.5)
    with pytest.raises(InvalidArgumentError, match="between 0 and 1, got 1"):
        held_out(pairs, 1.0)


# Bradley and Terry


@pytest.mark.parametrize("center", [0.0, 0.3])
def test_loss_and_gradient_by_numpy(center: float) -> None:
    chosen, rejected = np.array([0.3, -2.0, 5.0, 0.0]), np.array([1.1, -2.5, -60.0, 0.0])
    probability = 1 / (1 + np.exp(rejected - chosen))  # that the chosen one is preferred
    loss = -np.log(probability) + center * (chosen + rejected) ** 2
    by_chosen = probability - 1 + 2 * center * (chosen + rejected)
    by_rejected = 1 - probability + 2 * center * (chosen + rejected)
    one, other = (torch.tensor(scores, requires_grad=True) for scores in (chosen, rejected))
    actual = bradley_terry(one, other, center)
    np.testing.assert_allclose(actual.detach().numpy(), loss, rtol=1e-12, atol=ROUNDING)
    gradients = torch.autograd.grad(actual.sum(), (one, other))
    np.testing.assert_allclose(gradients[0].numpy(), by_chosen, rtol=1e-12, atol=ROUNDING)
    np.testing.assert_allclose(gradients[1].numpy(), by_rejected, rtol=1e-12, atol=ROUNDING)
    far = torch.tensor([-1e4], dtype=torch.float64)
    assert float(bradley_terry(far, -far)) == pytest.approx(2e4)


# Reports


def test_a_report_by_hand() -> None:
    """Margins ln 3 (0.75 sure and right), -ln 3 (0.75 sure and wrong), ln 9 (0.9 sure and right), 0 (half right)."""
    margins = np.log([3, 1 / 3, 9, 1])
    report = preference_report(margins + 1, np.ones(4), ["a", "b", "c", "d"])
    assert report.accuracy == pytest.approx(2.5 / 4)
    interval = statistics.share_interval([1, 0, 1, 0.5])
    assert (report.interval.low, report.interval.high) == (interval.low, interval.high)
    assert report.log_loss == pytest.approx(-np.log([0.75, 0.25, 0.9, 0.5]).mean())
    assert report.calibration_error == pytest.approx((2 * abs(0.5 - 0.75) + abs(1 - 0.9) + abs(0.5 - 0.5)) / 4)
    # 0.9 is where one bin ends and another begins.
    assert sum(one.pairs for one in report.reliability) == 4
    assert [one.accuracy for one in report.reliability] == [0.5, 0.5, 1.0]
    assert report.mean_score == pytest.approx((4 * 1 + 4 * 1 + margins.sum()) / 8)
    with pytest.raises(InvalidArgumentError, match="at least one pair, got 0 and 0 for 0"):
        preference_report([], [], [])


# Gold scores of a run


def with_gold(score: float, gold: float | None) -> Any:
    detail = {"gold": {"score": gold, "outcome": "x"}}
    return dataclasses.replace(scored(score, length=4), verdict=Verdict(score, Outcome.SCORED, detail=detail))


def test_a_run_logs_the_gold_score_beside_the_one_that_is_trained_on() -> None:
    pairs = [(0.0, 1.0), (1.0, 0.0), (2.0, 0.5), (5.0, None)]
    metrics = summarize([with_gold(*pair) for pair in pairs])
    assert metrics["reward"] == 2.0
    assert metrics["gold_reward"] == 0.5
    assert metrics["gold_errors"] == 1
    assert metrics["gold_correlation"] == pytest.approx(np.corrcoef([0, 1, 2], [1, 0, 0.5])[0, 1])
    flat = summarize([with_gold(1.0, 1.0), with_gold(2.0, 1.0)])
    assert "gold_correlation" not in flat
    assert math.isnan(summarize([with_gold(1.0, None)])["gold_reward"])
    assert "gold_reward" not in summarize([scored(1.0, length=4)])
