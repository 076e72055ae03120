"""Infinite series, infinite products and limits told apart from a value by where their sequences go.

Computer algebra may take its whole deadline over a series that a wrong number is compared with. Three members of the sequence
whose limit it is, each much further on than the one before, say how far the limit can be: if the second step is smaller than
the first by the factor r, a sequence that goes on like this ends within step * r / (1 - r). `_MARGIN` times that is allowed,
because r may still grow: 10 times covers terms as slow as 1 / (n log(n)^2), whose sums are the slowest in print.

A value outside of that is refused; nothing is ever accepted. So a mistake costs one right answer, and needs a smooth sequence
that turns round behind its 400th member. Steps (`floor`, `gcd`) are left to computer algebra.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from verifiers.math.exact import NotExactError, UndefinedError, integer_value, substitute
from verifiers.math.numeric import Point, Value, context, evaluate
from verifiers.math.tree import Apply, Constant, Limit, Negate, Node, Series, Symbol, rewrite, symbols, walk

_TERMS = (100, 200, 400)
_STEPS = (5, 10, 20)  # decimal places to which a variable comes near its limit
_DIGITS, _DIGITS_OF_LIMITS = 25, 200
_MARGIN = 10
_SLOWEST = 0.9  # the largest r of a sequence whose limit can be told
_RESOLUTION = 1e-7  # beside the size of the values, or beside 1
_STEP_FUNCTIONS = frozenset(("floor", "ceil", "gcd", "lcm", "mod", "max", "min", "sgn"))
_INDEX, _LIMIT = "the index", "the limit"


@dataclass(slots=True)
class _Names:
    """Values of names."""

    values: dict[str, Value] = field(default_factory=dict)

    def coordinate(self, context: Any, sample: int, name: str) -> Value:
        if name not in self.values:
            raise NotExactError(f"the value of {name} is not known")
        return self.values[name]


def sequences_differ(gold: Node, answer: Node) -> bool:
    """Whether two constants, of which one holds a series or a limit, have plainly different values."""
    parts = [*walk(gold), *walk(answer)]
    if symbols(gold) or symbols(answer) or not any(map(_is_limit, parts)):
        return False
    if any(isinstance(part, Apply) and part.name in _STEP_FUNCTIONS for part in parts):
        return False
    try:
        ours, theirs = _range(gold), _range(answer)
    except (NotExactError, UndefinedError, ZeroDivisionError, ValueError, OverflowError, TypeError, AttributeError):
        return False  # mpmath raises all of these where there is no value
    slack = _RESOLUTION * max(1, *map(abs, ours), *map(abs, theirs))
    return bool(max(ours) + slack < min(theirs) or max(theirs) + slack < min(ours))


def _is_limit(node: Node) -> bool:
    return isinstance(node, Limit) or (isinstance(node, Series) and node.upper == Constant("inf"))


def _range(node: Node) -> tuple[Value, Value]:
    """Between which values an expression lies.

    Raises:
        NotExactError: If it holds several limits, is not real, or its sequence does not settle.
        UndefinedError: As for `evaluate`.
    """
    limits = {part for part in walk(node) if _is_limit(part)}
    if len(limits) > 1:
        raise NotExactError("more than one limit")
    known = _Names()
    point = Point(context(_DIGITS), 0, known)
    inside = rewrite(node, lambda part: Symbol(_LIMIT) if part in limits else None)
    ends = []
    reached = _settled(_members(limits.pop())) if limits else (0, 0)
    point.context.dps = _DIGITS
    for limit in reached:
        known.values[_LIMIT] = limit
        ends.append(evaluate(inside, point))
    if any(end.imag != 0 for end in ends):
        raise NotExactError("a complex value")
    return ends[0].real, ends[1].real


def _settled(members: Sequence[Value]) -> tuple[Value, Value]:
    """Between which values the limit lies of a sequence with these members.

    Raises:
        NotExactError: If their steps do not become smaller.
    """
    first, second, third = members
    before, step = abs(second - first), abs(third - second)
    if step > _SLOWEST * before:
        raise NotExactError("a sequence that does not settle")
    reach = _MARGIN * step * step / (before - step) if step else step
    return third - reach, third + reach


def _members(node: Node) -> list[Value]:
    return _partial(node) if isinstance(node, Series) else _approached(node)


def _is_infinite(node: Node) -> bool:
    return node == Constant("inf") or (isinstance(node, Negate) and _is_infinite(node.value))


def _partial(node: Series) -> list[Value]:
    """Sums or products of the first terms."""
    known = _Names()
    point = Point(context(_DIGITS), 0, known)
    body = substitute(node.body, node.index, Symbol(_INDEX))
    first = integer_value(node.lower)
    total = point.context.mpf(node.kind == "product")
    members = []
    for count in range(_TERMS[-1]):
        known.values[_INDEX] = point.context.mpf(first + count)
        term = evaluate(body, point)
        total = total + term if node.kind == "sum" else total * term
        if count + 1 in _TERMS:
            members.append(total)
    return members


def _approached(node: Node) -> list[Value]:
    """Values ever nearer to the point of a limit; from the right, where it has no side: a limit is the same from both."""
    assert isinstance(node, Limit)
    known = _Names()
    point = Point(context(_DIGITS_OF_LIMITS), 0, known)
    values: list[Value] = []
    for step in _STEPS:
        distance = point.context.mpf(10) ** -step
        if _is_infinite(node.point):
            known.values[node.variable] = (-1 if isinstance(node.point, Negate) else 1) / distance
        else:
            place = evaluate(node.point, point)
            known.values[node.variable] = place - distance if node.side == "-" else place + distance
        values.append(evaluate(node.body, point))
    return values
