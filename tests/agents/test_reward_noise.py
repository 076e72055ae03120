"""The share of a step's rewards that is likely error: by hand, beside drawn groups whose truth is known, and in a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from agents.learn.noise import RewardNoise, expected_errors, only_errors
from agents.runs.health import WINDOW, Health
from agents.types import Trajectory
from tests.agents.trajectories import trajectory
from verifiers import InvalidArgumentError, Outcome, Problem, Verdict, audit_verifier
from verifiers.audit import Label, ReportRow, read_card, write_card
from verifiers.exact import ExactVerifier


def rates(false_positives: int, false_negatives: int, cases: int = 100) -> RewardNoise:
    pairs = ((Label.WRONG, false_positives), (Label.CORRECT, false_negatives))
    return RewardNoise(*(ReportRow("", label, cases, count) for label, count in pairs))


def judged(group: int, outcome: Outcome) -> Trajectory:
    verdict = Verdict(0.5, outcome) if outcome is Outcome.SCORED else Verdict.of(outcome)
    return trajectory([False, True], verdict=verdict, group=group)


def test_expected_errors_by_hand() -> None:
    # Of 100 answers, 30 accepted: 2/7 are right, since 0.1 * 5/7 + 0.8 * 2/7 = 0.3.
    assert expected_errors(30, 100, 0.1, 0.2) == pytest.approx((100 * 0.1 * 5 / 7, 100 * 0.2 * 2 / 7))
    assert expected_errors(5, 100, 0.1, 0.0) == (5, 0)  # fewer accepted than if all were wrong
    assert expected_errors(100, 100, 0.1, 0.2) == (0, 0)


def test_one_accepted_answer_of_two_by_hand() -> None:
    """Without false negatives a group of one accepted and one refused answer is an error where both are wrong."""
    (chance,) = only_errors([(1, 2)], 0.5, 0.0)
    share = np.linspace(0, 1, 21)
    accepted = 0.5 + 0.5 * share
    likely = accepted * (1 - accepted)
    weights = np.full(21, 1 / 21)
    for _ in range(50):
        weights = (1 / 21 + weights * likely / (weights @ likely)) / 2
    assert chance == pytest.approx(weights @ ((1 - share) ** 2 * 0.25) / (weights @ likely))
    assert only_errors([(1, 4), (3, 4)], 0.0, 0.0) == [0.0, 0.0]
    assert only_errors([(1024, 2048)], 0.02, 0.05) == [pytest.approx(0, abs=1e-9)]


def test_the_probabilities_are_those_of_drawn_groups() -> None:
    rng = np.random.default_rng(0)
    size, count, rho0, rho1 = 8, 4000, 0.15, 0.1
    shares = rng.choice([0.0, 0.3, 0.9], size=count, p=[0.6, 0.3, 0.1])
    right = rng.random((count, size)) < shares[:, None]
    accepted = np.where(rng.random((count, size)) < np.where(right, rho1, rho0), ~right, right)
    groups = [(int(row.sum()), size) for row in accepted]
    chances = np.array(only_errors(groups, rho0, rho1))
    alike = right.all(axis=1) | ~right.any(axis=1)
    for low, high in ((0.0, 0.3), (0.3, 0.7), (0.7, 1.0)):
        mine = (chances >= low) & (chances <= high)
        assert mine.sum() > 50
        assert chances[mine].mean() == pytest.approx(alike[mine].mean(), abs=0.05)


def test_the_metrics_of_a_step() -> None:
    step = [
        judged(group, Outcome.CORRECT if accepted else Outcome.INCORRECT)
        for group, row in enumerate([(1, 0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 0), (0, 0, 1, 0)])
        for accepted in row
    ]
    metrics = rates(10, 0).metrics(step)
    expected = 16 * 0.1 * (1 - (2 / 16 - 0.1) / 0.9)
    assert metrics["noise/false_positives"] == pytest.approx(expected)
    assert metrics["noise/false_positives/low"] < expected < metrics["noise/false_positives/high"] == 2
    assert rates(20, 0).metrics(step)["noise/groups_by_error"] == 1
    assert rates(0, 0, cases=10_000_000).metrics(step)["noise/groups_by_error"] == 0
    assert rates(20, 0).metrics([judged(0, Outcome.SCORED)]) == {}


def test_health_warns_where_most_signal_is_error() -> None:
    health = Health()
    said = [health.observe(step, {"noise/groups_by_error": 0.6}) for step in range(1, WINDOW + 1)]
    assert said[:-1] == [[]] * (WINDOW - 1)
    (warning,) = said[-1]
    assert warning.kind == "noise"
    assert "in 60% of the groups with different verdicts" in str(warning)
    assert not any(Health().observe(step, {"noise/groups_by_error": 0.4}) for step in range(1, WINDOW + 1))


@pytest.mark.parametrize("name", ["card.md", "card.html"])
def test_a_card_is_read_back(tmp_path: Path, name: str) -> None:
    report = audit_verifier(ExactVerifier(), [Problem("1", "", "7")], skip=("huge", "long"), answer_format="ANSWER")
    write_card(report, tmp_path / name)
    assert read_card(tmp_path / name) == (report.total(Label.WRONG), report.total(Label.CORRECT))


def test_a_file_without_rates(tmp_path: Path) -> None:
    (tmp_path / "card.md").write_text("| all wrong answers | 10 | 1 |")
    with pytest.raises(InvalidArgumentError, match="has no cases of all right answers"):
        read_card(tmp_path / "card.md")
    with pytest.raises(InvalidArgumentError, match="is no file"):
        RewardNoise.of_card(tmp_path / "none.md")
    with pytest.raises(InvalidArgumentError, match="say nothing about answers"):
        rates(60, 50)
