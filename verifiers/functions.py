"""A verifier made of any function: which parameter gets what follows from the parameters' names.

| parameter | value |
|---|---|
| the only one named `completion`, `solution_str`, `response` or `prediction`, else the first positional one | the completion |
| `reference`, `answer`, `gold`, `ground_truth`, `target`, `solution` | the problem's reference |
| `problem`, or annotated as a `Problem` | the problem |
| `prompt`, `question` | the prompt as text |
| `metadata`, `extra_info` | the problem's metadata |
| `data_source` | the name of the data set: `metadata["data_source"]`, else the first part of the problem's id |
| any other name | the column of the data set with this name: an item of the metadata |

With a plural for the completion (`completions`), the function takes a batch: every parameter gets a list, `**kwargs` gets all
of the above by name, and completions are texts, or lists of one message where the function can't use texts. Arguments given
to `make` go to the parameters that they name; `completion=` and `reference=` name the parameter that gets the one or the other.

The function returns a `Verdict`, a bool, a number, or a mapping with a `score`; a list of them for a batch.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import logging
import math
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from inspect import Parameter
from typing import Any, cast

from verifiers.errors import (
    InvalidArgumentError,
    UnreadableReferenceError,
    VerifierContractError,
    unknown_argument,
    unknown_name,
)
from verifiers.types import AnswerVerifier, BatchVerifier, Outcome, Problem, Verdict, Verifier

_LOGGER = logging.getLogger(__name__)

COMPLETION, REFERENCE, PROBLEM = "completion", "reference", "problem"
_COMPLETION_NAMES = (COMPLETION, "solution_str", "response", "prediction")
_REFERENCE_NAMES = (REFERENCE, "answer", "gold", "ground_truth", "target", "solution")
_EITHER = ("answer", "solution")
"""Names that a first parameter may have although it gets the completion."""
_ROLES = {
    **dict.fromkeys(_COMPLETION_NAMES, COMPLETION),
    **dict.fromkeys(_REFERENCE_NAMES, REFERENCE),
    **dict.fromkeys(("prompt", "question"), "prompt"),
    **{name: name for name in (PROBLEM, "metadata", "extra_info", "data_source")},
}
_COLUMN = "column"
_BATCHES = ("list[", "List[", "Sequence[", "typing.List[", "typing.Sequence[", "collections.abc.Sequence[")
_POSITIONAL_ONLY = (Parameter.POSITIONAL_ONLY,)
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_NOT_FOR_TEXTS = (TypeError, AttributeError, KeyError, IndexError)
"""What functions raise that expect a list of messages and get a text."""

CHECKED_PROBLEMS = 8
"""Number of problems on which the reading of a function is checked before use."""
ANSWER = "ANSWER"
"""The placeholder of the answer in an answer format."""
ANSWER_FORMATS = (
    ANSWER,
    f"\\boxed{{{ANSWER}}}",
    f"#### {ANSWER}",
    f"<answer>{ANSWER}</answer>",
    f"<think>\n\n</think>\n<answer>{ANSWER}</answer>",
    f"<think>\n\n</think>\n<answer>\n\\boxed{{{ANSWER}}}\n</answer>",
    f"The answer is {ANSWER}.",
)
"""How a completion may present an answer, tried in this order on functions that accept no gold completion."""


@dataclass(frozen=True)
class Convention:
    """How a function is called."""

    function: str
    """The function's name."""
    roles: Mapping[str, str]
    """What each parameter gets; parameters with a constant are left out."""
    constants: Mapping[str, object] = field(default_factory=dict)
    """The values of parameters that were given to `make`."""
    defaults: Mapping[str, object] = field(default_factory=dict)
    """What the optional parameters are where a problem does not have their column."""
    positional: tuple[str, ...] = ()
    """Parameters that can't be named in a call."""
    batched: bool = False
    takes_rest: bool = False
    """Whether `**kwargs` gets everything by name."""
    messages: bool = False
    """Whether completions are lists of one message."""

    @property
    def is_own(self) -> bool:
        """Whether the function has the form of a verifier of this package: `(completion, problem)`."""
        return list(self.roles.values()) == [COMPLETION, PROBLEM] and not self.constants and not self.batched

    @property
    def takes_reference(self) -> bool:
        """Whether a parameter certainly gets the reference."""
        return REFERENCE in self.roles.values()

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
        settled: `completion` and `reference` name the parameters that get them; any other item is the value of the parameter
            of its name.

    Raises:
        VerifierContractError: If no parameter, or more than one, claims the completion or the reference.
        UnknownNameError: If `settled` names a parameter that does not exist.
        UnknownArgumentError: If `settled` has a value for one that does not exist.
    """
    plain = function.func if isinstance(function, functools.partial) else function
    name = getattr(plain, "__qualname__", type(plain).__qualname__)
    own = Convention(name, {COMPLETION: COMPLETION, PROBLEM: PROBLEM})
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some functions written in C have no signature
        return own
    kinds = [parameter.kind for parameter in parameters]
    if Parameter.VAR_POSITIONAL in kinds and sum(kind in _POSITIONAL for kind in kinds) < 2 and not settled:
        return own
    named = {parameter.name: parameter for parameter in parameters if parameter.kind in _NAMED}
    return _Reading(name, named, settled, Parameter.VAR_KEYWORD in kinds).convention()


_NAMED = (*_POSITIONAL, Parameter.KEYWORD_ONLY)


class _Reading:
    """One function's parameters, on the way to a convention."""

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
            role = PROBLEM if _is_problem(parameter) else _ROLES.get(_singular(parameter.name), _COLUMN)
            roles[parameter.name] = role
            claims += [parameter.name] if role == REFERENCE else []
        for name in {*claims} - {reference := self._reference(claims)}:
            roles[name] = _COLUMN
        if reference is not None:
            roles[reference] = REFERENCE
        self._check(roles)
        ordered = {name: roles[name] for name in self._parameters if name in roles}
        return Convention(
            function=self._name,
            roles=ordered,
            constants=self._constants,
            defaults={name: self._parameters[name].default for name in ordered if not self._is_required(name)},
            positional=tuple(name for name in self._parameters if self._parameters[name].kind in _POSITIONAL_ONLY),
            batched=batched,
            takes_rest=self._rest and (batched or reference is None),
            messages=batched and "dict" in str(self._parameters[completion].annotation),
        )

    def _is_required(self, name: str) -> bool:
        return self._parameters[name].default is Parameter.empty

    def _completion(self) -> str:
        if COMPLETION in self._explicit:
            return self._explicit[COMPLETION]
        free = [parameter for parameter in self._parameters.values() if parameter.name not in self._constants]
        claims = [parameter.name for parameter in free if _singular(parameter.name) in _COMPLETION_NAMES]
        if not claims:
            first = next((parameter.name for parameter in free if parameter.kind in _POSITIONAL), None)
            other = _ROLES.get(_singular(first or ""))
            if first is not None and (other is None or _singular(first) in _EITHER):
                return first
        if len(claims) != 1:
            raise self._refused(COMPLETION, claims)
        return claims[0]

    def _reference(self, claims: list[str]) -> str | None:
        if REFERENCE in self._explicit:
            return self._explicit[REFERENCE]
        claims = [name for name in claims if self._is_required(name)] or claims
        if len(claims) > 1:
            raise self._refused(REFERENCE, claims)
        return claims[0] if claims else None

    def _check(self, roles: Mapping[str, str]) -> None:
        """Refuse a function that takes what may be the reference under a name that says nothing."""
        unknown = [name for name, role in roles.items() if role == _COLUMN and self._is_required(name)]
        if unknown and not {REFERENCE, PROBLEM} & {*roles.values()}:
            raise self._refused(REFERENCE, [], unknown)

    def _is_batched(self, completion: str) -> bool:
        plural = _singular(completion) in _COMPLETION_NAMES and completion not in _COMPLETION_NAMES
        return plural or str(self._parameters[completion].annotation).startswith(_BATCHES)

    def _refused(self, role: str, claims: Sequence[str], unknown: Sequence[str] = ()) -> VerifierContractError:
        names = _COMPLETION_NAMES if role == COMPLETION else _REFERENCE_NAMES
        found = f"{' and '.join(claims)} claim" if claims else "no parameter claims"
        if unknown:
            found = f"nothing is known of {' and '.join(unknown)}, and no parameter claims"
        free = [name for name in self._parameters if _singular(name) not in _ROLES]
        example = (*unknown, *claims, *free, "text")[0]
        signature = ", ".join([*self._parameters, *(["**kwargs"] if self._rest else [])])
        return VerifierContractError(
            f"can't tell how to call {self._name}({signature}): {found} the {role}. It goes to the parameter named "
            f"{', '.join(names[:-1])} or {names[-1]}; say which one it is with {role}={example!r} (--verifier-args "
            f"{role}={example}), or take (completion, problem). A function that returns a verifier is marked with "
            "@verifiers.factory"
        )


