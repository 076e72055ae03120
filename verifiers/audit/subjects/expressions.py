"""Roots, multiples of pi, logarithms, complex numbers, polynomials, rational functions and lines."""

from __future__ import annotations

import random
from fractions import Fraction

from verifiers.audit.subjects.drawn import Drawn, not_zero, quadratic, subject, term, without_square
from verifiers.audit.writing import latex_fraction, terminating_decimal

# Irrational and complex numbers


@subject
def _root(rng: random.Random) -> Drawn:
    k, (s, t) = rng.randint(2, 9), rng.choice([(1, 1), (1, 2), (2, 3), (1, 4), (3, 5), (2, 5), (1, 6)])
    m = s * s + t * t
    right = (
        f"\\sqrt{{{k * k * m}}}",
        f"\\sqrt{{{m}}}\\cdot {k}",
        f"\\frac{{{k * m}}}{{\\sqrt{{{m}}}}}",
        f"{k}\\cdot\\sqrt{{{m}}}",
        f"{k} \\cdot {m}^{{1/2}}",
        f"{k} \\cdot {m}^{{0.5}}",
        f"{k} \\, \\sqrt {{{m}}}",
        f"\\sqrt{{{k * k}\\cdot {m}}}",
    )
    wrong = (
        f"{k}\\sqrt{{{m + 1}}}",
        f"{k + 1}\\sqrt{{{m}}}",
        f"\\sqrt{{{k * m}}}",
        f"{k}+\\sqrt{{{m}}}",
        f"{k * m}",
        f"-{k}\\sqrt{{{m}}}",
    )
    prompt = f"How long is the diagonal of a rectangle with the sides {k * s} and {k * t}?"
    return Drawn(prompt, f"{k}\\sqrt{{{m}}}", right, wrong)


@subject
def _quotient_with_root(rng: random.Random) -> Drawn:
    p, q, r = not_zero(rng, 9), without_square(rng, 40), rng.randint(2, 9)
    gold = f"\\frac{{{p}+\\sqrt{{{q}}}}}{{{r}}}"
    right = (
        f"{latex_fraction(Fraction(p, r))}+\\frac{{\\sqrt{{{q}}}}}{{{r}}}",
        f"\\frac{{\\sqrt{{{q}}}{term(p, '')}}}{{{r}}}",
        f"\\frac{{1}}{{{r}}}\\left({p}+\\sqrt{{{q}}}\\right)",
        f"\\dfrac{{{2 * p}+2\\sqrt{{{q}}}}}{{{2 * r}}}",
        f"\\frac{{{q - p * p}}}{{{r}(\\sqrt{{{q}}}{term(-p, '')})}}",
        f"({p}+\\sqrt{{{q}}})/{r}",
    )
    wrong = (
        f"\\frac{{{p}-\\sqrt{{{q}}}}}{{{r}}}",
        f"{p}+\\frac{{\\sqrt{{{q}}}}}{{{r}}}",
        f"\\frac{{{p}+\\sqrt{{{q}}}}}{{{r + 1}}}",
        f"\\frac{{{-p}+\\sqrt{{{q}}}}}{{{r}}}",
        f"\\frac{{{p}+{q}}}{{{r}}}",
    )
    return Drawn(f"What is the larger root of ${quadratic(r * r, -2 * p * r, p * p - q)}=0$?", gold, right, wrong)


@subject
def _multiple_of_pi(rng: random.Random) -> Drawn:
    radius = Fraction(rng.choice([1, 3, 5, 7, 9, 11]), rng.choice([2, 4, 8]))
    a, b = (radius * radius).numerator, (radius * radius).denominator
    right = (
        f"\\frac{{{a}\\pi}}{{{b}}}",
        f"\\pi\\cdot\\frac{{{a}}}{{{b}}}",
        f"{terminating_decimal(Fraction(a, b))}\\pi",
        f"\\frac{{\\pi}}{{{b}}}\\cdot {a}",
        f"{a}\\pi/{b}",
        f"\\left(\\frac{{{radius.numerator}}}{{{radius.denominator}}}\\right)^2\\pi",
    )
    wrong = (
        f"{latex_fraction(radius)}\\pi",
        f"\\frac{{{a}}}{{{b}}}",
        f"\\frac{{{a}\\pi}}{{{b + 1}}}",
        f"\\frac{{{a}}}{{{b}\\pi}}",
        f"\\frac{{{a}}}{{{b}}}\\pi^2",
    )
    gold = f"\\frac{{{a}}}{{{b}}}\\pi"
    return Drawn(f"What is the area of a circle of radius ${terminating_decimal(radius)}$?", gold, right, wrong)


@subject
def _logarithm(rng: random.Random) -> Drawn:
    a, b = rng.randint(2, 5), rng.randint(1, 3)
    number = 2**a * 3**b
    threes = "\\ln 3" if b == 1 else f"{b}\\ln 3"
    right = (
        f"{a}\\ln 2+{threes}",
        f"\\ln({number})",
        f"{threes} + {a}\\ln 2",
        f"\\ln {2**a}+\\ln {3**b}",
        f"\\log_e {number}",
        f"\\ln\\left(2^{a}\\cdot 3^{b}\\right)",
        f"-\\ln\\frac{{1}}{{{number}}}",
    )
    wrong = (f"\\ln {number + 1}", f"{a}\\ln 2-{threes}", f"\\log_{{10}} {number}", f"\\ln {2**a + 3**b}", f"{number}")
    return Drawn(f"For which real $x$ is $e^x={number}$?", f"\\ln {number}", right, wrong)


