"""How to call a function that was not written for this package: which parameter gets which value.

`verifiers.functions` documents the rules.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from inspect import Parameter
from typing import Any

from verifiers.errors import InvalidArgumentError, VerifierContractError, unknown_argument, unknown_name
from verifiers.types import Problem, chat_messages, dialogue_of, prompt_text

COMPLETION, REFERENCE, PROBLEM, DIALOGUE = "completion", "reference", "problem", "dialogue"
_COMPLETION_NAMES = (COMPLETION, "solution_str", "response", "prediction")
_REFERENCE_NAMES = (REFERENCE, "answer", "gold", "ground_truth", "target", "solution")
_SYNONYMS = ("gold_answer", "reference_answer", "correct_answer", "expected_answer", "expected", "label", "truth", "gt")
"""Further names of the reference, which are not recommended."""
_EITHER = ("answer", "solution")
"""Names that a first parameter may have although it gets the completion."""
_ROLES = {
    **dict.fromkeys(_COMPLETION_NAMES, COMPLETION),
    **dict.fromkeys((*_REFERENCE_NAMES, *_SYNONYMS), REFERENCE),
    **dict.fromkeys(("prompt", "question"), "prompt"),
    **{name: name for name in (PROBLEM, "metadata", "extra_info", "data_source", DIALOGUE)},
}
_COLUMN = "column"
_NO_TEXT = re.compile(r"(?:.*_)?(?:ids|tokens|logits|logprobs|mask|length|images?)|self|cls")
"""Matches names of a first parameter that does not get the completion."""
_BATCHES = ("list[", "List[", "Sequence[", "typing.List[", "typing.Sequence[", "collections.abc.Sequence[")
_POSITIONAL_ONLY = (Parameter.POSITIONAL_ONLY,)
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True)
class Convention:
    """How a function is called."""

    function: str
    """The function's name."""
    roles: Mapping[str, str]
    """The role of each parameter whose value is not in `constants`."""
    constants: Mapping[str, object] = field(default_factory=dict)
    """Values that the arguments of `make` give to parameters."""
    defaults: Mapping[str, object] = field(default_factory=dict)
    """Defaults of optional parameters, used if a problem does not have their column."""
    positional: tuple[str, ...] = ()
    """Parameters that can't be named in a call."""
    batched: bool = False
    takes_rest: bool = False
    """Whether `**kwargs` gets all values by name."""
    messages: bool = False
    """Whether completions are lists of one message."""
    guessed: bool = False
    """Whether a parameter gets the completion only because it is the first."""
    settled: bool = False
    """Whether the caller named the parameter that gets the completion or the reference."""
    listed: frozenset[str] = frozenset()
    """Parameters that get a list of references although the function takes a single completion."""

    @property
    def is_own(self) -> bool:
        """Whether the function has the form of this package's verifiers: `(completion, problem)`."""
        return list(self.roles.values()) == [COMPLETION, PROBLEM] and not self.constants and not self.batched

    def exchanged(self) -> Convention:
        """The same convention with completion and reference swapped."""
        other = {COMPLETION: REFERENCE, REFERENCE: COMPLETION}
        return replace(self, roles={name: other.get(role, role) for name, role in self.roles.items()})

    def __str__(self) -> str:
        shown = [self._said_role(name, role) for name, role in self.roles.items()]
        shown += [f"{name}={value!r}" for name, value in self.constants.items()]
        shown += ["**columns"] if self.takes_rest else []
        kind = "a list of messages each" if self.messages else "texts"
        return f"{self.function}({', '.join(shown)})" + (f", in batches, with {kind}" if self.batched else "")

    def _said_role(self, name: str, role: str) -> str:
        if role != _COLUMN:
            return name if _singular(name) == role else f"{name}={role}"
        return f"{name}=column" + (f" or {self.defaults[name]!r}" if name in self.defaults else "")


def read_convention(function: Callable[..., object], settled: Mapping[str, object]) -> Convention:
    """Decide from a function's parameters how it is called.

    Args:
        function: Any callable object.
        settled: The items `completion` and `reference` name the parameters for the completion and the reference; any other item
            is a value for the parameter of that name.

    Raises:
        VerifierContractError: If no parameter, or more than one, claims the completion or the reference.
        UnknownNameError: If `settled` names a parameter that does not exist.
        UnknownArgumentError: If `settled` has a value for a parameter that does not exist.
    """
    bound = function.keywords if isinstance(function, functools.partial) else {}
    name = _name_of(function.func if isinstance(function, functools.partial) else function)
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some functions written in C have no signature
        parameters = inspect.Signature().parameters.values()
    named = {one.name: one for one in parameters if one.kind in _NAMED and one.name not in bound}
    takes_rest = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters)
    return _Reading(name, named, settled, takes_rest).convention()


def _name_of(function: object) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)


_NAMED = (*_POSITIONAL, Parameter.KEYWORD_ONLY)


