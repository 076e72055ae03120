"""Comparison of equations, inequalities, congruences, and chains of them."""

from __future__ import annotations

import itertools
from fractions import Fraction

from verifiers.math.compare.constants import same_solutions
from verifiers.math.compare.context import Comparer
from verifiers.math.compare.names import (
    is_made_of_parameters,
    is_named_thing,
    label,
    names_agree,
    renamed,
    renaming,
    solved,
)
from verifiers.math.compare.scalars import measured, split_unit, without_unit
from verifiers.math.compare.shapes import INEQUALITIES, is_infinite
from verifiers.math.forms import is_integer_literal, is_literal, unordered
from verifiers.math.tree import (
    DOTS,
    Add,
    Divide,
    Integral,
    Limit,
    Multiply,
    NamedSet,
    Negate,
    Node,
    Number,
    Relation,
    Series,
    Symbol,
    symbols,
    walk,
)
from verifiers.math.values.exact import substitute
from verifiers.math.values.numeric import real_value

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!=", "~": "~"}
_OPEN_RELATIONS = INEQUALITIES | {"in", "mod", "modulo"}


def same_relations(comparer: Comparer, gold: Node, answer: Node) -> bool:
    """Compare equations by solutions, and inequalities up to direction and factor; a relation equals a value that it states."""
    if isinstance(gold, Relation):
        same, answer = same_solutions(comparer, gold, answer)
        if same:
            return True
    if isinstance(gold, Relation) != isinstance(answer, Relation):
        gold, answer = residue_alone(gold), residue_alone(answer)
    if isinstance(gold, Relation) and isinstance(answer, Relation) and (DOTS in walk(gold) or DOTS in walk(answer)):
        sides = ((answer.operators, answer.operands), reversed_chain(answer))
        return any(gold.operators == signs and comparer.in_order(gold.operands, operands) for signs, operands in sides)
    if isinstance(answer, Relation) and _is_tautology(answer) and (isinstance(gold, Relation) or is_literal(answer)):
        return False
    if not isinstance(gold, Relation):
        if not isinstance(answer, Relation):
            return comparer.same(gold, answer)
        return any(comparer.same(gold, value) for value in _stated(comparer, answer))
    if not isinstance(answer, Relation):
        name, value = solved(gold)
        if name is not None:
            return comparer.same(value, answer)
        return any(comparer.same(value, answer) for value in _exact_values(comparer, gold))
    if _OPEN_RELATIONS & {*gold.operators, *answer.operators}:
        return same_inequalities(comparer, gold, answer)
    return _same_equations(comparer, gold, answer)


def _is_tautology(node: Relation) -> bool:
    """Whether all sides of an equation are the same, as in `0=0`, so that it states nothing."""
    return set(node.operators) == {"="} and len(_sides(node)) == 1


def residue_alone(node: Node) -> Node:
    r"""A residue without its modulus: the 3 of `3 \pmod 7`. A congruence is weaker than an equation."""
    if not isinstance(node, Relation) or node.operators != ("modulo",):
        return node
    return node.operands[0] if len(node.operands) == 2 and is_integer_literal(node.operands[0]) else node


def _stated(comparer: Comparer, answer: Relation) -> tuple[Node, ...]:
    """The values in a chain of equalities whose links are all true and which states the answer; else empty."""
    operators, operands = list(answer.operators), list(answer.operands)
    if set(operators) - {"=", "~"}:
        return ()
    diverges = is_infinite(operands[-1]) and isinstance(operands[0], Limit | Series | Integral)
    if diverges or _is_name(comparer, operands[0]):
        operators, operands = operators[1:], operands[1:]
        formulas = next((index for index, operand in enumerate(operands) if not symbols(operand)), 0)
        operators, operands = operators[formulas:], operands[formulas:]  # area = length times width = 3 times 4
    elif _is_name(comparer, operands[-1]) and len(operands) == 2 and operators == ["="]:
        operators, operands = [], operands[:1]
    exact = [operands[0]]
    for operator, operand in zip(operators, operands[1:], strict=True):
        if operator == "=" and not _same_value(comparer, exact[-1], operand):
            return ()
        if operator == "~" and not _rounds(comparer, exact[-1], operand):
            return ()
        exact += [operand]
    return tuple(exact)


def _exact_values(comparer: Comparer, gold: Relation) -> tuple[Node, ...]:
    """The values that a gold states: the constants that it equates, or a named value; empty for a proper equation."""
    if set(gold.operators) - {"=", "~"}:
        return ()
    operands = gold.operands[1:] if is_named_thing(gold.operands[0]) else gold.operands
    exact = [operands[0]]
    for operator, operand in zip(gold.operators[len(gold.operands) - len(operands) :], operands[1:], strict=True):
        if operator == "~":
            break
        exact.append(operand)
    named = len(operands) < len(gold.operands)
    return tuple(exact) if named or not any(symbols(value) for value in exact) else ()


def _is_name(comparer: Comparer, node: Node) -> bool:
    names = symbols(node)
    if label(node) is not None or is_named_thing(node) or DOTS.name in names:
        return True
    if comparer.without_prompt:
        return is_made_of_parameters(node)
    # A set has no value either: `[\mathbb{R}:\mathbb{Q}]` is a name.
    return (bool(names) or any(isinstance(part, NamedSet) for part in walk(node))) and comparer.in_prompt(node)


def restates(comparer: Comparer, value: Node, form: Node) -> bool:
    """Whether a form restates a value: it equals the value, perhaps in another unit, or rounds it to two or more digits."""
    is_decimal = any(isinstance(node, Number) and node.significant > 1 for node in walk(form))
    return _same_value(comparer, value, form) or (is_decimal and _rounds(comparer, value, form))


