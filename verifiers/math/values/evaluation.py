"""The value of an expression at a point, to any number of digits.

Every context belongs to one thread. Arguments of exponentials, powers and trigonometric functions are bounded in magnitude
before they are evaluated.
"""

from __future__ import annotations

import math
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

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
    walk,
)
from verifiers.math.values.exact import (
    MAX_TERMS,
    NotExactError,
    TooLargeError,
    UndefinedError,
    based_value,
    rational_or_none,
    signed_number,
    spend,
    substitute,
)
from verifiers.math.values.sample_points import number

Value = Any
"""A real or complex number of mpmath, which has no type annotations."""

PYTHON_ERRORS = (ZeroDivisionError, ValueError, OverflowError, TypeError, AttributeError)
"""The exceptions that mpmath raises if there is no value."""
_VISIBLE = 0.4  # of the working precision
_MAX_MAGNITUDE = 300
"""Largest binary magnitude of the argument of a transcendental function."""

_MAX_GAMMA_MAGNITUDE = 30
_MAX_ZETA_MAGNITUDE = 10
_ZETA_WORK = 500  # at 300 digits


class PoleError(UndefinedError):
    """A factorial of a negative integer has no value."""


_local = threading.local()


def context(digits: int) -> Any:
    """This thread's mpmath context, set to the given number of decimal digits."""
    if not hasattr(_local, "context"):
        from mpmath.ctx_mp import MPContext  # type: ignore[import-untyped]  # mpmath has no types

        _local.context = MPContext()
    _local.context.dps = digits
    return _local.context


class Coordinates(Protocol):
    """The values of names at numbered points."""

    def coordinate(self, context: Any, sample: int, name: str) -> Value:
        """The value of a name, as a number of an mpmath context."""


@dataclass(slots=True)
class Point:
    """A point at which an expression is evaluated, with notes on the evaluation."""

    context: Any
    sample: int
    coordinates: Coordinates
    branched: bool = field(default=False)
    """Whether the even root or the logarithm of a negative number was taken, so that the value depends on a branch."""
    amplification: Value = field(default=1)
    """Factor by which sums have increased the relative error."""
    cancelled: Value = field(default=0)
    """The largest term of a sum in which nearly all digits cancelled; the error of the sum is absolute."""
    uneven: bool = field(default=False)
    """Whether a term was added that is too small to be visible next to another term."""

    @property
    def visible_bits(self) -> int:
        """The number of bits by which two values may differ in magnitude and both stay visible in their sum."""
        return int(self.context.prec * _VISIBLE)

    def coordinate(self, name: str) -> Value:
        """The value of a name at this point."""
        return self.coordinates.coordinate(self.context, self.sample, name)


def evaluate(node: Node, point: Point) -> Value:
    """The value of an expression at a point.

    Raises:
        NotExactError: If a part of the expression has no numeric meaning, or an argument exceeds the bounds.
        UndefinedError: If the expression has no value at the point.
    """
    read = _EVALUATE.get(type(node))
    if read is None:
        raise NotExactError(type(node).__name__)
    spend(1)
    return read(node, point)


def _bounded(value: Value, point: Point) -> Value:
    if value and point.context.mag(value) > _MAX_MAGNITUDE:
        raise TooLargeError("an argument out of bounds")
    return value


def _constant(node: Constant, point: Point) -> Value:
    if node.name == "inf":
        raise TooLargeError("infinity")
    return {"pi": +point.context.pi, "e": +point.context.e, "i": point.context.mpc(0, 1)}[node.name]


def _sum(node: Add, point: Point) -> Value:
    terms = [evaluate(term, point) for term in node.terms]
    sizes = [abs(term) for term in terms if term]
    total, largest = sum(terms, point.context.mpf(0)), max(sizes, default=0)
    if sizes and point.context.mag(min(sizes)) < point.context.mag(largest) - point.visible_bits:
        point.uneven = True
    if not total and not largest:
        return total
    if point.context.mag(total) * 2 > point.context.mag(largest) * 2 - point.context.prec:
        point.amplification = max(point.amplification, largest / abs(total))
    else:
        point.cancelled = max(point.cancelled, largest)
    return total


def _product(node: Multiply, point: Point) -> Value:
    value = point.context.mpf(1)
    for factor in node.factors:
        value = value * evaluate(factor, point)
    return value


def _quotient(node: Divide, point: Point) -> Value:
    denominator = evaluate(node.denominator, point)
    if not denominator:
        raise UndefinedError("division by zero")
    return evaluate(node.numerator, point) / denominator


def _power(node: Power, point: Point) -> Value:
    base, exponent = evaluate(node.base, point), evaluate(node.exponent, point)
    if not base:
        if not (exponent.imag == 0 and exponent.real > 0):
            raise UndefinedError("zero to a power that is not positive")
        return base
    constant = rational_or_none(node.exponent) or Fraction(1)
    if constant.denominator % 2 and constant.denominator > 1 and base.imag == 0 and base.real < 0:
        power = abs(base) ** number(point.context, constant)
        return -power if constant.numerator % 2 else power
    _bounded(exponent, point)
    if base.imag == 0 and base.real < 0 and point.context.isint(exponent) is False:
        point.branched = True
    _bounded(exponent * point.context.log(base), point)
    return base**exponent


