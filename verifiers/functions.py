"""A verifier made from any function; the names of its parameters determine their values.

| parameter | value |
|---|---|
| the only one named `completion`, `solution_str`, `response` or `prediction`, else the first positional one | the completion |
| `reference`, `answer`, `gold`, `ground_truth`, `target`, `solution` | the reference; its field of this name, if it has one |
| `problem`, or annotated as a `Problem` | the problem |
| `prompt`, `question` | the prompt as text |
| `metadata`, `extra_info` | the problem's metadata |
| `dialogue` | all that was said after the prompt, as a tuple of `Message`: the completion is the policy's last turn |
| `data_source` | the name of the data set: `metadata["data_source"]`, else the first part of the problem's id |
| any other name | the column of the data set with this name: an item of the metadata |

If the completion's parameter has a plural name (`completions`), the function takes a batch: every parameter gets a list, and
`**kwargs` gets all of the above by name. Completions are texts, or lists of one message if the function can't use texts.
Arguments of `make` go to the parameters with their names; `completion=` and `reference=` name the parameters for the completion
and the reference.

The function returns a `Verdict`, a bool, a number, or a mapping with a `score`; a list of them for a batch.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import logging
import math
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import Any, Protocol, cast

from verifiers.conventions import REFERENCE, Convention, arguments_of, read_convention
from verifiers.errors import InvalidArgumentError, UnreadableReferenceError, VerifierContractError
from verifiers.types import AnswerVerifier, BatchVerifier, Outcome, Problem, Verdict, Verifier

_LOGGER = logging.getLogger(__name__)
_NOT_FOR_TEXTS = (TypeError, AttributeError, KeyError, IndexError)
"""Exceptions that a function may raise if it expects a list of messages and gets a text."""

CHECKED_PROBLEMS = 8
"""Number of problems on which a function's convention is checked before use."""
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
    f"Answer: {ANSWER}",
)
"""How a completion may present an answer, tried in this order on functions that accept no gold completion."""


class FunctionVerifier:
    """Makes a function a verifier; the names of its parameters determine their values (see `verifiers.functions`).

    Args:
        function: The function, or any object that can be called.
        **settled: As for `read_convention`.

    Raises:
        VerifierContractError: If the parameters' names do not determine their values.
    """

    same_answer: Callable[[str, str, Problem], bool]
    """See `AnswerVerifier`; present only if the function has this method."""

    def __init__(self, function: Callable[..., object], **settled: object) -> None:
        self._function = function
        self.convention = read_convention(function, settled)
        if isinstance(function, AnswerVerifier):
            self.same_answer = function.same_answer

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Call the function and read its answer as a verdict.

        Raises:
            VerifierContractError: If the function returned something other than a verdict, a bool, a finite number or a mapping
                with a score.
        """
        if self.convention.batched:
            return self._judged([completion], [problem])[0]
        return as_verdict(self._called(self.convention, [completion], [problem]), self._function)

    def say_convention(self) -> None:
        """Log how the function is called, once for each function."""
        if not self.convention.is_own:
            plain = self._function.func if isinstance(self._function, functools.partial) else self._function
            _say(getattr(plain, "__module__", ""), str(self.convention))

    def _judged(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Call a function that takes batches.

        A function that fails on texts and works on messages, such as TRL's functions for chats, gets messages from then on.
        """
        try:
            values = self._called(self.convention, completions, problems)
        except _NOT_FOR_TEXTS:
            if self.convention.messages or (values := self._called_with_messages(completions, problems)) is None:
                raise
        self.say_convention()
        return as_verdicts(values, self._function, len(problems), none=_not_judged(self._function))

    def _called_with_messages(self, completions: Sequence[str], problems: Sequence[Problem]) -> object | None:
        convention = dataclasses.replace(self.convention, messages=True)
        try:
            values = self._called(convention, completions, problems)
        except Exception:  # noqa: BLE001 - the caller then raises the function's error on texts
            return None
        self.convention = convention
        return values

    def _called(self, convention: Convention, completions: Sequence[str], problems: Sequence[Problem]) -> object:
        positional, named = arguments_of(convention, completions, problems)
        return self._function(*positional, **named)

    def exchanged(self) -> FunctionVerifier:
        """The same verifier with completion and reference swapped."""
        other = copy.copy(self)
        other.convention = self.convention.exchanged()
        return other

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._function!r})"


