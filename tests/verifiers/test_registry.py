import math
import pickle
import subprocess
import sys
from importlib.metadata import EntryPoint

import numpy as np
import pytest

import verifiers
from verifiers import (
    InvalidArgumentError,
    Outcome,
    Problem,
    UnknownArgumentError,
    UnknownNameError,
    Verdict,
    VerifierContractError,
    registry as registry_module,
)
from verifiers.choice import ChoiceVerifier
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


def failing(completion, problem):
    raise RuntimeError("the judge is down")


def test_registered_name_wins_over_an_entry_point(entry_point, clean_registry):
    assert "third_party" in verifiers.registered_names()
    verifiers.register("third_party")(ChoiceVerifier)
    assert isinstance(verifiers.make("third_party"), ChoiceVerifier)


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


async def awaited(completion, problem):
    return True


class Awaited:
    async def __call__(self, completion, problem):
        return True


@pytest.mark.parametrize("verifier", [awaited, Awaited, Awaited()])
def test_make_refuses_what_would_have_to_be_awaited(verifier):
    with pytest.raises(VerifierContractError, match=r"name a plain function that calls asyncio\.run"):
        verifiers.make(verifier)


def test_register_refuses_a_taken_name_and_takes_the_same_factory_again(clean_registry):
    verifiers.register("mine")(ExactVerifier)
    verifiers.register("mine")(ExactVerifier)
    with pytest.raises(InvalidArgumentError, match="'mine' is taken"):
        verifiers.register("mine")(failing)
    with pytest.raises(InvalidArgumentError, match="'exact' is taken"):
        verifiers.register("exact")(failing)
    with pytest.raises(InvalidArgumentError, match="must not contain a colon"):
        verifiers.register("a:b")


def test_make_refuses_what_cannot_be_called_and_arguments_for_what_is_built():
    with pytest.raises(InvalidArgumentError, match="already built"):
        verifiers.make(ExactVerifier(), threshold=1)
    with pytest.raises(VerifierContractError, match="is 3, of type int, which cannot be called"):
        verifiers.make(3)


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


@pytest.mark.parametrize("returned", [None, "yes", math.nan, math.inf, 10**400, [1.0]])
def test_function_must_return_a_verdict(returned):
    function = verifiers.from_function(lambda completion, problem: returned)
    with pytest.raises(VerifierContractError, match="expected a Verdict, a bool, a finite number or a mapping with a"):
        verifiers.verify_batch(function, [""], [PROBLEM])  # it is never hidden as a verifier error


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

    def leaves(completion, problem):
        raise SystemExit(3)

    (verdict,) = verifiers.verify_batch(verifiers.make(leaves), ["a"], [PROBLEM])
    assert (verdict.outcome, verdict.detail["error"]) == (Outcome.VERIFIER_ERROR, "SystemExit: 3")


class InBatches:
    """Answers a batch with what a function returns."""

    def __init__(self, answer):
        self.answer = answer

    def __call__(self, completion, problem):
        raise AssertionError

    def verify_batch(self, completions, problems):
        return self.answer()


def test_a_batch_verifier_answers_every_row_and_its_exception_marks_every_row():
    def no_gpu():
        raise OSError("no GPU")

    verdicts = verifiers.verify_batch(InBatches(no_gpu), ["a", "b"], [PROBLEM] * 2)
    assert [verdict.outcome for verdict in verdicts] == [Outcome.VERIFIER_ERROR] * 2
    assert verdicts[0].detail["error"] == "OSError: no GPU"
    with pytest.raises(VerifierContractError, match="1 verdicts for 2 completions"):
        verifiers.verify_batch(InBatches(lambda: [Verdict.of(Outcome.CORRECT)]), ["a", "b"], [PROBLEM] * 2)
    with pytest.raises(InvalidArgumentError, match="1 completions came with 2 problems"):
        verifiers.verify_batch(ExactVerifier(), ["a"], [PROBLEM] * 2)


# One rule for what a name stands for: a class is constructed, a marked factory is called, anything else is the verifier


def ends_with_gold(completion, problem):
    return completion.endswith(str(problem.reference))


@verifiers.factory
def ends_with(*, letter):
    return lambda completion, problem: completion.endswith(letter)


class HalfScore:
    """Returns plain numbers, as its batch does."""

    def __call__(self, completion, problem):
        return 0.5

    def verify_batch(self, completions, problems):
        return [0.5] * len(problems)


@pytest.fixture(params=["module:attribute", "registered", "entry point", "object"])
def named(request, monkeypatch, clean_registry):
    """Gives a way of naming each object of this module."""

    def name(attribute):
        attribute_value = globals()[attribute]
        if request.param == "object":
            return attribute_value
        if request.param == "module:attribute":
            return f"{__name__}:{attribute}"
        if request.param == "registered":
            verifiers.register("mine")(attribute_value)
        else:
            point = EntryPoint("mine", f"{__name__}:{attribute}", "rlvr_envs.verifiers")
            monkeypatch.setattr(registry_module, "entry_points", lambda group: [point])
        return "mine"

    return name


