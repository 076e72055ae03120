"""Exact polynomials over square roots and i: the audit's own mathematics, independent of any verifier under audit.

An `Expression` is a sum of terms, each a rational times the root of a square-free integer, times 1 or i, times powers of
symbols (π is one of them: it satisfies no polynomial equation). Such terms are linearly independent over the rationals, so
two expressions are equal exactly when their terms are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction

PI = "\\pi"
_PI_DIGITS = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
_MAX_TERMS = 64
_MAX_POWER = 12
_MAX_RADICAND = 10**6


class NotExpressibleError(ValueError):
    """A value that an `Expression` can't represent, or that would become too large."""


@dataclass(frozen=True, slots=True, order=True)
class Monomial:
    """The part of a term besides its rational coefficient."""

    powers: tuple[tuple[str, int], ...] = ()
    """Symbols with their exponents, sorted by name; only π may have a negative exponent."""
    radicand: int = 1
    """A square-free positive integer, whose square root is a factor."""
    imaginary: bool = False

    @property
    def degree(self) -> int:
        """The sum of the exponents of symbols other than π."""
        return sum(power for name, power in self.powers if name != PI)


ONE = Monomial()


@dataclass(frozen=True, slots=True)
class Expression:
    """A sum of rational multiples of monomials; no coefficient is zero."""

    terms: Mapping[Monomial, Fraction] = field(default_factory=dict)

    @classmethod
    def of(cls, pairs: Iterable[tuple[Monomial, Fraction]]) -> Expression:
        """Add up terms.

        Raises:
            NotExpressibleError: If there are too many terms.
        """
        terms: dict[Monomial, Fraction] = {}
        for monomial, coefficient in pairs:
            terms[monomial] = terms.get(monomial, Fraction(0)) + coefficient
        terms = {monomial: value for monomial, value in terms.items() if value}
        if len(terms) > _MAX_TERMS:
            raise NotExpressibleError(f"more than {_MAX_TERMS} terms")
        return cls(terms)

    @classmethod
    def constant(cls, value: Fraction | int) -> Expression:
        """A rational number as an expression."""
        return cls.of([(ONE, Fraction(value))])

    def __add__(self, other: Expression) -> Expression:
        return Expression.of([*self.terms.items(), *other.terms.items()])

    def __neg__(self) -> Expression:
        return Expression({monomial: -value for monomial, value in self.terms.items()})

    def __sub__(self, other: Expression) -> Expression:
        return self + -other

    def __mul__(self, other: Expression) -> Expression:
        return Expression.of(_product(one, two) for one in self.terms.items() for two in other.terms.items())

    def __truediv__(self, other: Expression) -> Expression:
        if len(other.terms) != 1:
            raise NotExpressibleError("division by a sum or by zero")
        ((monomial, value),) = other.terms.items()
        if monomial.degree:
            raise NotExpressibleError("division by a symbol")
        # 1/√r = √r/r and 1/i = -i
        sign = -1 if monomial.imaginary else 1
        powers = tuple((name, -power) for name, power in monomial.powers)
        inverse = Monomial(powers, monomial.radicand, monomial.imaginary)
        return self * Expression({inverse: Fraction(sign, monomial.radicand) / value})

    def __pow__(self, exponent: int) -> Expression:
        if not 0 <= exponent <= _MAX_POWER:
            raise NotExpressibleError(f"exponents from 0 to {_MAX_POWER} only")
        result = Expression.constant(1)
        for _ in range(exponent):
            result = result * self
        return result

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and dict(self.terms) == dict(other.terms)

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    @property
    def rational(self) -> Fraction | None:
        """The value if it is a rational number, else None."""
        return self.terms.get(ONE, Fraction(0)) if set(self.terms) <= {ONE} else None

    @property
    def symbols(self) -> frozenset[str]:
        """The names of the symbols other than π."""
        return frozenset(name for monomial in self.terms for name, _ in monomial.powers if name != PI)

    @property
    def is_real_constant(self) -> bool:
        """Whether the expression is a real number."""
        return not self.symbols and not any(monomial.imaginary for monomial in self.terms)

    def decimal(self, digits: int) -> Decimal:
        """The value of a real constant, rounded to `digits` significant digits (at most 30)."""
        with localcontext() as context:
            context.prec = 50
            total = sum((_real(monomial) * _quotient(value) for monomial, value in self.terms.items()), Decimal(0))
            context.prec = digits
            return +total


def square_root(radicand: int) -> Expression:
    """The square root of an integer; imaginary if the integer is negative.

    Raises:
        NotExpressibleError: If the integer is too large to find its square factors.
    """
    if abs(radicand) > _MAX_RADICAND:
        raise NotExpressibleError("a large radicand")
    outer, inner = _square_part(abs(radicand))
    return Expression.of([(Monomial((), inner, radicand < 0), Fraction(outer))])


def symbol(name: str) -> Expression:
    """A symbol as an expression; `"i"` is the imaginary unit."""
    return Expression({Monomial((), 1, True) if name == "i" else Monomial(((name, 1),)): Fraction(1)})


def _square_part(number: int) -> tuple[int, int]:
    """The numbers a, b with a²·b = number and b square-free; (0, 1) for zero."""
    outer, inner, factor = 1, number, 2
    if not number:
        return 0, 1
    while factor * factor <= inner:
        while inner % (factor * factor) == 0:
            inner //= factor * factor
            outer *= factor
        factor += 1
    return outer, inner


def _product(one: tuple[Monomial, Fraction], two: tuple[Monomial, Fraction]) -> tuple[Monomial, Fraction]:
    (left, first), (right, second) = one, two
    outer, inner = _square_part(left.radicand * right.radicand)
    powers = dict(left.powers)
    for name, power in right.powers:
        powers[name] = powers.get(name, 0) + power
    if max(map(abs, powers.values()), default=0) > _MAX_POWER or inner > _MAX_RADICAND:
        raise NotExpressibleError("a high power or a large radicand")
    sign = -1 if left.imaginary and right.imaginary else 1
    kept = tuple(sorted((name, power) for name, power in powers.items() if power))
    return Monomial(kept, inner, left.imaginary != right.imaginary), sign * outer * first * second


def _quotient(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _real(monomial: Monomial) -> Decimal:
    return Decimal(monomial.radicand).sqrt() * _PI_DIGITS ** dict(monomial.powers).get(PI, 0)
