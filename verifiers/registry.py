"""Verifiers by name: `make`, `register`, `factory`, `from_function`, and the one-liner `verify`.

A name, however it is given (registered, `module:attribute`, an entry point, or the object itself), denotes one of these:

* a class is constructed, with the arguments given to `make`;
* a function marked with `factory` is called with these arguments, and returns the verifier;
* any other callable is the verifier itself, called by the names of its parameters, as `verifiers.functions` says.

A verifier of any kind may return a `Verdict`, a bool, a finite number or a mapping with a score; the verifier that `make`
returns converts this result into a verdict.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from inspect import Parameter
from typing import TYPE_CHECKING, TypeVar, cast

from verifiers.errors import (
    InvalidArgumentError,
    RLVRError,
    UnknownArgumentError,
    VerifierContractError,
    unknown_argument,
    unknown_name,
)
from verifiers.files import is_verifier_file, spec_of_file
from verifiers.functions import BatchObjectVerifier, as_verdicts, from_function, paired, verifier_error, verify_one
from verifiers.imports import import_attribute, is_attribute_path
from verifiers.types import BatchVerifier, Problem, Verdict, Verifier

if TYPE_CHECKING:
    from verifiers.completion import Form

ENTRY_POINT_GROUP = "rlvr_envs.verifiers"

VerifierSpec = str | type | Callable[..., object]
"""What `make` builds a verifier from: a name, a class, a function marked with `factory`, or a verifier."""

CallableT = TypeVar("CallableT", bound=Callable[..., object])
_FACTORY = "__builds_a_verifier__"
_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)

# Each name with its "module:attribute", so that naming a verifier does not import the others.
_BUILT_IN = {
    "by_metadata": "verifiers.composition:ByMetadata",
    "choice": "verifiers.choice:ChoiceVerifier",
    "command": "verifiers.elsewhere:CommandVerifier",
    "coq": "verifiers.proofs.coq.verifier:CoqVerifier",
    "countdown": "verifiers.countdown:CountdownVerifier",
    "ensemble": "verifiers.ensemble:Ensemble",
    "exact": "verifiers.exact:ExactVerifier",
    "first": "verifiers.composition:FirstThatApplies",
    "format": "verifiers.format:Format",
    "gate": "verifiers.composition:Gate",
    "hybrid": "verifiers.hybrid:Hybrid",
    "ifeval": "verifiers.ifeval:IFEvalVerifier",
    "json_schema": "verifiers.json_schema:JSONSchemaVerifier",
    "judge": "verifiers.judge:JudgeVerifier",
    "lean": "verifiers.proofs.lean.verifier:LeanVerifier",
    "length_penalty": "verifiers.length:LengthPenalty",
    "math": "verifiers.math:MathVerifier",
    "numeric": "verifiers.numeric:NumericVerifier",
    "process_reward_model": "verifiers.process_reward_model:ProcessRewardModelVerifier",
    "ray": "verifiers.ray_tasks:RayVerifier",
    "reasoning_gym": "verifiers.reasoning_gym:ReasoningGymVerifier",
    "reward_model": "verifiers.reward_model:RewardModelVerifier",
    "served": "verifiers.elsewhere:ServedVerifier",
    "smt": "verifiers.proofs.smt.verifier:SmtVerifier",
    "sql": "verifiers.sql:SQLVerifier",
    "unit_tests": "verifiers.unit_tests:UnitTestVerifier",
    "weighted_sum": "verifiers.composition:WeightedSum",
    "with_gold": "verifiers.with_gold:WithGold",
    "with_timeout": "verifiers.timeout:WithTimeout",
}
_registered: dict[str, Callable[..., object]] = {}


def factory(function: CallableT) -> CallableT:
    """Mark a function that returns a verifier, so that `make` calls it with its arguments: `@verifiers.factory`."""
    setattr(function, _FACTORY, True)
    return function


def register(name: str) -> Callable[[CallableT], CallableT]:
    """Register a verifier function, a verifier class, or a function marked with `factory` under a name for `make`.

    Raises:
        InvalidArgumentError: If the name is taken, or contains a colon.
    """
    if ":" in name:
        raise InvalidArgumentError(
            f"a verifier name must not contain a colon (that form means 'module:attribute'), got {name!r}"
        )

    def decorate(registered: CallableT) -> CallableT:
        holder = _BUILT_IN.get(name, _registered.get(name))
        if holder is not None and holder is not registered:
            raise InvalidArgumentError(f"the verifier name {name!r} is taken by {holder!r}; choose another")
        _registered[name] = registered
        return registered

    return decorate


def registered_names() -> list[str]:
    """Every name that `make` accepts: built in, registered, or in the entry-point group `"rlvr_envs.verifiers"`."""
    return sorted({*_BUILT_IN, *_registered, *(point.name for point in entry_points(group=ENTRY_POINT_GROUP))})


def make(spec: VerifierSpec, **kwargs: object) -> Verifier:
    """Build a verifier.

    Args:
        spec: A registered name or one of the entry-point group `"rlvr_envs.verifiers"`; `"module:attribute"`, where the module
            may also be in the current folder, or a path that ends in `.py`; a `.toml` or `.json` file that describes a verifier
            (see `verifiers.files`); the address of a server, as for `served`; or the object itself: a class, a function marked
            with `factory`, or a verifier, which may be any function of a completion and a reference or problem (see
            `verifiers.functions`).
        **kwargs: Arguments of the class or factory. For a function, `completion` and `reference` name the parameters for the
            completion and the reference, and any other argument goes to the parameter of the same name.

    Returns:
        The verifier; a verifier from outside this package is wrapped, so that its result becomes a `Verdict`.

    Raises:
        UnknownNameError: If no verifier has that name; the message offers the nearest.
        UnknownArgumentError: If the class or factory does not take the arguments.
        InvalidArgumentError: If arguments are given for something that is already built, or a module can't be imported.
        VerifierContractError: If the name or the factory yields something other than a verifier.
        MissingDependencyError: If the verifier needs a package that is not installed.
    """
    if isinstance(spec, str) and is_verifier_file(spec):
        return _from_file(spec, kwargs)
    target = _named_object(spec) if isinstance(spec, str) else spec
    name = repr(spec) if isinstance(spec, str) else getattr(spec, "__qualname__", repr(spec))
    if isinstance(target, type) or getattr(target, _FACTORY, False):
        return _adapted(_built(target, name, kwargs), f"{name} built")
    if kwargs and (_is_ours(target) or isinstance(target, BatchVerifier)):
        raise InvalidArgumentError(
            f"arguments {sorted(kwargs)} were given for the verifier {name}, which is already built; pass them to a class or "
            "to a function marked with @verifiers.factory"
        )
    return _adapted(target, f"{name} is", kwargs)


def _from_file(path: str, kwargs: dict[str, object]) -> Verifier:
    if kwargs:
        raise InvalidArgumentError(f"arguments {sorted(kwargs)} were given for {path}: write them into the file")
    name, arguments = spec_of_file(path)
    try:
        return make(name, **arguments)
    except RLVRError as error:
        raise type(error)(f"{path}: {error}") from error


def check_spec(spec: VerifierSpec, arguments: Mapping[str, object]) -> None:
    """Check a verifier's specification without building it, since building may load a model.

    Raises:
        RLVRError: As for `make`.
    """
    if isinstance(spec, str) and is_verifier_file(spec):
        if arguments:
            raise InvalidArgumentError(f"arguments {sorted(arguments)} were given for {spec}: write them into the file")
        name, written = spec_of_file(spec)
        check_spec(name, written)
        return
    target = _named_object(spec) if isinstance(spec, str) else spec
    if isinstance(target, type) or getattr(target, _FACTORY, False):
        _check_arguments(target, repr(spec), dict(arguments))
    for value in arguments.values():
        for part in value if isinstance(value, list) else [value]:
            match part:  # the form in which a verifier made of verifiers names its parts
                case (str(name), dict(written)):
                    check_spec(name, written)


def _built(target: object, name: str, arguments: dict[str, object]) -> object:
    """A verifier made by a class or factory.

    Raises:
        UnknownArgumentError: If the class or factory does not take the arguments; also a `TypeError`.
    """
    _check_arguments(target, name, arguments)
    return cast("Callable[..., object]", target)(**arguments)


def _check_arguments(target: object, name: str, arguments: dict[str, object]) -> None:
    """Check that a class or factory takes the arguments."""
    try:
        signature = inspect.signature(cast("Callable[..., object]", target))
    except ValueError:
        return  # the signature is unknown
    parameters = signature.parameters.values()
    if all(parameter.kind is not Parameter.VAR_KEYWORD for parameter in parameters):
        known = [parameter.name for parameter in parameters if parameter.kind in _NAMED]
        for argument in arguments:
            if argument not in known:
                raise unknown_argument(f"the verifier {name}", argument, known)
    try:
        signature.bind(**arguments)
    except TypeError as error:
        raise UnknownArgumentError(f"the verifier {name} does not take these arguments: {error}") from error


def _named_object(name: str) -> object:
    if name.startswith(("http://", "https://")):
        served = cast("Callable[..., object]", import_attribute(_BUILT_IN["served"], "verifier"))
        return factory(functools.partial(served, name))
    if ":" in name or is_attribute_path(name):
        return import_attribute(name, "verifier")
    if name in _registered:
        return _registered[name]
    if name in _BUILT_IN:
        return import_attribute(_BUILT_IN[name], "verifier")
    for point in entry_points(group=ENTRY_POINT_GROUP):
        if point.name == name:
            return import_attribute(f"{point.module}:{point.attr}", "verifier")
    raise unknown_name("verifier", name, registered_names())


def _adapted(verifier: object, said: str, settled: Mapping[str, object] | None = None) -> Verifier:
    """Return a verifier of this package unchanged; wrap any other, so that it is called correctly and returns verdicts."""
    if not callable(verifier):
        raise VerifierContractError(
            f"{said} {verifier!r}, of type {type(verifier).__name__}, which cannot be called. A verifier is a function of a "
            "completion and a reference or problem, an object that can be called so, a class of such objects, or a function "
            "that returns one, marked with @verifiers.factory"
        )
    if inspect.iscoroutinefunction(verifier) or inspect.iscoroutinefunction(type(verifier).__call__):
        raise VerifierContractError(
            f"{said} {verifier!r}, which is asynchronous: name a plain function that calls asyncio.run"
        )
    if _is_ours(verifier):
        return cast(Verifier, verifier)
    return (
        BatchObjectVerifier(verifier)
        if isinstance(verifier, BatchVerifier)
        else from_function(verifier, **settled or {})
    )


def _is_ours(verifier: object) -> bool:
    return type(verifier).__module__.partition(".")[0] == __package__


def preferring(verifier: Verifier, form: Form | None) -> Verifier:
    """Make a verifier prefer answers in the form that a prompt asks for; one that knows no forms is returned unchanged.

    Args:
        verifier: Any verifier; a verifier that knows forms has a method `preferring(form)`.
        form: A form of `verifiers.completion`; None if the prompt asks for no form.
    """
    prefer = getattr(verifier, "preferring", None)
    return verifier if form is None or prefer is None else cast("Verifier", prefer(form))


def verify_batch(verifier: Verifier, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
    """Judge completion i against problem i; an exception of the verifier becomes a `VERIFIER_ERROR` verdict.

    An error inside a verifier is never scored 0: the verdict's score is NaN and its detail holds the error.

    Raises:
        VerifierContractError: If the result is not a list of one verdict for each completion.
        InvalidArgumentError: If the numbers of completions and problems differ.
    """
    pairs = paired(completions, problems)
    verdicts = _verify_all(verifier, completions, problems)
    for verdict, (completion, _) in zip(verdicts, pairs, strict=True):
        for end, _ in verdict.token_scores or ():
            if end > len(completion):
                raise VerifierContractError(
                    f"{verifier!r} scores the first {end} characters of a completion of {len(completion)}: the ends of "
                    "token_scores count characters of the completion"
                )
    return verdicts


def _verify_all(verifier: Verifier, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
    if not isinstance(verifier, BatchVerifier):
        return [verify_one(verifier, *pair) for pair in zip(completions, problems, strict=True)]
    try:
        verdicts = verifier.verify_batch(completions, problems)
    except VerifierContractError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - recorded in every verdict, never scored
        return [verifier_error(error)] * len(problems)
    return as_verdicts(verdicts, verifier, len(problems))


def verify(spec: VerifierSpec, completion: str, reference: object, **kwargs: object) -> Verdict:
    r"""Judge one completion against one reference: `verify("math", r"so it is \boxed{1/2}", "0.5")`.

    Args:
        spec: As for `make`.
        completion: What the policy wrote.
        reference: The reference, such as a gold answer.
        **kwargs: As for `make`.
    """
    reusable = isinstance(spec, str) and not kwargs and not is_verifier_file(spec)  # a file may change
    verifier = _named(str(spec)) if reusable else make(spec, **kwargs)
    return verifier(completion, Problem("", "", reference))


@functools.lru_cache(maxsize=32)
def _named(name: str) -> Verifier:
    # Verifiers may hold worker processes, so repeated one-liners share one verifier.
    return make(name)