def test_a_plain_function_can_be_named_in_every_way(named):
    verifier = verifiers.make(named("ends_with_gold"))
    assert verifier("a 7", PROBLEM) == Verdict.of(Outcome.CORRECT)
    assert verifier("a 8", PROBLEM) == Verdict.of(Outcome.INCORRECT)
    with pytest.raises(UnknownArgumentError, match="ends_with_gold got an unexpected keyword argument 'letter'"):
        verifiers.make(named("ends_with_gold"), letter="7")


def test_a_marked_factory_is_called_with_the_arguments(named):
    assert verifiers.make(named("ends_with"), letter="x")("ax", PROBLEM) == Verdict.of(Outcome.CORRECT)
    with pytest.raises(TypeError, match="letter"):
        verifiers.make(named("ends_with"))


def test_a_class_may_return_numbers_singly_and_in_batches(named):
    verifier = verifiers.make(named("HalfScore"))
    half = Verdict(0.5, Outcome.SCORED)
    assert verifier("", PROBLEM) == half
    assert verifiers.verify_batch(verifier, ["", ""], [PROBLEM] * 2) == [half] * 2
    assert verifier.verify_batch(["a"], [PROBLEM]) == [half]  # type: ignore[attr-defined]
    assert verifiers.verify_batch(verifiers.make("weighted_sum", parts=[verifier]), [""], [PROBLEM])[0].score == 0.5
    assert pickle.loads(pickle.dumps(verifier))("", PROBLEM) == half


@pytest.mark.parametrize("returned", ["half", 0.5, {"a": 1}, [0.5, 0.5], [None]])
def test_a_batch_of_something_else_is_refused_and_named(returned):
    with pytest.raises(VerifierContractError, match="returned"):
        verifiers.verify_batch(verifiers.make(InBatches(lambda: returned)), [""], [PROBLEM])


def test_a_function_that_builds_a_verifier_and_is_not_marked_is_refused_when_it_is_made():
    def build():
        return ends_with_gold

    def build_with_options(a, b="7"):
        return ends_with_gold

    with pytest.raises(VerifierContractError, match=r"build\(\).* the completion.*@verifiers\.factory"):
        verifiers.make(build)
    with pytest.raises(VerifierContractError, match=r"returned <function ends_with_gold.*@verifiers\.factory"):
        verifiers.make(build_with_options)("", PROBLEM)


# Importing


def test_a_module_of_the_current_folder_is_found(tmp_path, monkeypatch):
    (tmp_path / "own_verifier_here.py").write_text("def fn(completion, problem):\n    return completion == 'x'\n")
    (tmp_path / "json.py").write_text("raise AssertionError('an installed module is hidden')\n")
    program = (
        "import sys, verifiers\n"
        "assert verifiers.verify('own_verifier_here:fn', 'x', None).score == 1\n"
        "sys.modules.pop('json', None); import json; json.dumps(1)"
    )
    subprocess.run([sys.executable, "-P", "-c", program], cwd=tmp_path, check=True)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1\nraise ValueError('two\\nlines')\n", r"ValueError: two lines \(.*own_module\.py, line 2\)"),
        ("def f(:\n", r"SyntaxError: .*own_module\.py, line 1\)"),
        ("\nimport no_such_package_here\n", r"ModuleNotFoundError: .*no_such_package_here.*own_module\.py, line 2\)"),
        ("import sys\nsys.exit(3)\n", r"SystemExit: 3 \(.*own_module\.py, line 2\)"),
    ],
)
def test_an_import_that_fails_shows_its_cause_in_one_line(source, message, tmp_path, monkeypatch):
    (tmp_path / "own_module.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("own_module", None)
    with pytest.raises(InvalidArgumentError, match=message) as raised:
        verifiers.make("own_module:fn")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("path", [":", "a:", ":b", "a:b:c", "a b:c", "1a:b", "a:b c"])
def test_what_is_no_path_is_refused_before_it_is_imported(path):
    with pytest.raises(InvalidArgumentError, match="expected a verifier as module:attribute"):
        verifiers.make(path)
    assert not verifiers.is_attribute_path(path)


def test_an_entry_point_to_a_missing_attribute_names_the_attribute(monkeypatch):
    point = EntryPoint("gone", "verifiers.exact:ExactVerifer", "rlvr_envs.verifiers")
    monkeypatch.setattr(registry_module, "entry_points", lambda group: [point])
    with pytest.raises(UnknownNameError, match=r"exact\.py\) 'ExactVerifer'\. Did you mean 'ExactVerifier'"):
        verifiers.make("gone")
