"""High-precision evaluation at several points: proof that two expressions differ, and strong evidence that they are equal.

Every value is computed at two precisions; their difference estimates its error, so that cancellation is noticed and not
mistaken for equality. Every context belongs to one thread. Arguments of exponentials, powers and trigonometric functions are
bounded in magnitude before they are evaluated.
"""

from __future__ import annotations

import functools
import itertools
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
    symbols,
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
from verifiers.math.values.sample_points import SamplePoints, is_smooth, number, sampling_for

Value = Any
"""A real or complex number of mpmath, which has no type annotations."""

PYTHON_ERRORS = (ZeroDivisionError, ValueError, OverflowError, TypeError, AttributeError)
"""The exceptions that mpmath raises if there is no value."""
_MIN_POINTS = 2  # if others exceeded the bounds
_MIN_INTEGER_POINTS = 3
_MAX_GAPS, _MAX_JUMPS = 24, 6  # at most so many are examined, spread over all of them
_JUMP_RESOLUTION = Fraction(1, 1024)  # for real numbers; for integers it is 1
FILTER_DIGITS = (30, 50)
CONFIRM_DIGITS = (250, 300)
DEEP_DIGITS = (8000, 8050)
"""Where a term is invisible at 300 digits, as 1e-1000 beside 1 is; so precise an evaluation only refuses."""
_MAX_DEEP_FUNCTIONS = 6  # of both expressions: each takes up to 0.1 s at 8050 digits
_VISIBLE = 0.4  # of the working precision
_MAX_MAGNITUDE = 300
"""Largest binary magnitude of the argument of a transcendental function."""

_MAX_GAMMA_MAGNITUDE = 30
_MAX_ZETA_MAGNITUDE = 10
_ZETA_WORK = 500  # at 300 digits


class PoleError(UndefinedError):
    """A factorial of a negative integer."""


_local = threading.local()


def context(digits: int) -> Any:
    """This thread's mpmath context, set to a number of decimal digits."""
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
    """A point at which an expression is evaluated, and what happened there."""

    context: Any
    sample: int
    coordinates: Coordinates
    branched: bool = field(default=False)
    """Whether an even root or a logarithm of a negative number was taken, so that the value depends on a branch."""
    amplification: Value = field(default=1)
    """The factor by which sums have increased relative errors."""
    cancelled: Value = field(default=0)
    """The largest term of a sum in which nearly all digits cancelled: its error is absolute."""
    uneven: bool = field(default=False)
    """Whether a term was added that is too small to be visible beside another."""

    @property
    def visible_bits(self) -> int:
        """The binary orders of magnitude by which values may differ and both remain visible."""
        return int(self.context.prec * _VISIBLE)

    def coordinate(self, name: str) -> Value:
        """The value of a name at this point."""
        return self.coordinates.coordinate(self.context, self.sample, name)


def evaluate(node: Node, point: Point) -> Value:
    """The value of an expression at a point.

    Raises:
        NotExactError: If a part of it has no numeric meaning, or an argument exceeds the bounds.
        UndefinedError: If it has no value at the point.
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


_ELEMENTARY = {
    **{
        name: name
        for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth", "sech", "csch", "exp")
    },
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")},
}
_FUNCTIONS: dict[str, Callable[..., Value]] = {
    **{name: _elementary(method) for name, method in _ELEMENTARY.items()},
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


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with an estimate of its error."""

    value: Value
    error: Value
    branched: bool
    uneven: bool = False


_ANYWHERE = SamplePoints()


def estimate(node: Node, digits: tuple[int, int], sample: int = 0, sampling: SamplePoints = _ANYWHERE) -> Estimate:
    """Evaluate at two precisions.

    Raises:
        NotExactError: As for `evaluate`.
        UndefinedError: As for `evaluate`.
    """
    values = []
    for precision in digits:
        point = Point(context(precision), sample, sampling)
        try:
            values.append(evaluate(node, point))
        except PYTHON_ERRORS as cause:
            raise UndefinedError(str(cause)) from cause
    rough, fine = values
    lost = abs(fine) * point.amplification + point.cancelled
    error = 4 * abs(fine - rough) + lost * point.context.mpf(10) ** (5 - digits[0])
    if not point.context.isfinite(fine):
        raise UndefinedError("no finite value")
    return Estimate(fine, error, point.branched, point.uneven)


def real_value(node: Node, digits: tuple[int, int] = FILTER_DIGITS) -> Value | None:
    """The value of a real constant to these digits; None for anything else."""
    try:
        value = estimate(node, digits).value
    except (NotExactError, UndefinedError):
        return None
    return value.real if value.imag == 0 else None


def numerically_equal(gold: Node, answer: Node) -> bool | None:
    """Whether two expressions agree at every point where the gold has a value; None if that cannot be decided.

    Raises:
        TooLargeError: If a value exceeds the bounds.
    """
    ours, theirs = symbols(gold), symbols(answer)
    if theirs - ours and not is_smooth(answer):
        return False  # a symbol missing from the gold must cancel, which a step or a huge exponent only imitates
    constant = not ours and not theirs
    sampling = SamplePoints(count=1) if constant else sampling_for(gold, answer)
    if constant:
        return _agree(gold, answer, FILTER_DIGITS, 0, sampling, branched=True) and _agree(
            gold, answer, CONFIRM_DIGITS, 0, sampling, branched=True
        )
    for branched in (False, True):  # first where the gold is real, if there is such a point
        agreed = _points_of_agreement(gold, answer, sampling, branched=branched)
        if agreed is None:
            return False
        if len(agreed) >= (_MIN_INTEGER_POINTS if sampling.integers else 1):
            if sampling.beside_steps and len(sampling.names) == 1 and _differ_beside_jumps(gold, answer, sampling):
                return False
            return _agree(gold, answer, CONFIRM_DIGITS, agreed[0], sampling, branched=True)
    return None


