"""Parses fractions, derivatives, integrals, limits, and sums and products over an index."""

from __future__ import annotations

import re
from fractions import Fraction

from verifiers.math.reading.assemble import set_of_numbers
from verifiers.math.reading.brackets import argument, script
from verifiers.math.reading.cursor import CLOSING_BRACKETS, OPENING_BRACKETS
from verifiers.math.reading.errors import UnreadableError
from verifiers.math.reading.expressions import Expressions
from verifiers.math.reading.tokens import Token
from verifiers.math.tree import (
    Constant,
    Derivative,
    Divide,
    Integral,
    Limit,
    NamedSet,
    Negate,
    Node,
    Number,
    Series,
    SetSeries,
)
from verifiers.math.vocabulary import GREEK

_INFINITY = Constant("inf")
_ORDER = r"(?:\^ (?:\{ )?([1-9]) (?:\} )?)?"
_DERIVATIVE = re.compile(rf"frac \{{ (d|partial) {_ORDER}\}} \{{ (d|partial) ([A-Za-z]+) {_ORDER}\}}(?= [^=\s])")


def fraction(parser: Expressions) -> Node:
    """Parse a fraction, or a derivative written as one."""
    if (derivative := _derivative(parser)) is not None:
        return derivative
    parser.take()
    numerator = argument(parser)
    return Divide(numerator, argument(parser))


def _derivative(parser: Expressions) -> Node | None:
    r"""Parse `\frac{d}{dx}` and the expression that it applies to; None for any other fraction."""
    match = _DERIVATIVE.match(" ".join(token.text for token in parser.tokens[parser.index : parser.index + 14]))
    if match is None or match[1] != match[3] or (match[2] or "1") != (match[5] or "1"):
        return None
    parser.index += len(match[0].split())
    return Derivative(parser.product(), match[4], int(match[2] or 1))


def integral(parser: Expressions) -> Node:
    r"""Parse an integral with its differential after the integrand: `\int_0^1 x^2\,dx`."""
    parser.take()
    bounds: dict[str, Node] = {}
    while parser.at("_", "^"):
        sign = parser.take().text
        bounds[sign] = script(parser, signed=sign == "^")
    end = _differential(parser)
    body = parser.tokens[parser.index : end]
    variable = parser.tokens[end + 1].text
    parser.index = end + 2
    integrand = parser.separate(body) if body else Number(Fraction(1))
    if len(bounds) == 1:
        raise UnreadableError("an integral with one bound")
    return Integral(integrand, variable, bounds.get("_"), bounds.get("^"))


def _differential(parser: Expressions) -> int:
    """The index of the differential of the integral whose integrand starts here.

    Raises:
        UnreadableError: If there is no differential outside of brackets.
    """
    depth, open_integrals = 0, 1
    for position in range(parser.index, len(parser.tokens) - 1):
        token, after = parser.tokens[position], parser.tokens[position + 1]
        depth += (token.text in OPENING_BRACKETS) - (token.text in CLOSING_BRACKETS)
        open_integrals += token.kind == "command" and token.text == "int"
        if (
            depth == 0
            and token == Token("symbol", "d", token.spaced)
            and (after.kind == "symbol" or after.text in GREEK)
        ):
            open_integrals -= 1
        if depth < 0 or not open_integrals:
            break
    if depth or open_integrals:
        raise UnreadableError("an integral without a differential")
    return position


def limit(parser: Expressions) -> Node:
    """Parse a limit with its point, and possibly a side, in the subscript."""
    parser.take()
    parser.expect("_")
    parser.expect("{")
    variable = parser.take()
    parser.expect("to", "->")
    end = parser.index_of("}")
    while end < len(parser.tokens) - 1 and parser.tokens[end].text == "}" and parser.tokens[end + 1].text == "}":
        end += 1
    point = parser.tokens[parser.index : end]
    parser.index = end
    parser.expect("}")
    if variable.kind != "symbol" and variable.text not in GREEK:
        raise UnreadableError("a limit whose variable is not a letter")
    signs = [token.text for token in point if token.text not in ("{", "}")]
    side = signs[-1] if signs[-2:-1] == ["^"] and signs[-1] in ("+", "-") else ""
    if side:
        point = point[: max(position for position, token in enumerate(point) if token.text == "^")]
    return Limit(parser.product(), variable.text, parser.separate(point), side)


def series(parser: Expressions) -> Node:
    """Parse a sum or a product over an index."""
    kind = {"sum": "sum", "prod": "product"}[parser.take().text]
    index, lower, upper = _range(parser, kind)
    return Series(kind, index, lower, upper, parser.product())


def set_series(parser: Expressions) -> Node:
    """Parse a union or an intersection over an index."""
    kind = {"bigcup": "union", "bigcap": "intersection"}[parser.take().text]
    index, lower, upper = _range(parser, kind)
    return SetSeries(kind, index, lower, upper, parser.product())


def _range(parser: Expressions, kind: str) -> tuple[str, Node, Node]:
    """Parse an index with its first and its last value."""
    lower = upper = None
    while parser.at("_", "^"):
        if parser.take().text == "_":
            lower = _first_index(parser)
        else:
            upper = script(parser, signed=True)
    if lower is not None and lower[1] == Negate(_INFINITY) and upper is None:
        upper = _INFINITY
    if lower is None or upper is None:
        raise UnreadableError(f"a {kind} without its range")
    return *lower, upper


def _first_index(parser: Expressions) -> tuple[str, Node]:
    """Parse the index below a sum and its first value, which is minus infinity if the index runs over all integers."""
    parser.expect("{")
    name = parser.take()
    start: Node = Negate(_INFINITY)
    if parser.accept("in"):
        if set_of_numbers(parser.power()) != NamedSet("Z"):
            raise UnreadableError("an index from a set other than the integers")
    else:
        parser.expect("=")
        start = parser.sum()
    parser.expect("}")
    if name.kind != "symbol":
        raise UnreadableError("an index that is not a letter")
    return name.text, start
