import math
import pickle

import pytest

import verifiers
from verifiers import InvalidArgumentError, Outcome, Problem, UnknownNameError, UnreadableReferenceError, Verdict
from verifiers.composition import FirstThatApplies, Gate, WeightedSum
from verifiers.ensemble import Ensemble
from verifiers.hybrid import Hybrid
from verifiers.with_gold import WithGold

PROBLEM = Problem("p", "", "95")


def brief(completion, problem):
    return 1 / (1 + len(completion))


def failing(completion, problem):
    raise RuntimeError("the judge is down")


class Counting:
    """Correct for the completion "95"; remembers the batches it saw."""

    def __init__(self):
        self.batches = []

    def __call__(self, completion, problem):
        raise AssertionError("the parts are asked in batches")

    def verify_batch(self, completions, problems):
        self.batches.append(list(completions))
        return [self._judge(completion) for completion in completions]

    def _judge(self, completion):
        if not completion:
            return Verdict.of(Outcome.NO_ANSWER, cost={"seconds": 0.5})
        return Verdict.of(
            Outcome.CORRECT if completion == "95" else Outcome.INCORRECT, completion, cost={"seconds": 0.5}
        )


def test_sum_weighs_the_parts_and_keeps_them():
    both = WeightedSum({"right": "numeric", "brief": brief}, {"right": 2.0, "brief": -0.5})
    verdict = both("95", PROBLEM)
    assert verdict.score == pytest.approx(2.0 * 1.0 - 0.5 / 3)
    assert verdict.outcome is Outcome.SCORED
    assert verdict.answer == "95"
    assert verdict.detail == {
        "parts": {
            "right": {"weight": 2.0, "score": 1.0, "outcome": "correct", "answer": "95", "detail": {}},
            "brief": {"weight": -0.5, "score": 1 / 3, "outcome": "scored", "answer": None, "detail": {}},
        }
    }


@pytest.mark.parametrize(
    ("parts", "weights", "completion", "score"),
    [
        (["exact", ("numeric", {"whole": True})], None, "95", 2.0),  # by default each weighs one
        ([("numeric", {"whole": True}), "numeric"], [1, 10], "so 95", 10.0),
        ({"a": "exact", "b": "numeric"}, [3, 4], "95.0", 4.0),
    ],
)
def test_parts_have_arguments_names_and_weights(parts, weights, completion, score):
    verdict = verifiers.make("weighted_sum", parts=parts, weights=weights)(completion, PROBLEM)
    assert verdict.score == score
    assert list(verdict.detail["parts"]) == (list(parts) if isinstance(parts, dict) else ["0", "1"])


ONE_EACH = r"one weight for each of the parts \['0', '1'\]"


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], ONE_EACH),
        ({"0": 1.0, "2": 1.0}, ONE_EACH),
        ([math.nan, 1], "finite"),
        ([1, 2, 3], ONE_EACH),
        ([1, -1], "must not sum to 0"),
        ([0, 0], "must not sum to 0"),
        ({"0": 0.1, "1": -0.1}, "must not sum to 0"),
        (3, "weights must be a list or a mapping"),
    ],
)
def test_weights_fit_the_parts_and_are_finite_and_do_not_cancel_out(weights, message):
    with pytest.raises(InvalidArgumentError, match=message):
        WeightedSum(["exact", "numeric"], weights)


@pytest.mark.parametrize("part", [("exact",), ("exact", {}, {}), ("exact", 3), {"strip": True}, None])
def test_a_part_that_is_no_verifier_is_named(part):
    with pytest.raises(InvalidArgumentError, match="part 'odd': expected a verifier or a pair"):
        Gate({"odd": part})


@pytest.mark.parametrize("composition", [WeightedSum, Gate, FirstThatApplies])
def test_parts_are_needed(composition):
    for parts in ([], {}, "exact", None):
        with pytest.raises(InvalidArgumentError, match="parts must be a list of verifiers"):
            composition(parts)


@pytest.mark.parametrize("composition", [WeightedSum, Gate])
def test_a_broken_part_breaks_the_whole_of_its_rows_alone(composition):
    def fragile(completion, problem):
        return 1.0 if completion == "95" else failing(completion, problem)

    good, broken = composition({"good": "numeric", "bad": fragile}).verify_batch(["95", "95 "], [PROBLEM] * 2)
    assert good.outcome in (Outcome.CORRECT, Outcome.SCORED)
    assert broken.outcome is Outcome.VERIFIER_ERROR
    assert math.isnan(broken.score)
    assert broken.detail["parts"]["good"]["score"] == 1.0
    assert broken.detail["parts"]["bad"]["score"] is None
    assert broken.detail["parts"]["bad"]["detail"]["error"] == "RuntimeError: the judge is down"


