"""The computer-algebra process: it builds SymPy objects node by node, and tries to show that a difference is zero.

SymPy never parses text. Importing this module does not import SymPy: `serve` does, in the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import IO, Any

from verifiers._workers import answer_requests, processor_time

_MAX_RADICAND_BITS = 400
_MAX_COUNTED = 10_000
"""Largest argument of a factorial or a binomial coefficient that is built."""
MAX_POWER_BITS = 10_000
"""Size in bits of the largest constant power that is built, since SymPy would expand it at once."""
_SAME_NAME = "sin cos tan cot sec csc sinh cosh tanh coth exp floor factorial factorial2 binomial gcd lcm"
_ARCS = {f"arc{name}": f"a{name}" for name in ["sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh"]}
FUNCTIONS = {
    **{name: name for name in _SAME_NAME.split()},
    **_ARCS,
    "abs": "Abs",
    "ceil": "ceiling",
    "conj": "conjugate",
    "max": "Max",
    "min": "Min",
    "sgn": "sign",
    "ln": "log",
    "log": "log",
    "cis": "exp",
    "root": "root",
}
"""SymPy's name of each function; the last three are built separately."""


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Answer each request (two trees, a limit in seconds) with true, false, or the reason for neither, and the seconds taken.

    A space before the reply shows that the first tree has been evaluated.
    """
    import sympy  # type: ignore[import-untyped]  # SymPy has no types

    algebra = _Algebra(sympy)

    def on_gold() -> None:
        replies.write(b" ")
        replies.flush()

    def decide(gold: list[Any], answer: list[Any], seconds: float) -> tuple[bool | str, float]:
        started = time.process_time()
        with processor_time(seconds):
            decision = algebra.decide(gold, answer, on_gold)
        return decision, time.process_time() - started

    answer_requests(requests, replies, decide)


class _Algebra:
    """Builds SymPy objects from trees in plain data."""

    def __init__(self, sympy: Any) -> None:
        self.sympy = sympy

    def decide(self, gold: list[Any], answer: list[Any], on_gold: Callable[[], object]) -> bool | str:
        try:
            ours = self.evaluated(gold)
            on_gold()
            return self.vanishes(ours - self.evaluated(answer))
        except Exception as error:  # noqa: BLE001 - recorded in the reply; SymPy raises anything, also from its own bugs
            return f"{type(error).__name__}: {error}"[:300]

    def evaluated(self, data: list[Any]) -> Any:
        """The value of an expression; for a series, its value where it converges."""
        sympy = self.sympy

        def converges(value: Any) -> bool:
            return isinstance(value, sympy.Piecewise) and len(value.args) == 2 and value.args[1].expr.has(sympy.Sum)

        return self.build(data).doit().replace(converges, lambda value: value.args[0].expr)

    def vanishes(self, difference: Any) -> bool | str:
        sympy = self.sympy
        for simplify in (
            lambda value: value,
            sympy.simplify,
            lambda value: sympy.simplify(value.rewrite(sympy.exp).expand()),
        ):
            difference = simplify(difference)
            zero = difference.is_zero
            if zero is not None:
                return bool(zero)
        return "computer algebra could not decide"

    def build(self, data: list[Any]) -> Any:
        return BUILD[data[0]](self, *data[1:])

    def _power(self, base: list[Any], exponent: list[Any]) -> Any:
        low, high = self.build(base), self.build(exponent)
        if (
            low.is_number
            and high.is_number
            and abs(self._bits(low) * float(self.sympy.N(self.sympy.Abs(high), 15))) > MAX_POWER_BITS
        ):
            raise ArithmeticError("a power beyond the limit")
        return low**high

    def _bits(self, value: Any) -> float:
        size = self.sympy.Abs(value)
        return abs(float(self.sympy.log(size, 2).evalf(15))) if size.is_zero is False else 1.0

    def _root(self, value: Any, degree: Any) -> Any:
        if value.is_Rational and max(abs(value.p), value.q).bit_length() > _MAX_RADICAND_BITS:
            raise ArithmeticError("a radicand beyond the limit")  # SymPy would factor it
        return self.sympy.real_root(value, degree) if value.is_negative else self.sympy.root(value, degree)

    def _counted(self, name: str) -> Callable[..., Any]:
        """A function of whole numbers that refuses large numbers, since the digits of its value would not fit in memory."""

        def value(*numbers: Any) -> Any:
            if any(number.is_number and abs(number) > _MAX_COUNTED for number in numbers):
                raise ArithmeticError("a factorial beyond the limit")
            return getattr(self.sympy, FUNCTIONS[name])(*numbers)

        return value

    def _function(self, name: str) -> Any:
        if name in ("factorial", "factorial2", "binomial"):
            return self._counted(name)
        if name == "root":
            return self._root
        if name == "cis":
            return lambda angle: self.sympy.exp(self.sympy.I * angle)
        if name == "log":
            return lambda value, base=10: self.sympy.log(value, base)
        return getattr(self.sympy, FUNCTIONS[name])

    def _integral(self, body: list[Any], variable: str, lower: list[Any] | None, upper: list[Any] | None) -> Any:
        if lower is None or upper is None:
            raise ArithmeticError("an indefinite integral inside an expression")
        symbol = self.sympy.Symbol(variable, real=True)
        return self.sympy.Integral(self.build(body), (symbol, self.build(lower), self.build(upper)))

    def _series(self, kind: str, index: str, lower: list[Any], upper: list[Any], body: list[Any]) -> Any:
        symbol = self.sympy.Symbol(index, integer=True)
        bounds = (symbol, self.build(lower), self.build(upper))
        summand = self.build(body).subs({self.sympy.Symbol(index, real=True): symbol})
        if index in ("i", "e"):
            summand = summand.subs({self.sympy.I if index == "i" else self.sympy.E: symbol})
        if kind == "product" and bounds[2] == self.sympy.oo:
            raise ArithmeticError("an infinite product")  # SymPy gives values to some that do not converge
        return (self.sympy.Sum if kind == "sum" else self.sympy.Product)(summand, bounds)


_CONSTANTS = {"pi": "pi", "e": "E", "i": "I", "inf": "oo"}
BUILD: dict[str, Callable[..., Any]] = {
    "Number": lambda algebra, text: algebra.sympy.Rational(text),
    "Constant": lambda algebra, name: getattr(algebra.sympy, _CONSTANTS[name]),
    "Symbol": lambda algebra, name: algebra.sympy.Symbol(name, real=True),
    "Negate": lambda algebra, value: -algebra.build(value),
    "Percent": lambda algebra, value: algebra.build(value) / 100,
    "Degrees": lambda algebra, value: algebra.build(value) * algebra.sympy.pi / 180,
    "Add": lambda algebra, terms: algebra.sympy.Add(*map(algebra.build, terms)),
    "Multiply": lambda algebra, factors: algebra.sympy.Mul(*map(algebra.build, factors)),
    "Divide": lambda algebra, numerator, denominator: algebra.build(numerator) / algebra.build(denominator),
    "Power": _Algebra._power,
    "Apply": lambda algebra, name, arguments: algebra._function(name)(*map(algebra.build, arguments)),
    "Unknown": lambda algebra, name, arguments: algebra.sympy.Function(name)(*map(algebra.build, arguments)),
    "Integral": _Algebra._integral,
    "Limit": lambda algebra, body, variable, point, side: algebra.sympy.Limit(
        algebra.build(body), algebra.sympy.Symbol(variable, real=True), algebra.build(point), side or "+-"
    ),
    "Derivative": lambda algebra, body, variable, order: algebra.sympy.Derivative(
        algebra.build(body), (algebra.sympy.Symbol(variable, real=True), order)
    ),
    "Series": _Algebra._series,
}
"""Functions that build the SymPy object of each node from its fields."""
