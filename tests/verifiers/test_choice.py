import pytest
from hypothesis import given, strategies as st

from verifiers import InvalidArgumentError, Outcome, Problem
from verifiers.choice import ChoiceVerifier

CITIES = ("London", "Rome", "Paris", "Bern")


def judge(completion, reference="C", **metadata):
    return ChoiceVerifier()(completion, Problem("p", "", reference, metadata))


@pytest.mark.parametrize(
    "completion",
    [
        "C",
        "**C**",
        "C. Paris",
        "The answer is option C.",
        "**Answer: C**",
        r"\boxed{\text{(C)}}",
        r"\boxed{c}",
        "<answer> (C) Paris </answer>",
        r"\boxed{A} no, \boxed{C}",
        "I'm not sure, but the answer is C.",
        "The answer is C, not B.",
        "The answer is not B but C.",
        "The correct option is C because A and B are wrong.",
        "The answer is B. Wait, no, the answer is C.",
    ],
)
def test_settling_on_the_letter_is_correct(completion):
    verdict = judge(completion)
    assert (verdict.outcome, verdict.answer) == (Outcome.CORRECT, "C")


@pytest.mark.parametrize(
    "completion",
    [
        "C or B",
        "C/D",
        "A, B, C, D",
        "The answer is either B or C.",
        "The answer is C. Or maybe D.",
        "The answer is B and C",
        "All of A, B and C are correct",
        r"\boxed{B, C}",
        "<answer>B and C</answer>",
    ],
)
def test_hedging_is_incorrect_whatever_the_reference(completion):
    for reference in "ABCD":
        assert judge(completion, reference).outcome is Outcome.INCORRECT


@pytest.mark.parametrize(
    "completion",
    [
        "Not C.",
        "C is wrong",
        "The answer is not C",
        "The answer can't be C.",
        "I don't think the answer is C.",
        "It is true that C is not the answer.",
        "I doubt the answer is C",
        "The answer is anything but C",
        "The answer is none of these, certainly not C",
        "I cannot determine if the correct answer is C.",
        r"\boxed{not C}",
        "A. x\nB. y\nC. z",
        "C? D?",
        "Is the answer A, B or C?",
        "If the answer is C, then A is wrong.",
    ],
)
def test_a_letter_that_is_denied_asked_or_supposed_is_no_answer(completion):
    verdict = judge(completion)
    assert verdict.outcome is Outcome.NO_ANSWER
    assert verdict.answer is None


@pytest.mark.parametrize(
    "completion",
    [
        "",
        "42",
        "A good question.",
        "Hepatitis C is bad for you",
        "I refuse to answer this. Option (C) is offensive.",
        "I cannot choose one of them.",
        "<answer></answer> C",
    ],
)
def test_no_letter_where_an_answer_may_stand_is_no_answer(completion):
    assert judge(completion).outcome is Outcome.NO_ANSWER


@pytest.mark.parametrize(
    ("completion", "outcome"),
    [
        ("Paris", Outcome.CORRECT),
        ("The answer is Paris.", Outcome.CORRECT),
        (r"\boxed{Paris}", Outcome.CORRECT),
        ("(C) Paris, the capital", Outcome.CORRECT),
        ("London", Outcome.INCORRECT),
        ("C. London", Outcome.INCORRECT),
        ("The answer is (C) London", Outcome.INCORRECT),
        ("Madrid", Outcome.NO_ANSWER),
        ("The answer is E", Outcome.NO_ANSWER),
    ],
)
@pytest.mark.parametrize("choices", [CITIES, list(CITIES), dict(zip("ABCD", CITIES, strict=True))])
def test_choices_limit_the_letters_and_may_be_answered_by_text(completion, outcome, choices):
    assert judge(completion, choices=choices).outcome is outcome


def test_a_reference_is_a_letter_and_choices_are_texts():
    for reference in ("", "Paris", 2, None, "?"):
        with pytest.raises(InvalidArgumentError, match="one letter of A to Z"):
            judge("C", reference)
    for choices in ("ABCD", 4, list(range(27))):
        with pytest.raises(InvalidArgumentError, match=r"metadata\['choices'\] must be a list"):
            judge("C", choices=choices)


@given(st.text(alphabet="ABCD abnotriswe.,()\n", max_size=60))
def test_at_most_one_reference_is_right(text):
    verdicts = [judge(text, reference) for reference in "ABCD"]
    assert sum(verdict.outcome is Outcome.CORRECT for verdict in verdicts) <= 1