class _Reading:
    """Derives the convention from one function's parameters."""

    def __init__(
        self, name: str, parameters: Mapping[str, Parameter], settled: Mapping[str, object], takes_rest: bool
    ) -> None:
        self._name = name
        self._parameters = parameters
        self._rest = takes_rest
        self._explicit = {role: str(settled[role]) for role in (COMPLETION, REFERENCE) if role in settled}
        for role, parameter in self._explicit.items():
            if parameter not in parameters:
                raise unknown_name(f"parameter of {name} for {role}=", parameter, list(parameters))
        self._constants = {key: value for key, value in settled.items() if key not in self._explicit}
        for key in self._constants:
            if key not in parameters:
                raise unknown_argument(f"the function {name}", key, [*parameters, COMPLETION, REFERENCE])

    def convention(self) -> Convention:
        completion = self._completion()
        batched = self._is_batched(completion)
        roles = {completion: COMPLETION}
        claims: list[str] = []
        for parameter in self._parameters.values():
            if parameter.name == completion or parameter.name in self._constants:
                continue
            roles[parameter.name] = role = _role_of(parameter)
            claims += [parameter.name] if role == REFERENCE else []
        for name in {*claims} - {reference := self._reference(claims)}:
            roles[name] = _COLUMN
        if reference is not None:
            roles[reference] = REFERENCE
        self._check(roles)
        explicit = bool(self._explicit)
        ordered = {name: roles[name] for name in self._parameters if name in roles}
        return Convention(
            function=self._name,
            roles=ordered,
            constants=self._constants,
            defaults={name: self._parameters[name].default for name in ordered if not self._is_required(name)},
            positional=tuple(name for name in self._parameters if self._parameters[name].kind in _POSITIONAL_ONLY),
            batched=batched,
            takes_rest=self._rest and (batched or reference is None),
            messages=batched and "dict" in _annotation(self._parameters[completion]),
            guessed=not explicit and _singular(completion) not in _COMPLETION_NAMES,
            settled=explicit,
            listed=frozenset() if batched else frozenset(filter(self._is_listed, ordered)),
        )

    def _is_required(self, name: str) -> bool:
        return self._parameters[name].default is Parameter.empty

    def _is_listed(self, name: str) -> bool:
        """Whether a parameter's name or annotation says that it takes a list of references."""
        plural = _singular(name) != name and _ROLES.get(_singular(name)) == REFERENCE
        return plural or _annotation(self._parameters[name]).startswith(("list", *_BATCHES))

    def _completion(self) -> str:
        if COMPLETION in self._explicit:
            return self._explicit[COMPLETION]
        free = [parameter for parameter in self._parameters.values() if parameter.name not in self._constants]
        claims = [parameter.name for parameter in free if _singular(parameter.name) in _COMPLETION_NAMES]
        if not claims:
            first = next((parameter.name for parameter in free if parameter.kind in _POSITIONAL), None)
            if first is not None and self._may_be_text(first):
                return first
        if len(claims) != 1:
            raise self._refused(COMPLETION, claims)
        return claims[0]

    def _may_be_text(self, name: str) -> bool:
        known = _singular(name) in _ROLES and _singular(name) not in _EITHER
        return not known and _NO_TEXT.fullmatch(name) is None

    def _reference(self, claims: list[str]) -> str | None:
        if REFERENCE in self._explicit:
            return self._explicit[REFERENCE]
        claims = [name for name in claims if self._is_required(name)] or claims
        if len(claims) > 1:
            raise self._refused(REFERENCE, claims)
        return claims[0] if claims else None

    def _check(self, roles: Mapping[str, str]) -> None:
        """Refuse a function with an unknown parameter that may be meant for the reference."""
        columns = [name for name, role in roles.items() if role == _COLUMN]
        unknown = [name for name in columns if not _has_value(self._parameters[name])]
        if unknown and COMPLETION not in self._explicit and not {REFERENCE, PROBLEM} & {*roles.values()}:
            raise self._refused(REFERENCE, [], unknown)

    def _is_batched(self, completion: str) -> bool:
        annotation = _annotation(self._parameters[completion])
        plural = _singular(completion) in _COMPLETION_NAMES and completion not in _COMPLETION_NAMES
        return annotation != "str" and (plural or annotation.startswith(_BATCHES))

    def _refused(self, role: str, claims: Sequence[str], unknown: Sequence[str] = ()) -> VerifierContractError:
        names = _COMPLETION_NAMES if role == COMPLETION else _REFERENCE_NAMES
        found = f"{' and '.join(claims)} claim" if claims else "no parameter claims"
        if unknown:
            found = f"nothing is known of {' and '.join(unknown)}, and no parameter claims"
        signature = ", ".join([*self._parameters, *(["**kwargs"] if self._rest else [])])
        how = "say which parameter gets what, with completion=... and reference=... (--verifier-args reference=NAME)"
        if claims:
            how = f"say which one does with {role}={claims[0]!r} (--verifier-args {role}={claims[0]})"
        if {"self", "cls"} & {*self._parameters}:
            how = "name the method of an instance"
        return VerifierContractError(
            f"can't tell how to call {self._name}({signature}): {found} the {role}. It goes to the parameter named "
            f"{', '.join(names[:-1])} or {names[-1]}; {how}, or take (completion, problem). A decorator keeps the names with "
            "functools.wraps, and a function that returns a verifier is marked with @verifiers.factory"
        )


