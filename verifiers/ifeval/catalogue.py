"""The table of instructions: the id of each, its parameters and how they are read, and the rule that a response must follow."""

from __future__ import annotations

import math
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from verifiers._settings import is_number
from verifiers.errors import InvalidArgumentError, unknown_name

Check = Callable[..., bool]
"""Called with the response and, by name, the parameters; returns whether the response follows the instruction."""

Reader = Callable[[object], Any]
"""Reads the value of a parameter; raises `ValueError` with what was expected."""

RELATIONS = ("less than", "at least")


@dataclass(frozen=True)
class Rule:
    """The parameters of an instruction, and the check of whether the instruction is followed."""

    check: Check
    readers: Mapping[str, Reader]
    fits: Callable[..., bool] | None
    """Whether the parameters fit each other; None if they always do."""

    def arguments(self, identifier: str, given: Mapping[str, object]) -> dict[str, Any]:
        """Read the parameters.

        Raises:
            InvalidArgumentError: If a parameter is missing, unknown, not of its kind, or does not fit the other parameters.
        """
        named = {name: value for name, value in given.items() if value is not None}
        missing, unknown = self.readers.keys() - named.keys(), named.keys() - self.readers.keys()
        if missing or unknown:
            said = [f"lacks {', '.join(map(repr, sorted(missing)))}"] if missing else []
            said += [f"has {', '.join(map(repr, sorted(unknown)))}, which it does not take"] if unknown else []
            takes = ", ".join(self.readers) or "nothing"
            raise InvalidArgumentError(f"the instruction {identifier!r} {' and '.join(said)}; its kwargs are {takes}")
        arguments = {name: self._read(identifier, name, value) for name, value in named.items()}
        if self.fits is not None and not self.fits(**arguments):
            raise InvalidArgumentError(f"the kwargs of the instruction {identifier!r} contradict each other: {named}")
        return arguments

    def _read(self, identifier: str, name: str, value: object) -> Any:
        try:
            return self.readers[name](value)
        except ValueError as error:
            raise InvalidArgumentError(
                f"{name} of the instruction {identifier!r} must be {error}, got {value!r}"
            ) from error


_RULES: dict[str, Rule] = {}


def instruction(
    identifier: str, fits: Callable[..., bool] | None = None, **readers: Reader
) -> Callable[[Check], Check]:
    """Enter the rule of an instruction into the table: `@instruction("keywords:existence", keywords=texts)`."""

    def enter(check: Check) -> Check:
        _RULES[identifier] = Rule(check, readers, fits)
        return check

    return enter


def rule(identifier: str) -> Rule:
    """Find the rule of an instruction.

    Raises:
        UnknownNameError: If there is no such instruction; the message offers the nearest.
    """
    known = rules()
    if identifier not in known:
        raise unknown_name("instruction", identifier, known)
    return known[identifier]


@cache
def rules() -> Mapping[str, Rule]:
    """Every rule, by id."""
    package = import_module("verifiers.ifeval.checks")
    for module in pkgutil.iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
    return _RULES


def text(value: object) -> str:
    """Read a text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a text that is not blank")
    return value


def texts(value: object) -> tuple[str, ...]:
    """Read a list of texts that are not blank."""
    if not isinstance(value, list | tuple) or not value:
        raise ValueError("a list of one or more texts")
    return tuple(map(text, value))


def whole(value: object) -> int:
    """Read a whole number of at least 0; data sets also write it as a float, such as 5.0."""
    if not is_number(value) or not isinstance(value, int | float) or not 0 <= value < math.inf or value % 1:
        raise ValueError("a whole number of at least 0")
    return int(value)


def positive(value: object) -> int:
    """Read a whole number of at least 1."""
    if value == 0:
        raise ValueError("a whole number of at least 1")
    return whole(value)


def percentage(value: object) -> float:
    """Read a number from 0 to 100."""
    if not is_number(value) or not isinstance(value, int | float) or not 0 <= value <= 100:
        raise ValueError("a number from 0 to 100")
    return float(value)


def relation(value: object) -> str:
    """Read the relation of a number to a limit, one of `RELATIONS`."""
    if value not in RELATIONS:
        raise ValueError(f"one of {', '.join(map(repr, RELATIONS))}")
    return str(value)


def compare(number: int, relation: str, limit: int) -> bool:
    """Whether a number is less than a limit or at least the limit, as the relation says."""
    return number < limit if relation == "less than" else number >= limit
