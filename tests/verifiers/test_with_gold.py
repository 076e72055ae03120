import math

from verifiers import Outcome, Problem, Verdict, make
from verifiers.with_gold import WithGold

PROBLEM = Problem("p", "", "95")


def test_the_verdict_is_the_proxys_with_the_gold_verdict_in_its_detail():
    proxy = Verdict(2.5, Outcome.SCORED, "x", {"why": "long"}, token_scores=((1, 0.5),), cost={"seconds": 1.0})
    verdict = WithGold(lambda completion, problem: proxy, "exact")("94", PROBLEM)
    assert (verdict.score, verdict.outcome, verdict.answer, verdict.token_scores) == (2.5, "scored", "x", ((1, 0.5),))
    assert verdict.detail["why"] == "long"
    assert (verdict.detail["gold"]["score"], verdict.detail["gold"]["outcome"]) == (0.0, "incorrect")
    assert verdict.cost["seconds"] >= 1.0


def broken(completion, problem):
    raise RuntimeError("no judge today")


def test_a_gold_verifier_that_broke_leaves_the_verdict_as_it_is():
    verdict = make("with_gold", proxy="exact", gold=broken)("95", PROBLEM)
    assert (verdict.score, verdict.outcome) == (1.0, Outcome.CORRECT)
    assert (verdict.detail["gold"]["score"], verdict.detail["gold"]["outcome"]) == (None, "verifier_error")


def test_a_proxy_that_broke_is_an_error_whatever_the_gold_verifier_says():
    verdict = make("with_gold", proxy=broken, gold="exact")("95", PROBLEM)
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    assert math.isnan(verdict.score)
    assert verdict.detail["gold"]["score"] == 1.0
