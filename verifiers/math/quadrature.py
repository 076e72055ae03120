"""Definite integrals by numerical quadrature, to tell them apart: many have no antiderivative that computer algebra would find.

An integral is computed by two rules with different points, tanh-sinh and Gauss-Legendre. What they disagree by is taken for
their error. So a difference is proved by far more than that, and equality never.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from verifiers.math.exact import NotExactError, UndefinedError
from verifiers.math.numeric import Point, Value, context, evaluate
from verifiers.math.tree import Constant, Integral, Negate, Node, Symbol, rewrite, symbols, walk

_DIGITS = 20
_RULES = ("tanh-sinh", "gauss-legendre")
_DEGREE = 5  # of the finest rule: some hundreds of points
_MAX_ERROR = 1e-6  # of the first rule by its own estimate, beside the size of the integral
_RESOLUTION = 1e-7  # beside the size of the values, or beside 1
_MARGIN = 100  # times what the rules disagree by


def quadratures_differ(gold: Node, answer: Node) -> bool:
    """Whether two constants with definite integrals in them have plainly different values; False if that cannot be told."""
    if symbols(gold) or symbols(answer) or not any(isinstance(part, Integral) for part in (*walk(gold), *walk(answer))):
        return False
    try:
        ours, theirs = ([_value(node, rule) for rule in _RULES] for node in (gold, answer))
    except (NotExactError, UndefinedError):
        return False
    disagreement = abs(ours[0] - ours[1]) + abs(theirs[0] - theirs[1])
    size = max(1, abs(ours[0]), abs(theirs[0]))
    return bool(abs(ours[0] - theirs[0]) > _MARGIN * disagreement + _RESOLUTION * size)


@dataclass(slots=True)
class _Coordinates:
    """Values of names: variables of integration, and whole integrals."""

    values: dict[str, Value] = field(default_factory=dict)

    def coordinate(self, context: Any, sample: int, name: str) -> Value:
        if name not in self.values:
            raise NotExactError(f"the value of {name} is not known")
        return self.values[name]


def _value(node: Node, rule: str) -> Value:
    """The value of a constant, its integrals by one rule.

    Raises:
        NotExactError: If a rule does not converge, or as for `evaluate`.
        UndefinedError: If there is no value, or the integrand has none at a point of the rule.
    """
    known = _Coordinates()

    def compute(part: Node) -> Node | None:
        if not isinstance(part, Integral):
            return None
        name = f"integral {len(known.values)}"
        known.values[name] = _integral(part, rule)
        return Symbol(name)

    with _undefined_where_python_fails():
        return evaluate(rewrite(node, compute), Point(context(_DIGITS), 0, known))


def _integral(node: Integral, rule: str) -> Value:
    if node.lower is None or node.upper is None:
        raise NotExactError("an indefinite integral")
    mp = context(_DIGITS)
    inside = _Coordinates()
    point = Point(mp, 0, inside)

    def integrand(value: Value) -> Value:
        inside.values[node.variable] = value
        return evaluate(node.body, point)

    with _undefined_where_python_fails():
        ends = [_bound(end, point) for end in (node.lower, node.upper)]
        value, error = mp.quad(integrand, ends, method=rule, maxdegree=_DEGREE, error=True)
    if not mp.isfinite(value) or (rule == _RULES[0] and error > _MAX_ERROR * max(1, abs(value))):
        raise NotExactError("a quadrature that does not converge")
    return value


def _bound(node: Node, point: Point) -> Value:
    if isinstance(node, Negate):
        return -_bound(node.value, point)
    return point.context.inf if node == Constant("inf") else evaluate(node, point)


@contextmanager
def _undefined_where_python_fails() -> Iterator[None]:
    try:
        yield
    except (ZeroDivisionError, ValueError, OverflowError, TypeError, AttributeError) as error:
        raise UndefinedError(str(error)) from error
