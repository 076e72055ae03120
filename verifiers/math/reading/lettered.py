"""Reads multiple-choice answers: a letter, and the content after it."""

from __future__ import annotations

from verifiers.math.reading.cursor import JOINERS
from verifiers.math.reading.errors import UnreadableError
from verifiers.math.reading.expressions import Expressions
from verifiers.math.reading.normalize import folded_words
from verifiers.math.tree import Choice, Node, Words

_LETTERS = frozenset("ABCDEFGHIJabcdefghij")


def choice(parser: Expressions) -> Node | None:
    """Parse a choice: a letter in round brackets or before a closing bracket, and the content after it."""
    start = parser.index
    while parser.token.kind == "word" and parser.token.text.lower() in ("option", "choice", "answer"):
        parser.take()
    named = parser.index > start
    opened = parser.accept("(")
    letter = parser.take()
    upper, closed = letter.text.isupper(), parser.accept(")")
    marked = named or parser.accept(":", ".") or (letter.kind == "word" and parser.token.kind == "end")
    if (
        letter.kind in ("symbol", "word")
        and letter.text in _LETTERS
        and (closed or (upper and marked and not opened))
        and (upper or not opened or _starts_option(parser))
    ):
        return _choice_content(parser, letter.text.upper())
    parser.index = start
    return None


def _starts_option(parser: Expressions) -> bool:
    """Whether the token after a lower-case letter in brackets can start an option, but not a factor or an operator."""
    return parser.token.kind in ("end", "number", "word") or parser.at(".", ":", "frac", "\\$")


def _choice_content(parser: Expressions, letter: str) -> Node | None:
    """Parse the content after a choice's letter; None if the content shows that this is not a choice."""
    parser.accept(":", ".")
    if parser.token.kind == "end":
        return Choice(letter)
    if _names_other_choice(parser) or parser.token.text.lower() in JOINERS:
        return None
    if parser.token.kind == "sign" and parser.token.text not in ("(", "[", "-", "\\$", "\\{"):
        return None
    start = parser.index
    try:
        return Choice(letter, parser.listing())
    except UnreadableError:
        if parser.tokens[start].kind != "word" and parser.tokens[start].kind != "symbol":
            raise
    parser.index = len(parser.tokens) - 1
    return Choice(letter, Words(folded_words(" ".join(token.text for token in parser.tokens[start:]))))


def _names_other_choice(parser: Expressions) -> bool:
    """Whether a second letter in brackets follows, so that the answer offers several choices."""
    rest = parser.tokens[parser.index :]
    if (
        len([token for token in rest if token.text != "."]) == 2
        and len(rest[0].text) == 1
        and "A" <= rest[0].text <= "J"
    ):
        return True
    return any(
        (before.text, after.text) == ("(", ")") and len(letter.text) == 1 and "A" <= letter.text <= "J"
        for before, letter, after in zip(rest, rest[1:], rest[2:], strict=False)
    )
