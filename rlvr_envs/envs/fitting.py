"""Whether a verifier that the user named can use the references of a data set, tried before anything is sampled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlvr_envs.types import Dataset
from verifiers import (
    InvalidArgumentError,
    Problem,
    Verifier,
    VerifierContractError,
    check_reading,
    is_verifier_file,
    verifier_record,
    verify_batch,
)

_TRIED = frozenset({"choice", "countdown", "exact", "ifeval", "json_schema", "math", "numeric", "sql", "unit_tests"})
"""Verifiers that read a reference before the completion, and judge an empty one at no cost: they ask no model or server."""
_PROBLEMS = 8
"""Number of problems that are tried: one whose reference can't be read says nothing of the others."""
_MAX_LENGTH = 300
"""The most characters of a reason that are shown."""


def check_references(spec: object, verifier: Verifier, default: str, dataset: Dataset) -> None:
    """Refuse a verifier that can use the reference of none of the first problems, or a function that was misread.

    Args:
        spec: How the verifier was named.
        verifier: The verifier.
        default: The verifier that the environment has without a name.
        dataset: The problems.

    Raises:
        InvalidArgumentError: If that is so. Verifiers that are not free to ask, or not of this package, are not tried.
        VerifierContractError: If a function that is called by the names of its parameters scores no gold above an empty
            completion.
    """
    check_reading(verifier, dataset)
    name = _name_of(spec)
    count = min(len(dataset), _PROBLEMS)
    if name not in _TRIED or not count:
        return
    reason = _objection(name, verifier, [dataset[index] for index in range(count)])
    if name == "json_schema":  # it works in a process, which the first episode starts again
        verifier.close()  # type: ignore[attr-defined] # a JSONSchemaVerifier
    if reason is None:
        return
    instead = "" if default == name else f" Leave verifier= out for {default!r}, or name another"
    tried = "the first problem" if count == 1 else f"any of the first {count} problems"
    raise InvalidArgumentError(f"the verifier {name!r} can't use the reference of {tried}: {reason}.{instead}")


def reads_references(spec: object) -> bool:
    """Whether a verifier, as it was named, can be tried on references at no cost."""
    return _name_of(spec) in _TRIED


def _name_of(spec: object) -> str:
    """The name of a verifier; nothing for one that has none."""
    name = spec[0] if isinstance(spec, tuple) else spec
    if is_verifier_file(name):
        _, content = verifier_record(name, {})
        name = content["verifier"]
    return name if isinstance(name, str) else ""


def _objection(name: str, verifier: Verifier, problems: Sequence[Problem]) -> str | None:
    """What a verifier has against the first problem's reference, where it can't use that of any; None if it can."""
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
    """Whether a reference is of a type that the verifier takes, and would be used in processes of its own."""
    if name == "unit_tests":
        from verifiers.unit_tests import DeferredTests, Tests

        return isinstance(reference, Tests | DeferredTests | Mapping | list)
    if name == "sql":
        from verifiers.sql import SQLReference

        return isinstance(reference, SQLReference | Mapping)
    return False