def _singular(name: str) -> str:
    return name[:-1] if name[:-1] in _ROLES and name.endswith("s") else name


def _is_problem(parameter: Parameter) -> bool:
    annotation = parameter.annotation
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return annotation is Problem or text.rpartition(".")[2] == Problem.__name__


class FunctionVerifier:
    """A function as a verifier, called by the names of its parameters; see `verifiers.functions`.

    Args:
        function: The function, or any object that can be called.
        **settled: As for `read_convention`.

    Raises:
        VerifierContractError: If the parameters don't say what each gets.
    """

    same_answer: Callable[[str, str, Problem], bool]
    """As for `AnswerVerifier`; there only if the function has it."""

    def __init__(self, function: Callable[..., object], **settled: object) -> None:
        self._function = function
        self.convention = read_convention(function, settled)
        if isinstance(function, AnswerVerifier):
            self.same_answer = function.same_answer

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Call the function and read its answer as a verdict.

        Raises:
            VerifierContractError: If the function returned something else than a verdict, a bool, a finite number or a
                mapping with a score.
        """
        if self.convention.batched:
            return self._judged([completion], [problem])[0]
        return as_verdict(self._called(self.convention, [completion], [problem]), self._function)

    def _judged(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Call a function that takes batches.

        A function that fails on texts and works on messages, as TRL's functions for chats do, gets messages from then on.
        """
        try:
            values = self._called(self.convention, completions, problems)
        except _NOT_FOR_TEXTS:
            if self.convention.messages or (values := self._called_with_messages(completions, problems)) is None:
                raise
        return as_verdicts(values, self._function, len(problems), none=_not_judged(self._function))

    def _called_with_messages(self, completions: Sequence[str], problems: Sequence[Problem]) -> object | None:
        convention = dataclasses.replace(self.convention, messages=True)
        try:
            values = self._called(convention, completions, problems)
        except Exception:  # noqa: BLE001 - then the caller raises what the function said of texts
            return None
        self.convention = convention
        return values

    def _called(self, convention: Convention, completions: Sequence[str], problems: Sequence[Problem]) -> object:
        positional, named = _arguments(convention, completions, problems)
        return self._function(*positional, **named)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._function!r})"


