"""Sums, products, powers, and the arguments of TeX."""

from __future__ import annotations

from fractions import Fraction

from verifiers.math.assemble import difference_of_sets, times
from verifiers.math.grammar.cursor import MAX_DEPTH, Cursor
from verifiers.math.tokens import Token, UnreadableError
from verifiers.math.tree import (
    Add,
    Apply,
    Bracketed,
    Degrees,
    Divide,
    Matrix,
    Multiply,
    Negate,
    Node,
    Number,
    Percent,
    PlusMinus,
    Power,
    Quantity,
    Symbol,
    Words,
)
from verifiers.math.units import UNITS
from verifiers.math.vectors import ordered_product
from verifiers.math.vocabulary import FACTOR_STARTS


class Arithmetic(Cursor):
    """Sums, products, powers, and the arguments of TeX."""

    def sum(self) -> Node:
        """Terms with signs between them; two terms may be a difference of sets."""
        terms = [self.signed_term()]
        while self.at("+", "-", "pm", "mp"):
            terms.append(self.signed_term())
        node = difference_of_sets(terms) or (Add(tuple(terms)) if len(terms) > 1 else terms[0])
        return Divide(node, self.sum()) if self.accept("over") else node

    def signed_term(self) -> Node:
        """A product with its signs, of which a plus-minus stands for both."""
        sign, both = 1, 0
        while self.at("+", "-", "pm", "mp"):
            text = self.take().text
            sign = -sign if text == "-" else sign
            both = {"pm": 1, "mp": -1}.get(text, both)
        if self.at("/") and self.tokens[self.index - 1].text == "+":  # "+/-" in plain text
            self.take()
            self.expect("-")
            both = 1
        term = self.product()
        if both:
            return PlusMinus(term, both * sign)
        return Negate(term) if sign < 0 else term

    def product(self) -> Node:
        """Factors with a sign of multiplication or division between them, or side by side."""
        node = self.power()
        while self.token.kind != "end":
            if self.accept("*", "cdot", "times"):
                crossed = self.tokens[self.index - 1].text == "times"
                factor = self.signed_factor()
                product = (
                    ordered_product(node, factor, self.vectors, crossed=True) if crossed and self.vectors else None
                )
                node = product or times(node, factor)
            elif self.at("/", "div") and self.ahead().kind != "word":
                self.take()
                node = Divide(node, self.signed_factor())
            elif not self.congruent and self.accept("bmod"):
                node = Apply("mod", (node, self.signed_factor()))
            elif self.starts_factor():
                factor = self.power()
                product = ordered_product(node, factor, self.vectors, crossed=False) if self.vectors else None
                node = product or times(node, factor)
            else:
                break
        return node

    def signed_factor(self) -> Node:
        """A factor that may have signs in front."""
        negative = False
        while self.at("-", "+"):
            negative ^= self.take().text == "-"
        node = self.power()
        return Negate(node) if negative else node

    def starts_factor(self) -> bool:
        """Whether a factor starts here that stands beside the one before."""
        token = self.token
        if token.kind == "symbol":
            return not self.is_letter_union()
        if token.kind == "number":
            before = self.tokens[self.index - 1]
            return before.kind != "number" or (token.spaced and self.tokens[self.index - 2].text in ("^", "sqrt"))
        if token.kind == "command":
            return token.text in FACTOR_STARTS
        if token.text in ("{", "(") and (self.ahead().kind == "word" or self.ahead().text == "approx"):
            return False  # a unit in braces, a remark in brackets
        return token.kind == "sign" and (token.text in ("(", "[", "{") or (token.text == "|" and not self.bars))

    def power(self) -> Node:
        """An atom with what is written on its right: exponents, factorials, percent signs, degrees."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableError(f"nested more than {MAX_DEPTH} deep")
        node = self.atom()
        while (after := self.postfix(node)) is not None:
            node = after
        self.depth -= 1
        return node

    def postfix(self, node: Node) -> Node | None:
        """What one sign on the right makes of an expression; None where there is none."""
        if self.token.kind == "end":
            return None
        if self.accept("!"):
            return Apply("factorial2" if self.accept("!") else "factorial", (node,))
        if self.accept("%", "\\%"):
            return Percent(node)
        if self.accept("^", "**"):
            return self.raised(node)
        if self.at("circ") and self.ahead().kind in ("end", "sign"):
            self.take()
            return self.temperature(Degrees(node))
        if self.at("_") and isinstance(node, Bracketed | Words | Number | Multiply):
            raise UnreadableError("a subscript on something that has none")
        return None

    def raised(self, node: Node) -> Node:
        """An expression with what stands raised behind it: degrees, a transpose, an exponent."""
        if self.accept("circ"):
            return self.temperature(Degrees(node))
        exponent = self.script(signed=True)
        transposed = exponent in (Symbol("T"), Symbol("top"), Symbol("intercal"))
        if isinstance(node, Bracketed) and transposed:
            return Matrix(tuple((item,) for item in node.items))
        if isinstance(node, Matrix) and transposed:
            return Matrix(tuple(zip(*node.rows, strict=True)), node.kind)
        return Power(node, exponent)

    def temperature(self, node: Degrees) -> Node:
        """Degrees, or a temperature where the name of a scale follows."""
        scale = self.token.text
        if self.token.kind in ("word", "symbol") and scale.lower() in ("c", "f", "celsius", "fahrenheit"):
            self.take()
            return Quantity(node.value, UNITS["celsius" if scale.lower().startswith("c") else "fahrenheit"])
        return node

    def script(self, *, signed: bool = False) -> Node:
        """An exponent or index: a group in braces, or one token (with a sign in plain text)."""
        if signed and self.at("-", "+"):
            negative = self.take().text == "-"
            node = self.power()
            return Negate(node) if negative else node
        if self.at("{"):
            return self.braces()
        mixed, self.mixed = self.mixed, False
        node = self.power() if signed else self.atom()
        self.mixed = mixed
        return node

    def power_free_atom(self) -> Node:
        """An atom that takes no exponent, one level deeper."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableError(f"nested more than {MAX_DEPTH} deep")
        node = self.atom()
        self.depth -= 1
        return node

    def argument(self) -> Node:
        """An argument of a TeX command: a group in braces, one digit, or one other token."""
        if self.at("{"):
            return self.braces()
        token = self.token
        if token.kind == "number" and len(token.text) > 1:
            if not token.text.isdigit():
                raise UnreadableError("a decimal as an argument without braces")
            self.tokens[self.index] = Token("number", token.text[1:], False, Number(Fraction(int(token.text[1:]))))
            return Number(Fraction(int(token.text[0])))
        return self.power_free_atom()
