r"""Mathematical problems with golds that are known by construction: numbers, expressions, sets, intervals, families, words.

Each subject draws a problem and knows its value. Right rewritings and near misses are written from the value;
`verifiers.audit.transformations`, in contrast, starts from the text of a data set's gold. Labels follow from mathematics:
variations that graders may judge differently (units left out, roundings, brackets) are excluded.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Drawn:
    """A problem with its gold, other right answers, and wrong answers."""

    prompt: str
    gold: str
    right: tuple[str, ...]
    wrong: tuple[str, ...]
    single: bool = True
    """Whether the gold is one value, so that `A or B` is a hedge rather than a set."""


Subject = Callable[[random.Random], Drawn]
SUBJECTS: dict[str, Subject] = {}
"""Every subject by name."""


def subject(draw: Subject) -> Subject:
    """Register a function that draws problems, under its own name."""
    SUBJECTS[draw.__name__.strip("_").replace("_", " ")] = draw
    return draw


def not_zero(rng: random.Random, bound: int) -> int:
    """An integer from -bound to bound, except 0."""
    return rng.choice([-1, 1]) * rng.randint(1, bound)


def term(coefficient: int, symbol: str, *, first: bool = False) -> str:
    """A term of a sum, with its sign; the symbol may be empty."""
    if not coefficient:
        return ""
    sign = "-" if coefficient < 0 else "" if first else "+"
    return f"{sign}{'' if symbol and abs(coefficient) == 1 else abs(coefficient)}{symbol}"


def quadratic(a: int, b: int, c: int) -> str:
    """The polynomial ax²+bx+c."""
    return term(a, "x^2", first=True) + term(b, "x") + term(c, "")


def without_square(rng: random.Random, bound: int) -> int:
    """A number above 1 that no square divides."""
    return rng.choice([n for n in range(2, bound) if all(n % (k * k) for k in range(2, n))])