class BatchFunctionVerifier(FunctionVerifier):
    """Wraps a function that takes batches as a batch verifier."""

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i; if the batch as a whole fails, judge each completion alone.

        Raises:
            VerifierContractError: If the result is not a list of one verdict, bool, number or mapping for each completion.
        """
        try:
            return self._judged(completions, problems)
        except VerifierContractError:
            raise
        except Exception:
            if len(problems) == 1:
                raise
            return [verify_one(self, *pair) for pair in zip(completions, problems, strict=True)]

    def prefer_messages(self, problem: Problem) -> None:
        """Use messages if the score varies only with messages, as for a function that catches its own errors."""
        if self.convention.messages:
            return
        other = copy.copy(self)
        other.convention = dataclasses.replace(self.convention, messages=True)
        probes = [
            "",
            *(text for form in (None, *ANSWER_FORMATS) if (text := gold_completion(problem, form)) is not None),
        ]
        texts, messages = ([judge._score(probe, problem) for probe in probes] for judge in (self, other))
        if len(set(texts)) == 1 and len(set(messages)) > 1 and None not in messages:
            self.convention = other.convention

    def _score(self, completion: str, problem: Problem) -> float | None:
        """The score of a probe; None if the function failed."""
        try:
            values = self._called(self.convention, [completion], [problem])
            return as_verdicts(values, self._function, 1, none=_not_judged(self._function))[0].score
        except Exception:  # noqa: BLE001 - the failure is reported where the function is used
            return None


class BatchObjectVerifier(FunctionVerifier):
    """An object of another package with `verify_batch(completions, problems)`, which may return bools and numbers, too."""

    def __init__(self, verifier: BatchVerifier) -> None:
        super().__init__(verifier)
        self._verifier = verifier

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i.

        Raises:
            VerifierContractError: If the result is not a list of one verdict, bool or number for each completion.
        """
        return as_verdicts(self._verifier.verify_batch(completions, problems), self._verifier, len(problems))


def from_function(function: Callable[..., object], **settled: object) -> FunctionVerifier:
    """Make a verifier of a function, called by the names of its parameters; see `verifiers.functions`.

    Args:
        function: The function.
        **settled: `completion` and `reference` name the parameters for the completion and the reference; any other argument
            goes to the parameter of the same name.

    Raises:
        VerifierContractError: If the parameters' names do not determine their values.
        UnknownNameError: If there is no such parameter.
        UnknownArgumentError: If an argument has no parameter.
    """
    batched = read_convention(function, settled).batched
    verifier = (BatchFunctionVerifier if batched else FunctionVerifier)(function, **settled)
    if not batched:  # the first batch shows whether the function takes texts or messages
        verifier.say_convention()
    return verifier


def convention_of(verifier: Verifier) -> str | None:
    """How a verifier calls its functions; None if it has no functions, or all of them take (completion, problem)."""
    said = [str(function.convention) for function in _functions_in(verifier) if not function.convention.is_own]
    return "; ".join(said) or None


def _functions_in(verifier: Verifier) -> list[FunctionVerifier]:
    """The functions that judge every completion: the verifier itself, or its parts."""
    if isinstance(verifier, FunctionVerifier):
        return [verifier]
    return [function for part in getattr(verifier, "unconditional_parts", ()) for function in _functions_in(part)]


@functools.cache
def _say(module: str, said: str) -> None:
    _LOGGER.warning("the reward function of %s is called as %s", module, said)


# The check before use


