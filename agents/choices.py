"""Enum settings that may be given as text."""

from __future__ import annotations

import enum
from typing import TypeVar

from verifiers import unknown_name

ChoiceT = TypeVar("ChoiceT", bound=enum.StrEnum)


def choice(name: str, value: str, choices: type[ChoiceT]) -> ChoiceT:
    """Convert text to a member of an enum.

    Raises:
        UnknownNameError: If there is no such choice; the message suggests the nearest.
    """
    if value not in list(choices):
        raise unknown_name(name, str(value), [str(member) for member in choices])
    return choices(value)
