import math
import pickle

import pytest

import verifiers
from verifiers import InvalidArgumentError, Outcome, Problem, Verdict
from verifiers.composition import FirstThatApplies, Gate, WeightedSum

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
        ([1, -1], "must not sum to 0"),
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
