"""Numbers, symbols, calls, words."""

from __future__ import annotations

import re
from fractions import Fraction

from verifiers.math.assemble import proper_fraction, times, values_of
from verifiers.math.grammar.cursor import JOINERS
from verifiers.math.grammar.environments import Environments
from verifiers.math.text import folded_words
from verifiers.math.tokens import Token, UnreadableError
from verifiers.math.tree import (
    BasedNumber,
    Constant,
    Divide,
    Mixed,
    NamedSet,
    Node,
    Number,
    Quantity,
    SetOf,
    SetOperation,
    Symbol,
    Unknown,
)
from verifiers.math.units import UNITS
from verifiers.math.vocabulary import FRACTION_WORDS, NUMBER_WORDS, TENS
from verifiers.math.wording import QUARTERS, REALS_EXCEPT, SCALES, value_of_words

_NAMED_FUNCTIONS = frozenset("fghpqFGH") | frozenset("ABDEIJKLMNOPQRSTUVWXYZ")
_ALWAYS_FUNCTIONS = frozenset("fgh")
_AXES = frozenset("ijk")
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
        if token.bold and self.is_unit_vector(name):
            return Symbol(f"hat {name}")
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

    def is_unit_vector(self, name: str) -> bool:
        """Whether a letter in bold is a unit vector: i, j or k beside another of them."""
        return name in _AXES and any(token.bold and token.text in _AXES - {"i"} for token in self.tokens)

    def is_call(self) -> bool:
        """Whether the brackets ahead hold one symbol or number, as in `P(x)`."""
        return self.ahead().kind in ("symbol", "number") and self.ahead(2).text == ")"

    def word(self) -> Node:
        """A word where a value should stand: a number word, or a label in front of an equals sign."""
        words = [self.take().text]
        if (len(words[0]) == 1 and self.token.kind not in ("word", "symbol")) or (
            _STATEMENT.fullmatch(words[0]) and (self.token.kind == "end" or self.token.text.lower() in JOINERS)
        ):
            return Symbol(words[0])
        if words[0].lower() in _CURRENCY_CODES and self.ahead(int(self.at("."))).kind == "number":
            self.accept(".")
            return Quantity(self.number(), UNITS[words[0].lower()])
        if (number := self.number_in_words(words[0].lower())) is not None:
            return number
        while self.token.kind == "word" and self.token.text not in ("is", "equals"):
            words.append(self.take().text)
            if words[-1].lower() in ("except", "excluding") and folded_words(" ".join(words)) in REALS_EXCEPT:
                if self.token.text.lower() == "for":
                    self.take()
                excluded = self.listing()
                return SetOperation("difference", NamedSet("R"), SetOf(values_of(excluded)))
        if not self.at("=", "approx", "is", "equals"):
            raise UnreadableError(f"the word {words[0]!r} where a value should stand")
        return Symbol("text:" + folded_words(" ".join(words)))

    def number_in_words(self, first: str) -> Node | None:
        """A number in words up to 99, whose first word was taken; larger ones are products and sums of these."""
        if first == "half":
            return Divide(Number(Fraction(1)), Number(Fraction(2)))
        if first not in TENS and first not in NUMBER_WORDS:
            return None
        words = [first]
        while (following := self.following_number_word()) is not None:
            words.append(following)
        if self.at("-") and self.ahead().kind == "word":
            if self.ahead().text.lower() not in FRACTION_WORDS and self.ahead().text.lower() not in QUARTERS:
                return None
            self.take()
        elif self.token.kind == "sign" and self.token.text not in (",", ")", "}"):
            return None
        value = value_of_words(words)
        if value is None:
            raise UnreadableError("words that are no number")
        return Number(Fraction(value))

    def following_number_word(self) -> str | None:
        """Take the next word of a number in words, with the hyphen or the `and` before it."""
        joined = self.at("-") or (self.at("and") and self.tokens[self.index - 1].text.lower() in SCALES)
        word = self.ahead() if joined else self.token
        name = word.text.lower()
        if word.kind != "word" or not (name in TENS or name in NUMBER_WORDS or (name in SCALES and not joined)):
            return None
        self.index += 1 + joined
        return name

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