def _role_of(parameter: Parameter) -> str:
    """The role that a parameter's name gives it, unless it gets the completion; one with a number as default is a setting."""
    if _is_problem(parameter):
        return PROBLEM
    role = _ROLES.get(_singular(parameter.name), _COLUMN)
    setting = _has_value(parameter) and not isinstance(parameter.default, str)
    return _COLUMN if setting and role == REFERENCE else role


def _singular(name: str) -> str:
    return name[:-1] if name[:-1] in _ROLES and name.endswith("s") else name


def _has_value(parameter: Parameter) -> bool:
    """Whether a parameter has a default other than None."""
    return parameter.default is not Parameter.empty and parameter.default is not None


def _annotation(parameter: Parameter) -> str:
    """An annotation as text; a class becomes its name, as with unevaluated annotations."""
    annotation = parameter.annotation
    return annotation.__name__ if type(annotation) is type else str(annotation)


def _is_problem(parameter: Parameter) -> bool:
    return _annotation(parameter).rpartition(".")[2] == Problem.__name__


def arguments_of(
    convention: Convention, completions: Sequence[str], problems: Sequence[Problem]
) -> tuple[list[Any], dict[str, Any]]:
    """The positional and the named arguments of one call."""
    if convention.is_own:
        return [completions[0], problems[0]], {}
    values = _everything(convention, completions, problems) if convention.takes_rest else {}
    for name, role in convention.roles.items():
        if role != _COLUMN or name not in convention.defaults or any(name in _columns(problem) for problem in problems):
            values[name] = _values(convention, name, role, completions, problems)
    named: dict[str, Any] = {name: value if convention.batched else value[0] for name, value in values.items()}
    for name in convention.listed & named.keys():
        if convention.roles[name] == REFERENCE and not isinstance(named[name], list | tuple):
            named[name] = [named[name]]
    named.update(convention.constants)
    return [named.pop(name) for name in convention.positional if name in named], named


def _values(
    convention: Convention, name: str, role: str, completions: Sequence[str], problems: Sequence[Problem]
) -> list[Any]:
    """A parameter's value for each problem."""
    if role == COMPLETION:
        return [[{"role": "assistant", "content": text}] if convention.messages else text for text in completions]
    if role == DIALOGUE:
        return [dialogue_of(text) for text in completions]
    if role == "prompt" and convention.messages:
        return [chat_messages(problem.prompt) for problem in problems]
    if role == _COLUMN:
        return [_column(convention, name, problem) for problem in problems]
    if role == REFERENCE:
        return [_reference(name, problem) for problem in problems]
    return [_VALUES[role](problem) for problem in problems]


def _reference(name: str, problem: Problem) -> object:
    """The reference's field with the parameter's name, or else the whole reference; a dataclass becomes a mapping."""
    reference = _plain(problem.reference)
    return reference[name] if isinstance(reference, Mapping) and name in reference else reference


def _plain(reference: object) -> object:
    if is_dataclass(reference) and not isinstance(reference, type):
        return {field.name: getattr(reference, field.name) for field in fields(reference)}
    return reference


def _column(convention: Convention, name: str, problem: Problem) -> object:
    columns = _columns(problem)
    if name in columns:
        return columns[name]
    if name in convention.defaults:
        return convention.defaults[name]
    raise InvalidArgumentError(
        f"{convention} takes the column {name!r}, which problem {problem.id!r} does not have; its columns: "
        f"{', '.join(map(str, columns)) or 'none'}"
    )


def _columns(problem: Problem) -> dict[object, object]:
    """The metadata of a problem, and the fields of its reference."""
    reference = _plain(problem.reference)
    return {**(reference if isinstance(reference, Mapping) else {}), **problem.metadata}


def _everything(
    convention: Convention, completions: Sequence[str], problems: Sequence[Problem]
) -> dict[str, list[Any]]:
    """The values for `**kwargs`: the columns, and all other values that no parameter takes, each under all of its names."""
    columns = {str(name) for problem in problems for name in problem.metadata}
    rest = {name: [problem.metadata.get(name) for problem in problems] for name in columns}
    roles = {name: role for name, role in _ROLES.items() if name not in _SYNONYMS and role != COMPLETION}
    free = {name: role for name, role in {**roles, "prompts": "prompt"}.items() if name not in convention.roles}
    return rest | {name: _values(convention, name, role, completions, problems) for name, role in free.items()}


_VALUES: dict[str, Callable[[Problem], object]] = {
    PROBLEM: lambda problem: problem,
    "prompt": lambda problem: _text(problem),
    "metadata": lambda problem: dict(problem.metadata),
    "extra_info": lambda problem: {"question": _text(problem), **problem.metadata},
    "data_source": lambda problem: str(problem.metadata.get("data_source", problem.id.partition("/")[0])),
}


def _text(problem: Problem) -> str:
    return prompt_text(problem.prompt, "\n")
