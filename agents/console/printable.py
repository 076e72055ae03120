"""Text made safe to print: escapes control sequences in text from data, completions and errors."""

from __future__ import annotations

import re


def printable(text: str) -> str:
    r"""Escape unprintable characters as in a Python literal, such as `\x1b` or `\ud800`; line breaks stay."""
    return "".join(
        character if character.isprintable() or character == "\n" else _escaped(character) for character in text
    )


def in_one_line(text: str) -> str:
    """Join the lines of a text with ` | `, and escape unprintable characters."""
    return printable(re.sub(r"\s*\n\s*", " | ", text.strip()))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
