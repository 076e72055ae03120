"""Parses sets in braces and sets of numbers."""

from __future__ import annotations

from verifiers.math.reading.assemble import half_of_set, set_by_condition, set_of_numbers
from verifiers.math.reading.errors import UnreadableError
from verifiers.math.reading.expressions import Expressions
from verifiers.math.tree import ListOf, NamedSet, Node, Relation, SetOf
from verifiers.math.vocabulary import RELATIONS

_WHOLE_NUMBERS = {
    ("^", "*"): "Z>0",
    ("^", "{", "*", "}"): "Z>0",
    ("_", "0"): "Z>=0",
    ("_", "{", "0", "}"): "Z>=0",
}
"""Marks of the set of natural numbers that say whether it includes 0."""
_NUMBER_SETS = frozenset("RZNQC")
_HALVES = {"+": ">", "-": "<"} | {f"{sign} 0": RELATIONS[sign] for sign in (">", "<", "ge", "le", ">=", "<=")}


def set_braces(parser: Expressions) -> Node:
    """Parse a set in braces, given by its items or by a condition."""
    parser.take()
    if parser.accept("\\}"):
        return NamedSet("empty")
    bars, parser.bars = parser.bars, 1  # a bar inside is a separator, and opens nothing
    inside = _listing_of_set(parser)
    parser.bars = bars
    if parser.accept("|", ":"):
        condition = parser.listing()
        parser.expect("\\}")
        return set_by_condition(inside, condition)
    parser.expect("\\}")
    return SetOf(inside.items if isinstance(inside, ListOf) else (inside,))


def _listing_of_set(parser: Expressions) -> Node:
    """Parse the items of a set; a colon after the first item is the bar of a set-builder, not a ratio."""
    items = [_relation_of_set(parser)]
    while parser.joiner() is not None:
        items.append(_relation_of_set(parser))
    return ListOf(tuple(items)) if len(items) > 1 else items[0]


def _relation_of_set(parser: Expressions) -> Node:
    """Parse an item of a set, or the first part of a set-builder."""
    node = parser.set_expression()
    operator = parser.relation_sign()
    if operator is None:
        return node
    value = parser.set_expression()
    return Relation((operator,), (node, set_of_numbers(value) if operator in ("in", "notin") else value))


def number_set(parser: Expressions) -> Node:
    """Parse a set of numbers in blackboard bold, possibly with the sign that selects its positive or negative half."""
    parser.take()
    braced = parser.accept("{")
    name = parser.take().text
    if name not in _NUMBER_SETS:
        raise UnreadableError("an unknown set in blackboard bold")
    if braced:
        parser.expect("}")
    for marks, whole in _WHOLE_NUMBERS.items():
        if name == "N" and parser.accept_all(*marks):
            return NamedSet(whole)
    sign = _sign_of_half(parser)
    return NamedSet(name) if sign is None else half_of_set(name, sign)


def _sign_of_half(parser: Expressions) -> str | None:
    """Consume the script after a set of numbers if it is the sign of a half, and return the sign; else None."""
    if not parser.at("^", "_"):
        return None
    braced = parser.ahead().text == "{"
    script = [token.text for token in parser.tokens[parser.index + 1 + braced : parser.index + 4 + braced]]
    length = 1 if script[0] in ("+", "-") else 2
    sign = _HALVES.get(" ".join(script[:length]))
    if sign is None or (braced and script[length] != "}"):
        return None
    parser.index += 1 + length + 2 * braced
    return sign