@subject
def _complex_number(rng: random.Random) -> Drawn:
    p, q, r, s = (not_zero(rng, 7) for _ in range(4))
    a, b = p * r - q * s, p * s + q * r
    if not a or not b or abs(a) == abs(b):
        a, b = 5, -2
    left, right_factor = f"{p}{term(q, 'i')}", f"{r}{term(s, 'i')}"
    prompt = f"What is $({left})({right_factor})$?" if (a, b) != (5, -2) else "What is $(2+i)(2-i)-2i$?"
    wrong = (
        f"{a}{term(-b, 'i')}",
        f"{-a}{term(b, 'i')}",
        f"{b}{term(a, 'i')}",
        f"{a}",
        f"{a + b}",
    )
    return Drawn(
        prompt,
        f"{a}{term(b, 'i')}",
        (
            f"{term(b, 'i', first=True)}{term(a, '')}",
            f"{a}{'+' if b > 0 else '-'}{abs(b)}\\,i",
            f"-({-a}{term(-b, 'i')})",
            f"{a}+({b})i",
        ),
        wrong,
    )


# Expressions


@subject
def _polynomial(rng: random.Random) -> Drawn:
    a, b = rng.sample([n for n in range(-9, 10) if n], 2)
    if a + b == 0:
        b += 1 if b + 1 else 2
    total, product = a + b, a * b
    half = Fraction(-total, 2)
    right = (
        f"(x{term(-a, '')})(x{term(-b, '')})",
        f"(x{term(-b, '')})(x{term(-a, '')})",
        f"x(x{term(-total, '')}){term(product, '')}",
        f"\\left(x{term(-a, '')}\\right) \\cdot \\left(x{term(-b, '')}\\right)",
        f"p(x) = {quadratic(1, -total, product)}",
        f"{term(product, '', first=True)}{term(-total, 'x')}+x^2",
        f"\\left(x{'+' if half > 0 else ''}{latex_fraction(half)}\\right)^2-{latex_fraction(half * half - product)}",
    )
    wrong = (
        quadratic(1, total, product),
        quadratic(1, -total, -product),
        quadratic(1, -total, product + 1),
        quadratic(1, -total + 1, product),
        f"(x{term(a, '')})(x{term(b, '')})",
        quadratic(1, -total, product).replace("^2", "^3"),
        quadratic(2, -total, product),
    )
    prompt = f"Which monic quadratic polynomial in $x$ has the roots {a} and {b}?"
    return Drawn(prompt, quadratic(1, -total, product), right, wrong)


@subject
def _rational_function(rng: random.Random) -> Drawn:
    a, b = rng.sample([n for n in range(-9, 10) if n], 2)
    above, below = f"x{term(b, '')}", f"x{term(a, '')}"
    right = (
        f"1{'+' if b > a else '-'}\\frac{{{abs(b - a)}}}{{{below}}}",
        f"\\frac{{-x{term(-b, '')}}}{{-x{term(-a, '')}}}",
        f"({above})({below})^{{-1}}",
        f"\\frac{{2x{term(2 * b, '')}}}{{2x{term(2 * a, '')}}}",
        f"\\frac{{x}}{{{below}}}{'+' if b > 0 else '-'}\\frac{{{abs(b)}}}{{{below}}}",
        f"y=\\frac{{{above}}}{{{below}}}",
        f"({above})/({below})",
    )
    wrong = (
        f"\\frac{{{below}}}{{{above}}}",
        f"\\frac{{x{term(-b, '')}}}{{{below}}}",
        f"\\frac{{{above}}}{{x{term(-a, '')}}}",
        f"-\\frac{{{above}}}{{{below}}}",
        f"({above})({below})",
    )
    prompt = f"For which $y$, in terms of $x$, is $({below})y={above}$?"
    return Drawn(prompt, f"\\frac{{{above}}}{{{below}}}", right, wrong)


@subject
def _line(rng: random.Random) -> Drawn:
    slope, start = rng.randint(2, 9), not_zero(rng, 9)
    if slope == start:
        start += 1
    right = (
        f"y={start}+{slope}x",
        f"y = {slope}x{term(start, '')}",
        f"{slope}x-y{term(start, '')}=0",
        f"y{term(-start, '')}={slope}x",
        f"y-{slope}x={start}",
        f"{slope}x{term(start, '')}=y",
    )
    wrong = (
        f"y={slope}x{term(-start, '')}",
        f"y=-{slope}x{term(start, '')}",
        f"y={slope + 1}x{term(start, '')}",
        f"y={term(start, 'x', first=True)}+{slope}",
        f"y={slope}x^2{term(start, '')}",
    )
    prompt = f"What is the equation of the line with slope {slope} through $(0,{start})$?"
    return Drawn(prompt, f"y={slope}x{term(start, '')}", right, wrong)
