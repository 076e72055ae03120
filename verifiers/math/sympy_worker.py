"""Computer algebra in a process of its own, for the few comparisons that nothing cheaper decides.

The parent sends two trees as JSON; the worker builds SymPy objects node by node (text is never parsed by SymPy), and tries
to show that their difference vanishes. Importing this module does not import SymPy: `serve` does, in the worker.
"""

from __future__ import annotations

import functools
import json
import math
import time
from collections.abc import Callable
from typing import IO, Any

from verifiers._settings import is_number, is_whole_number
from verifiers._workers import Worker, WorkerBrokenError, WorkerTimeoutError, limit_processor_time
from verifiers.errors import InvalidArgumentError
from verifiers.math.exact import MAX_TERMS, NotExactError, UndefinedError, integer_value
from verifiers.math.tree import Add, Apply, Constant, Mixed, Multiply, Negate, Node, Number, Power, Series, Symbol, walk
from verifiers.math.values import Algebra, UndecidedError

_MAX_RADICAND_BITS = 400
MAX_POWER_BITS = 10_000
"""Largest constant power that is built; SymPy would expand it at once."""
_WALL_PER_PROCESSOR_TIME, _MIN_WALL_S = 10, 5.0  # on a busy machine; processor time decides as long as it can


class AlgebraTimeoutError(TimeoutError):
    """Computer algebra ran past its time or memory."""


class AlgebraBrokenError(RuntimeError):
    """The computer-algebra process cannot be used."""


class AlgebraWorker:
    """Decides equality of expressions by SymPy, within a deadline.

    The process counts its own processor time, so that how busy the machine is decides nothing.

    Args:
        deadline_s: Seconds of processor time for one comparison.
        memory_mib: Limit on the process's address space.

    Raises:
        InvalidArgumentError: If a limit is not positive.
    """

    def __init__(self, *, deadline_s: float, memory_mib: int) -> None:
        if not (is_number(deadline_s) and 0 < deadline_s < math.inf):
            raise InvalidArgumentError(f"deadline_s is a positive number of seconds, got {deadline_s!r}")
        if not (is_whole_number(memory_mib) and memory_mib >= 256):
            raise InvalidArgumentError(f"memory_mib is an integer of at least 256, got {memory_mib!r}")
        self._deadline_s = deadline_s
        self._worker = _shared_worker(memory_mib)

    def for_one_verdict(self) -> Algebra:
        """A function that tells whether two expressions are equal; all of its calls together have one deadline.

        Raises (from the function):
            UndecidedError: If SymPy cannot tell, or the expressions hold what it has no counterpart for.
            AlgebraTimeoutError: If it took too long or too much memory.
        """
        spent = 0.0

        def equal(gold: Node, answer: Node) -> bool:
            nonlocal spent
            if spent >= self._deadline_s:
                raise AlgebraTimeoutError("computer algebra used up the time of this verdict")
            same, seconds = self._ask(gold, answer, deadline_s=self._deadline_s - spent)
            spent += seconds
            return same

        return equal

    def _ask(self, gold: Node, answer: Node, *, deadline_s: float) -> tuple[bool, float]:
        """Whether two expressions are equal, and how many seconds the process worked on it."""
        request = [_plain_data(gold), _plain_data(answer)]
        if any(_is_hopeless(part) for node in (gold, answer) for part in walk(node)):
            raise UndecidedError("a long sum or product without a closed form")
        try:
            reply = self._exchange(request, deadline_s)
        except (WorkerTimeoutError, WorkerBrokenError) as error:
            raise AlgebraTimeoutError(f"computer algebra ran past its limits: {error}") from error
        assert isinstance(reply, list)
        same, seconds = reply
        if not isinstance(same, bool):
            raise UndecidedError(str(same))
        return same, seconds

    @property
    def wall_s(self) -> float:
        """Seconds of wall time after which a comparison ends at the latest."""
        return _wall_s(self._deadline_s)

    def _exchange(self, request: list[list[object]], seconds: float) -> object:
        return self._worker.ask([*request, seconds], deadline_s=_wall_s(seconds))

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
            self._exchange([built, _ZERO], self._deadline_s)
        except WorkerTimeoutError:
            return True
        except WorkerBrokenError as error:
            raise AlgebraBrokenError(f"computer algebra is not available: {error}") from error
        return False


def _wall_s(seconds: float) -> float:
    return max(_MIN_WALL_S, _WALL_PER_PROCESSOR_TIME * seconds)


