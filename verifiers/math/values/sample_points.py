"""The points at which expressions with symbols are evaluated for comparison.

A few random points distinguish smooth expressions. Expressions with an absolute value, a floor or an even root are piecewise:
they need points on both sides of every position where a piece may end. Expressions with factorials are defined only at
integers.

Two different analytic expressions agree at a random point with probability 0, up to the precision of evaluation. Two different
step functions agree at most points, so they are compared at points where off-by-one answers differ: at all small integers; next
to the powers and multiples at which logarithms and quotients step; and, if there is only one symbol, on both sides of jumps
that bisection finds between points with different values (`verifiers.math.values.numeric`).

Points depend on the order in which symbols occur and not on their letters, so that renaming symbols changes no verdict. There
are two exceptions, by convention: `n`, `m`, `k` and `j` in a floor or a ceiling are integers, and `z` and `w` with a modulus
or a conjugate are complex.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from verifiers.math.forms import is_integer_literal
from verifiers.math.tree import Apply, Negate, Node, Number, Power, Series, Symbol, symbols, walk
from verifiers.math.values.exact import MAX_WORK, rational_or_none
from verifiers.math.vocabulary import COMPLEX_NAMES

SAMPLES = 6
"""Number of points for a smooth expression; the last `SIGNED_SAMPLES` of them also have negative coordinates."""
SIGNED_SAMPLES = 3
INTEGER_SAMPLES = 12
"""Number of points with integer coordinates; those in the first half are small."""
MAX_PIECE_SAMPLES = 24
MAX_STEP_SAMPLES = 160
"""Maximum number of points for an expression with steps in one symbol."""
MANY_SYMBOLS_STEP_SAMPLES = 96
"""Number of points for an expression with steps in several symbols, with random coordinates."""
_SMALL_INTEGERS, _INTEGERS = 9, 47  # numbers of integers, from 3 on, from which coordinates are drawn
_ALL_INTEGERS = 40  # an expression with steps in one symbol is compared at every integer from 1 to this
_BASES, _MAX_STEP = (2, 3, 10), 10_000  # points are next to powers of these and of the constants, up to this limit
_MULTIPLES = 3
_HALVES = (4, 5, -3, -6)  # coordinates for steps: half of each of these, shifted by an integer
_MAX_INTEGER = 1000
_MAX_LANDMARK = 10**15
_MAX_PARTS = 200  # maximum number of nodes that are searched for landmarks
_MAX_QUOTIENTS = 4  # up to this many constants are divided by each other, for the breakpoints of |2x-3|
_DISCRETE = frozenset(("factorial", "factorial2", "binomial", "gcd", "lcm"))
STEPS = frozenset(("floor", "ceil"))
"""Functions whose values jump."""
_PERIODIC = frozenset(("gcd", "lcm", "mod"))
_ORDERED = STEPS | {"abs", "max", "min", "sgn"}
_INTEGER_NAMES = frozenset("nmkjNMK")
_PIECEWISE = STEPS | {"abs", "max", "min", "sgn", "root", "ln", "log", "arcsin", "arccos", "arctan", "arccot"}


@dataclass(frozen=True, slots=True)
class SamplePoints:
    """Deterministic pseudo-random points; the point's number and the symbol's name determine a coordinate."""

    names: tuple[str, ...] = ()
    """The symbols, in order of occurrence."""
    count: int = SAMPLES
    integers: int = 0
    """Number of integers, from 3 on, from which coordinates are drawn; 0 if coordinates are real."""
    beside_steps: tuple[int, ...] = ()
    """Integers at or just after a possible jump, in ascending order; empty if nothing jumps."""
    landmarks: tuple[Fraction, ...] = ()
    """Sorted numbers that delimit the pieces; the coordinates of the points for pieces lie between and beyond them."""
    pieces: int = 0
    """Number of points, from number `SAMPLES` on, that lie between landmarks; later points lie next to steps."""
    complex_names: frozenset[str] = frozenset()
    """Symbols with complex coordinates."""
    fixed: Fraction | None = None
    """The value of all coordinates, if they are fixed."""
    lenient: bool = False
    """Whether an answer may be real on a smaller domain than the gold, such as `ln x + ln y` for `ln(xy)`."""

    def coordinate(self, context: Any, sample: int, name: str) -> Any:
        """The coordinate of a symbol at a point, as a number of an mpmath context."""
        if self.fixed is not None:
            return number(context, self.fixed)
        noise = zlib.crc32(f"{sample}:{self.names.index(name)}".encode())
        if self.integers and self.beside_steps:
            return context.mpf(self._beside_step(sample, noise))
        if self.integers:
            return context.mpf(3 + noise % (self.integers if sample >= INTEGER_SAMPLES // 2 else _SMALL_INTEGERS))
        if name in self.complex_names:
            return context.mpc(noise % 1009, noise % 1013) / 500 - context.mpc(1, 1)
        if self.beside_steps and sample < len(_HALVES):
            return context.mpf(_HALVES[sample]) / 2 + noise % 3
        if SAMPLES <= sample < SAMPLES + self.pieces:
            return self._between_landmarks(context, sample, noise)
        if sample >= SAMPLES:
            step, fraction = self._beside_step(sample - SAMPLES - self.pieces, noise), context.mpf(noise % 997) / 997
            return (-step if noise >> 21 & 1 else step) + fraction * (noise >> 20 & 1)
        value = context.mpf(noise % 3_000_017) / 1_000_003 + context.mpf(1) / 4
        return -value if self.is_signed(sample) and noise >> 20 & 1 else value

    def at(self, value: Fraction) -> SamplePoints:
        """Points with all coordinates equal to a number."""
        return replace(self, fixed=value)

    def is_signed(self, sample: int) -> bool:
        """Whether coordinates of the point may be negative."""
        return not self.integers and sample >= SAMPLES - SIGNED_SAMPLES

    def _beside_step(self, sample: int, noise: int) -> int:
        """An integer next to a step: for one symbol, each in turn; for several, alternately a small integer and any integer."""
        if len(self.names) == 1:
            return self.beside_steps[sample % len(self.beside_steps)]
        reach = len(self.beside_steps) if sample % 2 else min(_SMALL_INTEGERS, len(self.beside_steps))
        return self.beside_steps[(noise >> 4) % reach]

    def _between_landmarks(self, context: Any, sample: int, noise: int) -> Any:
        index = (sample - SAMPLES if len(self.names) == 1 else noise >> 8) % (len(self.landmarks) + 1)
        fraction = context.mpf(1 + noise % 997) / 1009
        if index == 0:
            return -_beyond(context, abs(self.landmarks[0]), fraction)
        if index == len(self.landmarks):
            return _beyond(context, abs(self.landmarks[-1]), fraction)
        low, high = self.landmarks[index - 1 : index + 1]
        return number(context, low) + number(context, high - low) * fraction


def number(context: Any, value: Fraction) -> Any:
    """A rational number as a number of an mpmath context."""
    return context.mpf(value.numerator) / value.denominator


def _beyond(context: Any, end: Fraction, fraction: Any) -> Any:
    return number(context, end) * (1 + fraction) + 3 * fraction


def sampling_for(gold: Node, answer: Node) -> SamplePoints:
    """The points for comparing two expressions with symbols."""
    nodes = [*walk(gold), *walk(answer)]
    names = tuple(dict.fromkeys(node.name for node in nodes if isinstance(node, Symbol)))
    steps = any(isinstance(node, Apply) and node.name in STEPS for node in nodes)
    periodic = any(isinstance(node, Apply) and node.name in _PERIODIC and symbols(node) for node in nodes)
    beside_steps = _beside_steps(nodes) if steps or periodic else ()
    affordable = max(INTEGER_SAMPLES, MAX_WORK // (16 * len(nodes)))
    step_samples = min(MANY_SYMBOLS_STEP_SAMPLES if len(names) > 1 else len(beside_steps), affordable)
    if any(_needs_integers(node) for node in nodes) or (steps and _INTEGER_NAMES.issuperset(names)):
        constants = [int(node.value) for node in nodes if isinstance(node, Number) and node.value <= _MAX_INTEGER]
        reach = max(_INTEGERS, 2 * max(constants, default=0) + _SMALL_INTEGERS)
        count = step_samples if beside_steps else INTEGER_SAMPLES
        return SamplePoints(names, count, integers=reach, beside_steps=beside_steps)
    is_complex = frozenset(name for name in names if name[0] in COMPLEX_NAMES and _has_modulus(nodes, name))
    lenient = _has_domain(gold)
    if lenient and _is_for_positive_numbers(gold, nodes):
        return SamplePoints(names, SAMPLES - SIGNED_SAMPLES)
    if not any(_has_pieces(node) for node in nodes):
        return SamplePoints(names, complex_names=is_complex)
    landmarks = _landmarks(nodes)
    pieces = min(MAX_PIECE_SAMPLES if len(names) > 1 else len(landmarks) + 1, MAX_PIECE_SAMPLES)
    return SamplePoints(
        names,
        SAMPLES + pieces + (step_samples if steps else 0),
        beside_steps=beside_steps,
        landmarks=landmarks,
        pieces=pieces,
        complex_names=is_complex,
        lenient=lenient,
    )


def _beside_steps(nodes: list[Node]) -> tuple[int, ...]:
    """The small integers, and the integers next to powers and multiples of the constants, in ascending order."""
    constants = {round(node.value) for node in nodes if isinstance(node, Number) and 1 < node.value <= _MAX_STEP}
    bases = {*_BASES, *constants} - {1}
    powers = {base**exponent for base in bases for exponent in range(1, 1 + int(math.log(_MAX_STEP, base)))}
    multiples = {times * constant for constant in constants for times in range(1, 1 + _MULTIPLES)}
    beside = {step + offset for step in powers | multiples for offset in (-1, 0, 1)}
    return tuple(sorted(beside | set(range(1, 1 + _ALL_INTEGERS))))[:MAX_STEP_SAMPLES]


def is_smooth(node: Node) -> bool:
    """Whether an expression is analytic in its symbols, so that a few points reveal whether it depends on them."""
    return not any(
        isinstance(subtree, Series)
        or _has_pieces(subtree)
        or (isinstance(subtree, Apply) and subtree.name in _DISCRETE and bool(symbols(subtree)))
        or (isinstance(subtree, Power) and bool(symbols(subtree.exponent)))
        for subtree in walk(node)
    )


def _needs_integers(node: Node) -> bool:
    """Whether a node shows that its symbols are integers: a factorial, a range, or an exponent of a negative base."""
    if isinstance(node, Apply):
        return node.name in _DISCRETE and bool(symbols(node))
    if isinstance(node, Power):
        return isinstance(node.base, Negate) and not symbols(node.base) and bool(symbols(node.exponent))
    return isinstance(node, Series)


def _has_modulus(nodes: list[Node], name: str) -> bool:
    return any(isinstance(node, Apply) and node.name in ("abs", "conj") and name in symbols(node) for node in nodes)


def _has_pieces(node: Node) -> bool:
    if isinstance(node, Power):
        return not is_integer_literal(node.exponent) and not symbols(node.exponent) and bool(symbols(node.base))
    return isinstance(node, Apply) and node.name in _PIECEWISE and bool(symbols(node))


def _has_domain(gold: Node) -> bool:
    """Whether roots or logarithms restrict the domain of the gold, and no absolute value lifts the restriction."""
    applied = [node.name for node in walk(gold) if isinstance(node, Apply) and symbols(node)]
    return bool({"root", "ln", "log"} & set(applied)) and not _ORDERED & set(applied)


def _is_for_positive_numbers(gold: Node, nodes: list[Node]) -> bool:
    """Whether the gold has a root of several symbols, usually simplified for positive values, and nothing has steps."""
    roots = any(isinstance(node, Apply) and node.name == "root" and len(symbols(node)) > 1 for node in walk(gold))
    return roots and not any(isinstance(node, Apply) and node.name in _ORDERED and symbols(node) for node in nodes)


def _landmarks(nodes: list[Node]) -> tuple[Fraction, ...]:
    """The points where pieces may end: the constants in the expressions and their quotients, with both signs, and zero."""
    constants: set[Fraction] = set()
    for node in nodes[:_MAX_PARTS]:
        value = rational_or_none(node)
        if value is not None and 0 < abs(value) <= _MAX_LANDMARK:
            constants.add(abs(value))
    if len(constants) <= _MAX_QUOTIENTS:
        constants |= {one / two for one in constants for two in constants}
    kept = sorted(constants, key=lambda value: (value.denominator, -value))[: MAX_PIECE_SAMPLES // 2 - 1]
    return tuple(sorted({Fraction(0), *kept, *(-constant for constant in kept)}))
