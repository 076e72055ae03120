"""Check, before anything is sampled, that the user's verifier can use the references of a data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from rlvr_envs.prompts import CHAT_PROMPTS, Prompt, written_answer
from rlvr_envs.rules import Rules
from rlvr_envs.types import Dataset, FixedActions
from verifiers import (
    InvalidArgumentError,
    Outcome,
    Problem,
    Verifier,
    VerifierContractError,
    check_reading,
    is_verifier_file,
    verifier_record,
    verify_batch,
)

if TYPE_CHECKING:
    from verifiers.unit_tests import UnitTestVerifier

_TRIED = frozenset({"choice", "countdown", "exact", "ifeval", "json_schema", "math", "numeric", "sql", "unit_tests"})
"""Verifiers that read the reference before the completion and judge an empty completion at no cost, without a model or
server."""
_JUDGED_BY_TEXT = frozenset({"choice", "countdown", "exact", "math", "numeric"})
"""Verifiers of answers in text. For these, a gold answer can be written in the form that a prompt asks for, and judged."""
_OF_ONE_KIND = ("choice", "unit_tests", "sql")
"""Verifiers whose prompts fit no other verifier, since these prompts ask for a letter, a program or a query."""
_PROBLEMS = 8
"""Number of problems to try; one problem is not enough, since its reference may be the only unreadable one."""
_MAX_LENGTH = 300
"""Maximum number of characters of a reason in a message."""


def check_references(spec: object, verifier: Verifier, default: str, dataset: Dataset) -> None:
    """Check that a verifier can use a reference of the first problems, and that a function's parameters were read correctly.

    Raises:
        InvalidArgumentError: If the verifier can use none of these references. Verifiers that are costly to call, or come from
            outside this package, are not tried.
        VerifierContractError: If the parameters' names decide how a function is called, and the function scores no gold
            completion above an empty completion.
    """
    check_reading(verifier, dataset)
    name = _name_of(spec)
    count = min(len(dataset), _PROBLEMS)
    if name not in _TRIED or not count:
        return
    reason = _objection(name, verifier, [dataset[index] for index in range(count)])
    if name == "json_schema":  # end its process, which the first episode starts again
        verifier.close()  # type: ignore[attr-defined] # a JSONSchemaVerifier
    if reason is None:
        return
    instead = "" if default == name else f" Leave verifier= out for {default!r}, or name another"
    tried = "the first problem" if count == 1 else f"any of the first {count} problems"
    raise InvalidArgumentError(f"the verifier {name!r} can't use the reference of {tried}: {reason}.{instead}")


def check_installed(spec: object, verifier: Verifier, dataset: Dataset) -> None:
    """Check that the languages of the programs' tests are installed, and pytest if the tests need it.

    Raises:
        MissingDependencyError: If such a language, or pytest, is missing; the message says what to install.
    """
    if _name_of(spec) == "unit_tests":
        cast("UnitTestVerifier", verifier).check_installed(dataset)


def reads_references(spec: object) -> bool:
    """Whether trying the user's verifier on references costs nothing."""
    return _name_of(spec) in _TRIED


def check_pair(
    spec: object,
    verifier: Verifier,
    prompt: Prompt,
    dataset: Dataset,
    others: Sequence[tuple[str, Mapping[str, object]]] = (),
) -> None:
    """Check that a verifier can read answers in the form that the prompt asks for.

    Raises:
        InvalidArgumentError: If the prompt asks for a form that another verifier reads, or if the verifier accepts none of the
            first problems' gold answers in this form.
    """
    name = _name_of(spec)
    kind = next((kind for kind in _OF_ONE_KIND if CHAT_PROMPTS[kind] == prompt.name), name)
    if kind != name and name in _TRIED:
        raise InvalidArgumentError(
            f"the prompt {prompt.name!r} asks for what the verifier {kind!r} reads, but this environment's is {name!r}: choose "
            "another prompt=, such as 'auto'"
        )
    find_objection = {"unit_tests": _objection_to_program}.get(name, _objection_to_answer)
    if name not in (*_JUDGED_BY_TEXT, "unit_tests"):
        return
    objections = []
    for problem in (dataset[index] for index in range(min(len(dataset), _PROBLEMS))):
        gold = gold_answer(problem)
        if gold is None:
            continue
        objection = find_objection(verifier, prompt, gold, problem)
        if objection is None:
            return
        objections.append(f"the gold answer of problem {problem.id!r}, {objection}")
    if objections:
        raise InvalidArgumentError(
            f"the verifier {_written(spec)} can't read an answer that is written as the prompt {prompt.name!r} asks: "
            f"{objections[0]}. Choose another prompt=, or a verifier= that reads this form"
            f"{''.join(f', such as {_written(other)}' for other in others[:1])}"
        )