def _is_hopeless(node: Node) -> bool:
    """Whether a node is a series that nothing cheaper has decided, and of a kind that has no closed form as a rule."""
    if not isinstance(node, Series):
        return False
    index = {Symbol(node.index), Constant(node.index)}
    varying = [part for part in walk(node.body) if not index.isdisjoint(walk(part))]
    if node.upper == Constant("inf"):
        return any(isinstance(part, Apply) and part.name not in ("factorial", "binomial") for part in varying)
    try:
        length = integer_value(node.upper) - integer_value(node.lower)
    except (NotExactError, UndefinedError):
        return False  # as long as a symbol says
    polynomial = all(
        isinstance(part, Add | Multiply | Negate | Symbol | Constant)
        or (isinstance(part, Power) and index.isdisjoint(walk(part.exponent)))
        for part in varying
    )
    return length >= MAX_TERMS and not (node.kind == "sum" and polynomial)


_ZERO: list[object] = ["Number", "0"]


@functools.lru_cache(maxsize=8)
def _shared_worker(memory_mib: int) -> Worker:
    """One process for all verifiers with one memory limit."""
    return Worker("verifiers.math.sympy_worker", memory_mib=memory_mib)


_SAME_NAME = "sin cos tan cot sec csc sinh cosh tanh coth exp floor factorial factorial2 binomial gcd lcm"
_ARCS = {f"arc{name}": f"a{name}" for name in ["sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh"]}
_FUNCTIONS = {
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
"""What SymPy calls each function; the last three are built apart."""


def _plain_data(node: Node) -> list[object]:
    """A tree as nested lists.

    Raises:
        UndecidedError: If a node has no counterpart in computer algebra.
    """
    if isinstance(node, Number | Mixed):
        return ["Number", str(node.value)]
    name = type(node).__name__
    if name not in _BUILD or (isinstance(node, Apply) and node.name not in _FUNCTIONS):
        raise UndecidedError(f"{name} is nothing that computer algebra knows")
    data: list[object] = [name]
    for name in node.__dataclass_fields__:
        value = getattr(node, name)
        if isinstance(value, tuple):
            data.append([_plain_data(item) for item in value])
        else:
            data.append(_plain_data(value) if isinstance(value, Node) else value)
    return data


# What follows runs in the worker.


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Answer two trees and a limit in seconds with true, false, or why neither is known, and with the seconds it took."""
    import sympy  # type: ignore[import-untyped]  # SymPy has no types

    algebra = _Algebra(sympy)
    replies.write(b"ready\n")
    replies.flush()
    for line in requests:
        gold, answer, seconds = json.loads(line)
        started = time.process_time()
        limit_processor_time(seconds)
        found = algebra.decide(gold, answer)
        limit_processor_time(0)
        replies.write(json.dumps([found, time.process_time() - started]).encode() + b"\n")
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
        return _BUILD[data[0]](self, *data[1:])

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

    def _root(self, value: Any, degree: Any) -> Any:
        if value.is_Rational and max(abs(value.p), value.q).bit_length() > _MAX_RADICAND_BITS:
            raise ArithmeticError("a radicand past the limit")  # SymPy would factor it
        return self.sympy.real_root(value, degree) if value.is_negative else self.sympy.root(value, degree)

    def _function(self, name: str) -> Any:
        if name == "root":
            return self._root
        if name == "cis":
            return lambda angle: self.sympy.exp(self.sympy.I * angle)
        if name == "log":
            return lambda value, base=10: self.sympy.log(value, base)
        return getattr(self.sympy, _FUNCTIONS[name])

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
            return self._infinite_product(summand, symbol, bounds[1])
        return (self.sympy.Sum if kind == "sum" else self.sympy.Product)(summand, bounds)

    def _infinite_product(self, factor: Any, index: Any, lower: Any) -> Any:
        """A product of a rational function over its index, by gamma functions of its zeros and poles.

        It converges where zeros and poles are as many and have one sum (Whittaker and Watson 1927, section 12.13).
        """
        sympy = self.sympy
        above, below = (sympy.Poly(part, index) for part in sympy.fraction(sympy.cancel(factor)))
        zeros, poles = sympy.roots(above), sympy.roots(below)
        if sum(zeros.values()) != above.degree() or sum(poles.values()) != below.degree():
            raise ArithmeticError("a product whose zeros or poles are not known")
        if above.LC() != below.LC() or above.degree() != below.degree() or not self._same_sum(zeros, poles):
            raise ArithmeticError("a product that does not converge")
        value = sympy.Mul(*(sympy.gamma(lower - pole) ** order for pole, order in poles.items()))
        value /= sympy.Mul(*(sympy.gamma(lower - zero) ** order for zero, order in zeros.items()))
        return sympy.gammasimp(value)

    def _same_sum(self, zeros: dict[Any, int], poles: dict[Any, int]) -> bool:
        sums = [self.sympy.Add(*(root * order for root, order in roots.items())) for roots in (zeros, poles)]
        return bool(self.sympy.simplify(sums[0] - sums[1]) == 0)


_CONSTANTS = {"pi": "pi", "e": "E", "i": "I", "inf": "oo"}
_BUILD: dict[str, Callable[..., Any]] = {
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
"""How the SymPy object of each node is made of the node's fields."""