def _unknown(node: Unknown, point: Point) -> Value:
    total = point.context.mpf(0)
    for index, argument in enumerate(node.arguments):
        noise = zlib.crc32(f"{node.name}/{index}/{len(node.arguments)}".encode())
        frequency = point.context.mpf(1 + noise % 1009) / 1013
        total += point.context.cos(_bounded(evaluate(argument, point), point) * frequency + noise % 7)
    return total + zlib.crc32(node.name.encode()) % 11


def _series(node: Series, point: Point) -> Value:
    if any(
        isinstance(subtree, Constant) and subtree.name == "inf"
        for end in (node.lower, node.upper)
        for subtree in walk(end)
    ):
        raise NotExactError("infinitely many terms")
    lower, upper = _integer(evaluate(node.lower, point), point), _integer(evaluate(node.upper, point), point)
    if upper - lower >= MAX_TERMS:
        raise NotExactError("too many terms")
    total = point.context.mpf(node.kind == "product")
    for index in range(lower, upper + 1):
        term = evaluate(substitute(node.body, node.index, signed_number(index)), point)
        total = total + term if node.kind == "sum" else total * term
    return total


def _integer(value: Value, point: Point) -> int:
    if not point.context.isint(_bounded(value, point)):
        raise NotExactError("not an integer")
    return int(value.real)


def _root(point: Point, radicand: Value, degree: Value) -> Value:
    order = _integer(degree, point)
    if order < 1 or order > 10_000:
        raise TooLargeError("a degree of a root out of bounds")
    if radicand.imag == 0 and radicand.real < 0:
        if order % 2:
            return -point.context.root(-radicand.real, order)
        point.branched = True
    return point.context.root(radicand, order)


def _logarithm(point: Point, value: Value, base: Value | None = None) -> Value:
    base = point.context.mpf(10) if base is None else base
    return _natural_logarithm(point, value) / _natural_logarithm(point, base)


def _natural_logarithm(point: Point, value: Value) -> Value:
    if not value:
        raise UndefinedError("the logarithm of zero")
    if value.imag == 0 and value.real < 0:
        point.branched = True
    return point.context.log(value)


def _factorial(point: Point, value: Value) -> Value:
    if value.imag == 0 and value.real < 0 and point.context.isint(value):
        raise PoleError("the factorial of a negative integer")
    if point.context.mag(value or 1) > 30 or (value.imag == 0 and value.real < 0):
        raise TooLargeError("a factorial out of bounds")
    return point.context.factorial(value)


def _binomial(point: Point, upper: Value, lower: Value) -> Value:
    if max(point.context.mag(upper or 1), point.context.mag(lower or 1)) > 30:
        raise TooLargeError("a binomial coefficient out of bounds")
    return point.context.binomial(upper, lower)


def _gamma(point: Point, value: Value) -> Value:
    if value.imag == 0 and value.real <= 0 and point.context.isint(value):
        raise PoleError("the gamma function of an integer that is not positive")
    if point.context.mag(value or 1) > _MAX_GAMMA_MAGNITUDE:
        raise TooLargeError("an argument of the gamma function out of bounds")
    return point.context.gamma(value)


def _zeta(point: Point, value: Value) -> Value:
    if value == 1:
        raise UndefinedError("the zeta function of 1")
    if point.context.mag(value or 1) > _MAX_ZETA_MAGNITUDE:
        raise TooLargeError("an argument of the zeta function out of bounds")
    spend(_ZETA_WORK)
    return point.context.zeta(value)


def _common(combine: Callable[..., int]) -> Callable[..., Value]:
    return lambda point, *values: point.context.mpf(combine(*(_integer(value, point) for value in values)))


def _real(point: Point, value: Value) -> Value:
    if value.imag != 0:
        raise UndefinedError("an order relation between complex numbers")
    return _bounded(value.real, point)


def _rounded(name: str) -> Callable[..., Value]:
    def read(point: Point, value: Value) -> Value:
        value = _real(point, value)
        nearest = point.context.nint(value)
        if value != nearest and abs(value - nearest) < point.context.mpf(10) ** (8 - point.context.dps):
            value = nearest  # an integer up to the error of its evaluation
        return getattr(point.context, name)(value)

    return read


def _elementary(name: str) -> Callable[..., Value]:
    def read(point: Point, value: Value) -> Value:
        if value and point.context.mag(value) < -point.visible_bits:
            point.uneven = True
        return getattr(point.context, name)(_bounded(value, point))

    return read


ELEMENTARY = {
    **{
        name: name
        for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth", "sech", "csch", "exp")
    },
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")},
}
"""The method of mpmath for each elementary function."""
_FUNCTIONS: dict[str, Callable[..., Value]] = {
    **{name: _elementary(method) for name, method in ELEMENTARY.items()},
    "conj": lambda point, value: point.context.conj(value),
    "cis": lambda point, value: point.context.expj(_bounded(value, point)),
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
    "gamma": _gamma,
    "zeta": _zeta,
    "sgn": lambda point, value: point.context.sign(_real(point, value)),
}


def _apply(node: Apply, point: Point) -> Value:
    read = _FUNCTIONS.get(node.name)
    if read is None:
        raise NotExactError(node.name)
    return read(point, *(evaluate(argument, point) for argument in node.arguments))


_EVALUATE: dict[type[Node], Callable[..., Value]] = {
    Number: lambda node, point: number(point.context, node.value),
    Mixed: lambda node, point: number(point.context, node.value),
    BasedNumber: lambda node, point: number(point.context, based_value(node)),
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
