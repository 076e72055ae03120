"""High-precision evaluation at several points: proof that two expressions differ, and strong evidence that they are equal.

Every value is computed at two precisions; their difference estimates its error, so that cancellation is noticed and never
taken for equality. All contexts belong to one thread. Arguments of exponentials, powers and trigonometric functions are
bounded in magnitude before they are evaluated.
"""

from __future__ import annotations

import math
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from verifiers.math.exact import (
    MAX_TERMS,
    NotExactError,
    TooLargeError,
    UndefinedError,
    based_value,
    rational_value,
    signed_number,
    spend,
    substitute,
)
from verifiers.math.tree import (
    Add,
    Apply,
    BasedNumber,
    Constant,
    Degrees,
    Divide,
    Mixed,
    Multiply,
    Negate,
    Node,
    Number,
    Percent,
    Power,
    Series,
    Symbol,
    Unknown,
    symbols,
    walk,
)

Value = Any
"""A real or complex number of mpmath, which carries no types."""

FILTER_DIGITS = (30, 50)
CONFIRM_DIGITS = (250, 300)
SAMPLES = 6
"""Points at which expressions with symbols are compared; the last `SIGNED_SAMPLES` of them also have negative coordinates."""
SIGNED_SAMPLES = 3
_MAX_MAGNITUDE = 300
"""Largest binary magnitude of the argument of a transcendental function."""


class _Contexts(threading.local):
    def __init__(self) -> None:
        from mpmath.ctx_mp import MPContext  # type: ignore[import-untyped]  # mpmath has no types

        self.context: Any = MPContext()


_contexts: _Contexts | None = None


def context(digits: int) -> Any:
    """This thread's mpmath context, set to a number of decimal digits."""
    global _contexts
    if _contexts is None:
        _contexts = _Contexts()
    _contexts.context.dps = digits
    return _contexts.context


@dataclass(slots=True)
class _Point:
    """Where an expression is evaluated, and what happened there."""

    context: Any
    sample: int
    integers: bool
    branched: bool = field(default=False)
    """Whether an even root or a logarithm of a negative number was taken, so that the value depends on a branch."""
    largest: Value = field(default=0)
    """The largest term of a sum in absolute value: digits below its last are lost to cancellation."""

    def coordinate(self, name: str) -> Value:
        noise = zlib.crc32(f"{self.sample}:{name}".encode())
        if self.integers:
            return self.context.mpf(3 + noise % 9)
        value = self.context.mpf(noise % 3_000_017) / 1_000_003 + self.context.mpf(1) / 4
        return -value if self.sample >= SAMPLES - SIGNED_SAMPLES and noise >> 20 & 1 else value


def evaluate(node: Node, point: _Point) -> Value:
    """The value of an expression at a point.

    Raises:
        NotExactError: If it holds something without a numeric meaning, or arguments past the bounds.
        UndefinedError: If there is no value there.
    """
    read = _EVALUATE.get(type(node))
    if read is None:
        raise NotExactError(type(node).__name__)
    spend(1)
    return read(node, point)


def _fraction(value: Fraction, point: _Point) -> Value:
    return point.context.mpf(value.numerator) / value.denominator


def _bounded(value: Value, point: _Point) -> Value:
    if value and point.context.mag(value) > _MAX_MAGNITUDE:
        raise TooLargeError("an argument past the bounds")
    return value


def _constant(node: Constant, point: _Point) -> Value:
    if node.name == "inf":
        raise TooLargeError("infinity")
    return {"pi": +point.context.pi, "e": +point.context.e, "i": point.context.mpc(0, 1)}[node.name]


def _sum(node: Add, point: _Point) -> Value:
    terms = [evaluate(term, point) for term in node.terms]
    point.largest = max(point.largest, *map(abs, terms))
    return sum(terms, point.context.mpf(0))


def _product(node: Multiply, point: _Point) -> Value:
    value = point.context.mpf(1)
    for factor in node.factors:
        value = value * evaluate(factor, point)
    return value


def _quotient(node: Divide, point: _Point) -> Value:
    denominator = evaluate(node.denominator, point)
    if not denominator:
        raise UndefinedError("division by zero")
    return evaluate(node.numerator, point) / denominator


