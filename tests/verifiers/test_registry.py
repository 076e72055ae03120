import math
import subprocess
import sys
from importlib.metadata import EntryPoint

import numpy as np
import pytest

import verifiers
from verifiers import InvalidArgumentError, Outcome, Problem, UnknownNameError, Verdict, VerifierContractError
from verifiers import registry as registry_module
from verifiers.exact import ExactVerifier

PROBLEM = Problem("p", "", "7")


@pytest.fixture
def clean_registry(monkeypatch):
    monkeypatch.setattr(registry_module, "_registered", {})


@pytest.fixture
def entry_point(monkeypatch):
    def find(group):
        known = [EntryPoint("third_party", "verifiers.exact:ExactVerifier", "rlvr_envs.verifiers")]
        return [point for point in known if point.group == group]

    monkeypatch.setattr(registry_module, "entry_points", find)


def broken(completion, problem):
    raise RuntimeError("the judge is down")


def test_make_takes_a_name_with_arguments():
    assert verifiers.make("exact", casefold=True) == ExactVerifier(casefold=True)


def test_make_takes_a_class_with_arguments():
    assert verifiers.make(ExactVerifier, strip=False) == ExactVerifier(strip=False)


def test_make_takes_module_and_attribute():
    assert verifiers.make("verifiers.exact:ExactVerifier", casefold=True) == ExactVerifier(casefold=True)


def test_make_returns_a_batch_verifier_as_it_is():
    built = verifiers.make("gate", parts=["exact"])
    assert verifiers.make(built) is built


def test_make_coerces_a_plain_callable():
    verdict = verifiers.make(lambda completion, problem: completion == problem.reference)("7", PROBLEM)
    assert verdict == Verdict.of(Outcome.CORRECT)


def test_make_takes_an_entry_point(entry_point):
    assert verifiers.make("third_party") == ExactVerifier()
    assert "third_party" in verifiers.registered_names()


def test_registered_name_wins_over_an_entry_point(entry_point, clean_registry):
    verifiers.register("third_party")(lambda: broken)
    assert verifiers.make("third_party") is broken


def test_every_built_in_name_resolves_to_its_module():
    for name in ("exact", "choice", "numeric", "countdown", "weighted_sum", "gate", "first", "reward_model"):
        assert name in verifiers.registered_names()
        assert isinstance(registry_module._factory(name), type)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("numerik", "unknown verifier 'numerik'. Did you mean 'numeric'?"),
        ("no_such_module_here:Thing", "unknown verifier 'no_such_module_here:Thing'"),
        ("verifiers.exact:ExactVerifer", "Did you mean 'ExactVerifier'?"),
    ],
)
def test_unknown_names_are_told_apart(spec, message):
    with pytest.raises(UnknownNameError) as raised:
        verifiers.make(spec)
    assert message in str(raised.value)


def test_make_refuses_arguments_for_what_is_built():
    with pytest.raises(InvalidArgumentError, match="already built"):
        verifiers.make(broken, threshold=1)


def test_make_refuses_what_cannot_be_called():
    with pytest.raises(VerifierContractError, match="got int"):
        verifiers.make(3)


def test_factory_must_build_something_callable(clean_registry):
    verifiers.register("nothing")(lambda: 3)
    with pytest.raises(VerifierContractError, match="'nothing' built a int"):
        verifiers.make("nothing")


def test_register_refuses_a_taken_name_and_takes_the_same_factory_again(clean_registry):
    verifiers.register("mine")(ExactVerifier)
    verifiers.register("mine")(ExactVerifier)
    with pytest.raises(InvalidArgumentError, match="'mine' is taken"):
        verifiers.register("mine")(broken)
    with pytest.raises(InvalidArgumentError, match="'exact' is taken"):
        verifiers.register("exact")(broken)


def test_register_refuses_a_colon():
    with pytest.raises(InvalidArgumentError, match="no colon"):
        verifiers.register("a:b")


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (True, Verdict.of(Outcome.CORRECT)),
        (False, Verdict.of(Outcome.INCORRECT)),
        (np.bool_(True), Verdict.of(Outcome.CORRECT)),
        (0.25, Verdict(0.25, Outcome.SCORED)),
        (1, Verdict(1.0, Outcome.SCORED)),
        (np.float32(0.5), Verdict(0.5, Outcome.SCORED)),
        (Verdict.of(Outcome.TIMEOUT), Verdict.of(Outcome.TIMEOUT)),
    ],
)
def test_function_results_become_verdicts(returned, expected):
    assert verifiers.from_function(lambda completion, problem: returned)("", PROBLEM) == expected


@pytest.mark.parametrize("returned", [None, "yes", math.nan, math.inf, [1.0]])
def test_function_must_return_a_verdict(returned):
    with pytest.raises(VerifierContractError, match="expected a Verdict, a bool or a finite number"):
        verifiers.from_function(lambda completion, problem: returned)("", PROBLEM)


def test_exception_becomes_a_verifier_error_and_spares_the_other_rows():
    def fragile(completion, problem):
        if completion == "bad":
            raise RuntimeError("the judge is down")
        return True

    verdicts = verifiers.verify_batch(verifiers.make(fragile), ["ok", "bad", "ok"], [PROBLEM] * 3)
    assert [verdict.outcome for verdict in verdicts] == [Outcome.CORRECT, Outcome.VERIFIER_ERROR, Outcome.CORRECT]
    assert math.isnan(verdicts[1].score)
    assert verdicts[1].detail["error"] == "RuntimeError: the judge is down"
    assert verdicts[1].detail["at"].startswith("fragile, line ")


def test_exception_of_a_batch_verifier_marks_every_row():
    class Broken:
        def __call__(self, completion, problem):
            raise AssertionError

        def verify_batch(self, completions, problems):
            raise OSError("no GPU")

    verdicts = verifiers.verify_batch(Broken(), ["a", "b"], [PROBLEM] * 2)
    assert [verdict.outcome for verdict in verdicts] == [Outcome.VERIFIER_ERROR] * 2
    assert verdicts[0].detail["error"] == "OSError: no GPU"


def test_batch_verifier_must_answer_every_row():
    class Short:
        def __call__(self, completion, problem):
            raise AssertionError

        def verify_batch(self, completions, problems):
            return [Verdict.of(Outcome.CORRECT)]

    with pytest.raises(VerifierContractError, match="1 verdicts for 2 completions"):
        verifiers.verify_batch(Short(), ["a", "b"], [PROBLEM] * 2)


def test_wrong_return_values_are_never_hidden_as_verifier_errors():
    with pytest.raises(VerifierContractError):
        verifiers.verify_batch(verifiers.from_function(lambda completion, problem: None), ["a"], [PROBLEM])


def test_completions_and_problems_come_in_pairs():
    with pytest.raises(InvalidArgumentError, match="1 completions came with 2 problems"):
        verifiers.verify_batch(ExactVerifier(), ["a"], [PROBLEM] * 2)


def test_verify_judges_in_one_line():
    assert verifiers.verify("exact", " 7 ", "7").outcome is Outcome.CORRECT
    assert verifiers.verify("exact", "A", "a", casefold=True).outcome is Outcome.CORRECT
    assert verifiers.verify("exact", "A", "a").outcome is Outcome.INCORRECT


def test_importing_verifiers_stays_cheap():
    heavy = "{'sympy', 'torch', 'transformers', 'datasets', 'numpy'}"
    program = f"import sys, verifiers; assert not {heavy} & set(sys.modules), {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
