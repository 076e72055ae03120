import copy
import dataclasses
import math
import pickle

import pytest

import verifiers
from verifiers import InvalidArgumentError, Message, Outcome, Problem, RLVRError, Verdict

ERRORS = [
    (verifiers.UnknownNameError, LookupError),
    (verifiers.UnknownArgumentError, TypeError),
    (verifiers.InvalidArgumentError, ValueError),
    (verifiers.UnreadableReferenceError, ValueError),
    (verifiers.MissingDependencyError, ImportError),
    (verifiers.VerifierContractError, TypeError),
    (verifiers.VerifierFailureError, RuntimeError),
    (verifiers.SandboxUnavailableError, RuntimeError),
    (verifiers.DataError, ValueError),
    (verifiers.MissingDataError, FileNotFoundError),
    (verifiers.PromptTooLongError, ValueError),
    (verifiers.IllegalTokenError, ValueError),
    (verifiers.DivergedError, FloatingPointError),
    (verifiers.CheckpointError, RuntimeError),
    (verifiers.EngineError, RuntimeError),
    (verifiers.EngineDiedError, RuntimeError),
    (verifiers.RankError, RuntimeError),
]


@pytest.mark.parametrize(("error", "standard"), ERRORS)
def test_error_is_a_standard_type_and_pickles(error, standard):
    raised = pickle.loads(pickle.dumps(error("what was wrong")))
    assert type(raised) is error
    assert isinstance(raised, standard)
    assert isinstance(raised, RLVRError)
    assert str(raised) == "what was wrong"


def test_every_public_error_is_in_the_table_above():
    public = {value for value in vars(verifiers).values() if isinstance(value, type) and issubclass(value, RLVRError)}
    assert public - {RLVRError} == {error for error, _ in ERRORS}


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


@pytest.mark.parametrize(
    ("outcome", "score"),
    [(Outcome.CORRECT, 1.0), (Outcome.INCORRECT, 0.0), (Outcome.NO_ANSWER, 0.0), (Outcome.TIMEOUT, 0.0)],
)
def test_score_follows_from_outcome(outcome, score):
    assert Verdict.of(outcome).score == score


def test_scored_verdict_needs_its_score():
    with pytest.raises(InvalidArgumentError, match=r"Verdict\(score, Outcome.SCORED\)"):
        Verdict.of(Outcome.SCORED)


@pytest.mark.parametrize("outcome", ["fine", "correct", None, 1.0])
def test_an_outcome_is_one_of_those_there_are(outcome):
    with pytest.raises(InvalidArgumentError, match="a verdict must have a number and an Outcome"):
        Verdict(1.0, outcome)


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.VERIFIER_ERROR])
def test_only_a_broken_verifier_has_no_finite_score(outcome, score):
    with pytest.raises(InvalidArgumentError, match="needs a finite score"):
        Verdict(score, outcome)


@pytest.mark.parametrize("score", [0.0, 1.0, math.inf])
def test_a_broken_verifier_has_no_score(score):
    with pytest.raises(InvalidArgumentError, match="expected NaN"):
        Verdict(score, Outcome.VERIFIER_ERROR)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RatedProblem(Problem):
    rating: int


@pytest.mark.parametrize(
    "value",
    [
        RatedProblem(id="p", prompt="What?", reference="5", rating=7),
        Verdict(0.5, Outcome.SCORED, "x", {"why": [1]}, ((1, 0.1), (2, 0.4)), {"seconds": 0.1}),
        Problem("p", (Message("user", "hi"),), "7", {"level": 1}),
    ],
)
def test_types_pickle_and_are_frozen(value):
    assert pickle.loads(pickle.dumps(value)) == copy.deepcopy(value) == value
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, dataclasses.fields(value)[0].name, None)
