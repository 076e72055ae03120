"""Evaluates expressions at several points with high precision: proves a difference, or gives strong evidence of equality.

Every value is computed at two precisions; their difference estimates its error, so that cancellation is detected and not
mistaken for equality.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from verifiers.math.tree import Apply, Node, symbols, walk
from verifiers.math.values.evaluation import PYTHON_ERRORS, Point, PoleError, Value, context, evaluate
from verifiers.math.values.exact import (
    NotExactError,
    TooLargeError,
    UndefinedError,
)
from verifiers.math.values.sample_points import STEPS, SamplePoints, is_smooth, sampling_for

_MIN_POINTS = 2  # minimum number of points if the values at all other points exceed the bounds
_MIN_INTEGER_POINTS = 3
_MAX_GAPS, _MAX_JUMPS = 24, 6  # maximum numbers to examine, spread over all
_JUMP_RESOLUTION = Fraction(1, 1024)  # for real numbers; for integers, it is 1
FILTER_DIGITS = (30, 50)
CONFIRM_DIGITS = (250, 300)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with an estimated error."""

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
    """The value of a real constant at this precision; None for anything else."""
    try:
        value = estimate(node, digits).value
    except (NotExactError, UndefinedError):
        return None
    return value.real if value.imag == 0 else None


def numerically_equal(gold: Node, answer: Node) -> bool | None:
    """Whether two expressions agree at every point where the gold has a value; None if this cannot be decided.

    Raises:
        TooLargeError: If a value exceeds the bounds.
    """
    ours, theirs = symbols(gold), symbols(answer)
    if theirs - ours and not is_smooth(answer):
        return False  # a symbol that the gold lacks must cancel; steps and huge exponents only seem to cancel a symbol
    constant = not ours and not theirs
    sampling = SamplePoints(count=1) if constant else sampling_for(gold, answer)
    if constant:
        return _agree(gold, answer, FILTER_DIGITS, 0, sampling, branched=True) and _agree(
            gold, answer, CONFIRM_DIGITS, 0, sampling, branched=True
        )
    for branched in (False, True):  # first at points where the gold is real, if there are any
        agreed = _points_of_agreement(gold, answer, sampling, branched=branched)
        if agreed is None:
            return False
        if len(agreed) >= (_MIN_INTEGER_POINTS if sampling.integers else 1):
            if sampling.beside_steps and len(sampling.names) == 1 and _differ_beside_jumps(gold, answer, sampling):
                return False
            return _agree(gold, answer, CONFIRM_DIGITS, agreed[0], sampling, branched=True)
    return None


def _differ_beside_jumps(gold: Node, answer: Node, sampling: SamplePoints) -> bool:
    """Whether two expressions with steps in one symbol differ next to a jump of a floor or a ceiling in either of them."""
    positions = [Fraction(position) for position in sampling.beside_steps]
    resolution = Fraction(1) if sampling.integers else _JUMP_RESOLUTION
    steps = [node for side in (gold, answer) for node in walk(side) if isinstance(node, Apply) and node.name in STEPS]
    for node in dict.fromkeys(steps or (gold, answer)):
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
    """Two positions, no further apart than the resolution, between which an expression jumps; found by bisection."""
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
    """Whether an expression has different values at the two ends of a gap; False if either is undefined."""
    low, high = map(value, gap)
    return low is not None and high is not None and bool(abs(low.value - high.value) > low.error + high.error)


def _points_of_agreement(gold: Node, answer: Node, sampling: SamplePoints, *, branched: bool) -> list[int] | None:
    """The points at which two expressions agree at low precision; None if they differ at a point.

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

    A gold that depends on the branch of a root or a logarithm is compared only if `branched`, and then only at points with
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
        return None if sampling.integers else False  # the gold may be defined where the answer is not
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
        return None  # a term may be invisible at 300 digits, such as 1e-1000 next to 1
    size = max(abs(expected.value), abs(actual.value))
    threshold = context(digits[1]).mpf(10) ** -100
    return True if tolerance <= size * threshold or (size <= tolerance and tolerance <= threshold) else None
