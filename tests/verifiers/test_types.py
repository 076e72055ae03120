import copy
import dataclasses
import math
import pickle

import pytest

import verifiers
from verifiers import InvalidArgumentError, Message, Outcome, Problem, RLVRError, Verdict

PUBLIC = [value for value in vars(verifiers).values() if isinstance(value, type) and issubclass(value, RLVRError)]
STANDARD = (LookupError, TypeError, ValueError, ImportError, RuntimeError, FileNotFoundError, FloatingPointError)


@pytest.mark.parametrize("error", [error for error in PUBLIC if error is not RLVRError])
def test_error_is_a_standard_type_and_pickles(error):
    raised = pickle.loads(pickle.dumps(error("what was wrong")))
    assert type(raised) is error
    assert isinstance(raised, STANDARD)
    assert str(raised) == "what was wrong"
    assert issubclass(verifiers.UnknownNameError, LookupError)
    assert issubclass(verifiers.UnreadableReferenceError, InvalidArgumentError)
    assert issubclass(InvalidArgumentError, ValueError)


def test_a_long_list_does_not_hide_the_nearest_name():
    names = [f"name-{number:02}" for number in range(20)]
    message = str(verifiers.unknown_name("verifier", "nam-07", names))
    assert "Did you mean 'name-07'? Known: name-00, " in message
    assert message.endswith("name-07 and 12 more.")
    assert "name-19" in str(verifiers.unknown_name("verifier", "zzz", names))


def test_unknown_name_offers_nothing_where_nothing_is_near():
    assert str(verifiers.unknown_name("split", "zzz", [])) == "unknown split 'zzz'. Known: none."
    said = str(verifiers.unknown_argument("it", "foo", ["tools", "answer", "answer"]))
    assert said == "it got an unexpected keyword argument 'foo'. Known: answer, tools."
    assert "Did you mean 'tolerance'?" in str(verifiers.unknown_argument("it", "tol", ["answer", "tolerance"]))


def test_scored_verdict_needs_its_score():
    with pytest.raises(InvalidArgumentError, match=r"Verdict\(score, Outcome.SCORED\)"):
        Verdict.of(Outcome.SCORED)


@pytest.mark.parametrize(
    ("score", "outcome", "message"),
    [
        (1.0, "correct", "a verdict must have a number and an Outcome"),
        (1.0, None, "a verdict must have a number and an Outcome"),
        (math.nan, Outcome.CORRECT, "needs a finite score"),
        (math.inf, Outcome.SCORED, "needs a finite score"),
        (0.0, Outcome.VERIFIER_ERROR, "expected NaN"),
        (math.inf, Outcome.VERIFIER_ERROR, "expected NaN"),
    ],
)
def test_only_a_broken_verifier_has_no_finite_score(score, outcome, message):
    with pytest.raises(InvalidArgumentError, match=message):
        Verdict(score, outcome)


def test_types_pickle_and_are_frozen():
    problem = Problem("p", (Message("user", "hi"),), "7", {"level": 1})
    for value in (problem, Verdict(0.5, Outcome.SCORED, "x", {"why": [1]}, ((1, 0.1), (2, 0.4)), {"seconds": 0.1})):
        assert pickle.loads(pickle.dumps(value)) == copy.deepcopy(value) == value
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, dataclasses.fields(value)[0].name, None)
