"""Computer algebra in a process of its own, for the few comparisons that nothing cheaper decides.

The parent sends two trees as JSON; the worker builds SymPy objects node by node (text is never parsed by SymPy), and tries
to show that their difference vanishes. Importing this module does not import SymPy: `serve` does, in the worker.
"""

from __future__ import annotations

import functools
import json
import math
from fractions import Fraction
from typing import IO, Any

from verifiers._workers import Worker, WorkerBrokenError, WorkerTimeoutError
from verifiers.errors import InvalidArgumentError
from verifiers.math.tree import (
    Add,
    Apply,
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
from verifiers.math.values import UndecidedError

MAX_POWER_BITS = 10_000
"""Largest constant power that is built; SymPy would expand it at once."""


class AlgebraTimeoutError(TimeoutError):
    """Computer algebra ran past its time or memory."""


class AlgebraBrokenError(RuntimeError):
    """The computer-algebra process cannot be used."""


class AlgebraWorker:
    """Decides equality of expressions by SymPy, within a deadline.

    Args:
        deadline_s: Seconds for one comparison.
        memory_mib: Limit on the process's address space.

    Raises:
        InvalidArgumentError: If a limit is not positive.
    """

    def __init__(self, *, deadline_s: float, memory_mib: int) -> None:
        if not (math.isfinite(deadline_s) and deadline_s > 0):
            raise InvalidArgumentError(f"deadline_s is a positive number of seconds, got {deadline_s!r}")
        if memory_mib < 256:
            raise InvalidArgumentError(f"memory_mib is an integer of at least 256, got {memory_mib!r}")
        self._deadline_s = deadline_s
        self._worker = _shared_worker(memory_mib)

    def equal(self, gold: Node, answer: Node) -> bool:
        """Whether two expressions are equal.

        Raises:
            UndecidedError: If SymPy cannot tell, or the expressions hold what it has no counterpart for.
            AlgebraTimeoutError: If it took too long or too much memory.
            AlgebraBrokenError: If the process cannot start, or dies of the gold alone.
        """
        request = [_plain_data(gold), _plain_data(answer)]
        try:
            reply = self._worker.ask(request, deadline_s=self._deadline_s)
        except (WorkerTimeoutError, WorkerBrokenError) as error:
            raise AlgebraTimeoutError(f"computer algebra ran past its limits: {error}") from error
        if not isinstance(reply, bool):
            raise UndecidedError(str(reply))
        return reply

    def takes_too_long(self, node: Node) -> bool:
        """Whether an expression by itself, in a comparison with 0, is too much already.

        Raises:
            AlgebraBrokenError: If the process cannot start, or dies of the expression.
        """
        try:
            built = _plain_data(node)
        except UndecidedError:
            return False  # it never gets as far as computer algebra
        try:
            self._worker.ask([built, _ZERO], deadline_s=self._deadline_s)
        except WorkerTimeoutError:
            return True
        except WorkerBrokenError as error:
            raise AlgebraBrokenError(f"computer algebra is not available: {error}") from error
        return False


_ZERO = ["Number", "0"]


@functools.lru_cache(maxsize=8)
def _shared_worker(memory_mib: int) -> Worker:
    """One process for all verifiers with one memory limit."""
    return Worker("verifiers.math.sympy_worker", memory_mib=memory_mib)


_NODES = {
    kind.__name__: kind
    for kind in (
        Add,
        Apply,
        Constant,
        Degrees,
        Divide,
        Mixed,
        Multiply,
        Negate,
        Number,
        Percent,
        Power,
        Series,
        Symbol,
        Unknown,
    )
}


def _plain_data(node: Node) -> list[object]:
    """A tree as nested lists.

    Raises:
        UndecidedError: If a node has no counterpart in computer algebra.
    """
    if isinstance(node, Number):
        return ["Number", str(node.value)]
    if isinstance(node, Mixed):
        return ["Number", str(node.whole + node.part)]
    if type(node).__name__ not in _NODES:
        raise UndecidedError(f"{type(node).__name__} is nothing that computer algebra knows")
    data: list[object] = [type(node).__name__]
    for name in node.__dataclass_fields__:
        value = getattr(node, name)
        if isinstance(value, tuple):
            data.append([_plain_data(item) for item in value])
        else:
            data.append(_plain_data(value) if isinstance(value, Node) else value)
    return data


# What follows runs in the worker.


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Answer each pair of trees with true, false, or why neither is known."""
    import sympy  # type: ignore[import-untyped]  # SymPy has no types

    algebra = _Algebra(sympy)
    replies.write(b"ready\n")
    replies.flush()
    for line in requests:
        replies.write(json.dumps(algebra.decide(*json.loads(line))).encode() + b"\n")
        replies.flush()


class _Algebra:
    """SymPy objects from trees in plain data."""

    def __init__(self, sympy: Any) -> None:
        self.sympy = sympy

    def decide(self, gold: list[Any], answer: list[Any]) -> bool | str:
        try:
            difference = self.build(gold) - self.build(answer)
            return self.vanishes(difference)
        except Exception as error:  # noqa: BLE001 - recorded in the reply; SymPy raises anything, also from its own bugs
            return f"{type(error).__name__}: {error}"[:300]

    def vanishes(self, difference: Any) -> bool | str:
        sympy = self.sympy
        for simplify in (
            lambda value: value.doit(),
            sympy.simplify,
            lambda value: sympy.simplify(value.rewrite(sympy.exp).expand()),
        ):
            difference = simplify(difference)
            zero = difference.is_zero
            if zero is not None:
                return bool(zero)
        return "computer algebra left it open"

    def build(self, data: list[Any]) -> Any:
        return getattr(self, f"_{data[0].lower()}")(*data[1:])

    def _number(self, text: str) -> Any:
        value = Fraction(text)
        return self.sympy.Rational(value.numerator, value.denominator)

    def _constant(self, name: str) -> Any:
        return {"pi": self.sympy.pi, "e": self.sympy.E, "i": self.sympy.I, "inf": self.sympy.oo}[name]

    def _symbol(self, name: str) -> Any:
        return self.sympy.Symbol(name, real=True)

    def _negate(self, value: list[Any]) -> Any:
        return -self.build(value)

    def _percent(self, value: list[Any]) -> Any:
        return self.build(value) / 100

    def _degrees(self, value: list[Any]) -> Any:
        return self.build(value) * self.sympy.pi / 180

    def _add(self, terms: list[Any]) -> Any:
        return self.sympy.Add(*map(self.build, terms))

    def _multiply(self, factors: list[Any]) -> Any:
        return self.sympy.Mul(*map(self.build, factors))

    def _divide(self, numerator: list[Any], denominator: list[Any]) -> Any:
        return self.build(numerator) / self.build(denominator)

    def _power(self, base: list[Any], exponent: list[Any]) -> Any:
        low, high = self.build(base), self.build(exponent)
        if (
            low.is_number
            and high.is_number
            and abs(self._bits(low) * float(self.sympy.N(self.sympy.Abs(high), 15))) > MAX_POWER_BITS
        ):
            raise ArithmeticError("a power past the limit")
        return low**high

    def _bits(self, value: Any) -> float:
        size = self.sympy.Abs(value)
        return abs(float(self.sympy.log(size, 2).evalf(15))) if size.is_zero is False else 1.0

    def _apply(self, name: str, arguments: list[Any]) -> Any:
        values = [self.build(argument) for argument in arguments]
        return self._function(name)(*values)

    def _function(self, name: str) -> Any:
        sympy = self.sympy
        special = {
            "root": lambda value, degree: (
                sympy.real_root(value, degree) if value.is_negative else sympy.root(value, degree)
            ),
            "ln": sympy.log,
            "log": lambda value, base=10: sympy.log(value, base),
            "abs": sympy.Abs,
            "ceil": sympy.ceiling,
            "max": sympy.Max,
            "min": sympy.Min,
            "sgn": sympy.sign,
            **{
                f"arc{name}": getattr(sympy, f"a{name}")
                for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")
            },
        }
        known = (
            "sin",
            "cos",
            "tan",
            "cot",
            "sec",
            "csc",
            "sinh",
            "cosh",
            "tanh",
            "coth",
            "exp",
            "floor",
            "factorial",
            "factorial2",
            "binomial",
            "gcd",
            "lcm",
        )
        if name in special:
            return special[name]
        if name not in known:
            raise ArithmeticError(f"the function {name}")
        return getattr(sympy, name)

    def _unknown(self, name: str, arguments: list[Any]) -> Any:
        return self.sympy.Function(name)(*map(self.build, arguments))

    def _series(self, kind: str, index: str, lower: list[Any], upper: list[Any], body: list[Any]) -> Any:
        symbol = self.sympy.Symbol(index, integer=True)
        bounds = (symbol, self.build(lower), self.build(upper))
        summand = self.build(body).subs({self.sympy.Symbol(index, real=True): symbol})
        if index in ("i", "e"):
            summand = summand.subs({self.sympy.I if index == "i" else self.sympy.E: symbol})
        return (self.sympy.Sum if kind == "sum" else self.sympy.Product)(summand, bounds)
