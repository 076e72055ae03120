"""Naming verifiers: `make`, `register`, `from_function`, and the one-liner `verify`."""

from __future__ import annotations

import functools
import importlib
import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import TypeVar, cast

from verifiers.errors import InvalidArgumentError, MissingDependencyError, VerifierContractError, unknown_name
from verifiers.types import BatchVerifier, Outcome, Problem, Verdict, Verifier

ENTRY_POINT_GROUP = "rlvr_envs.verifiers"

Factory = Callable[..., object]
VerifierSpec = str | type | Callable[[str, Problem], object]

FactoryT = TypeVar("FactoryT", bound=Factory)

# Names to "module:attribute", so that naming a verifier does not import the others.
_BUILT_IN = {
    "choice": "verifiers.choice:ChoiceVerifier",
    "countdown": "verifiers.countdown:CountdownVerifier",
    "exact": "verifiers.exact:ExactVerifier",
    "first": "verifiers.composition:FirstThatApplies",
    "gate": "verifiers.composition:Gate",
    "math": "verifiers.math:MathVerifier",
    "numeric": "verifiers.numeric:NumericVerifier",
    "reward_model": "verifiers.reward_model:RewardModelVerifier",
    "unit_tests": "verifiers.unit_tests:UnitTestVerifier",
    "weighted_sum": "verifiers.composition:WeightedSum",
}
_registered: dict[str, Factory] = {}


def register(name: str) -> Callable[[FactoryT], FactoryT]:
    """Register a verifier class, or a function that returns a verifier, under a name for `make`.

    Raises:
        InvalidArgumentError: If the name is taken by another factory, or contains a colon.
    """
    if ":" in name:
        raise InvalidArgumentError(f"a verifier name has no colon (that form means 'module:attribute'), got {name!r}")

    def decorate(factory: FactoryT) -> FactoryT:
        holder = _BUILT_IN.get(name, _registered.get(name))
        if holder is not None and holder is not factory:
            raise InvalidArgumentError(f"the verifier name {name!r} is taken by {holder!r}; choose another")
        _registered[name] = factory
        return factory

    return decorate


def registered_names() -> list[str]:
    """Every name that `make` takes: built in, registered, and from the entry-point group `rlvr_envs.verifiers`."""
    return sorted({*_BUILT_IN, *_registered, *(point.name for point in entry_points(group=ENTRY_POINT_GROUP))})


def make(spec: VerifierSpec, **kwargs: object) -> Verifier:
    """Build a verifier.

    Args:
        spec: A registered name; `"module:attribute"`, naming a verifier class or a factory; a verifier class; a verifier,
            returned as it is; or a plain function `(completion, problem) -> bool | float | Verdict`.
        **kwargs: Arguments of the class or factory. A verifier or a plain function takes none.

    Raises:
        UnknownNameError: If no verifier has that name; the message offers the nearest.
        InvalidArgumentError: If arguments are given for something that is already built.
        VerifierContractError: If a factory returned something that cannot be called.
        MissingDependencyError: If the verifier needs a package that is not installed.
    """
    if isinstance(spec, str):
        return _build(_factory(spec), kwargs, spec)
    if isinstance(spec, type):
        return _build(spec, kwargs, spec.__name__)
    if not callable(spec):
        raise VerifierContractError(
            f"a verifier is a name, a class or a callable (completion, problem), got {type(spec).__name__}"
        )
    if kwargs:
        raise InvalidArgumentError(
            f"arguments {sorted(kwargs)} were given for {spec!r}, which is already built; use functools.partial"
        )
    if isinstance(spec, BatchVerifier | FunctionVerifier):
        return spec
    return from_function(spec)


def _factory(name: str) -> Factory:
    if ":" in name:
        return _load(name)
    if name in _registered:
        return _registered[name]
    if name in _BUILT_IN:
        return _load(_BUILT_IN[name])
    for point in entry_points(group=ENTRY_POINT_GROUP):
        if point.name == name:
            return cast(Factory, point.load())
    raise unknown_name("verifier", name, registered_names())


def _load(path: str) -> Factory:
    module_name, _, attribute = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except MissingDependencyError:
        raise
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module is there, and something that it needs is not
        raise unknown_name("verifier", path, registered_names()) from error
    if not hasattr(module, attribute):
        raise unknown_name(f"attribute of module {module_name!r}", attribute, vars(module))
    return cast(Factory, getattr(module, attribute))


