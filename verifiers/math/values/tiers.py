"""Decides the equality of two expressions: exactly, in a finite field, numerically, by computer algebra, in this order."""

from __future__ import annotations

import contextlib
import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from verifiers.math.forms import is_scientific
from verifiers.math.options import ComparisonOptions
from verifiers.math.tree import (
    Add,
    BasedNumber,
    Constant,
    Multiply,
    Negate,
    Node,
    Number,
    Percent,
    Power,
    Series,
    Symbol,
    symbols,
    walk,
)
from verifiers.math.values.evaluation import context
from verifiers.math.values.exact import (
    NotExactError,
    TooLargeError,
    UndefinedError,
    indexes_names,
    integer_value,
    rational_or_none,
    rational_value,
    signed_number,
    substitute,
)
from verifiers.math.values.limits import limits_differ
from verifiers.math.values.numeric import CONFIRM_DIGITS, estimate, numerically_equal, real_value
from verifiers.math.values.residues import residue

_DOUBLE_DIGITS = (16, 17)  # the digits of a printed double-precision number, the last of which may be off by one

_MAX_DECIMAL_EXPONENT = 4000


class Tier(enum.IntEnum):
    """The method that decided a comparison, from cheapest to most expensive."""

    TEXT = 0
    PROSE = 1
    EXACT = 2
    FIELD = 3
    NUMERIC = 4
    SYMPY = 5


class GoldError(ValueError):
    """An expression used as the gold has no value; it may also come from an answer that is a chain of equalities."""


class UndecidedError(ArithmeticError):
    """No method could tell whether two expressions are equal."""


Algebra = Callable[[Node, Node], bool]
"""Decides equality by computer algebra.

Raises `UndecidedError` if it cannot decide; `verifiers.math.values.algebra` documents the other exceptions.
"""


@dataclass(slots=True)
class ValueComparer:
    """Compares expressions under the options, and records the most expensive tier used."""

    options: ComparisonOptions
    algebra: Algebra
    tier: Tier = field(default=Tier.TEXT)

    def use(self, tier: Tier) -> None:
        """Record that a tier was used."""
        self.tier = max(self.tier, tier)

    def equal(self, gold: Node, answer: Node) -> bool:
        """Whether an answer's value equals the gold's, or is as close as the options allow.

        Raises:
            GoldError: If the gold has no value.
            UndecidedError: If no method can decide.
        """
        if gold == answer:
            return True
        if (infinite := _infinity(gold)) or _infinity(answer):
            return infinite == _infinity(answer)
        if isinstance(gold, BasedNumber) or isinstance(answer, BasedNumber):
            return self._equal_numerals(gold, answer)
        if isinstance(gold, Negate) and isinstance(gold.value, BasedNumber):
            return isinstance(answer, Negate) and self.equal(gold.value, answer.value)
        return self.identical(gold, answer) or self._near(gold, answer)

    def identical(self, gold: Node, answer: Node) -> bool:
        """Whether two expressions have exactly the same value.

        Raises:
            GoldError: If the gold has no value.
            UndecidedError: If no method can decide.
        """
        if gold == answer:
            return True
        for tier, decide in (
            (Tier.EXACT, functools.partial(_equal_by, rational_value)),
            (Tier.FIELD, functools.partial(_equal_by, residue)),
            (Tier.NUMERIC, numerically_equal),
        ):
            self.use(tier)
            try:
                same = decide(gold, answer)
            except NotExactError as error:
                if isinstance(error, TooLargeError) and tier is Tier.NUMERIC:
                    raise UndecidedError(f"too large to evaluate: {error}") from error
                continue
            if same is not None:
                return same
        if _equal_termwise(gold, answer):
            return True
        if limits_differ(gold, answer):
            return False
        self.use(Tier.SYMPY)
        return self.algebra(gold, answer)

    def _equal_numerals(self, gold: Node, answer: Node) -> bool:
        """Compare numerals with a base. The answer may omit the base but not change it; a gold without a base is decimal."""
        self.use(Tier.EXACT)
        if isinstance(gold, BasedNumber):
            if isinstance(answer, BasedNumber):
                return gold.base == answer.base and gold.digits == answer.digits
            digits = answer.value if isinstance(answer, Number) else None
            return self.options.base == "optional" and digits is not None and gold.digits == str(digits)
        return isinstance(answer, BasedNumber) and answer.base == 10 and self.identical(gold, answer)

    def _near(self, gold: Node, answer: Node) -> bool:
        """Whether the options accept a constant answer that is not exactly the gold."""
        if symbols(gold) or symbols(answer):
            return False
        if self._within(gold, answer):
            return True
        number = _as_decimal(answer.value if isinstance(answer, Negate) else answer)
        digits = self.options.rounding_digits
        if digits is None or not isinstance(number, Number) or number.decimals is None or number.significant < digits:
            return False
        if _terminates(gold):
            return False
        double = number.significant in _DOUBLE_DIGITS and self._is_double_of(gold, rational_value(answer))
        return double or self._rounds_to(gold, rational_value(answer), number.decimals)

    def _is_double_of(self, gold: Node, printed: Fraction) -> bool:
        """Whether a printed decimal represents the double-precision number nearest to the gold."""
        expected = real_value(gold, CONFIRM_DIGITS)
        return expected is not None and float(expected) == float(printed)

    def _within(self, gold: Node, answer: Node) -> bool:
        """Whether a constant answer is as close to the gold as one of the tolerances allows."""
        relative, absolute = self.options.rel_tol, self.options.abs_tol
        if relative is None and absolute is None:
            return False
        try:
            expected, actual = estimate(gold, CONFIRM_DIGITS), estimate(answer, CONFIRM_DIGITS)
        except (NotExactError, UndefinedError):
            return False
        self.use(Tier.NUMERIC)
        allowed = max(_decimal(relative) * abs(expected.value), _decimal(absolute))
        return bool(abs(expected.value - actual.value) <= allowed + expected.error + actual.error)

    def _rounds_to(self, gold: Node, rounded: Fraction, decimals: int) -> bool:
        """Whether a decimal is the correct rounding of the gold at its last digit."""
        expected = real_value(gold, CONFIRM_DIGITS)
        if expected is None:
            return False
        self.use(Tier.NUMERIC)
        distance = abs(expected * rounded.denominator - rounded.numerator) * 2
        scale = 10 ** abs(decimals)
        if decimals < 0:
            return bool(distance <= rounded.denominator * scale)
        return bool(distance * scale <= rounded.denominator)

    def consistent(self, exact: Node, approximate: Node) -> bool:
        """Whether a decimal is an exact value rounded or truncated at the decimal's last digit."""
        if isinstance(approximate, Percent):
            return self.consistent(Multiply((Number(Fraction(100)), exact)), approximate.value)
        negative = isinstance(approximate, Negate)
        number = approximate.value if isinstance(approximate, Negate) else approximate
        if not isinstance(number, Number):
            return self.identical(exact, approximate)
        expected = real_value(Negate(exact) if negative else exact, CONFIRM_DIGITS)
        if expected is None:
            return False
        self.use(Tier.NUMERIC)
        units = (expected * number.value.denominator - number.value.numerator) * 10 ** max(number.decimals or 0, 0)
        return bool(-number.value.denominator <= 2 * units and units < number.value.denominator)


