r"""Compares answers with arbitrary constants, such as antiderivatives, as the functions that they give for all constants."""

from __future__ import annotations

from fractions import Fraction

from verifiers.math.compare.context import Comparer
from verifiers.math.compare.flats import Vector, flat, same_flats
from verifiers.math.compare.names import names_agree, renamed, solved
from verifiers.math.compare.plain import plain
from verifiers.math.tree import (
    Add,
    Apply,
    Bracketed,
    Divide,
    ListOf,
    Matrix,
    Multiply,
    Negate,
    Node,
    Number,
    Power,
    Relation,
    Symbol,
    symbols,
)
from verifiers.math.values.exact import rational_or_none

_CONSTANTS_OF_INTEGRATION = frozenset("cCK")
_INDICES = frozenset(("_1", "_2", "_3", "_4"))
_USUAL = frozenset(("C", *(f"C{index}" for index in _INDICES)))
"""Names of constants that are arbitrary in sums and equations of curves, even if the prompt does not ask for a constant."""
_ONE = Number(Fraction(1))


def same_solutions(comparer: Comparer, gold: Relation, answer: Node) -> tuple[bool, Node]:
    """Return whether two equations agree up to factors for all constants, and the answer with the gold's names of constants."""
    equations = [node for node in (gold, answer) if isinstance(node, Relation)]
    (name, value), (other, stated) = solved(gold), solved(equations[1]) if len(equations) > 1 else (None, answer)
    if name == "C" and gold.operands[0] != Symbol("C"):  # the rest of the equation equals the constant
        name = None
    other = None if name is None or other == "C" else other
    of_curves = name == "y" or (name or "").endswith(")") or (name is None and "y" in symbols(gold))
    usual = _USUAL if of_curves and _are_variables(symbols(gold) - _USUAL) else frozenset[str]()
    whole = other is None and len(equations) > 1
    names = _arbitrary(comparer, gold if whole else value, answer if whole else stated, usual)
    same = False
    if _are_any(comparer, names, usual) and not comparer.inside and all(node.operators == ("=",) for node in equations):
        if name is not None and (other is not None or len(equations) == 1):
            same = other is None or names_agree(name, other)
            same = same and _same_functions(comparer, _entries(value), _entries(stated), names)
        elif len(equations) == 2:
            ours, theirs = map(_constant_alone, equations, ([*names.values()], [*names]))
            same = _same_for_all(comparer, (ours,), (theirs,), names)
    if not names and "c" not in symbols(gold) and not comparer.in_prompt(Symbol("C")):
        names = dict.fromkeys({"c"} if "C" in symbols(gold) - symbols(answer) else (), "C")
    return same, renamed(answer, names)


def as_curve(node: Node) -> Node:
    r"""Two branches of a curve, `y = \\pm\\sqrt{x + C}`, as one equation, `y^2 = x + C`; other nodes unchanged."""
    if not isinstance(node, ListOf) or len(node.items) != 2 or not symbols(node) & (_CONSTANTS_OF_INTEGRATION | _USUAL):
        return node
    first, second = node.items
    if not isinstance(first, Relation) or not isinstance(second, Relation):
        return node
    (name, upper), (other, lower) = solved(first), solved(second)
    root, scale = (upper.factors[-1], upper.factors[:-1]) if isinstance(upper, Multiply) else (upper, ())
    of_root = isinstance(root, Apply) and root.name == "root" and rational_or_none(root.arguments[1]) == 2
    if name is None or name != other or lower != Negate(upper) or not isinstance(root, Apply) or not of_root:
        return node
    squares = [Power(factor, Number(Fraction(2))) for factor in (Symbol(name), *scale)]
    return Relation(("=",), (squares[0], Multiply((*squares[1:], root.arguments[0])) if scale else root.arguments[0]))


def _are_any(comparer: Comparer, names: dict[str, str], usual: frozenset[str]) -> bool:
    """Whether the gold's constants are arbitrary: they have usual names, or the question is about arbitrary constants."""
    return bool(names) and ("constants" in comparer.topics or {*names.values()} <= usual)


