"""Exact arithmetic on trees: rational values of constants, within bounds, and a limit on the work of a comparison."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from fractions import Fraction

from verifiers.math.tree import (
    Add,
    Apply,
    BasedNumber,
    Constant,
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
    rewrite,
    symbols,
)

MAX_BITS = 50_000
"""Largest numerator or denominator of an exact value, in bits."""
MAX_FACTORIAL = 20_000
"""Largest argument of a factorial that is computed in the finite field."""
MAX_TERMS = 500
"""Longest sum or product that is evaluated term by term with real numbers."""
MAX_EXACT_TERMS = 2000
"""Longest sum or product that is evaluated term by term with integers and rationals."""
MAX_WORK = 20_000
"""Maximum work of a comparison, in units of about 5 microseconds."""
WORK_OF_SEQUENCES = 80_000
"""Additional work that a comparison of integrals, series or limits may take."""


class NotExactError(ArithmeticError):
    """An expression that exact arithmetic cannot handle within its bounds."""


class TooLargeError(NotExactError):
    """A value beyond the bounds of every method."""


class UndefinedError(ArithmeticError):
    """An expression without a value, such as a division by zero."""


class _Work(threading.local):
    """The work that this thread has spent on the current comparison; verdicts depend on this count, not on a clock."""

    spent = 0
    allowed = MAX_WORK


_work = _Work()


def begin_work() -> None:
    """Reset the work of this thread for a new comparison."""
    _work.spent, _work.allowed = 0, MAX_WORK


def allow_sequences() -> None:
    """Allow the current comparison the work that integrals, series and limits take."""
    _work.allowed = MAX_WORK + WORK_OF_SEQUENCES


def spend(units: int) -> None:
    """Count work.

    Raises:
        TooLargeError: If the comparison has used up its allowed work.
    """
    _work.spent += units
    if _work.spent > _work.allowed:
        raise TooLargeError("too expensive to evaluate")


def rational_value(node: Node) -> Fraction:
    """The exact value of a constant rational expression.

    Raises:
        NotExactError: If the value is irrational, depends on a symbol, or exceeds `MAX_BITS`.
        UndefinedError: If there is no value.
    """
    read = _RATIONAL.get(type(node))
    if read is None:
        raise NotExactError(type(node).__name__)
    return read(node)


def rational_or_none(node: Node) -> Fraction | None:
    """The exact value of a constant rational expression; None if `rational_value` raises."""
    try:
        return rational_value(node)
    except (NotExactError, UndefinedError):
        return None


def integer_value(node: Node) -> int:
    """The exact value of a constant integer expression.

    Raises:
        NotExactError: If the value is not an integer, or `rational_value` raises it.
        UndefinedError: If there is no value.
    """
    value = rational_value(node)
    if value.denominator != 1:
        raise NotExactError("not an integer")
    return value.numerator


def _bounded(value: Fraction) -> Fraction:
    bits = max(value.numerator.bit_length(), value.denominator.bit_length())
    if bits > MAX_BITS:
        raise NotExactError("too many bits")
    spend(1 + (bits >> 9) ** 2 // 16)
    return value


def _product(node: Multiply) -> Fraction:
    value = Fraction(1)
    for factor in node.factors:
        value = _bounded(value * rational_value(factor))
    return value


def _quotient(node: Divide) -> Fraction:
    denominator = rational_value(node.denominator)
    if not denominator:
        raise UndefinedError("division by zero")
    return _bounded(rational_value(node.numerator) / denominator)


def rational_power(base: Fraction, exponent: Fraction) -> Fraction:
    """The power of a rational number if it is rational; odd roots of negative numbers are the real roots.

    Raises:
        NotExactError: If the power is irrational or exceeds `MAX_BITS`.
        UndefinedError: For zero to a power that is not positive.
    """
    if exponent.denominator != 1:
        base = exact_root(base, exponent.denominator)
    if not base and exponent <= 0:
        raise UndefinedError("zero to a power that is not positive")
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(base) != 1 and bits * abs(exponent.numerator) > MAX_BITS and base:
        raise NotExactError("too many bits")
    if abs(base) == 1:
        return base if exponent.numerator % 2 else Fraction(1)
    return base**exponent.numerator


def exact_root(value: Fraction, degree: int) -> Fraction:
    """The real root of a rational number, if the root is rational.

    Raises:
        NotExactError: If the root is not rational.
    """
    if degree < 1 or degree > 10_000 or (value < 0 and degree % 2 == 0):
        raise NotExactError("no real root")
    top, bottom = (_integer_root(abs(number), degree) for number in (value.numerator, value.denominator))
    return Fraction(top if value >= 0 else -top, bottom)


def _integer_root(value: int, degree: int) -> int:
    if value < 2:
        return value
    root = math.isqrt(value) if degree == 2 else _newton_root(value, degree)
    if root**degree != value:
        raise NotExactError("an irrational root")
    return root


def _newton_root(value: int, degree: int) -> int:
    if degree >= value.bit_length():
        return 1
    root = 1 << -(-value.bit_length() // degree)
    while True:
        smaller = ((degree - 1) * root + value // root ** (degree - 1)) // degree
        if smaller >= root:
            return root
        root = smaller


def _apply(node: Apply) -> Fraction:
    read = _RATIONAL_FUNCTIONS.get(node.name)
    if read is None:
        raise NotExactError(node.name)
    return _bounded(read(*(rational_value(argument) for argument in node.arguments)))


def _root(value: Fraction, degree: Fraction) -> Fraction:
    if degree.denominator != 1:
        raise NotExactError("a root whose degree is not an integer")
    return exact_root(value, degree.numerator)


def natural(value: Fraction, limit: int) -> int:
    """A value as an integer from 0 to a limit.

    Raises:
        UndefinedError: If the value is not a natural number.
        NotExactError: If the value is above the limit.
    """
    if value.denominator != 1 or value < 0:
        raise UndefinedError("not a natural number")
    if value > limit:
        raise NotExactError("too large to multiply out")
    return value.numerator


def _integers(*values: Fraction) -> list[int]:
    return [natural(abs(value), 10**4000) for value in values]


def _logarithm(value: Fraction, base: Fraction = Fraction(10)) -> Fraction:
    """The logarithm of a rational number, if it is an integer."""
    if value <= 0 or base <= 0 or base == 1:
        raise UndefinedError("a logarithm outside its domain")
    if value == 1:
        return Fraction(0)
    guess = round(
        (math.log2(value.numerator) - math.log2(value.denominator))
        / (math.log2(base.numerator) - math.log2(base.denominator))
    )
    if abs(guess) > 10_000 or rational_power(base, Fraction(guess)) != value:
        raise NotExactError("a logarithm that is not an integer")
    return Fraction(guess)


def _remainder(value: Fraction, modulus: Fraction) -> Fraction:
    if modulus <= 0 or modulus.denominator != 1:
        raise UndefinedError("a modulus that is not a positive integer")
    return value % modulus


_RATIONAL_FUNCTIONS: dict[str, Callable[..., Fraction]] = {
    "root": _root,
    "factorial": lambda value: Fraction(math.factorial(natural(value, 4000))),
    "factorial2": lambda value: Fraction(math.prod(range(natural(value, 6000), 0, -2))),
    "binomial": lambda upper, lower: Fraction(math.comb(natural(upper, 4000), natural(lower, 10**9))),
    "abs": abs,
    "floor": lambda value: Fraction(math.floor(value)),
    "ceil": lambda value: Fraction(math.ceil(value)),
    "gcd": lambda *values: Fraction(math.gcd(*_integers(*values))),
    "lcm": lambda *values: Fraction(math.lcm(*_integers(*values))),
    "max": lambda *values: max(values),
    "min": lambda *values: min(values),
    "log": _logarithm,
    "mod": lambda value, modulus: _remainder(value, modulus),
}


def series_values(node: Series) -> range:
    """The range of the indices of a finite sum or product.

    Raises:
        NotExactError: If a bound is not a constant integer, or there are more than `MAX_EXACT_TERMS` terms.
    """
    lower, upper = integer_value(node.lower), integer_value(node.upper)
    if upper - lower >= MAX_EXACT_TERMS:
        raise NotExactError("too many terms")
    return range(lower, upper + 1)


def substitute(node: Node, name: str, value: Node) -> Node:
    """An expression with a symbol replaced by a value; an integer also replaces the symbol as an index, as the `n` of `a_n`.

    An index named `i` or `e` appears in the tree as the constant of this name.
    """
    integer = value.value if isinstance(value, Number) and value.value.denominator == 1 else None

    def replaced(leaf: Node) -> Node | None:
        if not isinstance(leaf, Symbol | Constant):
            return None
        if integer is not None and leaf.name.endswith(f"_{name}"):
            return Symbol(f"{leaf.name.removesuffix(name)}{integer}")
        return value if leaf.name == name else None

    return rewrite(node, replaced)


def indexes_names(node: Series) -> bool:
    """Whether the index of a series is also an index of names, such as the coefficients `a_n`, whose values are unknown."""
    return any(name.endswith(f"_{node.index}") for name in symbols(node.body))


def _series(node: Series) -> Fraction:
    total = Fraction(node.kind == "product")
    for index in series_values(node):
        spend(4)
        term = rational_value(substitute(node.body, node.index, signed_number(index)))
        total = _bounded(total + term if node.kind == "sum" else total * term)
    return total


def signed_number(value: int) -> Node:
    """An integer as a tree."""
    return Number(Fraction(value)) if value >= 0 else Negate(Number(Fraction(-value)))


_RATIONAL: dict[type[Node], Callable[..., Fraction]] = {
    Number: lambda node: node.value,
    Mixed: lambda node: node.value,
    Negate: lambda node: -rational_value(node.value),
    Percent: lambda node: rational_value(node.value) / 100,
    BasedNumber: lambda node: based_value(node),
    Add: lambda node: _bounded(sum((rational_value(term) for term in node.terms), Fraction(0))),
    Multiply: _product,
    Divide: _quotient,
    Power: lambda node: rational_power(rational_value(node.base), rational_value(node.exponent)),
    Apply: _apply,
    Series: _series,
}


def based_value(node: BasedNumber) -> Fraction:
    """The value of a numeral in its base."""
    whole, _, fraction = node.digits.partition(".")
    value = Fraction(int(whole, node.base))
    return value + Fraction(int(fraction, node.base), node.base ** len(fraction)) if fraction else value