def _power(node: Power, point: _Point) -> Value:
    base, exponent = evaluate(node.base, point), evaluate(node.exponent, point)
    if not base:
        if not (exponent.imag == 0 and exponent.real > 0):
            raise UndefinedError("zero to a power that is not positive")
        return base
    try:
        constant = rational_value(node.exponent)
    except (NotExactError, UndefinedError):
        constant = None
    if (
        constant is not None
        and constant.denominator % 2
        and constant.denominator > 1
        and base.imag == 0
        and base.real < 0
    ):
        return _odd_root_power(base, constant, point)
    _bounded(exponent, point)
    if base.imag == 0 and base.real < 0 and point.context.isint(exponent) is False:
        point.branched = True
    _bounded(exponent * point.context.log(base), point)
    return base**exponent


def _odd_root_power(base: Value, exponent: Fraction, point: _Point) -> Value:
    power = abs(base) ** _fraction(exponent, point)
    return -power if exponent.numerator % 2 else power


def _unknown(node: Unknown, point: _Point) -> Value:
    total = point.context.mpf(0)
    for place, argument in enumerate(node.arguments):
        noise = zlib.crc32(f"{node.name}/{place}/{len(node.arguments)}".encode())
        frequency = point.context.mpf(1 + noise % 1009) / 1013
        total += point.context.cos(_bounded(evaluate(argument, point), point) * frequency + noise % 7)
    return total + zlib.crc32(node.name.encode()) % 11


def _series(node: Series, point: _Point) -> Value:
    lower, upper = _integer(evaluate(node.lower, point), point), _integer(evaluate(node.upper, point), point)
    if upper - lower >= MAX_TERMS:
        raise NotExactError("too many terms")
    total = point.context.mpf(node.kind == "product")
    for index in range(lower, upper + 1):
        term = evaluate(substitute(node.body, node.index, signed_number(index)), point)
        total = total + term if node.kind == "sum" else total * term
    return total


def _integer(value: Value, point: _Point) -> int:
    if not point.context.isint(_bounded(value, point)):
        raise NotExactError("not an integer")
    return int(value.real)


def _root(point: _Point, radicand: Value, degree: Value) -> Value:
    order = _integer(degree, point)
    if order < 1 or order > 10_000:
        raise NotExactError("a root's degree past the bounds")
    if radicand.imag == 0 and radicand.real < 0:
        if order % 2:
            return -point.context.root(-radicand.real, order)
        point.branched = True
    return point.context.root(radicand, order)


def _logarithm(point: _Point, value: Value, base: Value | None = None) -> Value:
    base = point.context.mpf(10) if base is None else base
    return _natural_logarithm(point, value) / _natural_logarithm(point, base)


def _natural_logarithm(point: _Point, value: Value) -> Value:
    if not value:
        raise UndefinedError("the logarithm of zero")
    if value.imag == 0 and value.real < 0:
        point.branched = True
    return point.context.log(value)


def _factorial(point: _Point, value: Value) -> Value:
    if point.context.mag(value or 1) > 30 or (value.imag == 0 and value.real < 0):
        raise TooLargeError("a factorial past the bounds")
    return point.context.factorial(value)


def _binomial(point: _Point, upper: Value, lower: Value) -> Value:
    if max(point.context.mag(upper or 1), point.context.mag(lower or 1)) > 30:
        raise TooLargeError("a binomial coefficient past the bounds")
    return point.context.binomial(upper, lower)


def _common(combine: Callable[..., int]) -> Callable[..., Value]:
    return lambda point, *values: point.context.mpf(combine(*(_integer(value, point) for value in values)))


def _real(point: _Point, value: Value) -> Value:
    if value.imag != 0:
        raise UndefinedError("an order among complex numbers")
    return _bounded(value.real, point)


def _rounded(name: str) -> Callable[..., Value]:
    def read(point: _Point, value: Value) -> Value:
        value = _real(point, value)
        nearest = point.context.nint(value)
        if value != nearest and abs(value - nearest) < point.context.mpf(10) ** (8 - point.context.dps):
            value = nearest  # an integer up to the error of its evaluation
        return getattr(point.context, name)(value)

    return read


def _elementary(name: str) -> Callable[..., Value]:
    def read(point: _Point, value: Value) -> Value:
        return getattr(point.context, name)(_bounded(value, point))

    return read


