import pytest

from verifiers import InvalidArgumentError, Outcome, Problem, verify
from verifiers.exact import ExactVerifier


@pytest.mark.parametrize(
    ("completion", "reference", "options", "outcome"),
    [
        ("3 5 9", "3 5 9", {}, Outcome.CORRECT),
        ("3 5 9", " 3 5 9", {}, Outcome.CORRECT),
        ("3  5 9", "3 5 9", {}, Outcome.INCORRECT),
        ("3  5\n9", "3 5 9", {"collapse_spaces": True}, Outcome.CORRECT),
        ("35 9", "3 5 9", {"collapse_spaces": True}, Outcome.INCORRECT),
        (" a", "a", {"strip": False}, Outcome.INCORRECT),
        ("  a", " a", {"strip": False, "collapse_spaces": True}, Outcome.CORRECT),
        ("Paris", "paris", {}, Outcome.INCORRECT),
        ("STRASSE", "straße", {"casefold": True}, Outcome.CORRECT),
        ("", "a", {}, Outcome.NO_ANSWER),
        (" \n", "a", {}, Outcome.NO_ANSWER),
        (" \n", "a", {"strip": False}, Outcome.INCORRECT),
        ("", "", {}, Outcome.CORRECT),
    ],
)
def test_texts_are_equal_under_the_options(completion, reference, options, outcome):
    assert verify("exact", completion, reference, **options).outcome is outcome


def test_reference_must_be_text():
    with pytest.raises(
        InvalidArgumentError, match=r"got the reference 7.0 \(float\) of problem 'p'; convert it with str"
    ):
        ExactVerifier()("7", Problem("p", "", 7.0))
    with pytest.raises(InvalidArgumentError, match=r"True \(bool\)"):
        ExactVerifier()("True", Problem("p", "", True))


def test_an_integer_is_its_digits():
    assert ExactVerifier()("7", Problem("p", "", 7)).outcome is Outcome.CORRECT
    assert ExactVerifier()("7.0", Problem("p", "", 7)).outcome is Outcome.INCORRECT
    assert ExactVerifier()("1" * 5000, Problem("p", "", (10**5000 - 1) // 9)).outcome is Outcome.CORRECT
