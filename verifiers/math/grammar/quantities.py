"""What may stand behind a value: units, percent, words, bases; and times of day."""

from __future__ import annotations

from fractions import Fraction

from verifiers.math import tree
from verifiers.math.assemble import compound_quantity, measured_in, sign_inside
from verifiers.math.exact import rational_value
from verifiers.math.grammar.arithmetic import Arithmetic
from verifiers.math.grammar.cursor import JOINERS
from verifiers.math.tokens import UnreadableError
from verifiers.math.tree import (
    Clock,
    Degrees,
    Divide,
    Multiply,
    Negate,
    Node,
    Number,
    Percent,
    Quantity,
    Symbol,
)
from verifiers.math.units import CURRENCY_SIGNS, MULTIPLES, UNITS, Unit, UnitWord, read_unit
from verifiers.math.vocabulary import FRACTION_WORDS, RELATIONS


class Quantities(Arithmetic):
    """What may stand behind a value: units, percent, words, bases; and times of day."""

    def quantity(self) -> Node:
        """A value with what belongs to it: a unit, a base, a remark in brackets, smaller units."""
        if (clock := self.clock()) is not None:
            return clock
        node = self.sum()
        if self.token.kind == "end":
            return sign_inside(node)
        if self.token.text in ("\\$", *CURRENCY_SIGNS):
            node = Quantity(node, UNITS[self.take().text.lstrip("\\")])
        if self.token.kind == "word":
            node = self.with_words(node)
        elif self.at("{", "(") and self.ahead().kind == "word" and self.ahead().text != "mod":
            closing = "}" if self.take().text == "{" else ")"
            self.accept("in")  # dollars
            node = self.with_words(node)
            self.expect(closing)
        elif self.at("/") and self.ahead().kind == "word":
            self.take()
            node = measured_in(
                node, unit_named([UnitWord(word.word, word.exponent, True) for word in self.unit_words()])
            )
        return self.smaller_units(sign_inside(node))

    def smaller_units(self, node: Node) -> Node:
        """A quantity with what follows it in a smaller unit: `3 ft 2 in`."""
        start = self.index
        self.accept(".")
        if not (isinstance(node, Quantity) and self.token.kind == "number"):
            self.index = start
            return node
        compound = compound_quantity([node, self.quantity()])
        if compound is None:
            self.index = start
        return compound or node

    def clock(self) -> Clock | None:
        """A time of day; None if none stands here."""
        hour, colon, minute = self.token, self.ahead(), self.ahead(2)
        if not (hour.kind == "number" and hour.text.isdigit() and len(hour.text) <= 2 and int(hour.text) <= 24):
            return None
        start = self.index
        named = colon.text == ":" and minute.kind == "number" and minute.text.isdigit() and len(minute.text) == 2
        if named and (colon.spaced or minute.spaced or int(hour.text) > 23 or int(minute.text) > 59):
            return None
        self.index += 3 if named else 1
        half = self.take().text.lower() if self.token.kind == "word" and self.token.text.lower() in ("am", "pm") else ""
        if self.at(":") or not (named or half):
            self.index = start
            return None
        self.accept(".")
        return Clock(int(hour.text), int(minute.text) if named else 0, half)

    def with_words(self, node: Node) -> Node:
        """A value with the words behind it: a part, a multiple, percent, a base, a unit."""
        word = self.token.text.lower()
        if word in FRACTION_WORDS:
            self.take()
            node = Divide(node, Number(Fraction(FRACTION_WORDS[word])))
        elif word in MULTIPLES:
            self.take()
            node = Multiply((node, Number(Fraction(MULTIPLES[word]))))
        elif word in ("percent", "pct") or (word == "per" and self.ahead().text.lower() == "cent"):
            self.index += 1 + (word == "per")
            node = Percent(node)
        elif word in ("degree", "degrees"):
            self.take()
            return self.temperature(Degrees(node))
        words = self.unit_words()
        if not words:
            return node
        unit = unit_named(words)
        if unit.is_label and isinstance(node, Symbol) and not unit.label.startswith("unit"):
            raise UnreadableError("a letter that counts nothing")  # a choice, the article, a name
        return measured_in(node, unit)

    def unit_words(self) -> list[UnitWord]:
        """Pass over the words of a unit with their exponents."""
        words: list[UnitWord] = []
        divides = False
        self.skip_of()
        while self.token.kind == "word" and not self.ends_units():
            word = self.take().text
            if word.lower() == "per":
                divides = True
                continue
            words.append(UnitWord(word, self.unit_exponent(), divides))
            if self.at("/") and self.ahead().kind == "word":
                self.take()
                divides = True
            elif self.at("cdot", "*", ".", "-") and self.ahead().kind == "word":
                self.take()
        return words

    def skip_of(self) -> None:
        """Pass over the first words of `3/4 of a mile`; "of" in front of a number would multiply."""
        article = self.ahead().text.lower() in ("a", "an", "the")
        if self.token.text.lower() == "of" and (article or self.ahead().kind == "word"):
            self.index += 1 + article

    def ends_units(self) -> bool:
        """Whether a word here is no part of a unit: it joins, relates, or starts something else."""
        word = self.token.text.lower()
        before = self.tokens[self.index - 1]
        after = self.ahead()
        if word == "in" and (before.kind == "number" or before.text in ("sq", "square", "cubic", "cu")):
            return False  # inches
        if word == "in" and (after.kind == "end" or after.text in ("^", ".", ",", "and")):
            return False  # inches, for there is no set
        return word in JOINERS or word in RELATIONS or word in ("to", "mod")

    def unit_exponent(self) -> int:
        """Pass over the exponent of a unit; 1 if there is none."""
        if not self.at("^"):
            return 1
        self.take()
        value = self.script()
        if not (isinstance(value, Number | Negate) and tree.is_integer_literal(value)):
            raise UnreadableError("a unit's exponent that is no integer")
        exponent = rational_value(value)
        if abs(exponent) > 9:
            raise UnreadableError("a unit's exponent past the limit")
        return int(exponent)


def unit_named(words: list[UnitWord]) -> Unit:
    """The unit or counted noun of the words behind a number.

    Raises:
        UnreadableError: If they name none.
    """
    unit = read_unit(tuple(words))
    if unit is None:
        raise UnreadableError("words behind a number that name no unit")
    return unit
