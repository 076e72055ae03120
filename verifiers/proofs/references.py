"""References of proofs: dataclasses of text, which data sets may also hold as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from verifiers.errors import InvalidArgumentError, UnreadableReferenceError
from verifiers.types import Problem

GoalT = TypeVar("GoalT")


def goal_of(cls: type[GoalT], problem: Problem) -> GoalT:
    """The reference of a problem as a dataclass of texts and tuples of texts.

    It may also be a mapping of the fields, with lists for tuples, or a text, which is the first field.

    Raises:
        UnreadableReferenceError: If it is none of these.
    """
    reference: Any = problem.reference
    if isinstance(reference, cls):
        return reference
    names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
    if isinstance(reference, str):
        reference = {names[0]: reference}
    try:
        if not isinstance(reference, Mapping) or not reference.keys() <= {*names}:
            raise InvalidArgumentError(f"expected its fields, {', '.join(names)}")
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in reference.items()})
    except (InvalidArgumentError, TypeError) as error:
        raise UnreadableReferenceError(
            f"the reference of problem {problem.id!r} must be a {cls.__name__}, a mapping of its fields, or its "
            f"{names[0]} as text: {error}; got {problem.reference!r:.200}"
        ) from error


def check_texts(goal: object, required: str) -> None:
    """Check that each field of a goal is a text or a tuple of texts, and that the required one is not blank.

    Raises:
        InvalidArgumentError: If one is not.
    """
    for field in dataclasses.fields(goal):  # type: ignore[arg-type]
        value = getattr(goal, field.name)
        is_text = isinstance(value, str) if isinstance(field.default, str) or field.name == required else False
        is_texts = isinstance(value, tuple) and all(isinstance(item, str) for item in value)
        if not (is_text or (is_texts and isinstance(field.default, tuple))):
            expected = "a tuple of texts" if isinstance(field.default, tuple) else "text"
            raise InvalidArgumentError(f"{field.name} must be {expected}, got {value!r:.200}")
    if not getattr(goal, required).strip():
        raise InvalidArgumentError(f"{required} must not be empty")