def test_every_part_sees_the_whole_batch_once_and_costs_add_up():
    for composition in (WeightedSum, Gate):
        first, second = Counting(), Counting()
        verdicts = composition([first, second]).verify_batch(["95", "7", ""], [PROBLEM] * 3)
        assert first.batches == second.batches == [["95", "7", ""]]
        assert [verdict.cost for verdict in verdicts] == [{"seconds": 1.0}] * 3
    judge = WeightedSum([Counting(), failing])
    assert pickle.loads(pickle.dumps(judge("95", PROBLEM).detail)) == judge("95", PROBLEM).detail


@pytest.mark.parametrize(
    ("completion", "outcome", "failed"),
    [
        ("95", Outcome.CORRECT, []),
        ("7", Outcome.INCORRECT, ["right"]),
        ("", Outcome.NO_ANSWER, ["right"]),
        ("95.0000000000000", Outcome.INCORRECT, ["brief"]),
        ("7.0000000000000000", Outcome.INCORRECT, ["right", "brief"]),
    ],
)
def test_gate_passes_when_all_parts_do(completion, outcome, failed):
    verdict = Gate({"right": "numeric", "brief": brief}, threshold=0.1)(completion, PROBLEM)
    assert verdict.outcome is outcome
    assert verdict.score == (1.0 if outcome is Outcome.CORRECT else 0.0)
    assert verdict.detail["failed"] == failed


def test_gate_threshold_is_inclusive_and_finite():
    half = verifiers.from_function(lambda completion, problem: 0.5)
    assert Gate([half], threshold=0.5)("", PROBLEM).outcome is Outcome.CORRECT
    assert Gate([half])("", PROBLEM).outcome is Outcome.INCORRECT
    with pytest.raises(InvalidArgumentError, match="threshold"):
        Gate([half], threshold=math.nan)


def test_first_that_finds_an_answer_decides():
    first = verifiers.make("first", parts={"tagged": Counting(), "number": "numeric"})
    assert first("95", PROBLEM).detail["applied"] == "tagged"
    later = first("", Problem("p", "", "95"))
    assert (later.outcome, later.detail["applied"]) == (Outcome.NO_ANSWER, None)
    assert list(later.detail["parts"]) == ["tagged", "number"]


def test_first_that_applies_returns_that_parts_verdict_and_asks_no_further():
    after = Counting()
    verdict = FirstThatApplies([("choice", {}), brief, after])("Well.", Problem("p", "", "C"))
    assert (verdict.score, verdict.outcome) == (pytest.approx(1 / 6), Outcome.SCORED)
    assert verdict.detail["applied"] == "1"
    assert after.batches == [[]]
    verdict = FirstThatApplies([failing, "numeric"])("95", PROBLEM)  # a part that broke ends the search, too
    assert (verdict.outcome, verdict.detail["applied"]) == (Outcome.VERIFIER_ERROR, "0")


def test_first_asks_a_part_only_about_problems_it_is_meant_for():
    number, letter = Problem("n", "", "95"), Problem("l", "", "C")
    first = FirstThatApplies({"number": "numeric", "letter": "choice"}, when={"number": lambda p: p.reference != "C"})
    verdicts = first.verify_batch(["95", "C", "C"], [number, letter, number])
    assert [verdict.outcome for verdict in verdicts[:2]] == [Outcome.CORRECT, Outcome.CORRECT]
    assert [verdict.detail["applied"] for verdict in verdicts[:2]] == ["number", "letter"]
    # The third is passed on to the letters' verifier, which cannot judge a number.
    assert verdicts[2].outcome is Outcome.VERIFIER_ERROR
    with pytest.raises(InvalidArgumentError, match=r"when names \['letters'\]"):
        FirstThatApplies({"letter": "choice"}, when={"letters": bool})


def test_token_scores_of_a_part_are_kept():
    def scorer(completion, problem):
        return Verdict(0.5, Outcome.SCORED, token_scores=((1, 0.1), (3, 0.4)))

    assert WeightedSum([scorer])("abc", PROBLEM).detail["parts"]["0"]["token_scores"] == ((1, 0.1), (3, 0.4))
    assert FirstThatApplies([scorer])("abc", PROBLEM).token_scores == ((1, 0.1), (3, 0.4))
    assert WeightedSum([scorer, scorer], [2.0, -1.0])("abc", PROBLEM).token_scores == (
        (1, -0.1),
        (1, 0.2),
        (3, -0.4),
        (3, 0.8),
    )
    assert Gate([scorer])("abc", PROBLEM).token_scores is None


