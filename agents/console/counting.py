"""Numbers of things in words."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """A number and what it counts, such as `1 problem` and `2 problems`.

    Args:
        number: How many there are.
        noun: What one of them is called, whose plural ends in `s`.
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