def _differ_beside_jumps(gold: Node, answer: Node, sampling: SamplePoints) -> bool:
    """Whether two expressions with steps in one symbol differ next to a jump of either of them."""
    positions = [Fraction(position) for position in sampling.beside_steps]
    resolution = Fraction(1) if sampling.integers else _JUMP_RESOLUTION
    for node in (gold, answer):
        value = functools.cache(functools.partial(_value_at, node, sampling))
        gaps = [gap for gap in itertools.pairwise(positions) if gap[1] - gap[0] > resolution]
        jumps = [gap for gap in gaps[:: 1 + len(gaps) // _MAX_GAPS] if _changes(value, gap)]
        for gap in jumps[:: 1 + len(jumps) // _MAX_JUMPS]:
            for position in _jump(value, gap, resolution):
                if _agree(gold, answer, FILTER_DIGITS, 0, sampling.at(position), branched=True) is False:
                    return True
    return False


def _jump(
    value: Callable[[Fraction], Estimate | None], gap: tuple[Fraction, Fraction], resolution: Fraction
) -> tuple[Fraction, Fraction]:
    """Two positions within the resolution between which an expression changes, found by bisection."""
    low, high = gap
    while high - low > resolution:
        middle = Fraction(math.floor((low + high) / 2 / resolution)) * resolution
        low, high = (low, middle) if _changes(value, (low, middle)) else (middle, high)
    return low, high


def _value_at(node: Node, sampling: SamplePoints, position: Fraction) -> Estimate | None:
    try:
        return estimate(node, FILTER_DIGITS, 0, sampling.at(position))
    except (NotExactError, UndefinedError):
        return None


def _changes(value: Callable[[Fraction], Estimate | None], gap: tuple[Fraction, Fraction]) -> bool:
    """Whether an expression has different values at the two ends of a gap; False if one is undefined."""
    low, high = map(value, gap)
    return low is not None and high is not None and bool(abs(low.value - high.value) > low.error + high.error)


def _points_of_agreement(gold: Node, answer: Node, sampling: SamplePoints, *, branched: bool) -> list[int] | None:
    """The points at which two expressions are equal to a few digits; None if they differ at one.

    Raises:
        TooLargeError: If no point could be decided because values exceed the bounds.
    """
    agreed: list[int] = []
    too_large: TooLargeError | None = None
    for sample in range(sampling.count):
        try:
            same = _agree(gold, answer, FILTER_DIGITS, sample, sampling, branched=branched)
        except TooLargeError as error:
            too_large = error
            continue
        if same is False:
            return None
        if same:
            agreed.append(sample)
    if too_large is not None and len(agreed) < _MIN_POINTS:
        raise too_large
    return agreed


def _agree(
    gold: Node, answer: Node, digits: tuple[int, int], sample: int, sampling: SamplePoints, *, branched: bool
) -> bool | None:
    """Whether two values at one point are equal; None if the gold has no value or the errors are too large.

    A gold that depends on a branch of a root or a logarithm counts only if `branched`, and then only at points with
    positive coordinates.
    """
    try:
        expected = estimate(gold, digits, sample, sampling)
    except (NotExactError, UndefinedError) as error:
        if isinstance(error, TooLargeError):
            raise
        return None
    if expected.branched and not (branched and not sampling.is_signed(sample)):
        return None
    try:
        actual = estimate(answer, digits, sample, sampling)
    except PoleError:
        return None if sampling.integers else False  # the gold may be defined where the answer's form is not
    except UndefinedError:
        return False
    except TooLargeError:
        raise
    except NotExactError:
        return None
    if actual.branched and not expected.branched and sampling.lenient and sampling.is_signed(sample):
        return None
    tolerance = expected.error + actual.error
    if abs(expected.value - actual.value) > tolerance:
        return False
    if digits != CONFIRM_DIGITS:
        uneven = expected.uneven or actual.uneven
        return _agree(gold, answer, CONFIRM_DIGITS, sample, sampling, branched=branched) if uneven else True
    if expected.uneven or actual.uneven:
        return False if _differ_deeply(gold, answer, sample, sampling) else None
    size = max(abs(expected.value), abs(actual.value))
    threshold = context(digits[1]).mpf(10) ** -100
    return True if tolerance <= size * threshold or (size <= tolerance and tolerance <= threshold) else None


def _differ_deeply(gold: Node, answer: Node, sample: int, sampling: SamplePoints) -> bool:
    """Whether two values at one point differ by what only thousands of digits show."""
    nodes = [*walk(gold), *walk(answer)]
    functions = [node for node in nodes if isinstance(node, Apply | Power | Unknown | Series)]
    if len(functions) > _MAX_DEEP_FUNCTIONS or any(not _is_deep(node) for node in functions):
        return False
    try:
        expected, actual = (estimate(node, DEEP_DIGITS, sample, sampling) for node in (gold, answer))
    except (NotExactError, UndefinedError):
        return False
    decided = not (expected.uneven or actual.uneven)
    return decided and bool(abs(expected.value - actual.value) > expected.error + actual.error)


def _is_deep(node: Node) -> bool:
    """Whether a function is cheap at thousands of digits."""
    return isinstance(node, Power) or (isinstance(node, Apply) and node.name in _CHEAP)


_CHEAP = frozenset(_ELEMENTARY) | {"root", "ln", "log", "abs"}
