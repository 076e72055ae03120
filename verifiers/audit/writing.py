"""Expressions and numbers as text, in several notations."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from verifiers.audit.expressions import PI, Expression, Monomial

Notation = Literal["latex", "plain"]


def write(expression: Expression, notation: Notation = "latex", *, backwards: bool = False) -> str:
    r"""Write a sum of terms, the terms of highest degree first.

    Args:
        expression: The expression to write.
        notation: `"latex"` (`\frac{3}{2}\sqrt{5}`) or `"plain"` (`3*sqrt(5)/2`).
        backwards: Whether the terms come in reverse order.
    """
    order = sorted(expression.terms.items(), key=lambda term: (-term[0].degree, term[0]))
    text = ""
    for monomial, value in reversed(order) if backwards else order:
        sign = "-" if value < 0 else "+" if text else ""
        text += sign + (_latex_term if notation == "latex" else _plain_term)(monomial, abs(value))
    return text or "0"


def _latex_term(monomial: Monomial, value: Fraction) -> str:
    factors = _factors(monomial, "\\sqrt{%d}", "^{%d}")
    if any(power < 0 for _, power in monomial.powers):
        below = _over_pi(monomial)
        above = " ".join(([str(value.numerator)] if value.numerator != 1 or not factors else []) + factors)
        return f"\\frac{{{above}}}{{{value.denominator if value.denominator != 1 else ''}{below}}}"
    if not factors:
        return latex_fraction(value)
    return " ".join(([latex_fraction(value)] if value != 1 else []) + factors)


def _plain_term(monomial: Monomial, value: Fraction) -> str:
    factors = [factor.replace(PI, "pi") for factor in _factors(monomial, "sqrt(%d)", "^%d")]
    if value.numerator != 1 or not factors:
        factors.insert(0, str(value.numerator))
    below = _over_pi(monomial).replace(PI, "pi")
    divisors = ([str(value.denominator)] if value.denominator != 1 else []) + ([below] if below else [])
    return "*".join(factors) + "".join(f"/{divisor}" for divisor in divisors)


def _factors(monomial: Monomial, root: str, exponent: str) -> list[str]:
    factors = [root % monomial.radicand] if monomial.radicand != 1 else []
    factors += [name + (exponent % power if power != 1 else "") for name, power in monomial.powers if power > 0]
    return factors + (["i"] if monomial.imaginary else [])


def _over_pi(monomial: Monomial) -> str:
    power = -dict(monomial.powers).get(PI, 0)
    return "" if power <= 0 else PI + (f"^{power}" if power != 1 else "")


def latex_fraction(value: Fraction) -> str:
    r"""A rational number: `-\frac{1}{2}`, or an integer in digits."""
    if value.denominator == 1:
        return str(value.numerator)
    return f"{'-' if value < 0 else ''}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


def terminating_decimal(value: Fraction) -> str | None:
    """The exact decimal of a rational number; None if it repeats or has more than 30 places."""
    for places in range(31):
        scaled = value * 10**places
        if scaled.denominator == 1:
            digits = str(abs(scaled.numerator)).rjust(places + 1, "0")
            whole = digits[:-places] + "." + digits[-places:] if places else digits
            return ("-" if value < 0 else "") + whole
    return None