# Ensembles


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
    verdict = Ensemble({"one": constant(-9.0), "two": failing}, reduction)("x", PROBLEM)
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    assert verdict.detail["parts"]["two"]["detail"]["error"] == "RuntimeError: the judge is down"
    assert "disagreement" not in verdict.detail


def test_one_member_is_no_ensemble_and_reductions_are_named():
    with pytest.raises(InvalidArgumentError, match="at least two parts"):
        Ensemble(["exact"])
    with pytest.raises(UnknownNameError, match="Did you mean 'mean'"):
        Ensemble(["exact", "numeric"], "meen")


# A rule, and a judge where it finds no answer


class Agreeing:
    """Says that everything is correct, and remembers what it was asked."""

    def __init__(self):
        self.batches = []

    def __call__(self, completion, problem):
        raise AssertionError("the judge is asked in batches")

    def verify_batch(self, completions, problems):
        self.batches.append(list(completions))
        return [Verdict.of(Outcome.CORRECT, cost={"seconds": 2.0}) for _ in completions]


def test_the_judge_is_asked_only_where_the_rule_finds_no_answer_or_cannot_read_the_gold():
    judge = Agreeing()
    unreadable = Problem("q", "", "ninety-five")
    asked = [("95", PROBLEM), ("7", PROBLEM), ("It is ninety-five.", PROBLEM), ("95", unreadable)]
    verdicts = Hybrid("numeric", judge).verify_batch(*zip(*asked, strict=True))
    assert [verdict.outcome for verdict in verdicts] == ["correct", "incorrect", "correct", "correct"]
    assert [verdict.detail["applied"] for verdict in verdicts] == ["rule", "rule", "judge", "judge"]
    assert judge.batches == [["It is ninety-five.", "95"]]
    assert list(verdicts[0].detail["parts"]) == ["rule"]
    assert verdicts[3].detail["parts"]["rule"]["detail"]["error"].startswith("UnreadableReferenceError")
    assert (verdicts[0].cost, verdicts[2].cost) == ({}, {"seconds": 2.0})


def test_a_rule_that_broke_is_no_case_for_the_judge_and_a_judge_that_broke_is_a_verifier_error():
    judge = Agreeing()
    verdict = Hybrid(failing, judge)("95", PROBLEM)
    assert (verdict.outcome, verdict.detail["applied"], judge.batches) == (Outcome.VERIFIER_ERROR, "rule", [])
    assert math.isnan(verdict.score)
    verdict = Hybrid("numeric", failing)("none", PROBLEM)
    assert (verdict.outcome, verdict.detail["applied"]) == (Outcome.VERIFIER_ERROR, "judge")


def test_the_case_of_no_answer_can_be_left_to_the_rule():
    judge = Agreeing()
    hybrid = Hybrid("numeric", judge, when=["unreadable_reference"])
    assert hybrid("none", PROBLEM).outcome is Outcome.NO_ANSWER
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
    def refusing(completion, problem):
        raise InvalidArgumentError("the completion is too long")

    (verdict,) = verifiers.verify_batch(verifiers.from_function(refusing), ["7"], [PROBLEM])
    assert "unreadable_reference" not in verdict.detail
    assert issubclass(UnreadableReferenceError, InvalidArgumentError)


# A verifier with another one beside it


def test_the_verdict_is_the_proxys_with_the_gold_verdict_in_its_detail():
    proxy = Verdict(2.5, Outcome.SCORED, "x", {"why": "long"}, token_scores=((1, 0.5),), cost={"seconds": 1.0})
    verdict = WithGold(lambda completion, problem: proxy, "exact")("94", PROBLEM)
    assert (verdict.score, verdict.outcome, verdict.answer, verdict.token_scores) == (2.5, "scored", "x", ((1, 0.5),))
    assert verdict.detail["why"] == "long"
    assert (verdict.detail["gold"]["score"], verdict.detail["gold"]["outcome"]) == (0.0, "incorrect")
    assert verdict.cost["seconds"] >= 1.0


def test_a_gold_verifier_that_broke_leaves_the_verdict_as_it_is():
    verdict = verifiers.make("with_gold", proxy="exact", gold=failing)("95", PROBLEM)
    assert (verdict.score, verdict.outcome) == (1.0, Outcome.CORRECT)
    assert (verdict.detail["gold"]["score"], verdict.detail["gold"]["outcome"]) == (None, "verifier_error")


def test_a_proxy_that_broke_is_an_error_whatever_the_gold_verifier_says():
    verdict = verifiers.make("with_gold", proxy=failing, gold="exact")("95", PROBLEM)
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    assert math.isnan(verdict.score)
    assert verdict.detail["gold"]["score"] == 1.0
