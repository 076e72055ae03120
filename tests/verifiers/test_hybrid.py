import math

import pytest

import verifiers
from verifiers import InvalidArgumentError, Outcome, Problem, UnknownNameError, UnreadableReferenceError, Verdict
from verifiers.hybrid import Hybrid

GOLD = Problem("p", "What is 90 + 5?", "95")


class Judge:
    """Says that everything is correct, and remembers what it was asked."""

    def __init__(self):
        self.batches = []

    def __call__(self, completion, problem):
        raise AssertionError("the judge is asked in batches")

    def verify_batch(self, completions, problems):
        self.batches.append(list(completions))
        return [Verdict.of(Outcome.CORRECT, cost={"seconds": 2.0}) for _ in completions]


def test_the_judge_is_asked_only_where_the_rule_finds_no_answer_or_cannot_read_the_gold():
    judge = Judge()
    unreadable = Problem("q", "", "ninety-five")
    asked = [("95", GOLD), ("7", GOLD), ("It is ninety-five.", GOLD), ("95", unreadable)]
    verdicts = Hybrid("numeric", judge).verify_batch(*zip(*asked, strict=True))
    assert [verdict.outcome for verdict in verdicts] == ["correct", "incorrect", "correct", "correct"]
    assert [verdict.detail["applied"] for verdict in verdicts] == ["rule", "rule", "judge", "judge"]
    assert judge.batches == [["It is ninety-five.", "95"]]
    assert list(verdicts[0].detail["parts"]) == ["rule"]
    assert verdicts[3].detail["parts"]["rule"]["detail"]["error"].startswith("UnreadableReferenceError")
    assert (verdicts[0].cost, verdicts[2].cost) == ({}, {"seconds": 2.0})


def test_a_rule_that_broke_is_no_case_for_the_judge_and_a_judge_that_broke_is_a_verifier_error():
    def failing(completion, problem):
        raise RuntimeError("out of memory")

    judge = Judge()
    verdict = Hybrid(failing, judge)("95", GOLD)
    assert (verdict.outcome, verdict.detail["applied"], judge.batches) == (Outcome.VERIFIER_ERROR, "rule", [])
    assert math.isnan(verdict.score)
    verdict = Hybrid("numeric", failing)("none", GOLD)
    assert (verdict.outcome, verdict.detail["applied"]) == (Outcome.VERIFIER_ERROR, "judge")


def test_the_case_of_no_answer_can_be_left_to_the_rule():
    judge = Judge()
    hybrid = Hybrid("numeric", judge, when=["unreadable_reference"])
    assert hybrid("none", GOLD).outcome is Outcome.NO_ANSWER
    assert hybrid("95", Problem("q", "", "x")).detail["applied"] == "judge"


@pytest.mark.parametrize("when", [[], "no_answer", 3])
def test_cases_are_a_list(when):
    with pytest.raises(InvalidArgumentError, match="when must be a list of no_answer, unreadable_reference"):
        Hybrid("numeric", "exact", when=when)
    with pytest.raises(UnknownNameError, match=r"'incorrect'.*Known: no_answer, unreadable_reference"):
        Hybrid("numeric", "exact", when=["incorrect"])


@pytest.mark.parametrize(
    ("verifier", "reference"),
    [
        ("math", r"\frac{"),
        ("math", r"\frac{1}{0}"),
        ("numeric", "x"),
        ("choice", "95"),
    ],
)
def test_verifiers_say_that_it_is_the_reference_they_cannot_use(verifier, reference):
    (verdict,) = verifiers.verify_batch(verifiers.make(verifier), [r"\boxed{7}"], [Problem("p", "", reference)])
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    assert verdict.detail["unreadable_reference"] is True


def test_other_errors_do_not_blame_the_reference():
    def failing(completion, problem):
        raise InvalidArgumentError("the completion is too long")

    (verdict,) = verifiers.verify_batch(verifiers.from_function(failing), ["7"], [GOLD])
    assert "unreadable_reference" not in verdict.detail
    assert issubclass(UnreadableReferenceError, InvalidArgumentError)
