import math

import pytest

from verifiers import InvalidArgumentError, Outcome, Problem, UnknownNameError, Verdict
from verifiers.ensemble import Ensemble

PROBLEM = Problem("p", "", "95")


def constant(score):
    return lambda completion, problem: score


@pytest.mark.parametrize(
    ("reduction", "k", "score"),
    [
        ("mean", 1.0, 3.0),
        ("min", 1.0, 1.0),
        ("mean_minus_std", 1.0, 3.0 - math.sqrt(8 / 3)),
        ("mean_minus_std", 0, 3.0),
    ],
)
def test_scores_are_reduced(reduction, k, score):
    # Scores 1, 3, 5: mean 3, variance (4 + 0 + 4) / 3.
    verdict = Ensemble([constant(1.0), constant(3.0), constant(5.0)], reduction, k)("x", PROBLEM)
    assert verdict.outcome is Outcome.SCORED
    assert verdict.score == pytest.approx(score, abs=1e-12)
    assert verdict.detail["mean"] == 3.0
    assert verdict.detail["disagreement"] == pytest.approx(math.sqrt(8 / 3))
    assert [part["score"] for part in verdict.detail["parts"].values()] == [1.0, 3.0, 5.0]


@pytest.mark.parametrize("reduction", ["mean", "min", "mean_minus_std"])
def test_a_member_that_broke_breaks_the_ensemble(reduction):
    def failing(completion, problem):
        return Verdict.of(Outcome.VERIFIER_ERROR, detail={"error": "no GPU"})

    verdict = Ensemble({"one": constant(-9.0), "two": failing}, reduction)("x", PROBLEM)
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    assert verdict.detail["parts"]["two"]["detail"] == {"error": "no GPU"}
    assert "disagreement" not in verdict.detail


def test_one_member_is_no_ensemble_and_reductions_are_named():
    with pytest.raises(InvalidArgumentError, match="at least two parts"):
        Ensemble(["exact"])
    with pytest.raises(UnknownNameError, match="Did you mean 'mean'"):
        Ensemble(["exact", "numeric"], "meen")