def _arguments(
    convention: Convention, completions: Sequence[str], problems: Sequence[Problem]
) -> tuple[list[Any], dict[str, Any]]:
    """The positional and the named arguments of one call."""
    if convention.is_own:
        return [completions[0], problems[0]], {}
    values = _everything(convention, completions, problems) if convention.takes_rest else {}
    for name, role in convention.roles.items():
        if role != _COLUMN or name not in convention.defaults or any(name in problem.metadata for problem in problems):
            values[name] = _values(convention, name, role, completions, problems)
    named = {name: value if convention.batched else value[0] for name, value in values.items()}
    named.update(convention.constants)
    return [named.pop(name) for name in convention.positional if name in named], named


def _values(
    convention: Convention, name: str, role: str, completions: Sequence[str], problems: Sequence[Problem]
) -> list[Any]:
    """What a parameter gets for each problem."""
    if role == COMPLETION:
        return [_message("assistant", text) if convention.messages else text for text in completions]
    if role == "prompt" and convention.messages:
        return [_messages(problem) for problem in problems]
    if role == _COLUMN:
        return [_column(convention, name, problem) for problem in problems]
    return [_VALUES[role](problem) for problem in problems]


def _column(convention: Convention, name: str, problem: Problem) -> object:
    if name in problem.metadata:
        return problem.metadata[name]
    if name in convention.defaults:
        return convention.defaults[name]
    raise InvalidArgumentError(
        f"{convention} takes the column {name!r}, which problem {problem.id!r} does not have; its columns: "
        f"{', '.join(map(str, problem.metadata)) or 'none'}"
    )


def _everything(
    convention: Convention, completions: Sequence[str], problems: Sequence[Problem]
) -> dict[str, list[Any]]:
    """What `**kwargs` gets: the columns, and under all of its names whatever no parameter takes."""
    columns = {str(name) for problem in problems for name in problem.metadata}
    rest = {name: [problem.metadata.get(name) for problem in problems] for name in columns}
    free = {
        name: role for name, role in {**_ROLES, "prompts": "prompt"}.items() if role not in convention.roles.values()
    }
    return rest | {name: _values(convention, name, role, completions, problems) for name, role in free.items()}


