"""Answers to multiple-choice questions: a letter, and what is written behind it."""

from __future__ import annotations

from verifiers.math.grammar.atoms import Atoms
from verifiers.math.grammar.cursor import JOINERS
from verifiers.math.text import folded_words
from verifiers.math.tokens import UnreadableError
from verifiers.math.tree import Choice, Node, Words

_LETTERS = frozenset("ABCDEFGHIJabcdefghij")


class Choices(Atoms):
    """Answers to multiple-choice questions: a letter, and what is written behind it."""

    def choice(self) -> Node | None:
        """A letter in round brackets, or with a bracket behind it, and what follows."""
        start = self.index
        while self.token.kind == "word" and self.token.text.lower() in ("option", "choice", "answer"):
            self.take()
        named = self.index > start
        opened = self.accept("(")
        letter = self.take()
        upper, closed = letter.text.isupper(), self.accept(")")
        marked = named or self.accept(":", ".") or (letter.kind == "word" and self.token.kind == "end")
        if (
            letter.kind in ("symbol", "word")
            and letter.text in _LETTERS
            and (closed or (upper and marked and not opened))
            and (upper or not opened or self.starts_option())
        ):
            return self.choice_content(letter.text.upper())
        self.index = start
        return None

    def starts_option(self) -> bool:
        """Whether what stands here can be the option behind a small letter in brackets, and no factor or operator."""
        return self.token.kind in ("end", "number", "word") or self.at(".", ":", "frac", "\\$")

    def choice_content(self, letter: str) -> Node | None:
        """The choice of a letter with what is written behind it; None if that makes it no choice."""
        self.accept(":", ".")
        if self.token.kind == "end":
            return Choice(letter)
        if self.names_other_choice() or self.token.text.lower() in JOINERS:
            return None
        if self.token.kind == "sign" and self.token.text not in ("(", "[", "-", "\\$", "\\{"):
            return None
        start = self.index
        try:
            return Choice(letter, self.listing())
        except UnreadableError:
            if self.tokens[start].kind != "word" and self.tokens[start].kind != "symbol":
                raise
        self.index = len(self.tokens) - 1
        return Choice(letter, Words(folded_words(" ".join(token.text for token in self.tokens[start:]))))

    def names_other_choice(self) -> bool:
        """Whether a second letter in brackets follows, so that more than one choice is offered."""
        rest = self.tokens[self.index :]
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
