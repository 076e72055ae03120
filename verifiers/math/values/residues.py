"""Images of expressions in a finite field, which decide identities.

`residue` maps an expression to a prime field by a ring homomorphism: free symbols, pi and e are mapped to fixed pseudo-random
residues, i to a square root of -1, and square roots of integers to consistent square roots. Equal expressions have equal
residues, so unequal residues prove a difference; for expressions of the size that is read here, equal residues prove equality
up to a probability of error below 2**-90 (Schwartz 1980, Zippel 1979).
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable
from fractions import Fraction

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
)
from verifiers.math.values.exact import (
    MAX_FACTORIAL,
    NotExactError,
    UndefinedError,
    based_value,
    natural,
    rational_value,
    series_values,
    signed_number,
    spend,
    substitute,
)

# The finite field. PRIME is 1 modulo 8 and modulo every odd prime up to 97, so that by quadratic reciprocity -1, 2 and all of
# these primes have square roots.
_ODD_PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)
PRIME = 5 * 8 * math.prod(_ODD_PRIMES) + 1
_LARGEST_TRIAL_DIVISOR = 1000


def residue(node: Node, sample: int = 0) -> int:
    """The image of an expression in the prime field.

    Args:
        node: The expression.
        sample: Selects the residues of the symbols.

    Raises:
        NotExactError: If the homomorphism is not defined for a part of the expression.
        UndefinedError: If the expression has no value, as in a division by zero.
    """
    read = _RESIDUES.get(type(node))
    if read is None:
        raise NotExactError(type(node).__name__)
    return read(node, sample)


@functools.lru_cache(maxsize=4096)
def _symbol_residue(name: str, sample: int) -> int:
    return int.from_bytes(hashlib.blake2b(f"{sample}:{name}".encode(), digest_size=32).digest(), "big") % PRIME


@functools.lru_cache(maxsize=4096)
def square_root(value: int) -> int:
    """A square root modulo `PRIME`, by Tonelli and Shanks.

    Raises:
        NotExactError: If there is no square root.
    """
    if pow(value, (PRIME - 1) // 2, PRIME) != 1:
        raise NotExactError("no square root in the field")
    odd, twos = PRIME - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    non_residue = next(candidate for candidate in range(2, 10_000) if pow(candidate, (PRIME - 1) // 2, PRIME) != 1)
    factor, root, rest = pow(non_residue, odd, PRIME), pow(value, (odd + 1) // 2, PRIME), pow(value, odd, PRIME)
    while rest != 1:
        order, power = 0, rest
        while power != 1:
            order, power = order + 1, power * power % PRIME
        step = pow(factor, 1 << (twos - order - 1), PRIME)
        twos, factor = order, step * step % PRIME
        root, rest = root * step % PRIME, rest * factor % PRIME
    return root


@functools.lru_cache(maxsize=4096)
def _integer_square_root(value: int) -> int:
    """The image of the square root of a positive integer, which is multiplicative in the prime factors."""
    root = 1
    for divisor in (2, *range(3, _LARGEST_TRIAL_DIVISOR, 2)):
        if divisor * divisor > value:
            break
        while value % divisor == 0:
            value //= divisor
            if value % divisor == 0:
                value //= divisor
                root = root * divisor % PRIME
            else:
                root = root * square_root(divisor) % PRIME
                break
    if value >= _LARGEST_TRIAL_DIVISOR**2:
        raise NotExactError("a radicand that is not factored")
    return root * square_root(value) % PRIME if value > 1 else root


def _inverse(value: int) -> int:
    if value % PRIME == 0:
        raise UndefinedError("division by zero")
    return pow(value, -1, PRIME)


def _fraction_residue(value: Fraction) -> int:
    return value.numerator * _inverse(value.denominator) % PRIME


def _constant_residue(node: Constant, sample: int) -> int:
    if node.name == "inf":
        raise NotExactError("infinity")
    return square_root(PRIME - 1) if node.name == "i" else _symbol_residue(f"constant {node.name}", sample)


def _product_residue(node: Multiply, sample: int) -> int:
    value = 1
    for factor in node.factors:
        value = value * residue(factor, sample) % PRIME
    return value


def _power_residue(node: Power, sample: int) -> int:
    exponent = rational_value(node.exponent)
    spend(exponent.numerator.bit_length() >> 4)
    if exponent.denominator == 2 and exponent.numerator.bit_length() < 64:
        return _signed_power(_root_residue(node.base), exponent.numerator)
    if exponent.denominator != 1:
        raise NotExactError("a fractional power")
    base = residue(node.base, sample)
    if exponent <= 0 and not base:
        raise UndefinedError("zero to a power that is not positive")
    return _signed_power(base, exponent.numerator)


def _signed_power(base: int, exponent: int) -> int:
    power = pow(base, abs(exponent), PRIME)
    return _inverse(power) if exponent < 0 else power


def _root_residue(radicand: Node) -> int:
    """The image of the square root of a constant rational number; for a negative number, it is a multiple of i."""
    value = rational_value(radicand)
    if max(abs(value.numerator), value.denominator).bit_length() > 200:
        raise NotExactError("a radicand that is not factored")
    root = _integer_square_root(abs(value.numerator) * value.denominator) if value else 0
    root = root * _inverse(value.denominator) % PRIME
    return root * square_root(PRIME - 1) % PRIME if value < 0 else root


def _apply_residue(node: Apply, sample: int) -> int:
    if node.name == "root" and node.arguments[1] == Number(Fraction(2)):
        return _root_residue(node.arguments[0])
    if node.name in ("factorial", "factorial2"):
        top = natural(rational_value(node.arguments[0]), MAX_FACTORIAL)
        value = 1
        spend(top // 20)
        for factor in range(top, 1, -1 if node.name == "factorial" else -2):
            value = value * factor % PRIME
        return value
    return _fraction_residue(rational_value(node))


def _unknown_residue(node: Unknown, sample: int) -> int:
    arguments = ",".join(str(residue(argument, sample)) for argument in node.arguments)
    return _symbol_residue(f"{node.name}({arguments})", sample)


def _series_residue(node: Series, sample: int) -> int:
    total = int(node.kind == "product")
    for index in series_values(node):
        spend(4)
        term = residue(substitute(node.body, node.index, signed_number(index)), sample)
        total = (total + term if node.kind == "sum" else total * term) % PRIME
    return total


_RESIDUES: dict[type[Node], Callable[..., int]] = {
    Number: lambda node, sample: _fraction_residue(node.value),
    Mixed: lambda node, sample: _fraction_residue(node.value),
    Negate: lambda node, sample: -residue(node.value, sample) % PRIME,
    Percent: lambda node, sample: residue(node.value, sample) * _inverse(100) % PRIME,
    Degrees: lambda node, sample: (
        residue(node.value, sample) * _symbol_residue("constant pi", sample) * _inverse(180) % PRIME
    ),
    BasedNumber: lambda node, sample: _fraction_residue(based_value(node)),
    Constant: _constant_residue,
    Symbol: lambda node, sample: _symbol_residue(node.name, sample),
    Add: lambda node, sample: sum(residue(term, sample) for term in node.terms) % PRIME,
    Multiply: _product_residue,
    Divide: lambda node, sample: residue(node.numerator, sample) * _inverse(residue(node.denominator, sample)) % PRIME,
    Power: _power_residue,
    Apply: _apply_residue,
    Unknown: _unknown_residue,
    Series: _series_residue,
}
