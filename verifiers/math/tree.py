"""The typed tree that answers are read into: numbers, expressions, relations, containers and words.

Every node is frozen and hashable, and holds only plain data. Two trees are equal exactly if the answers were written in the
same way, up to typography. `verifiers.math.compare.comparer` decides whether they mean the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from verifiers.math.units import Unit


@dataclass(frozen=True, slots=True)
class Node:
    """Base class of all nodes."""


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A non-negative rational literal: an integer, a decimal, a repeating decimal, or scientific notation."""

    value: Fraction
    decimals: int | None = None
    """Digits after the point, for a literal written as a terminating decimal; None for any other literal."""
    significant: int = 0
    """Significant digits of a terminating decimal."""


@dataclass(frozen=True, slots=True)
class Mixed(Node):
    """A mixed number such as two and a third; its parts are non-negative."""

    whole: int
    numerator: int
    denominator: int

    @property
    def value(self) -> Fraction:
        """The value of the mixed number."""
        return self.whole + Fraction(self.numerator, self.denominator)


@dataclass(frozen=True, slots=True)
class BasedNumber(Node):
    """A numeral with a base annotation."""

    digits: str
    base: int


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """A constant: `pi`, `e`, `i` or `inf`."""

    name: str


@dataclass(frozen=True, slots=True)
class Symbol(Node):
    """A free symbol, with its subscript and primes in the name."""

    name: str


DOTS = Symbol("...")
"""An ellipsis that stands for further terms, factors or items."""


@dataclass(frozen=True, slots=True)
class Negate(Node):
    """Unary minus."""

    value: Node


@dataclass(frozen=True, slots=True)
class Add(Node):
    """A sum; subtraction adds a `Negate`."""

    terms: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Multiply(Node):
    """A product, written with a sign or by juxtaposition."""

    factors: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Divide(Node):
    """A fraction or a quotient."""

    numerator: Node
    denominator: Node


@dataclass(frozen=True, slots=True)
class Power(Node):
    """A power."""

    base: Node
    exponent: Node


@dataclass(frozen=True, slots=True)
class Apply(Node):
    """A known function (`sin`, `root`, `binomial`, `factorial`, ...) applied to arguments."""

    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Unknown(Node):
    """A function without a known meaning, such as `f`, applied to arguments."""

    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Series(Node):
    """A finite or infinite `sum` or `product` over an index."""

    kind: str
    index: str
    lower: Node
    upper: Node
    body: Node


@dataclass(frozen=True, slots=True)
class Integral(Node):
    """An integral over one variable; indefinite without its bounds."""

    body: Node
    variable: str
    lower: Node | None = None
    upper: Node | None = None


@dataclass(frozen=True, slots=True)
class Limit(Node):
    """A limit. The side of the approach is `"+"`, `"-"` or, for both sides, empty."""

    body: Node
    variable: str
    point: Node
    side: str = ""


@dataclass(frozen=True, slots=True)
class Derivative(Node):
    """A derivative of some order with respect to one variable."""

    body: Node
    variable: str
    order: int = 1


@dataclass(frozen=True, slots=True)
class PlusMinus(Node):
    """A double sign: `+1` for plus-minus, `-1` for minus-plus."""

    value: Node
    sign: int


@dataclass(frozen=True, slots=True)
class Percent(Node):
    """A percentage."""

    value: Node


@dataclass(frozen=True, slots=True)
class Degrees(Node):
    """An angle in degrees."""

    value: Node


@dataclass(frozen=True, slots=True)
class Quantity(Node):
    """A value with a unit, a currency or a counted noun."""

    value: Node
    unit: Unit


@dataclass(frozen=True, slots=True)
class Ratio(Node):
    """Parts separated by colons."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Clock(Node):
    """A time of day."""

    hour: int
    minute: int
    half: str
    """`"am"` or `"pm"`; empty if the answer has neither."""


@dataclass(frozen=True, slots=True)
class Bracketed(Node):
    """Items between round or square brackets, or angle brackets: a tuple, a vector or an interval."""

    opening: str
    items: tuple[Node, ...]
    closing: str


@dataclass(frozen=True, slots=True)
class SetOf(Node):
    """A set in braces."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ListOf(Node):
    """Items separated by commas or words, with no brackets around them."""

    items: tuple[Node, ...]
    joiner: str = ","
    """The word or sign between the items: `","`, `"and"` or `"or"`."""


@dataclass(frozen=True, slots=True)
class NamedSet(Node):
    """A set of numbers or the empty set: `empty`, `R`, `Z`, `N`, `Q` or `C`, possibly with a relation to zero, as in `Z>0`."""

    name: str


@dataclass(frozen=True, slots=True)
class SetOperation(Node):
    """The `union`, `intersection` or `difference` of sets."""

    kind: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class SetSeries(Node):
    """A `union` or `intersection` over an index."""

    kind: str
    index: str
    lower: Node
    upper: Node
    body: Node


@dataclass(frozen=True, slots=True)
class Matrix(Node):
    """A matrix."""

    rows: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, slots=True)
class Relation(Node):
    """A chain of operands joined by `=`, `<`, `<=`, `>`, `>=`, `!=`, `~`, `in` or `mod`."""

    operators: tuple[str, ...]
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice(Node):
    """A multiple-choice letter, with the content written after it."""

    letter: str
    content: Node | None = None


@dataclass(frozen=True, slots=True)
class Words(Node):
    """Folded prose, without case, articles or punctuation."""

    text: str


@dataclass(frozen=True, slots=True)
class Sentence(Node):
    """A sequence of words and formulas, in written order."""

    parts: tuple[Node, ...]


def children(node: Node) -> Iterator[Node]:
    """The nodes directly under a node, in written order."""
    for name in node.__dataclass_fields__:
        value = getattr(node, name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from _nodes_of(value)


def _nodes_of(value: tuple[object, ...]) -> Iterator[Node]:
    for item in value:
        if isinstance(item, Node):
            yield item
        elif isinstance(item, tuple):
            yield from _nodes_of(item)


def rewrite(node: Node, function: Callable[[Node], Node | None]) -> Node:
    """A copy of a tree, in which the function's result replaces each node, from the top down; None keeps the node."""
    replaced = function(node)
    if replaced is not None:
        return replaced
    values = [_rewritten(getattr(node, name), function) for name in node.__dataclass_fields__]
    return type(node)(*values)


def _rewritten(value: object, function: Callable[[Node], Node | None]) -> object:
    if isinstance(value, Node):
        return rewrite(value, function)
    return tuple(_rewritten(item, function) for item in value) if isinstance(value, tuple) else value


def walk(node: Node) -> Iterator[Node]:
    """A node and every node under it."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(children(current))


def symbols(node: Node) -> frozenset[str]:
    """The names of the free symbols."""
    if isinstance(node, Symbol):
        return frozenset((node.name,))
    names: frozenset[str] = frozenset()
    for child in children(node):
        names |= symbols(child)
    bound = bound_name(node)
    return names if bound is None else names - {bound}


def bound_name(node: Node) -> str | None:
    """The name that a sum, a product, a definite integral or a limit binds."""
    if isinstance(node, Series | SetSeries):
        return node.index
    if isinstance(node, Limit) or (isinstance(node, Integral) and node.lower is not None):
        return node.variable
    return None