class Problems(Protocol):
    """A list of problems, or a data set; any collection of problems."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Problem: ...


def check_reading(verifier: Verifier, problems: Problems) -> str | None:
    """Check that a function which takes the reference scores the gold of some problem above an empty completion.

    Args:
        verifier: Any verifier; only a function called by its parameters' names can fail the check.
        problems: The data set; the first `CHECKED_PROBLEMS` are used.

    Returns:
        The answer format that the function accepts, one of `ANSWER_FORMATS`; None if the function accepts gold completions as
        they are, or was not checked.

    Raises:
        VerifierContractError: If the function scores no gold higher, or fails on all.
    """
    functions = [function for function in _functions_in(verifier) if not function.convention.is_own]
    first = [problems[index] for index in range(min(len(problems), CHECKED_PROBLEMS))] if functions else []
    formats = [_accepted_format(function, first) for function in functions] if first else []
    return formats[0] if isinstance(verifier, FunctionVerifier) and formats else None


def _accepted_format(function: FunctionVerifier, problems: Sequence[Problem]) -> str | None:
    """The first format in which a gold scores above an empty completion; None for gold completions, or without golds."""
    if isinstance(function, BatchFunctionVerifier):
        function.prefer_messages(problems[0])
    nothing = [verify_one(function, "", problem) for problem in problems]
    faults: list[tuple[Verdict, str]] = []
    for answer_format in (None, *ANSWER_FORMATS):
        golds = [gold_completion(problem, answer_format) for problem in problems]
        above: list[Problem] = []
        for problem, empty, gold in zip(problems, nothing, golds, strict=True):
            if gold is None:
                continue
            verdict = verify_one(function, gold, problem)
            faults.append((verdict, _fault(verdict, empty, problem)))
            above += [problem] if _is_above(verdict, empty) else []
        if above:
            _check_accepted(function, above[0], answer_format, f"{len(above)} of the first {len(problems)} golds")
            if 2 * len(above) < len(problems):
                few = f"{len(above)} of the first {len(problems)} golds"
                _LOGGER.warning("%s scores only %s above an empty completion", function.convention, few)
            return answer_format
    if faults:
        _refuse(function, faults, len(problems))
    return None


def _refuse(function: FunctionVerifier, faults: Sequence[tuple[Verdict, str]], problems: int) -> None:
    """Refuse a function that scores no gold above an empty completion; warn if the function may expect another format."""
    found = (
        f"{function.convention} scores the gold answer of none of the first {problems} problems above an empty completion: "
        f"{faults[0][1]}"
    )
    failed = all(verdict.outcome is Outcome.VERIFIER_ERROR for verdict, _ in faults)
    names = [name for name, role in function.convention.roles.items() if role == REFERENCE]
    if not failed and (function.convention.settled or not names):
        _LOGGER.warning("%s", found)
        return
    name = next(iter(names), "NAME")
    raise VerifierContractError(
        f"{found}. Tried: the data set's own completion, and the answer bare, boxed, behind '####', in tags and in a "
        "sentence. If the parameters were read rightly and the function expects another format, confirm one of them, as in "
        f"reference={name!r} (--verifier-args reference={name}); if not, name the right one"
    )


def _check_accepted(function: FunctionVerifier, problem: Problem, answer_format: str | None, accepted: str) -> None:
    """Refuse a function that accepts golds for the wrong reason: its parameters are swapped, or it reorders a batch."""
    gold = gold_completion(problem, answer_format)
    assert gold is not None, "it was accepted"
    convention = function.convention
    if gold == str(problem.reference) and (convention.guessed or convention.settled):
        fault = _exchanged(function, problem)
        if fault is not None and convention.settled:
            _LOGGER.warning("%s", fault)
        elif fault is not None:
            raise VerifierContractError(fault)
    if isinstance(function, BatchFunctionVerifier):
        pairs = [function.verify_batch(texts, [problem] * 2) for texts in ([gold, ""], ["", gold])]
        if not (_is_above(*pairs[0]) and _is_above(*reversed(pairs[1]))):
            raise VerifierContractError(
                f"{convention} scores {accepted} above an empty completion when it is alone, but not beside one in a batch: it "
                "must return a score for each completion, in order"
            )


def _exchanged(function: FunctionVerifier, problem: Problem) -> str | None:
    """The fault of a function that accepts golds inside completions only if completion and reference are swapped; else None."""
    exchanged = function.exchanged()
    whole = [gold_completion(problem, answer_format) for answer_format in ANSWER_FORMATS[1:]]
    pairs = [(judge, text) for judge in (function, exchanged) for text in whole if text is not None]
    above = [
        judge for judge, text in pairs if _is_above(verify_one(judge, text, problem), verify_one(judge, "", problem))
    ]
    if exchanged not in above or function in above:
        return None
    return (
        f"{function.convention} seems to have completion and reference exchanged: read as {exchanged.convention}, the function "
        "accepts gold answers inside of completions. Say which parameter gets what, with completion=... and reference=... "
        "(--verifier-args reference=NAME)"
    )


def _is_above(verdict: Verdict, nothing: Verdict) -> bool:
    return verdict.score > (0 if math.isnan(nothing.score) else nothing.score)


def gold_completion(problem: Problem, answer_format: str | None) -> str | None:
    """A completion that presents the gold answer in a format; with None, the gold completion of the data set, if it has one."""
    own = problem.metadata.get("gold_completion")
    if answer_format is None:
        return own if isinstance(own, str) else None
    answer = problem.reference if _is_text(problem.reference) else own
    return answer_format.replace(ANSWER, str(answer)) if _is_text(answer) else None


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


def verify_in_threads(
    verifier: Verifier, completions: Sequence[str], problems: Sequence[Problem], threads: int
) -> list[Verdict]:
    """Judge completion i against problem i as `verify_one` does, in several threads.

    Raises:
        InvalidArgumentError: If the numbers of completions and problems differ.
    """
    from concurrent.futures import ThreadPoolExecutor

    pairs = paired(completions, problems)
    with ThreadPoolExecutor(threads, thread_name_prefix=type(verifier).__name__) as pool:
        return list(pool.map(lambda pair: verify_one(verifier, *pair), pairs))


def paired(completions: Sequence[str], problems: Sequence[Problem]) -> list[tuple[str, Problem]]:
    """Each completion with its problem.

    Raises:
        InvalidArgumentError: If the numbers of completions and problems differ.
    """
    if len(completions) != len(problems):
        raise InvalidArgumentError(f"{len(completions)} completions came with {len(problems)} problems")
    return list(zip(completions, problems, strict=True))


def verifier_error(error: BaseException) -> Verdict:
    """Make the verdict for a verifier that broke with this error: score NaN, the error in `detail`.

    After an `UnreadableReferenceError` the detail also has `unreadable_reference`: another verifier may be able to use the
    reference.
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
    """Convert what a function returned into a verdict.

    Raises:
        VerifierContractError: If it is not a verdict, bool, finite number, or mapping with a score.
    """
    if isinstance(value, Verdict):
        return value
    name = next((name for name in ("score", "reward") if isinstance(value, Mapping) and name in value), None)
    if name is not None:
        mapping = cast("Mapping[str, object]", value)
        verdict = as_verdict(mapping[name], source)
        detail = {str(key): item for key, item in mapping.items() if key != name}
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
        "verifier is marked with @verifiers.factory; one that returns a list takes `completions`; of a tuple, return the score)"
    )


def as_verdicts(values: object, source: object, count: int, none: Verdict | None = None) -> list[Verdict]:
    """Convert what a batch verifier returned into verdicts; each None in it becomes the verdict `none`, if one is given.

    Raises:
        VerifierContractError: If it is not a list of `count` verdicts, bools, finite numbers or mappings with a score.
    """
    ordered = isinstance(values, Sized) and isinstance(values, Iterable) and hasattr(values, "__getitem__")
    listed = ordered and not isinstance(values, str | bytes | Mapping)
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
    """A function's module and name; the `repr` of anything else."""
    return f"{source.__module__}.{source.__qualname__}" if inspect.isfunction(source) else repr(source)


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # an integer that is too large for a float
        return False
