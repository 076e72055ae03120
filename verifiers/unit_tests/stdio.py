"""Compares a program's output with the expected output."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

_Number = TypeVar("_Number", float, Fraction)

_NUMBER = re.compile(r"[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,4})?|[+-]?(inf|nan)", re.IGNORECASE)

_INTEGER = re.compile(r"[+-]?\d{1,400}")

_WORD = re.compile(r"[+-]?(inf|nan)", re.IGNORECASE)


def matches(output: str, expected: str, comparison: str, tolerance: float | None) -> bool:
    """Whether an output is correct: equal by tokens or by lines, with numbers within a tolerance if one is given.

    Two integers must be equal, since the tolerance is for rounding. Infinity equals only itself, and NaN equals NaN.
    """
    split = _SPLITTERS[comparison]
    actual, wanted = split(output), split(expected)
    if actual == wanted:
        return True
    if tolerance is None or len(actual) != len(wanted):
        return False
    return all(_close_line(*pair, tolerance) for pair in zip(actual, wanted, strict=True))


def _lines(text: str) -> list[str]:
    return "\n".join(line.rstrip() for line in text.replace("\r\n", "\n").split("\n")).rstrip("\n").split("\n")


_SPLITTERS: dict[str, Callable[[str], list[str]]] = {"tokens": str.split, "lines": _lines}


def _close_line(actual: str, wanted: str, tolerance: float) -> bool:
    if actual == wanted:
        return True
    tokens, wanted_tokens = actual.split(), wanted.split()
    return len(tokens) == len(wanted_tokens) and all(
        _close(*pair, tolerance) for pair in zip(tokens, wanted_tokens, strict=True)
    )


def _close(actual: str, wanted: str, tolerance: float) -> bool:
    if actual == wanted:
        return True
    if not (_NUMBER.fullmatch(actual) and _NUMBER.fullmatch(wanted)):
        return False
    if _INTEGER.fullmatch(actual) and _INTEGER.fullmatch(wanted):
        return int(actual) == int(wanted)
    one, other = float(actual), float(wanted)
    if math.isfinite(one) and math.isfinite(other):
        return _close_to(other, one, tolerance)
    if _WORD.fullmatch(actual) or _WORD.fullmatch(wanted):
        both = bool(_WORD.fullmatch(actual) and _WORD.fullmatch(wanted))
        return both and (one == other or (math.isnan(one) and math.isnan(other)))
    # As floats, numbers beyond the range of floats would all be the same infinity.
    return _close_to(Fraction(wanted), Fraction(actual), Fraction(tolerance))


def _close_to(wanted: _Number, actual: _Number, tolerance: _Number) -> bool:
    # Relative to the expected number alone: with a tolerance of 1 or more, a program could otherwise print any large number.
    return abs(actual - wanted) <= max(tolerance, tolerance * abs(wanted))