_VALUES: dict[str, Callable[[Problem], object]] = {
    REFERENCE: lambda problem: problem.reference,
    PROBLEM: lambda problem: problem,
    "prompt": lambda problem: _text(problem),
    "metadata": lambda problem: dict(problem.metadata),
    "extra_info": lambda problem: dict(problem.metadata),
    "data_source": lambda problem: str(problem.metadata.get("data_source", problem.id.partition("/")[0])),
}


def _text(problem: Problem) -> str:
    """The prompt as one text."""
    prompt = problem.prompt
    return prompt if isinstance(prompt, str) else "\n".join(message.content for message in prompt)


def _messages(problem: Problem) -> list[dict[str, str]]:
    prompt = problem.prompt
    if isinstance(prompt, str):
        return _message("user", prompt)
    return [{"role": message.role, "content": message.content} for message in prompt]


def _message(role: str, content: str) -> list[dict[str, str]]:
    return [{"role": role, "content": content}]


class BatchFunctionVerifier(FunctionVerifier):
    """A function that takes batches, as a verifier of batches."""

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i; where the whole batch fails, each is judged alone.

        Raises:
            VerifierContractError: If what came back is no list of one verdict, bool, number or mapping for each completion.
        """
        try:
            return self._judged(completions, problems)
        except VerifierContractError:
            raise
        except Exception:
            if len(problems) == 1:
                raise
            return [verify_one(self, *pair) for pair in zip(completions, problems, strict=True)]


class BatchObjectVerifier(FunctionVerifier):
    """An object of another package with `verify_batch(completions, problems)`, which may return bools and numbers, too."""

    def __init__(self, verifier: BatchVerifier) -> None:
        super().__init__(verifier)
        self._verifier = verifier

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i.

        Raises:
            VerifierContractError: If what came back is no list of one verdict, bool or number for each completion.
        """
        return as_verdicts(self._verifier.verify_batch(completions, problems), self._verifier, len(problems))


def from_function(function: Callable[..., object], **settled: object) -> FunctionVerifier:
    """Make a verifier of a function, called by the names of its parameters; see `verifiers.functions`.

    Args:
        function: The function.
        **settled: `completion` and `reference` name the parameters that get them; any other argument goes to the parameter of
            its name.

    Raises:
        VerifierContractError: If the parameters don't say what each gets.
        UnknownNameError: If there is no such parameter.
        UnknownArgumentError: If an argument has no parameter.
    """
    batched = read_convention(function, settled).batched
    verifier = (BatchFunctionVerifier if batched else FunctionVerifier)(function, **settled)
    if (said := convention_of(verifier)) is not None:
        _say(said)
    return verifier


def convention_of(verifier: Verifier) -> str | None:
    """How a verifier calls the functions that it is made of; None if they take (completion, problem), or there are none."""
    said = [str(function.convention) for function in _functions_in(verifier) if not function.convention.is_own]
    return "; ".join(said) or None


def _functions_in(verifier: Verifier) -> list[FunctionVerifier]:
    """The functions that judge every completion: the verifier itself, or its parts."""
    if isinstance(verifier, FunctionVerifier):
        return [verifier]
    return [function for part in getattr(verifier, "unconditional_parts", ()) for function in _functions_in(part)]


@functools.cache
def _say(said: str) -> None:
    _LOGGER.warning("the reward function is called as %s", said)


# The check before use


def check_reading(verifier: Verifier, problems: Sequence[Problem]) -> str | None:
    """Check that a function which takes the reference scores the gold of some problem above an empty completion.

    Args:
        verifier: Any verifier; one that is no function called by its parameters' names passes.
        problems: The first problems of the data set.

    Returns:
        The answer format that the function accepts, one of `ANSWER_FORMATS`; None if it accepts gold completions as they are,
        or was not checked.

    Raises:
        VerifierContractError: If it scores none of them higher, or fails on all.
    """
    formats = [_accepted_format(function, problems) for function in _functions_in(verifier)] if problems else []
    return formats[0] if isinstance(verifier, FunctionVerifier) and formats else None


def _accepted_format(function: FunctionVerifier, problems: Sequence[Problem]) -> str | None:
    if function.convention.is_own:
        return None
    faults: list[str] = []
    for answer_format in (None, *ANSWER_FORMATS):
        for problem in problems:
            completion = gold_completion(problem, answer_format)
            if completion is None:
                continue
            verdict, nothing = verify_one(function, completion, problem), verify_one(function, "", problem)
            if verdict.score > (0 if math.isnan(nothing.score) else nothing.score):
                return answer_format
            faults.append(_fault(verdict, nothing, problem))
    if not faults or not function.convention.takes_reference:
        return None
    raise VerifierContractError(
        f"{function.convention} scores the gold answer of none of the first {len(problems)} problems above an empty "
        f"completion: {faults[0]}. If it was misread, name the parameters, as in reference='gold' or completion='text' "
        "(--verifier-args reference=gold)"
    )


