"""Fractions, derivatives, integrals, limits, sums and products over an index."""

from __future__ import annotations

import re
from fractions import Fraction

from verifiers.math.grammar.cursor import CLOSING_BRACKETS, OPENING_BRACKETS
from verifiers.math.grammar.functions import Functions
from verifiers.math.tokens import Token, UnreadableError
from verifiers.math.tree import Derivative, Divide, Integral, Limit, Node, Number, Series
from verifiers.math.vocabulary import GREEK

_ORDER = r"(?:\^ (?:\{ )?([1-9]) (?:\} )?)?"
_DERIVATIVE = re.compile(rf"frac \{{ (d|partial) {_ORDER}\}} \{{ (d|partial) ([A-Za-z]+) {_ORDER}\}}(?= [^=\s])")


class Calculus(Functions):
    """Fractions, derivatives, integrals, limits, sums and products over an index."""

    def fraction(self) -> Node:
        """A fraction, or the derivative that is written as one."""
        if (derivative := self.derivative()) is not None:
            return derivative
        self.take()
        numerator = self.argument()
        return Divide(numerator, self.argument())

    def derivative(self) -> Node | None:
        r"""The derivative that `\frac{d}{dx}` takes of what follows; None if the fraction here is another."""
        found = _DERIVATIVE.match(" ".join(token.text for token in self.tokens[self.index : self.index + 14]))
        if found is None or found[1] != found[3] or (found[2] or "1") != (found[5] or "1"):
            return None
        self.index += len(found[0].split())
        return Derivative(self.product(), found[4], int(found[2] or 1))

    def integral(self) -> Node:
        r"""An integral with its differential behind the integrand: `\int_0^1 x^2\,dx`."""
        self.take()
        bounds: dict[str, Node] = {}
        while self.at("_", "^"):
            sign = self.take().text
            bounds[sign] = self.script(signed=sign == "^")
        place = self.differential()
        body = self.tokens[self.index : place]
        variable = self.tokens[place + 1].text
        self.index = place + 2
        integrand = self.separate(body) if body else Number(Fraction(1))
        if len(bounds) == 1:
            raise UnreadableError("an integral with one bound")
        return Integral(integrand, variable, bounds.get("_"), bounds.get("^"))

    def differential(self) -> int:
        """Where the differential of the integral stands whose integrand starts here.

        Raises:
            UnreadableError: If there is none outside of brackets.
        """
        depth, open_integrals = 0, 1
        for place in range(self.index, len(self.tokens) - 1):
            token, after = self.tokens[place], self.tokens[place + 1]
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
        return place

    def separate(self, tokens: list[Token]) -> Node:
        """Read tokens by themselves, as deep as this parser already is."""
        parser = type(self)([*tokens, Token("end", "")])
        parser.depth = self.depth
        node = parser.sum()
        if parser.token.kind != "end":
            raise UnreadableError(f"{parser.token.text!r} where an expression should end")
        return node

    def limit(self) -> Node:
        """A limit with its point, and perhaps a side, below."""
        self.take()
        self.expect("_")
        self.expect("{")
        variable = self.take()
        self.expect("to", "rightarrow", "->")
        end = next(
            (place for place in range(self.index, len(self.tokens)) if self.tokens[place].text == "}"), self.index
        )
        while end < len(self.tokens) - 1 and self.tokens[end].text == "}" and self.tokens[end + 1].text == "}":
            end += 1
        point = self.tokens[self.index : end]
        self.index = end
        self.expect("}")
        if variable.kind != "symbol" and variable.text not in GREEK:
            raise UnreadableError("a limit of something that is no variable")
        signs = [token.text for token in point if token.text not in ("{", "}")]
        side = signs[-1] if signs[-2:-1] == ["^"] and signs[-1] in ("+", "-") else ""
        if side:
            point = point[: max(place for place, token in enumerate(point) if token.text == "^")]
        return Limit(self.product(), variable.text, self.separate(point), side)

    def series(self) -> Node:
        """A sum or a product over an index."""
        kind = {"sum": "sum", "prod": "product"}[self.take().text]
        lower = upper = None
        while self.at("_", "^"):
            if self.take().text == "_":
                lower = self.index_range()
            else:
                upper = self.script(signed=True)
        if lower is None or upper is None:
            raise UnreadableError(f"a {kind} without its range")
        index, start = lower
        return Series(kind, index, start, upper, self.product())

    def index_range(self) -> tuple[str, Node]:
        """The index below a sum and its first value."""
        self.expect("{")
        name = self.take()
        self.expect("=")
        start = self.sum()
        self.expect("}")
        if name.kind != "symbol":
            raise UnreadableError("an index that is no letter")
        return name.text, start