def _decimal(tolerance: float | str | None) -> Any:
    """A tolerance as the decimal that was written, not as the nearest double; 0 if there is none."""
    return context(CONFIRM_DIGITS[1]).mpf(0 if tolerance is None else repr(float(tolerance)))


def _as_decimal(node: Node) -> Node:
    """Read scientific notation as one literal, with the digits of its first factor."""
    if not (isinstance(node, Multiply) and is_scientific(node)):
        return node
    mantissa, power = node.factors
    if not (isinstance(mantissa, Number) and mantissa.decimals is not None and isinstance(power, Power)):
        return node
    exponent = integer_value(power.exponent)
    if abs(exponent) > _MAX_DECIMAL_EXPONENT:
        return node
    return Number(mantissa.value * Fraction(10) ** exponent, mantissa.decimals - exponent, mantissa.significant)


def has_no_value(node: Node) -> bool:
    """Whether an expression or a part of it is undefined, such as a division by zero."""
    return any(_is_undefined(subtree) for subtree in walk(node))


def _is_undefined(node: Node) -> bool:
    for evaluate in (rational_value, residue):
        try:
            evaluate(node)
        except UndefinedError:
            return True
        except NotExactError:
            continue
    return False


def _infinity(node: Node) -> int:
    if isinstance(node, Negate):
        return -_infinity(node.value)
    return int(isinstance(node, Constant) and node.name == "inf")


def _terminates(gold: Node) -> bool:
    """Whether the gold is a terminating decimal, which must not be rounded."""
    value = rational_or_none(gold)
    if value is None:
        return False
    denominator = value.denominator
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    return denominator == 1


def _equal_termwise(gold: Node, answer: Node) -> bool:
    """Whether two sums or products have the same bounds, up to a shift of the index, and equal terms at every index."""
    if not (isinstance(gold, Series) and isinstance(answer, Series) and gold.kind == answer.kind):
        return False
    if gold.index != answer.index and gold.index in symbols(answer.body):
        return False
    shifts = [_shift(*ends) for ends in ((gold.lower, answer.lower), (gold.upper, answer.upper))]
    if shifts[0] is None or shifts[1] is None or (shifts[0] != shifts[1] and gold.upper != Constant("inf")):
        return False
    if shifts[0] and indexes_names(answer):
        return False  # the indices of names would have to be shifted, too
    term = substitute(answer.body, answer.index, Add((Symbol(gold.index), signed_number(shifts[0]))))
    with contextlib.suppress(NotExactError, UndefinedError):
        return numerically_equal(gold.body, term) is True
    return False


def _shift(gold: Node, answer: Node) -> int | None:
    """The integer by which the bounds of the answer's index exceed those of the gold's; None if unknown."""
    if gold == answer:
        return 0
    difference = rational_or_none(Add((answer, Negate(gold))))
    return int(difference) if difference is not None and difference.denominator == 1 else None


def _equal_by(evaluate: Callable[[Node], object], gold: Node, answer: Node) -> bool:
    try:
        expected = evaluate(gold)
    except UndefinedError as error:
        raise GoldError(f"an expression without a value: {error}") from error
    try:
        return expected == evaluate(answer)
    except UndefinedError:
        return False
