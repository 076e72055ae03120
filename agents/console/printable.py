"""Text that is safe to print: other people's text goes to a terminal with nothing in it that the terminal obeys."""

from __future__ import annotations

import re


def printable(text: str) -> str:
    r"""Write what is no printable character as Python does in a literal, such as `\x1b` or `\ud800`; line breaks stay."""
    return "".join(
        character if character.isprintable() or character == "\n" else _escaped(character) for character in text
    )


def in_one_line(text: str) -> str:
    """Give a text of several lines as one, with ` | ` where a line ended, and with nothing that does not print."""
    return printable(re.sub(r"\s*\n\s*", " | ", text.strip()))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
