"""Reads values with units, percent and degree signs, bases and currencies, and times of day."""

from __future__ import annotations

from fractions import Fraction

from verifiers.math.forms import is_integer_literal
from verifiers.math.reading.assemble import compound_quantity, measured_in
from verifiers.math.reading.brackets import script
from verifiers.math.reading.cursor import JOINERS
from verifiers.math.reading.errors import UnreadableError
from verifiers.math.reading.expressions import Expressions
from verifiers.math.tree import Clock, Degrees, Divide, Multiply, Negate, Node, Number, Percent, Quantity, Symbol
from verifiers.math.units import CURRENCY_SIGNS, MULTIPLES, UNITS, Unit, UnitWord, read_unit
from verifiers.math.values.exact import rational_value
from verifiers.math.vocabulary import FRACTION_WORDS, RELATIONS


def quantity(parser: Expressions) -> Node:
    """Parse a value with its suffixes: a unit, a base, a remark in brackets, smaller units."""
    if (clock := _clock(parser)) is not None:
        return clock
    node = parser.sum()
    if parser.token.kind == "end":
        return node
    if parser.token.text in ("\\$", *CURRENCY_SIGNS):
        node = Quantity(node, UNITS[parser.take().text.lstrip("\\")])
    if parser.token.kind == "word":
        node = _with_words(parser, node)
    elif parser.at("{", "(") and parser.ahead().kind == "word" and parser.ahead().text != "mod":
        closing = "}" if parser.take().text == "{" else ")"
        parser.accept("in")  # dollars
        node = _with_words(parser, node)
        parser.expect(closing)
    elif parser.at("/") and parser.ahead().kind == "word":
        parser.take()
        node = measured_in(
            node, _unit_named([UnitWord(word.word, word.exponent, True) for word in _unit_words(parser)])
        )
    return _smaller_units(parser, node)


def _smaller_units(parser: Expressions, node: Node) -> Node:
    """Extend a quantity by the quantities in smaller units that follow: `3 ft 2 in`."""
    start = parser.index
    parser.accept(".")
    if not (isinstance(node, Quantity) and parser.token.kind == "number"):
        parser.index = start
        return node
    compound = compound_quantity([node, quantity(parser)])
    if compound is None:
        parser.index = start
    return compound or node


def _clock(parser: Expressions) -> Clock | None:
    """Parse a time of day; None if no time starts here."""
    hour, colon, minute = parser.token, parser.ahead(), parser.ahead(2)
    if not (hour.kind == "number" and hour.text.isdigit() and len(hour.text) <= 2 and int(hour.text) <= 24):
        return None
    start = parser.index
    named = colon.text == ":" and minute.kind == "number" and minute.text.isdigit() and len(minute.text) == 2
    if named and (colon.spaced or minute.spaced or int(hour.text) > 23 or int(minute.text) > 59):
        return None
    parser.index += 3 if named else 1
    half = (
        parser.take().text.lower() if parser.token.kind == "word" and parser.token.text.lower() in ("am", "pm") else ""
    )
    if parser.at(":") or not (named or half):
        parser.index = start
        return None
    parser.accept(".")
    return Clock(int(hour.text), int(minute.text) if named else 0, half)


def _with_words(parser: Expressions, node: Node) -> Node:
    """Apply the words after a value, which name a part, a multiple, a percentage, a base or a unit."""
    word = parser.token.text.lower()
    if word in FRACTION_WORDS:
        parser.take()
        node = Divide(node, Number(Fraction(FRACTION_WORDS[word])))
    elif word in MULTIPLES:
        parser.take()
        node = Multiply((node, Number(Fraction(MULTIPLES[word]))))
    elif word in ("percent", "pct") or (word == "per" and parser.ahead().text.lower() == "cent"):
        parser.index += 1 + (word == "per")
        node = Percent(node)
    elif word in ("degree", "degrees"):
        parser.take()
        return temperature(parser, Degrees(node))
    words = _unit_words(parser)
    if not words:
        return node
    unit = _unit_named(words)
    if unit.is_label and isinstance(node, Symbol) and not unit.is_general:
        raise UnreadableError("a letter that is not a unit")  # a choice, the article, a name
    return measured_in(node, unit)


def _unit_words(parser: Expressions) -> list[UnitWord]:
    """Consume the words of a unit with their exponents."""
    words: list[UnitWord] = []
    divides = False
    _skip_of(parser)
    while parser.token.kind == "word" and not _ends_units(parser):
        word = parser.take().text
        if word.lower() == "per":
            divides = True
            continue
        words.append(UnitWord(word, _unit_exponent(parser), divides))
        if parser.at("/") and parser.ahead().kind == "word":
            parser.take()
            divides = True
        elif parser.at("cdot", "*", ".", "-") and parser.ahead().kind == "word":
            parser.take()
    return words


def _skip_of(parser: Expressions) -> None:
    """Consume the first words of `3/4 of a mile`; `of` before a number would instead multiply."""
    article = parser.ahead().text.lower() in ("a", "an", "the")
    if parser.token.text.lower() == "of" and (article or parser.ahead().kind == "word"):
        parser.index += 1 + article


def _ends_units(parser: Expressions) -> bool:
    """Whether the current word is not part of a unit: it joins, relates, or starts another construct."""
    word = parser.token.text.lower()
    before = parser.tokens[parser.index - 1]
    after = parser.ahead()
    if word == "in" and (before.kind == "number" or before.text in ("sq", "square", "cubic", "cu")):
        return False  # inches
    if word == "in" and (after.kind == "end" or after.text in ("^", ".", ",", "and")):
        return False  # inches, since there is no set
    return word in JOINERS or word in RELATIONS or word in ("to", "mod")


def _unit_exponent(parser: Expressions) -> int:
    """Consume the exponent of a unit; 1 if there is none."""
    if not parser.at("^"):
        return 1
    parser.take()
    value = script(parser)
    if not (isinstance(value, Number | Negate) and is_integer_literal(value)):
        raise UnreadableError("a unit's exponent that is not an integer")
    exponent = rational_value(value)
    if not 0 < abs(exponent) < 10:
        raise UnreadableError("a unit's exponent beyond the limits")
    return int(exponent)


def temperature(parser: Expressions, node: Degrees) -> Node:
    """Return degrees, or a temperature if the name of a scale follows."""
    scale = parser.token.text
    if parser.token.kind in ("word", "symbol") and scale.lower() in ("c", "f", "celsius", "fahrenheit"):
        parser.take()
        return Quantity(node.value, UNITS["celsius" if scale.lower().startswith("c") else "fahrenheit"])
    return node


def currency(parser: Expressions) -> Node:
    """Parse a currency sign and the amount after it."""
    sign = parser.take().text.lstrip("\\")
    return Quantity(parser.signed_factor(), UNITS[sign])


def _unit_named(words: list[UnitWord]) -> Unit:
    """The unit or counted noun that the words after a number name.

    Raises:
        UnreadableError: If the words name neither.
    """
    unit = read_unit(tuple(words))
    if unit is None:
        raise UnreadableError("words after a number that do not name a unit")
    return unit
