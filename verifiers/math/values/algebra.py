"""Computer algebra in a separate process, for the few comparisons that no cheaper method decides.

The two trees go to `verifiers.math.values.algebra_process` as nested lists.
"""

from __future__ import annotations

import contextlib
import functools

from verifiers._workers import Worker, WorkerBrokenError, WorkerStartError, WorkerTimeoutError
from verifiers.math.tree import (
    Add,
    Apply,
    Constant,
    Derivative,
    Integral,
    Limit,
    Mixed,
    Multiply,
    Negate,
    Node,
    Number,
    Power,
    Series,
    Symbol,
    walk,
)
from verifiers.math.values.algebra_process import BUILD, FUNCTIONS
from verifiers.math.values.exact import MAX_TERMS, NotExactError, UndefinedError, indexes_names, integer_value
from verifiers.math.values.tiers import Algebra, UndecidedError

_WALL_PER_PROCESSOR_TIME, _MIN_WALL_S = 10, 5.0  # for a busy machine; normally processor time decides


class AlgebraTimeoutError(TimeoutError):
    """Computer algebra exceeded its time or memory."""

    def __init__(self, message: str, *, of_gold: bool = False) -> None:
        super().__init__(message)
        self.of_gold = of_gold
        """Whether evaluating the gold alone exceeded the time or the memory."""


class AlgebraBrokenError(RuntimeError):
    """The computer-algebra process cannot be used."""


class AlgebraWorker:
    """Decides equality of expressions by SymPy, within a deadline.

    The process measures its own processor time, so that the machine's load does not matter.

    Args:
        deadline_s: Seconds of processor time for one comparison.
        memory_mib: Limit on the process's address space, in MiB.
    """

    def __init__(self, *, deadline_s: float, memory_mib: int) -> None:
        self._deadline_s = deadline_s
        self._worker = _shared_worker(memory_mib)

    def for_one_verdict(self) -> Algebra:
        """A function that decides whether two expressions are equal; all of its calls share one deadline.

        Raises (from the function):
            UndecidedError: If SymPy cannot decide, or has no counterpart for a part of the expressions.
            AlgebraTimeoutError: If the comparison took too long or too much memory.
            AlgebraBrokenError: If the process cannot start.
        """
        spent = 0.0

        def equal(gold: Node, answer: Node) -> bool:
            nonlocal spent
            if spent >= self._deadline_s:
                raise AlgebraTimeoutError("computer algebra used up the time limit of this verdict")
            same, seconds = self._ask(gold, answer, deadline_s=self._deadline_s - spent)
            spent += seconds
            return same

        return equal

    def _ask(self, gold: Node, answer: Node, *, deadline_s: float) -> tuple[bool, float]:
        """Compare two expressions; also return the seconds of processor time that the comparison took."""
        request = [_plain_data(gold), _plain_data(answer)]
        if any(_is_hopeless(subtree) for node in (gold, answer) for subtree in walk(node)):
            raise UndecidedError("a long sum or product without a closed form")
        try:
            reply = self._worker.ask([*request, deadline_s], deadline_s=_wall_s(deadline_s))
        except WorkerStartError as error:
            raise AlgebraBrokenError(f"computer algebra is not available: {error}") from error
        except (WorkerTimeoutError, WorkerBrokenError) as error:
            self.prepare()
            heavy = any(isinstance(node, Series | Integral | Limit | Derivative) for node in walk(gold))
            raise AlgebraTimeoutError(
                f"computer algebra exceeded its limits: {error}", of_gold=heavy and not error.progress
            ) from error
        assert isinstance(reply, list)
        same, seconds = reply
        if not isinstance(same, bool):
            raise UndecidedError(str(same))
        return same, seconds

    @property
    def wall_s(self) -> float:
        """Maximum wall-clock time of a comparison, in seconds."""
        return _wall_s(self._deadline_s)

    def prepare(self) -> None:
        """Start the process in the background."""
        with contextlib.suppress(WorkerStartError):  # reported when the process is needed
            self._worker.prepare()


def _wall_s(seconds: float) -> float:
    return max(_MIN_WALL_S, _WALL_PER_PROCESSOR_TIME * seconds)


def _is_hopeless(node: Node) -> bool:
    """Whether a node is a series of a kind that usually has no closed form."""
    if not isinstance(node, Series) or indexes_names(node):
        return isinstance(node, Series)
    index = {Symbol(node.index), Constant(node.index)}
    varying = [term for term in walk(node.body) if not index.isdisjoint(walk(term))]
    if node.upper == Constant("inf"):
        return any(isinstance(term, Apply) and term.name not in ("factorial", "binomial") for term in varying)
    try:
        length = integer_value(node.upper) - integer_value(node.lower)
    except (NotExactError, UndefinedError):
        return False  # its length depends on a symbol
    polynomial = all(
        isinstance(term, Add | Multiply | Negate | Symbol | Constant)
        or (isinstance(term, Power) and index.isdisjoint(walk(term.exponent)))
        for term in varying
    )
    return length >= MAX_TERMS and not (node.kind == "sum" and polynomial)


@functools.lru_cache(maxsize=8)
def _shared_worker(memory_mib: int) -> Worker:
    """The process shared by all verifiers with this memory limit."""
    return Worker("verifiers.math.values.algebra_process", memory_mib=memory_mib)


def _plain_data(node: Node) -> list[object]:
    """A tree as nested lists.

    Raises:
        UndecidedError: If a node has no counterpart in computer algebra.
    """
    if isinstance(node, Number | Mixed):
        return ["Number", str(node.value)]
    name = type(node).__name__
    if name not in BUILD or (isinstance(node, Apply) and node.name not in FUNCTIONS):
        raise UndecidedError(f"computer algebra does not know {name}")
    data: list[object] = [name]
    for name in node.__dataclass_fields__:
        value = getattr(node, name)
        if isinstance(value, tuple):
            data.append([_plain_data(item) for item in value])
        else:
            data.append(_plain_data(value) if isinstance(value, Node) else value)
    return data