def _rounds(comparer: Comparer, exact: Node, approximate: Node) -> bool:
    return comparer.values.consistent(without_unit(exact), without_unit(approximate))


def _same_value(comparer: Comparer, one: Node, two: Node) -> bool:
    ours, theirs = measured(split_unit(one)[1]), measured(split_unit(two)[1])
    one, two = without_unit(one), without_unit(two)
    if ours is not None and theirs is not None:
        if ours.dimension != theirs.dimension:
            return False
        if ours.factor != theirs.factor:
            one = Multiply((Number(ours.factor / theirs.factor), one))
    return comparer.values.identical(one, two)


def _same_equations(comparer: Comparer, gold: Relation, answer: Relation) -> bool:
    if set(gold.operators) == set(answer.operators) == {"="} and _sides(gold) == _sides(answer):
        return True
    if len(gold.operands) == len(answer.operands) > 2 and not _names_agree_between(gold, answer):
        return False
    name, value = solved(gold)
    answer_name, _ = solved(answer)
    if name is not None and answer_name is not None:
        names = renaming(gold, answer)
        if any(ours in symbols(answer.operands[-1]) or ours not in symbols(value) for ours in names.values()):
            return False  # names a value other than the gold's, or the value at another point
        if names_agree(name, answer_name) or not symbols(value) or symbols(gold) != symbols(answer):
            return names_agree(name, answer_name) and any(
                comparer.same(value, renamed(stated, names)) for stated in _stated(comparer, answer)
            )
    if len(gold.operands) != 2 or len(answer.operands) != 2 or not symbols(gold):
        if set(gold.operators) == set(answer.operators) == {"="}:
            return comparer.unordered(gold.operands, answer.operands)
        return any(
            gold.operators == operators and comparer.in_order(gold.operands, operands)
            for operators, operands in ((answer.operators, answer.operands), reversed_chain(answer))
        )
    return any(
        _are_proportional(comparer, *pair, positive=False) for pair in itertools.product(*map(forms_of, (gold, answer)))
    )


def _names_agree_between(gold: Relation, answer: Relation) -> bool:
    """Whether the middle names of two chains agree, such as the `y` of `x=y=2`."""
    pairs = zip(map(label, gold.operands[1:-1]), map(label, answer.operands[1:-1]), strict=True)
    return all(ours is None or (theirs is not None and names_agree(ours, theirs)) for ours, theirs in pairs)


def same_inequalities(comparer: Comparer, gold: Relation, answer: Relation) -> bool:
    """Compare chains of inequalities, read from either end; single inequalities also up to a positive constant factor."""
    readings = [(answer.operators, answer.operands)]
    if not {"mod", "modulo"} & set(answer.operators):
        readings.append(reversed_chain(answer))
    for operators, operands in readings:
        if gold.operators == operators:
            if all(comparer.same(one, two) for one, two in zip(gold.operands, operands, strict=True)):
                return True
            if (
                len(operators) == 1
                and operators[0] in INEQUALITIES
                and _are_proportional(comparer, gold, Relation(operators, operands), positive=operators[0] != "!=")
            ):
                return True
    return False


def leaves_unsolved(comparer: Comparer, gold: Node, answer: Node, given: tuple[Relation, ...]) -> bool:
    """Whether the answer only repeats, up to a factor, a given equation that the gold solves for a name."""
    if not (isinstance(gold, Relation) and isinstance(answer, Relation) and len(answer.operands) == 2):
        return False
    if solved(gold)[0] is None or solved(answer)[0] is not None or set(answer.operators) != {"="}:
        return False
    return any(_are_proportional(comparer, one, answer, positive=False) for one in given)


def _are_proportional(comparer: Comparer, gold: Relation, answer: Relation, *, positive: bool) -> bool:
    """Whether two relations are equal up to a constant factor, which must be positive for inequalities.

    Each relation is read as its left minus its right side. The factor is the quotient of the two at a point where neither
    vanishes.
    """
    ours, theirs = difference(gold), difference(answer)
    names = sorted(symbols(ours) | symbols(theirs))
    if not (symbols(ours) and symbols(theirs)):
        return False  # any two constants are proportional
    if any(comparer.values.identical(*relation.operands[:2]) for relation in (gold, answer)):
        return False  # everything solves an identity, so it must be written the same
    for first in (2, 5, 11):
        above, below = ours, theirs
        for index, name in enumerate(names):
            value = Number(Fraction(first + 3 * index, 7))
            above, below = substitute(above, name, value), substitute(below, name, value)
        sizes = real_value(above), real_value(below)
        if sizes[0] and sizes[1]:
            one_sign = sizes[0] * sizes[1] > 0 or not positive
            return bool(one_sign and comparer.values.identical(Multiply((ours, below)), Multiply((theirs, above))))
    return False


def _sides(node: Relation) -> set[object]:
    return {unordered(operand) for operand in node.operands}


def difference(node: Relation) -> Node:
    """Left side minus right side."""
    return Add((node.operands[0], Negate(node.operands[1])))


def forms_of(node: Relation) -> tuple[Relation, ...]:
    """An equation; also its form without the fraction if it gives a name a fraction as its value: `xy=1` for `y=1/x`."""
    for named, value in (node.operands, node.operands[::-1]):
        if isinstance(named, Symbol) and isinstance(value, Divide) and symbols(value.denominator):
            return node, Relation(node.operators, (Multiply((named, value.denominator)), value.numerator))
    return (node,)


def reversed_chain(node: Relation) -> tuple[tuple[str, ...], tuple[Node, ...]]:
    """A chain read from right to left."""
    return tuple(FLIPPED.get(operator, operator) for operator in reversed(node.operators)), node.operands[::-1]
