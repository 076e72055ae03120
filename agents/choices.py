"""Choices that may be given as text."""

from __future__ import annotations

import enum
from typing import TypeVar

from verifiers import unknown_name

ChoiceT = TypeVar("ChoiceT", bound=enum.StrEnum)


def choice(name: str, value: str, choices: type[ChoiceT]) -> ChoiceT:
    """Read a choice that may be given as text.

    Raises:
        UnknownNameError: If there is no such choice; the message offers the nearest.
    """
    if value not in list(choices):
        raise unknown_name(name, str(value), [str(member) for member in choices])
    return choices(value)
