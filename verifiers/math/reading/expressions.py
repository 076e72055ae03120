"""The interface of the parser for readers of single constructs: methods that read inner expressions."""

from __future__ import annotations

from abc import ABC, abstractmethod

from verifiers.math.reading.cursor import Cursor
from verifiers.math.reading.tokens import Token
from verifiers.math.tree import Node


class Expressions(Cursor, ABC):
    """A position in the tokens, with methods that read expressions."""

    @abstractmethod
    def sum(self) -> Node:
        """Parse terms with signs between them; two terms may be a difference of sets."""

    @abstractmethod
    def product(self) -> Node:
        """Parse factors with a sign of multiplication or division between them, or side by side."""

    @abstractmethod
    def signed_factor(self) -> Node:
        """Parse a factor, possibly after signs."""

    @abstractmethod
    def starts_factor(self) -> bool:
        """Whether a factor starts here, juxtaposed with the previous factor."""

    @abstractmethod
    def power(self) -> Node:
        """Parse an atom with its postfixes: exponents, factorials, percent signs, degrees."""

    @abstractmethod
    def power_free_atom(self) -> Node:
        """Parse an atom without an exponent, nested one level deeper."""

    @abstractmethod
    def listing(self) -> Node:
        """Parse relations with commas or words between them."""

    @abstractmethod
    def relation(self) -> Node:
        """Parse operands with signs of relations between them."""

    @abstractmethod
    def set_expression(self) -> Node:
        """Parse values with set operations between them."""

    @abstractmethod
    def separate(self, tokens: list[Token]) -> Node:
        """Parse other tokens with a new parser that starts at this parser's depth."""

    @abstractmethod
    def atom(self) -> Node:
        """Parse the smallest expression that starts here."""
