r"""Solutions with a free integer, such as `x = \frac\pi6 + 2\pi n, n \in \mathbb{Z}`, compared as sets.

A family is `a + p n` for every integer n. Several of them, given by the members of a list or the signs of a plus-minus, form
one set. Two such sets are equal if each contains the families of the other, whatever the name and the start of the free
integer, and however the set is divided into families.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from verifiers.math.compare.names import shared_label, solved
from verifiers.math.compare.shapes import integer_parameter
from verifiers.math.tree import Add, Bracketed, ListOf, Multiply, Negate, Node, Number, Relation, symbols
from verifiers.math.values.exact import signed_number, substitute
from verifiers.math.values.numeric import real_value
from verifiers.math.values.tiers import ValueComparer

MAX_MEMBERS = 5
"""Maximum number of families of one set."""
_FREE_INTEGERS = frozenset("nmkjlpqNMKt")
"""Letters that are free integers without a statement to that effect, in an answer to a gold that has one."""


@dataclass(frozen=True, slots=True)
class Families:
    """Numbers given by expressions in a free integer, possibly as values of a name."""

    label: str | None
    integer: str
    members: tuple[Node, ...]


def families(node: Node, *, said: bool = True) -> Families | None:
    r"""Read a list as families; None for anything else.

    Args:
        node: The list, or one expression.
        said: Whether the free integer must be declared by a last item such as `n \\in \\mathbb{Z}`.
    """
    items = node.items if isinstance(node, ListOf) else (node,)
    if (integer := integer_parameter(node)) is not None:
        items = items[:-1]
    elif said:
        return None
    label = shared_label(items) if items else None
    members = tuple(solved(item)[1] if label and isinstance(item, Relation) else item for item in items)
    if not members or any(isinstance(member, Relation | ListOf | Bracketed) for member in members):
        return None
    names = {name for member in members for name in symbols(member)}
    if integer is None and not said and len(names) == 1:
        integer = next(iter(names & _FREE_INTEGERS), None)
    return Families(label, integer, members) if integer is not None and names == {integer} else None


def same_families(gold: Families, answer: Families, values: ValueComparer) -> bool | None:
    """Whether two sets of numbers are equal; None if the members are not linear and real, or too many.

    Raises:
        GoldError: As for `ValueComparer.identical`.
        UndecidedError: As for `ValueComparer.identical`.
    """
    ours, theirs = (_progressions(node, values) for node in (gold, answer))
    if ours is None or theirs is None:
        return None
    return _hold(theirs, ours, values) and _hold(ours, theirs, values)


@dataclass(frozen=True, slots=True)
class _Progression:
    """The numbers `start + period * n`, exactly and approximately."""

    start: Node
    period: Node
    near_start: float
    near_period: float


def _progressions(node: Families, values: ValueComparer) -> list[_Progression] | None:
    """The progression of each family; None if one is constant, not real or not linear in the integer, or if too many."""
    progressions: list[_Progression] = []
    for member in node.members:
        zero, one, two = (substitute(member, node.integer, signed_number(number)) for number in range(3))
        period = Add((one, Negate(zero)))
        if not values.identical(period, Add((two, Negate(one)))) or values.identical(period, Number(Fraction(0))):
            return None
        near_start, near_period = real_value(zero), real_value(period)
        if near_start is None or not near_period:
            return None
        progressions.append(_Progression(zero, period, float(near_start), float(near_period)))
    return progressions if len(progressions) <= MAX_MEMBERS else None


def _hold(progressions: list[_Progression], others: list[_Progression], values: ValueComparer) -> bool:
    """Whether progressions contain every number of the others.

    If k of them contain 2**k successive numbers of another, they contain all of it (Crittenden and Vanden Eynden 1970).
    """
    return all(
        any(_holds(one, other, times, values) for one in progressions)
        for other in others
        for times in range(2 ** len(progressions))
    )


def _holds(one: _Progression, other: _Progression, times: int, values: ValueComparer) -> bool:
    """Whether a progression contains the number of another with this index."""
    index = (other.near_start + times * other.near_period - one.near_start) / one.near_period
    ours, theirs = (
        Add((progression.start, Multiply((signed_number(number), progression.period))))
        for progression, number in ((one, round(index)), (other, times))
    )
    return values.identical(ours, theirs)
