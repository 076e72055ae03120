"""Numbers, symbols, calls, words."""

from __future__ import annotations

import re

from verifiers.math.assemble import proper_fraction, times
from verifiers.math.grammar.cursor import JOINERS
from verifiers.math.grammar.environments import Environments
from verifiers.math.text import folded_words
from verifiers.math.tokens import Token, UnreadableError
from verifiers.math.tree import (
    BasedNumber,
    Constant,
    Divide,
    Mixed,
    Node,
    Quantity,
    Symbol,
    Unknown,
)
from verifiers.math.units import UNITS

_NAMED_FUNCTIONS = frozenset("fghpqFGH") | frozenset("ABDEIJKLMNOPQRSTUVWXYZ")
_ALWAYS_FUNCTIONS = frozenset("fgh")
_STATEMENT = re.compile(r"[A-Z]|[IVX]{1,4}")  # a choice or the number of a statement, in a list of them
_CURRENCY_CODES = frozenset(("usd", "eur", "gbp", "inr", "rs", "jpy"))


class Atoms(Environments):
    """Numbers, symbols, calls, words."""

    def number(self) -> Node:
        """A number, and a fraction behind it as a mixed number."""
        token = self.take()
        assert token.value is not None
        if not self.mixed or not token.text.isdigit() or isinstance(token.value, BasedNumber):
            return token.value
        if self.at("frac", "unicodefrac"):
            part = self.atom()
            proper = proper_fraction(part)
            return Mixed(int(token.text), *proper) if proper is not None else times(token.value, part)
        denominator = self.ahead(2)
        if (
            self.token.kind == "number"
            and self.token.spaced
            and self.ahead().text == "/"
            and self.token.text.isdigit()
            and denominator.text.isdigit()
        ):
            part = Divide(_value(self.token), _value(denominator))
            proper = proper_fraction(part)
            if proper is not None:
                self.index += 3
                return Mixed(int(token.text), *proper)
        return token.value

    def symbol(self) -> Node:
        """A constant, a symbol with its subscript and primes, or a call of a function without a meaning."""
        token = self.take()
        name = token.text
        if name in ("e", "i") and not self.at("_", "'"):
            return Constant(name)
        name += self.subscript() + self.primes()
        if token.bold:
            self.vectors.add(name)
        if name == "C" and self.at("(") and self.ahead(2).text == ",":
            return self.combinations()
        if self.at("(") and name[0] in _NAMED_FUNCTIONS and (name[0] in _ALWAYS_FUNCTIONS or self.is_call()):
            return Unknown(name, self.arguments())
        if name[0] in _ALWAYS_FUNCTIONS and self.at("^") and self.ahead(3).text == "1" and self.ahead(5).text == "(":
            self.index += 5
            return Unknown(name + "^-1", self.arguments())
        return Symbol(name)

    def is_call(self) -> bool:
        """Whether the brackets ahead hold one symbol or number, as in `P(x)`."""
        return self.ahead().kind in ("symbol", "number") and self.ahead(2).text == ")"

    def word(self) -> Node:
        """A word where a value should stand: an amount, or a label in front of an equals sign."""
        words = [self.take().text]
        if (len(words[0]) == 1 and self.token.kind not in ("word", "symbol")) or (
            _STATEMENT.fullmatch(words[0]) and (self.token.kind == "end" or self.token.text.lower() in JOINERS)
        ):
            return Symbol(words[0])
        if words[0].lower() in _CURRENCY_CODES and self.ahead(int(self.at("."))).kind == "number":
            self.accept(".")
            return Quantity(self.number(), UNITS[words[0].lower()])
        while self.token.kind == "word" and self.token.text not in ("is", "equals"):
            words.append(self.take().text)
        if not self.at("=", "approx", "is", "equals"):
            raise UnreadableError(f"the word {words[0]!r} where a value should stand")
        return Symbol("text:" + folded_words(" ".join(words)))

    def currency(self) -> Node:
        """An amount behind the sign of its currency."""
        sign = self.take().text.lstrip("\\")
        return Quantity(self.signed_factor(), UNITS[sign])

    def ellipsis(self) -> Node:
        """Three dots, as a symbol."""
        self.take()
        return Symbol("...")


def _value(token: Token) -> Node:
    assert token.value is not None
    return token.value