def _build(factory: Factory, kwargs: Mapping[str, object], name: str) -> Verifier:
    verifier = factory(**kwargs)
    if not callable(verifier):
        raise VerifierContractError(
            f"{name!r} built a {type(verifier).__name__}, which cannot be called with (completion, problem)"
        )
    return cast(Verifier, verifier)


class FunctionVerifier:
    """A plain function as a verifier.

    The function returns a `Verdict`; a bool, meaning correct or incorrect; or a number, which becomes a `SCORED` verdict.
    """

    def __init__(self, function: Callable[[str, Problem], object]) -> None:
        self._function = function

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Call the function and read its answer as a verdict.

        Raises:
            VerifierContractError: If the function returned something else than a verdict, a bool or a finite number.
        """
        return _as_verdict(self._function(completion, problem), self._function)

    def __repr__(self) -> str:
        return f"FunctionVerifier({self._function!r})"


def from_function(function: Callable[[str, Problem], object]) -> FunctionVerifier:
    """Make a verifier of a plain function `(completion, problem) -> bool | float | Verdict`."""
    return FunctionVerifier(function)


def _as_verdict(value: object, source: object) -> Verdict:
    if isinstance(value, Verdict):
        return value
    item = getattr(value, "item", None)  # NumPy and torch scalars
    value = item() if callable(item) else value
    if isinstance(value, bool):
        return Verdict.of(Outcome.CORRECT if value else Outcome.INCORRECT)
    if isinstance(value, int | float) and math.isfinite(value):
        return Verdict(float(value), Outcome.SCORED)
    raise VerifierContractError(
        f"{source!r} returned {value!r}; expected a Verdict, a bool or a finite number "
        "(a verifier that could not judge returns a Verdict with Outcome.VERIFIER_ERROR)"
    )


def verify_batch(verifier: Verifier, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
    """Judge completion i against problem i; an exception of the verifier becomes a `VERIFIER_ERROR` verdict.

    Nothing that breaks inside a verifier is scored 0: the verdict's score is NaN and its detail holds the error.

    Raises:
        VerifierContractError: If what came back is no list of one verdict for each completion.
        InvalidArgumentError: If there are not as many completions as problems.
    """
    if len(completions) != len(problems):
        raise InvalidArgumentError(f"{len(completions)} completions came with {len(problems)} problems")
    if not isinstance(verifier, BatchVerifier):
        return [_verify_one(verifier, *pair) for pair in zip(completions, problems, strict=True)]
    try:
        verdicts = verifier.verify_batch(completions, problems)
    except VerifierContractError:
        raise
    except Exception as error:  # noqa: BLE001 - recorded in every verdict, never scored
        return [verifier_error(error)] * len(problems)
    if len(verdicts) != len(problems):
        raise VerifierContractError(
            f"{verifier!r} returned {len(verdicts)} verdicts for {len(problems)} completions; expected one each, in order"
        )
    return [_as_verdict(verdict, verifier) for verdict in verdicts]


def _verify_one(verifier: Verifier, completion: str, problem: Problem) -> Verdict:
    try:
        return _as_verdict(verifier(completion, problem), verifier)
    except VerifierContractError:
        raise
    except Exception as error:  # noqa: BLE001 - recorded in the verdict, never scored
        return verifier_error(error)


def verifier_error(error: BaseException) -> Verdict:
    """Make the verdict for a verifier that broke with this error: score NaN, the error in `detail`."""
    where = traceback.extract_tb(error.__traceback__)
    detail = {
        "error": f"{type(error).__name__}: {error}",
        "at": f"{where[-1].name}, line {where[-1].lineno}" if where else "",
    }
    return Verdict.of(Outcome.VERIFIER_ERROR, detail=detail)


def verify(spec: VerifierSpec, completion: str, reference: object, **kwargs: object) -> Verdict:
    r"""Judge one completion against one reference: `verify("math", r"so it is \boxed{1/2}", "0.5")`.

    Args:
        spec: As for `make`.
        completion: What the policy wrote.
        reference: What the verifier compares with, such as a gold answer.
        **kwargs: As for `make`.
    """
    verifier = _named(spec) if isinstance(spec, str) and not kwargs else make(spec, **kwargs)
    return verifier(completion, Problem("", "", reference))


@functools.lru_cache(maxsize=32)
def _named(name: str) -> Verifier:
    # Verifiers may hold worker processes, so repeated one-liners share one.
    return make(name)
