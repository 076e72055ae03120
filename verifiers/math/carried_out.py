"""Finds operations in an answer that the question asks to carry out, and removes those that change nothing."""

from __future__ import annotations

import re
from fractions import Fraction

from verifiers.math.forms import is_literal
from verifiers.math.reading.read import ParsedAnswer
from verifiers.math.tree import (
    Add,
    Apply,
    Derivative,
    Divide,
    Integral,
    Limit,
    Multiply,
    Negate,
    Node,
    Number,
    Power,
    Series,
    rewrite,
    symbols,
    walk,
)

_ZERO, _ONE = Number(Fraction(0)), Number(Fraction(1))
_ALWAYS = frozenset(("mod", "gcd", "lcm", "binomial", "det"))
_OF_CONSTANTS = frozenset(("abs", "floor", "ceil", "max", "min", "conj"))
_DETERMINANT = re.compile(r"\\det(?![A-Za-z])|\{[vV]matrix\}|(?:\||\\lvert)\s*\\begin|(?<![A-Za-z])det\(")


def operations(node: Node, text: ParsedAnswer) -> frozenset[str]:
    """The operations in an expression that a question asks a person to carry out: derivatives, sums, remainders, ...

    Arithmetic, powers, roots, factorials and functions of constants, which are usual in answers, are not among them.
    """
    names = {name for subtree in walk(node) if (name := _operation(subtree)) is not None}
    determinant = _DETERMINANT.search(text.normal) is not None and not is_literal(node)
    return frozenset(names | {"determinant"} if determinant else names)


def _operation(node: Node) -> str | None:
    if isinstance(node, Derivative | Integral | Limit):
        return type(node).__name__.lower()
    if isinstance(node, Series):
        return node.kind
    if not isinstance(node, Apply):
        return None
    plain = all(isinstance(argument, Number) for argument in node.arguments)  # as in `\\ln|2|`
    of_constants = node.name in _OF_CONSTANTS and not symbols(node) and not (node.name == "abs" and plain)
    return node.name if node.name in _ALWAYS or of_constants else None


def without_neutral(node: Node) -> Node:
    """An expression without factors 1, terms 0, exponents 1, double signs, and brackets inside sums and products."""
    node = rewrite(node, lambda subtree: None if subtree is node else without_neutral(subtree))
    if isinstance(node, Add):
        terms = [term for part in node.terms for term in (part.terms if isinstance(part, Add) else (part,))]
        return _joined(Add, [term for term in terms if term not in (_ZERO, Negate(_ZERO))], _ZERO)
    if isinstance(node, Multiply):
        factors = [
            factor for part in node.factors for factor in (part.factors if isinstance(part, Multiply) else (part,))
        ]
        return _joined(Multiply, [factor for factor in factors if factor != _ONE], _ONE)
    if isinstance(node, Divide) and node.denominator == _ONE:
        return node.numerator
    if isinstance(node, Power) and node.exponent == _ONE:
        return node.base
    if isinstance(node, Negate) and isinstance(node.value, Negate):
        return node.value.value
    return node


def _joined(kind: type[Add] | type[Multiply], parts: list[Node], neutral: Node) -> Node:
    return kind(tuple(parts)) if len(parts) > 1 else parts[0] if parts else neutral
