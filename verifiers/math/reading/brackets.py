"""Parses groups in brackets and braces, arguments and scripts."""

from __future__ import annotations

from fractions import Fraction

from verifiers.math.reading.assemble import bracketed
from verifiers.math.reading.errors import UnreadableError
from verifiers.math.reading.expressions import Expressions
from verifiers.math.reading.tokens import Token
from verifiers.math.tree import Apply, Bracketed, ListOf, Negate, Node, Number, SetOf, Symbol

_CLOSING = {"(": (")", "]"), "[": ("]", ")")}


def _inside_group(parser: Expressions) -> Node:
    """Parse the content of brackets, to which the bars and rules of the surrounding text do not apply."""
    bars, mixed = parser.bars, parser.mixed
    parser.bars, parser.mixed = 0, True
    inside = parser.listing()
    parser.bars, parser.mixed = bars, mixed
    return inside


def bracket(parser: Expressions) -> Node:
    """Parse round or square brackets."""
    opening = parser.take().text
    if parser.at(*_CLOSING[opening]):
        raise UnreadableError("empty brackets")
    inside = _inside_group(parser)
    if opening == "[" and isinstance(inside, Symbol) and parser.at("]") and parser.ahead().text == "_":
        parser.take()
        return Symbol(f"[{inside.name}]{parser.subscript()}")  # the coordinates of a vector in a basis
    return bracketed(opening, inside, parser.expect(*_CLOSING[opening]))


def arguments_of_call(parser: Expressions) -> tuple[Node, ...]:
    """Parse the bracketed arguments of a call."""
    inside = bracket(parser)
    return inside.items if isinstance(inside, Bracketed) else (inside,)


def braces(parser: Expressions) -> Node:
    """Parse a group in TeX's braces."""
    parser.expect("{")
    if parser.accept("}"):
        raise UnreadableError("an empty group")
    inside = _inside_group(parser)
    if parser.accept("choose"):
        inside = Apply("binomial", (inside, parser.relation()))
    parser.expect("}")
    if isinstance(inside, Symbol) and parser.at("_"):
        return Symbol(inside.name + parser.subscript())
    return SetOf(inside.items) if isinstance(inside, ListOf) else inside


def argument(parser: Expressions) -> Node:
    """Parse an argument of a TeX command: a group in braces, one digit, or any other single token."""
    if parser.at("{"):
        return braces(parser)
    token = parser.token
    if token.kind == "number" and len(token.text) > 1:
        if not token.text.isdigit():
            raise UnreadableError("a decimal argument without braces")
        parser.tokens[parser.index] = Token("number", token.text[1:], False, Number(Fraction(int(token.text[1:]))))
        return Number(Fraction(int(token.text[0])))
    return parser.power_free_atom()


def script(parser: Expressions, *, signed: bool = False) -> Node:
    """Parse an exponent or index: a group in braces, or one token (with a sign in plain text)."""
    if signed and parser.at("-", "+"):
        negative = parser.take().text == "-"
        node = parser.power()
        return Negate(node) if negative else node
    if parser.at("{"):
        return braces(parser)
    mixed, parser.mixed = parser.mixed, False
    node = parser.power() if signed else parser.atom()
    parser.mixed = mixed
    return node
