"""A place in a list of tokens: what the parser reads with."""

from __future__ import annotations

from collections.abc import Iterable

from verifiers.math.reading.tokens import Token, UnreadableError
from verifiers.math.vocabulary import RELATIONS

MAX_DEPTH = 40
"""Deepest nesting of a tree."""
JOINERS = {"\\&": "and", ",": ",", ";": ",", "\\\\": ",", "and": "and", "or": "or", "lor": "or", "land": "and"}
OPENING_BRACKETS = frozenset(("(", "[", "{", "\\{"))
CLOSING_BRACKETS = frozenset((")", "]", "}", "\\}"))


class Cursor:
    """A place in a list of tokens."""

    def __init__(self, tokens: list[Token], vectors: Iterable[str] = ()) -> None:
        self.tokens, self.index, self.depth, self.bars = tokens, 0, 0, 0
        self.congruent = False  # whether a modulus behind what is read belongs to a congruence
        self.mixed = True  # whether a fraction behind an integer makes a mixed number of it
        self.vectors = set(vectors)  # names of vectors and matrices: those given, and those that are marked

    @property
    def token(self) -> Token:
        """The token here."""
        return self.tokens[self.index]

    def ahead(self, count: int = 1) -> Token:
        """A token further on; the last one past the end."""
        return self.tokens[min(self.index + count, len(self.tokens) - 1)]

    def take(self) -> Token:
        """The token here, which is passed over unless it is the end."""
        token = self.token
        if token.kind != "end":
            self.index += 1
        return token

    def at(self, *texts: str) -> bool:
        """Whether one of these signs, commands or words stands here."""
        token = self.tokens[self.index]
        return token.text in texts and token.kind != "symbol"

    def accept(self, *texts: str) -> bool:
        """Pass over one of these, if it stands here."""
        accepted = self.at(*texts)
        self.index += accepted
        return accepted

    def expect(self, *texts: str) -> str:
        """Pass over one of these.

        Raises:
            UnreadableError: If none of them stands here.
        """
        if not self.at(*texts):
            raise UnreadableError(f"expected {' or '.join(texts)}, found {self.token.text or 'the end'!r}")
        return self.take().text

    def index_of(self, *texts: str) -> int:
        """Where the next token stands that is one of these; where the last stands if none is."""
        indices = range(self.index, len(self.tokens) - 1)
        return next((index for index in indices if self.tokens[index].text in texts), len(self.tokens) - 1)

    def closing_bracket(self, start: int) -> int | None:
        """Where the round bracket that opens at a token is closed."""
        depth = 0
        for index in range(start, len(self.tokens)):
            depth += (self.tokens[index].text == "(") - (self.tokens[index].text == ")")
            if depth == 0:
                return index
        return None

    def joiner(self) -> str | None:
        """Pass over the commas and words between two items; the word if there is one, None if there is nothing."""
        result = None
        while self.token.kind != "symbol" and (
            joiner := JOINERS.get(self.token.text.lower() if self.token.kind == "word" else self.token.text)
        ):
            result = joiner if result in (None, ",") else result
            self.take()
        return result

    def relation_sign(self) -> str | None:
        """Pass over the sign of a relation; None if there is none."""
        if self.at("in") and self.token.kind == "word" and self.ahead().kind == "end":
            return None
        if self.token.kind in ("symbol", "number", "end") or (sign := RELATIONS.get(self.token.text)) is None:
            return None
        if self.take().text == "is" and self.at("equal"):
            self.take()
            self.accept("to")
        return sign

    def is_letter_union(self) -> bool:
        """Whether a letter U stands between two sets."""
        before, after = self.tokens[self.index - 1].text, self.ahead().text
        return self.token.text == "U" and before in (")", "]", "\\}") and after in ("(", "[", "\\{")

    def subscript(self) -> str:
        """Pass over a subscript, which becomes part of a name."""
        if not self.accept("_"):
            return ""
        if not self.at("{"):
            return "_" + self.take().text
        depth, name = 0, "_"
        while self.token.kind != "end":
            text = self.take().text
            depth += (text == "{") - (text == "}")
            if depth == 0:
                return name
            name += text if text != "{" else ""
        raise UnreadableError("a subscript that does not end")

    def primes(self) -> str:
        """Pass over primes, which become part of a name."""
        name = ""
        while self.at("'"):
            name += self.take().text
        return name