_ELEMENTARY = {
    **{
        name: name
        for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth", "sech", "csch", "exp")
    },
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")},
}
_FUNCTIONS: dict[str, Callable[..., Value]] = {
    **{name: _elementary(method) for name, method in _ELEMENTARY.items()},
    "root": _root,
    "ln": _natural_logarithm,
    "log": _logarithm,
    "factorial": _factorial,
    "factorial2": lambda point, value: point.context.fac2(_integer(_factorial(point, value) and value, point)),
    "binomial": _binomial,
    "abs": lambda point, value: abs(value),
    "floor": _rounded("floor"),
    "ceil": _rounded("ceil"),
    "max": lambda point, *values: max(_real(point, value) for value in values),
    "min": lambda point, *values: min(_real(point, value) for value in values),
    "gcd": _common(math.gcd),
    "lcm": _common(math.lcm),
    "sgn": lambda point, value: point.context.sign(_real(point, value)),
}


def _apply(node: Apply, point: _Point) -> Value:
    read = _FUNCTIONS.get(node.name)
    if read is None:
        raise NotExactError(node.name)
    return read(point, *(evaluate(argument, point) for argument in node.arguments))


_EVALUATE: dict[type[Node], Callable[..., Value]] = {
    Number: lambda node, point: _fraction(node.value, point),
    Mixed: lambda node, point: _fraction(node.whole + node.part, point),
    BasedNumber: lambda node, point: _fraction(based_value(node), point),
    Constant: _constant,
    Symbol: lambda node, point: point.coordinate(node.name),
    Negate: lambda node, point: -evaluate(node.value, point),
    Percent: lambda node, point: evaluate(node.value, point) / 100,
    Degrees: lambda node, point: evaluate(node.value, point) * point.context.pi / 180,
    Add: _sum,
    Multiply: _product,
    Divide: _quotient,
    Power: _power,
    Apply: _apply,
    Unknown: _unknown,
    Series: _series,
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with an estimate of its error."""

    value: Value
    error: Value
    branched: bool


def estimate(node: Node, digits: tuple[int, int], sample: int = 0, *, integers: bool = False) -> Estimate:
    """Evaluate at two precisions.

    Raises:
        NotExactError: As for `evaluate`.
        UndefinedError: As for `evaluate`.
    """
    values = []
    for precision in digits:
        point = _Point(context(precision), sample, integers)
        try:
            values.append(evaluate(node, point))
        except (ZeroDivisionError, ValueError, OverflowError, TypeError, AttributeError) as cause:
            raise UndefinedError(str(cause)) from cause
    rough, fine = values
    error = 4 * abs(fine - rough) + (abs(fine) + point.largest) * point.context.mpf(10) ** (5 - digits[0])
    if not point.context.isfinite(fine):
        raise UndefinedError("no finite value")
    return Estimate(fine, error, point.branched)


def _needs_integers(node: Node) -> bool:
    """Whether symbols must be integers for the expression to have a value."""
    discrete = ("factorial", "factorial2", "binomial", "floor", "ceil", "gcd", "lcm")
    return any(
        (isinstance(part, Apply) and part.name in discrete and symbols(part)) or isinstance(part, Series)
        for part in walk(node)
    )


def numerically_equal(gold: Node, answer: Node) -> bool | None:
    """Whether two expressions agree at every point where the gold has a value; None if that cannot be told.

    Raises:
        TooLargeError: If a value is past the bounds.
    """
    constant = not symbols(gold) and not symbols(answer)
    integers = not constant and (_needs_integers(gold) or _needs_integers(answer))
    agreed: list[int] = []
    for sample in range(1 if constant else SAMPLES):
        same = _agree(gold, answer, FILTER_DIGITS, sample, integers)
        if same is False:
            return False
        if same:
            agreed.append(sample)
    return _agree(gold, answer, CONFIRM_DIGITS, agreed[0], integers) if agreed else None


def _agree(gold: Node, answer: Node, digits: tuple[int, int], sample: int, integers: bool) -> bool | None:
    """Whether two values at one point are equal; None where the gold has no value or the errors are too large."""
    try:
        expected = estimate(gold, digits, sample, integers=integers)
    except TooLargeError:
        raise
    except (NotExactError, UndefinedError):
        return None
    if expected.branched and sample >= SAMPLES - SIGNED_SAMPLES:
        return None
    try:
        found = estimate(answer, digits, sample, integers=integers)
    except UndefinedError:
        return False
    except TooLargeError:
        raise
    except NotExactError:
        return None
    tolerance = expected.error + found.error
    if abs(expected.value - found.value) > tolerance:
        return False
    if digits != CONFIRM_DIGITS:
        return True
    size = max(abs(expected.value), abs(found.value))
    threshold = context(digits[1]).mpf(10) ** -100
    return True if tolerance <= size * threshold or (size <= tolerance and tolerance <= threshold) else None