def _constant_alone(equation: Relation, constants: list[str]) -> Node:
    """Left minus right side; if the equation is linear in a single constant, divided by that constant's coefficient."""
    node: Node = Add((equation.operands[0], Negate(equation.operands[1])))
    parts = flat((node,), constants) if len(constants) == 1 else None
    return node if parts is None else Divide(node, parts[1][0])


def _same_functions(comparer: Comparer, gold: Vector, answer: Vector, names: dict[str, str]) -> bool:
    """Whether functions agree for all constants; if they are not linear in the constants, their reciprocals are compared."""
    if flat(gold, [*names.values()]) is None:
        gold, answer = (tuple(Divide(_ONE, node) for node in side) for side in (gold, answer))
    return _same_for_all(comparer, (_ONE, *gold), (_ONE, *answer), names)


def same_values(comparer: Comparer, gold: Node, answer: Node) -> tuple[bool, Node]:
    """Return whether two values agree for all constants, and the answer with the gold's names of constants."""
    ours, theirs = free_constant(gold), free_constant(answer)
    free = ours is not None and theirs is not None
    if ours is not None and theirs is not None:
        names = {} if comparer.in_prompt(Symbol(ours)) else {theirs: ours}
    else:
        names = _arbitrary(comparer, gold, answer, frozenset())
    alone = free or not comparer.inside  # no other items may share the constants
    same = alone and _are_any(comparer, names, _USUAL if free else frozenset())
    same = same and _same_for_all(comparer, (_ONE, *_entries(gold)), (_ONE, *_entries(answer)), names)
    return same, renamed(answer, names)


def _entries(node: Node) -> Vector:
    node = plain(node)
    return sum(node.rows, ()) if isinstance(node, Matrix) else node.items if isinstance(node, Bracketed) else (node,)


def _same_for_all(comparer: Comparer, gold: Vector, answer: Vector, names: dict[str, str]) -> bool:
    """Whether functions linear in arbitrary constants form the same flat; `names` maps the answer's names to the gold's."""
    variables = frozenset().union(*map(symbols, gold)) - {*names.values()}
    if gold == tuple(renamed(node, names) for node in answer):
        return True
    if not variables or not _are_variables(variables):
        return False
    ours, theirs = flat(gold, [*names.values()]), flat(answer, [*names])
    return ours is not None and theirs is not None and same_flats(ours, theirs, comparer.values)


def _are_variables(names: frozenset[str]) -> bool:
    """Whether all names can be variables; a capital can't, since it names something with a value."""
    return all(name[0].islower() for name in names)


def _arbitrary(comparer: Comparer, gold: Node, answer: Node, usual: frozenset[str]) -> dict[str, str]:
    """Map the answer's names of arbitrary constants to the gold's; empty if there are none, or their numbers differ.

    A constant is arbitrary if it has an index or a usual name; letters that only the other side has are matched to these
    constants.
    """
    ours, theirs = symbols(gold), symbols(answer)
    others = letters = frozenset[str]()
    if constants := _indexed(ours) | (usual & ours):
        others = theirs - (ours - constants)
        letters = others - constants - _indexed(others)
    elif others := _indexed(theirs):
        letters = constants = ours - (theirs - others)
    given = any(comparer.in_prompt(Symbol(name)) for name in constants | letters)
    mixed = constants != others and constants & others
    if len(constants) != len(others) or constants == ours or mixed or given or any(len(name) > 1 for name in letters):
        return {}
    names = dict(zip(*(sorted(names, key=lambda name: (name[1:], name)) for names in (others, constants)), strict=True))
    kept = len(names) > 1 if letters else all(theirs[1:] == ours[1:] for theirs, ours in names.items())
    return names if kept or _are_any(comparer, names, usual) else {}


def _indexed(names: frozenset[str]) -> frozenset[str]:
    return frozenset(name for name in names if name[0] in _CONSTANTS_OF_INTEGRATION and name[1:] in _INDICES)


def free_constant(node: Node) -> str | None:
    """The constant of integration in a sum: its only term that is such a constant, whose name occurs nowhere else."""
    if not isinstance(node, Add):
        return None
    constants = [term for term in node.terms if isinstance(term, Symbol) and term.name in _CONSTANTS_OF_INTEGRATION]
    if len(constants) != 1:
        return None
    name = constants[0].name
    return None if any(name in symbols(term) for term in node.terms if term is not constants[0]) else name
