import pytest

from verifiers import InvalidArgumentError, Outcome, Problem, UnknownNameError
from verifiers.format import Format
from verifiers.length import LengthPenalty

PROBLEM = Problem("p", "", "95")


@pytest.mark.parametrize(
    ("completion", "reason"),
    [
        ("95", "the tags are missing"),
        ("<think>a <think>b</think></think><answer>95</answer>", "the tags are"),
        ("<think>a</think><answer>95", "the tags are"),
        ("<think>a</think>So: <answer>95</answer>", "text outside"),
        ("<think>a</think><answer>95</answer> Bye.", "text outside"),
        ("<think> </think><answer>95</answer>", "nothing inside"),
    ],
)
def test_not_think_answer(completion, reason):
    verdict = Format("think_answer")(completion, PROBLEM)
    assert (verdict.outcome, verdict.score) == (Outcome.INCORRECT, 0.0)
    assert reason in verdict.detail["reason"]


@pytest.mark.parametrize(
    ("completion", "outcome"),
    [
        ("<think>a</think> It is 95.", Outcome.CORRECT),
        ("<think>a</think> ", Outcome.INCORRECT),
        ("It is 95.", Outcome.INCORRECT),
        ("<think>a</think> It is <answer>95</answer>.", Outcome.INCORRECT),
    ],
)
def test_think(completion, outcome):
    assert Format("think")(completion, PROBLEM).outcome is outcome


def test_a_thought_that_the_prompt_opened():
    opened = Format("think_answer", opened=True)
    assert opened("90 + 5</think><answer>95</answer>", PROBLEM).outcome is Outcome.CORRECT
    assert opened("<think>90 + 5</think><answer>95</answer>", PROBLEM).outcome is Outcome.INCORRECT


def test_a_pattern_matches_the_whole_completion():
    form = Format(pattern=r".*\\boxed\{[^{}]+\}\.?")
    assert form("So\nit is\n\\boxed{95}.", PROBLEM).outcome is Outcome.CORRECT
    assert form("\\boxed{95} or so", PROBLEM).detail == {"reason": "the pattern does not match"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs a structure"),
        ({"structure": "think", "pattern": "x"}, "and not both"),
        ({"pattern": "("}, r"the pattern '\(' can't be compiled"),
        ({"pattern": 3}, "pattern must be text or None, got 3"),
        ({"pattern": "x", "opened": True}, "it needs a structure"),
    ],
)
def test_a_format_is_one_form(arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        Format(**arguments)


@pytest.mark.parametrize(("length", "score"), [(0, 0.0), (10, 0.0), (15, -0.25), (20, -0.5), (30, -1.0), (1000, -1.0)])
def test_length_penalty_falls_in_a_line(length, score):
    verdict = LengthPenalty(10, 30)("x" * length, PROBLEM)
    assert verdict.outcome is Outcome.SCORED
    assert verdict.score == pytest.approx(score, abs=1e-12)
    assert verdict.detail == {"length": length}


def test_length_in_words_and_another_penalty():
    assert LengthPenalty(0, 4, penalty=0.2, unit="words")("one two\n three ", PROBLEM).score == pytest.approx(-0.15)


def test_lengths_and_units_are_checked():
    with pytest.raises(InvalidArgumentError, match="limit must be greater than free=10, got 10"):
        LengthPenalty(10, 10)
    with pytest.raises(UnknownNameError, match="Did you mean 'words'"):
        LengthPenalty(1, 2, unit="word")