def check_spelling(rules: Rules, prompt: Prompt) -> None:
    """Check that the legal tokens can spell the marks that the prompt asks for around the answer.

    Raises:
        InvalidArgumentError: If the same tokens are always legal, and the marks contain a byte that no legal token contains.
    """
    if not isinstance(rules.legal_actions, FixedActions):
        return
    marks = written_answer(prompt, "")
    legal = np.flatnonzero(rules.legal_actions.mask)
    spelled = {byte for token in legal.tolist() for byte in rules.tokenizer.token_bytes(token)}
    if not spelled.issuperset(marks.encode()):
        raise InvalidArgumentError(
            f"the prompt {prompt.name!r} asks for {marks!r} around the answer, but the legal tokens of this environment can't "
            "spell it: choose another prompt=, such as 'chat'"
        )


def _written(spec: object) -> str:
    """A verifier's name and arguments, for a message."""
    name, arguments = spec if isinstance(spec, tuple) else (spec, {})
    given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return f"{_name_of(spec)!r}" + (f" with {given}" if given else "") if name else repr(spec)


def _objection_to_answer(verifier: Verifier, prompt: Prompt, gold: str, problem: Problem) -> str | None:
    """Why a gold answer is not correct in the form that a prompt asks for; None if it is correct."""
    completion = written_answer(prompt, gold)
    verdict = verify_batch(verifier, [completion], [problem])[0]
    if verdict.outcome in (Outcome.CORRECT, Outcome.VERIFIER_ERROR):  # an error does not depend on the form
        return None
    reason = verdict.detail.get("reason")
    return f"{completion!r}, is {verdict.outcome.value}{f' ({reason})' if reason else ''}"


def _objection_to_program(verifier: Verifier, prompt: Prompt, gold: str, problem: Problem) -> str | None:
    """Why the verifier reads a gold program differently in the form that a prompt asks for; None if it reads the same program.

    The program is not run.
    """
    program = cast("UnitTestVerifier", verifier).program_in
    expected = program(gold)
    completion = written_answer(prompt, expected)
    return (
        None
        if program(completion).strip() == expected.strip()
        else f"{completion!r}, is read as {program(completion)!r}"
    )


def gold_answer(problem: Problem) -> str | None:
    """The text of a problem's gold answer, without a solution; None if there is no gold answer."""
    gold = problem.metadata.get("gold_completion")
    if isinstance(gold, str) and (not isinstance(problem.reference, str) or "difficulty" in problem.metadata):
        return gold
    reference = problem.reference
    return str(reference) if isinstance(reference, str | int | float) and not isinstance(reference, bool) else None


def _name_of(spec: object) -> str:
    """The name of a verifier; empty if it has no name."""
    name = spec[0] if isinstance(spec, tuple) else spec
    if is_verifier_file(name):
        _, content = verifier_record(name, {})
        name = content["verifier"]
    return name if isinstance(name, str) else ""


def _objection(name: str, verifier: Verifier, problems: Sequence[Problem]) -> str | None:
    """The verifier's objection to the first reference if it can't use any of the problems' references; otherwise None."""
    reasons = []
    for problem in problems:
        reason = _objection_to(name, verifier, problem)
        if reason is None:
            return None
        reasons.append(reason)
    return reasons[0]


def _objection_to(name: str, verifier: Verifier, problem: Problem) -> str | None:
    if _would_start_processes(name, problem.reference):
        return None
    try:
        verdict = verify_batch(verifier, [""], [problem])[0]
    except VerifierContractError as error:
        return str(error)
    if not verdict.detail.get("unreadable_reference"):
        return None
    said = str(verdict.detail.get("error") or verdict.detail.get("reason")).removeprefix("UnreadableReferenceError: ")
    return said if len(said) <= _MAX_LENGTH else f"{said[:_MAX_LENGTH]} ..."


def _would_start_processes(name: str, reference: object) -> bool:
    """Whether the verifier accepts this type of reference, and would start processes to use this reference."""
    if name == "unit_tests":
        from verifiers.unit_tests import DeferredTests, Tests

        return isinstance(reference, Tests | DeferredTests | Mapping | list)
    if name == "sql":
        from verifiers.sql import SQLReference

        return isinstance(reference, SQLReference | Mapping)
    return False
