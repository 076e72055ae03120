"""Counts together with a noun, such as `2 problems`."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """A number with its noun, such as `1 problem` and `2 problems`.

    Args:
        number: The number.
        noun: The noun in the singular; its plural must end in `s`.
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
