"""A position in a list of tokens, the basis of the parser."""

from __future__ import annotations

from collections.abc import Iterable

from verifiers.math.reading.errors import UnreadableError
from verifiers.math.reading.tokens import Token
from verifiers.math.vocabulary import RELATIONS

MAX_DEPTH = 40
"""Maximum nesting depth of a tree."""
JOINERS = {"\\&": "and", ",": ",", ";": ",", "\\\\": ",", "and": "and", "or": "or", "lor": "or", "land": "and"}
OPENING_BRACKETS = frozenset(("(", "[", "{", "\\{"))
CLOSING_BRACKETS = frozenset((")", "]", "}", "\\}"))


class Cursor:
    """A position in a list of tokens."""

    def __init__(self, tokens: list[Token], vectors: Iterable[str] = ()) -> None:
        self.tokens, self.index, self.depth, self.bars = tokens, 0, 0, 0
        self.congruent = False  # whether a modulus after the present expression belongs to a congruence
        self.mixed = True  # whether an integer and a fraction form a mixed number
        self.vectors = set(vectors)  # names of vectors and matrices: given as arguments, or marked in the text

    @property
    def token(self) -> Token:
        """The current token of the position."""
        return self.tokens[self.index]

    def ahead(self, count: int = 1) -> Token:
        """The token `count` places ahead, or the last token."""
        return self.tokens[min(self.index + count, len(self.tokens) - 1)]

    def take(self) -> Token:
        """Return the current token, and advance unless it is the end."""
        token = self.token
        if token.kind != "end":
            self.index += 1
        return token

    def at(self, *texts: str) -> bool:
        """Whether the current token is one of these signs, commands or words."""
        token = self.tokens[self.index]
        return token.text in texts and token.kind != "symbol"

    def accept(self, *texts: str) -> bool:
        """Consume the current token if it is one of these."""
        accepted = self.at(*texts)
        self.index += accepted
        return accepted

    def accept_all(self, *texts: str) -> bool:
        """Consume the next tokens if they are exactly these, in this order."""
        accepted = tuple(token.text for token in self.tokens[self.index : self.index + len(texts)]) == texts
        self.index += len(texts) * accepted
        return accepted

    def expect(self, *texts: str) -> str:
        """Consume the current token, which must be one of these.

        Raises:
            UnreadableError: If it is another token.
        """
        if not self.at(*texts):
            raise UnreadableError(f"expected {' or '.join(texts)}, found {self.token.text or 'the end'!r}")
        return self.take().text

    def index_of(self, *texts: str) -> int:
        """The index of the next token with one of these texts, or of the last token if no token has one."""
        indices = range(self.index, len(self.tokens) - 1)
        return next((index for index in indices if self.tokens[index].text in texts), len(self.tokens) - 1)

    def closing_bracket(self, start: int) -> int | None:
        """The index at which the round bracket that opens at `start` is closed."""
        depth = 0
        for index in range(start, len(self.tokens)):
            depth += (self.tokens[index].text == "(") - (self.tokens[index].text == ")")
            if depth == 0:
                return index
        return None

    def joiner(self) -> str | None:
        """Consume the commas and words between two items; return the word if any, else a comma; None if there is neither."""
        result = None
        while self.token.kind != "symbol" and (
            joiner := JOINERS.get(self.token.text.lower() if self.token.kind == "word" else self.token.text)
        ):
            result = joiner if result in (None, ",") else result
            self.take()
        return result

    def relation_sign(self) -> str | None:
        """Consume the sign of a relation; None if there is none."""
        if self.at("in") and self.token.kind == "word" and self.ahead().kind == "end":
            return None
        if self.token.kind in ("symbol", "number", "end") or (sign := RELATIONS.get(self.token.text)) is None:
            return None
        if self.take().text == "is" and self.at("equal"):
            self.take()
            self.accept("to")
        return sign

    def is_letter_union(self) -> bool:
        """Whether the current token is a letter U between two sets."""
        before, after = self.tokens[self.index - 1].text, self.ahead().text
        return self.token.text == "U" and before in (")", "]", "\\}") and after in ("(", "[", "\\{")

    def subscript(self) -> str:
        """Consume a subscript, which becomes part of a name."""
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
        raise UnreadableError("an unclosed subscript")

    def primes(self) -> str:
        """Consume primes, which become part of a name."""
        name = ""
        while self.at("'"):
            name += self.take().text
        return name
