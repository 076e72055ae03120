"""Approximations that tell integrals, infinite series, infinite products and limits from wrong values.

Computer algebra may take its whole deadline to compare one of these with a wrong number, and for many integrals it finds no
antiderivative. So each is approximated here, with a reach: a distance within which the value must lie.

* A definite integral is computed by two rules with different points, tanh-sinh and Gauss-Legendre. The difference of the two
  results is taken as their error, and the reach is a large multiple of this error.
* For a series, a product or a limit, three members of the sequence are computed, each much later in the sequence than the one
  before. If the second step is smaller than the first by the factor r, a sequence that continues in this way ends within a
  distance of step * r / (1 - r). The reach is `_MARGIN` times this distance, because r may still grow. A factor of 10 covers
  terms that fall as slowly as 1 / (n log(n)^2), whose sums are the slowest in print.

A value out of reach is rejected; no value is ever accepted here. A wrong rejection costs one correct answer, and requires a
smooth sequence that turns around after its 400th member. Steps (`floor`, `gcd`) in sequences are left to computer algebra.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from verifiers.math.tree import (
    Apply,
    Constant,
    Integral,
    Limit,
    Negate,
    Node,
    Number,
    Power,
    Series,
    Symbol,
    bound_name,
    rewrite,
    symbols,
    walk,
)
from verifiers.math.values.evaluation import PYTHON_ERRORS, Point, Value, context, evaluate
from verifiers.math.values.exact import (
    NotExactError,
    UndefinedError,
    allow_sequences,
    indexes_names,
    integer_value,
    substitute,
)

_DIGITS, _DIGITS_OF_LIMITS = 25, 200
_RESOLUTION = 1e-7  # relative to the size of the values, or to 1
_RULES = ("tanh-sinh", "gauss-legendre")
_DEGREE = 5  # degree of the finest rule, which has several hundred points
_MAX_ERROR = 1e-6  # maximum error of the first rule by its own estimate, relative to the integral
_MARGIN_OF_RULES = 100  # the reach, as a multiple of the difference of the rules
_TERMS = (100, 200, 400)
_IDLE_TERMS = 40  # at the working precision
_STEPS = (5, 10, 20)  # decimal places up to which a variable approaches its limit
_MARGIN = 10
_SLOWEST = 0.9  # the largest r of a sequence whose limit can be bounded
_OF_INTEGERS = frozenset(("factorial", "factorial2", "binomial"))
_STEP_FUNCTIONS = frozenset(("floor", "ceil", "gcd", "lcm", "mod", "max", "min", "sgn"))


@dataclass(slots=True)
class _Names:
    """Gives names their values: variables, indices, and placeholders of integrals and limits."""

    values: dict[str, Value] = field(default_factory=dict)

    def coordinate(self, context: Any, sample: int, name: str) -> Value:
        if name not in self.values:
            raise NotExactError(f"the value of {name} is not known")
        return self.values[name]

    def point(self, digits: int = _DIGITS) -> Point:
        return Point(context(digits), 0, self)


def limits_differ(gold: Node, answer: Node) -> bool:
    """Whether two expressions clearly differ at a point; one of them contains an integral, a series or a limit.

    The first point has fractions as coordinates, at which power series converge. The second has small integers, at which
    expressions with integer parameters have values, too.
    """
    if not any(map(_is_limit, (*walk(gold), *walk(answer)))):
        return False
    names = sorted(symbols(gold) | symbols(answer))
    gold, answer = (_with_own_names(node, names) for node in (gold, answer))
    allow_sequences()
    whole = _whole_names(gold) | _whole_names(answer)
    points = [{name: Fraction(value) for value, name in enumerate(names, start=2)}]
    if not whole.issuperset(names):
        fractions = {name: 1 / (value + 1) for name, value in points[0].items() if name not in whole}
        points.insert(0, {**points[0], **fractions})
    return any(_differ_at({name: Number(value) for name, value in point.items()}, gold, answer) for point in points)


def _differ_at(point: Mapping[str, Node], gold: Node, answer: Node) -> bool:
    try:
        (ours, our_reach), (theirs, their_reach) = (_value(_placed(node, point)) for node in (gold, answer))
    except (NotExactError, UndefinedError, *PYTHON_ERRORS):
        return False
    slack = _RESOLUTION * max(1, abs(ours), abs(theirs))
    return bool(abs(ours - theirs) > our_reach + their_reach + slack)


def _placed(node: Node, point: Mapping[str, Node]) -> Node:
    return rewrite(node, lambda leaf: point.get(leaf.name) if isinstance(leaf, Symbol) else None)


def _with_own_names(node: Node, free: Collection[str | None]) -> Node:
    """An expression whose bound variables are renamed, so that no name is also that of a free variable."""

    def renamed(term: Node) -> Node | None:
        name = bound_name(term)
        if name not in free or not isinstance(term, Series | Integral | Limit):
            return None
        field = "index" if isinstance(term, Series) else "variable"
        body = substitute(_with_own_names(term.body, free), str(name), Symbol(f"bound {name}"))
        own: dict[str, Any] = {field: f"bound {name}", "body": body}
        return dataclasses.replace(term, **own)

    return rewrite(node, renamed)


def _whole_names(node: Node) -> frozenset[str]:
    """The names that may denote only integers: names in exponents, in bounds of sums, and in functions of integers."""
    places: list[Node] = []
    for term in walk(node):
        if isinstance(term, Power):
            places.append(term.exponent)
        elif isinstance(term, Series):
            places += [term.lower, term.upper]
        elif isinstance(term, Apply) and (term.name in _OF_INTEGERS or term.name in _STEP_FUNCTIONS):
            places.append(term)
    return frozenset().union(*map(symbols, places))


def _is_limit(node: Node) -> bool:
    return isinstance(node, Integral | Limit) or (isinstance(node, Series) and node.upper == Constant("inf"))


def _value(node: Node) -> tuple[Value, Value]:
    """The value of an expression, and its maximum error.

    Raises:
        NotExactError: If a part does not converge, or `evaluate` raises it.
        UndefinedError: As for `evaluate`.
    """
    known, reaches = _Names(), _Names()

    def approximated(term: Node) -> Node | None:
        if not _is_limit(term):
            return None
        name = f"limit {len(reaches.values)}"
        known.values[name], reaches.values[name] = _integral(term) if isinstance(term, Integral) else _settled(term)
        return Symbol(name)

    inside = rewrite(node, approximated)
    point = known.point()
    value, reach = evaluate(inside, point), 0
    for name, distance in reaches.values.items():
        centre, ends = known.values[name], []
        for end in (centre - distance, centre + distance):
            known.values[name] = end
            ends.append(abs(evaluate(inside, point) - value))
        known.values[name] = centre
        reach += max(ends)
    return value, reach


def _integral(node: Integral) -> tuple[Value, Value]:
    if node.lower is None or node.upper is None:
        raise NotExactError("an indefinite integral")
    known = _Names()
    point = known.point()

    def integrand(value: Value) -> Value:
        known.values[node.variable] = value
        return evaluate(node.body, point)

    ends = [_bound(end, point) for end in (node.lower, node.upper)]
    (value, error), (other, _) = (
        point.context.quad(integrand, ends, method=rule, maxdegree=_DEGREE, error=True) for rule in _RULES
    )
    if not point.context.isfinite(value) or error > _MAX_ERROR * max(1, abs(value)):
        raise NotExactError("a quadrature that does not converge")
    return value, _MARGIN_OF_RULES * abs(value - other)


def _bound(node: Node, point: Point) -> Value:
    if isinstance(node, Negate):
        return -_bound(node.value, point)
    return point.context.inf if node == Constant("inf") else evaluate(node, point)


def _settled(node: Node) -> tuple[Value, Value]:
    """The last computed member of a sequence, and how far the limit can be from this member.

    Raises:
        NotExactError: If the differences do not become smaller, or the sequence contains step functions.
    """
    if any(isinstance(subtree, Apply) and subtree.name in _STEP_FUNCTIONS for subtree in walk(node)):
        raise NotExactError("a sequence with jumps")
    first, second, third = _partial(node) if isinstance(node, Series) else _approached(node)
    before, step = abs(second - first), abs(third - second)
    if step > _SLOWEST * before:
        raise NotExactError("a sequence that does not converge numerically")
    return third, _MARGIN * step * step / (before - step) if step else step


def _partial(node: Series) -> list[Value]:
    """Sums or products of the first terms; the computation ends early if many successive terms change nothing."""
    if indexes_names(node):
        raise NotExactError("coefficients that are not known")
    known = _Names()
    point = known.point()
    body = substitute(node.body, node.index, Symbol("the index"))
    first = integer_value(node.lower)
    total = point.context.mpf(node.kind == "product")
    members: list[Value] = []
    idle = 0
    for count in range(_TERMS[-1]):
        known.values["the index"] = point.context.mpf(first + count)
        term = evaluate(body, point)
        before, total = total, total + term if node.kind == "sum" else total * term
        idle = idle + 1 if total == before else 0
        if idle == _IDLE_TERMS:
            return [*members, *[total] * (len(_TERMS) - len(members))]
        if count + 1 in _TERMS:
            members.append(total)
    return members


def _approached(node: Node) -> list[Value]:
    """Values at positions ever closer to the point of a limit; from the right if no side is given."""
    assert isinstance(node, Limit)
    known = _Names()
    point = known.point(_DIGITS_OF_LIMITS)
    end = _bound(node.point, point)
    values: list[Value] = []
    for step in _STEPS:
        distance = point.context.mpf(10) ** -step
        if point.context.isinf(end):
            known.values[node.variable] = point.context.sign(end) / distance
        else:
            known.values[node.variable] = end - distance if node.side == "-" else end + distance
        values.append(evaluate(node.body, point))
    return values