def gold_completion(problem: Problem, answer_format: str | None) -> str | None:
    """A completion with the gold answer, presented in a format; None stands for the data set's own, which it may lack."""
    if answer_format is None:
        own = problem.metadata.get("gold_completion")
        return own if isinstance(own, str) else None
    return answer_format.replace(ANSWER, str(problem.reference)) if _is_text(problem.reference) else None


def _is_text(reference: object) -> bool:
    return isinstance(reference, str | int | float) and not isinstance(reference, bool)


def _fault(verdict: Verdict, nothing: Verdict, problem: Problem) -> str:
    where = f"for problem {problem.id!r}, whose reference is {problem.reference!r}"[:300]
    if verdict.outcome is Outcome.VERIFIER_ERROR:
        return f"it failed {where}, with {verdict.detail.get('error')}"
    return f"{verdict.score:g} and {nothing.score:g} {where}"


# What functions return


def verify_one(verifier: Verifier, completion: str, problem: Problem) -> Verdict:
    """Judge one completion; an exception of the verifier becomes a `VERIFIER_ERROR` verdict."""
    try:
        return as_verdict(verifier(completion, problem), verifier)
    except VerifierContractError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - recorded in the verdict, never scored
        return verifier_error(error)


def verifier_error(error: BaseException) -> Verdict:
    """Make the verdict for a verifier that broke with this error: score NaN, the error in `detail`.

    After an `UnreadableReferenceError` the detail says `unreadable_reference`, too: another verifier may do better.
    """
    where = traceback.extract_tb(error.__traceback__)
    detail: dict[str, object] = {
        "error": f"{type(error).__name__}: {error}",
        "at": f"{where[-1].name}, line {where[-1].lineno}" if where else "",
    }
    if isinstance(error, UnreadableReferenceError):
        detail["unreadable_reference"] = True
    return Verdict.of(Outcome.VERIFIER_ERROR, detail=detail)


def as_verdict(value: object, source: object) -> Verdict:
    """Read what a function returned.

    Raises:
        VerifierContractError: If it is no verdict, bool, finite number, or mapping with a score.
    """
    if isinstance(value, Verdict):
        return value
    if isinstance(value, Mapping) and "score" in value:
        verdict = as_verdict(value["score"], source)
        detail = {str(name): item for name, item in value.items() if name != "score"}
        return Verdict(verdict.score, verdict.outcome, verdict.answer, {**verdict.detail, **detail})
    if getattr(value, "ndim", None) == 0:  # NumPy and torch scalars
        value = cast(Any, value).item()
    if isinstance(value, bool):
        return Verdict.of(Outcome.CORRECT if value else Outcome.INCORRECT)
    if isinstance(value, int | float) and _is_finite(value):
        return Verdict(float(value), Outcome.SCORED)
    raise VerifierContractError(
        f"{_said(source)} returned {value!r}; expected a Verdict, a bool, a finite number or a mapping with a score "
        "(a verifier that could not judge raises, or returns a Verdict with Outcome.VERIFIER_ERROR; a function that returns a "
        "verifier is marked with @verifiers.factory; one that returns a list takes `completions`)"
    )


def as_verdicts(values: object, source: object, count: int, none: Verdict | None = None) -> list[Verdict]:
    """Read what a verifier of batches returned, in which None may stand for a verdict.

    Raises:
        VerifierContractError: If it is no list of as many verdicts, bools, finite numbers or mappings with a score.
    """
    listed = (
        isinstance(values, Sized) and isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping)
    )
    items = list(cast("Iterable[object]", values)) if listed else None
    if items is None or len(items) != count:
        said = f"a {type(values).__name__}" if items is None else f"{len(items)} verdicts"
        raise VerifierContractError(
            f"{_said(source)} returned {said} for {count} completions; expected one each, in order"
        )
    return [as_verdict(none if value is None else value, source) for value in items]


def _not_judged(source: object) -> Verdict:
    return Verdict.of(
        Outcome.VERIFIER_ERROR, detail={"error": f"{_said(source)} returned None: it did not judge this one"}
    )


def _said(source: object) -> str:
    """A function by its module and name, anything else as it shows itself."""
    return f"{source.__module__}.{source.__qualname__}" if inspect.isfunction(source) else repr(source)


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # an integer that no float holds
        return False
