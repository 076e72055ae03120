"""References of proofs: dataclasses of texts, which data sets may also store as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from verifiers.errors import InvalidArgumentError, UnreadableReferenceError
from verifiers.types import Problem

GoalT = TypeVar("GoalT")


def goal_of(cls: type[GoalT], problem: Problem) -> GoalT:
    """The reference of a problem as a dataclass of texts and tuples of texts.

    The reference may also be a mapping of the fields, with lists for tuples, or a text, which is the first field.

    Raises:
        UnreadableReferenceError: If the reference has another form.
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


def check_texts(goal: object) -> None:
    """Check that a goal's fields are texts, or tuples of texts where the default is a tuple; required fields must not be blank.

    Raises:
        InvalidArgumentError: If a field does not comply.
    """
    for field in dataclasses.fields(goal):  # type: ignore[arg-type]
        value = getattr(goal, field.name)
        if isinstance(field.default, tuple):
            if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
                raise InvalidArgumentError(f"{field.name} must be a tuple of texts, got {value!r:.200}")
        elif not isinstance(value, str):
            raise InvalidArgumentError(f"{field.name} must be text, got {value!r:.200}")
        elif field.default is dataclasses.MISSING and not value.strip():
            raise InvalidArgumentError(f"{field.name} must not be empty")
