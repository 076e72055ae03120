"""Integers of any length in JSON and in text.

Python refuses to convert integers of more than 4,300 digits (`sys.set_int_max_str_digits`), since the time of a conversion
grows with the square of the length. Tests of programs contain longer integers. The limit applies to the whole process, so it is
left alone.
"""

from __future__ import annotations

import decimal
import json
import sys
from typing import Any

_SHORT = sys.int_info.str_digits_check_threshold
"""Number of digits up to which Python converts integers regardless of its limit."""


def loads(text: str | bytes) -> Any:
    """Decode JSON as `json.loads` does, with integers of any length.

    Raises:
        ValueError: If it is not JSON.
        RecursionError: If it is nested too deeply.
    """
    try:
        return json.loads(text)
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except ValueError:  # an integer has too many digits; `_from_digits` would be slower for all others
        return json.loads(text, parse_int=_from_digits)


def _from_digits(text: str) -> int:
    if text.startswith("-"):
        return -_from_digits(text[1:])
    if len(text) <= _SHORT:
        return int(text)
    last = len(text) // 2
    shift: int = 10**last
    return _from_digits(text[:-last]) * shift + _from_digits(text[-last:])


def to_digits(number: int) -> str:
    """The decimal digits of an integer, of any length."""
    try:
        return str(number)
    except ValueError:
        return str(decimal.Decimal(number))


def shown(value: object) -> str:
    """The `repr` of a value, or the value's class if the value holds an integer that is too long to print."""
    try:
        return repr(value)
    except ValueError:
        return f"<{type(value).__name__} with an integer of more than {sys.get_int_max_str_digits()} digits>"
