"""Assembles trees from parsed parts if the parts determine the kind of the whole."""

from __future__ import annotations

from fractions import Fraction

from verifiers.math import tree
from verifiers.math.forms import is_integer_literal
from verifiers.math.reading.errors import UnreadableError
from verifiers.math.tree import (
    Add,
    Bracketed,
    Constant,
    Divide,
    ListOf,
    Mixed,
    Multiply,
    NamedSet,
    Negate,
    Node,
    Number,
    Quantity,
    Relation,
    SetOf,
    SetOperation,
    Symbol,
    Unknown,
    Words,
    symbols,
)
from verifiers.math.units import Unit
from verifiers.math.vocabulary import COMPLEX_NAMES

OTHERWISE = Words("otherwise")
MAX_ORDER = 5
"""Largest order n of a determinant that is expanded, which gives n! products."""
_ZERO = Number(Fraction(0))


def determinant(rows: tuple[tuple[Node, ...], ...]) -> Node:
    """The determinant of rows as a scalar expression, by expansion along the first row.

    Raises:
        UnreadableError: If the matrix is not square, or larger than `MAX_ORDER`.
    """
    if len(rows) > MAX_ORDER or any(len(row) != len(rows) for row in rows):
        raise UnreadableError("the determinant of a matrix that is too large or not square")
    if len(rows) == 1:
        return rows[0][0]
    terms: list[Node] = []
    for column, entry in enumerate(rows[0]):
        if entry != _ZERO:
            term = Multiply((entry, determinant(tuple(row[:column] + row[column + 1 :] for row in rows[1:]))))
            terms.append(Negate(term) if column % 2 else term)
    # Written as a quotient, so that a determinant does not count as an evaluated number.
    return Divide(Add(tuple(terms) or (_ZERO,)), Number(Fraction(1)))


def times(left: Node, right: Node) -> Node:
    """A product, with a product on the left flattened."""
    factors = left.factors if isinstance(left, Multiply) else (left,)
    return Multiply((*factors, right))


def difference_of_sets(terms: list[Node]) -> Node | None:
    """Two terms as a difference of sets; only points can be removed from an interval, since `(1,2)-(3,4)` subtracts vectors."""
    if len(terms) != 2 or not isinstance(terms[1], Negate):
        return None
    whole, taken = terms[0], terms[1].value
    if isinstance(whole, NamedSet | SetOf) or (
        isinstance(whole, Bracketed | SetOperation) and isinstance(taken, SetOf)
    ):
        return SetOperation("difference", whole, taken)
    return None


def proper_fraction(node: Node) -> tuple[int, int] | None:
    """Numerator and denominator of a fraction of positive integers that is below one; None for anything else."""
    if isinstance(node, Divide) and isinstance(node.numerator, Number) and isinstance(node.denominator, Number):
        top, bottom = node.numerator.value, node.denominator.value
        if is_integer_literal(node.numerator) and is_integer_literal(node.denominator) and 0 < top < bottom:
            return int(top), int(bottom)
    return None


def mixed_number(node: Node) -> Mixed | None:
    """An integer and a proper fraction joined by `and`, as a mixed number: `3 and 1/2`; None for anything else."""
    if not (isinstance(node, ListOf) and node.joiner == "and" and len(node.items) == 2):
        return None
    whole, fraction = node.items
    proper = proper_fraction(fraction)
    if proper is None or not isinstance(whole, Number) or not is_integer_literal(whole):
        return None
    return Mixed(int(whole.value), *proper)


def outside_of(operators: list[str], operands: list[Node]) -> Node | None:
    r"""Write `x \\notin S` as `x \\in R` without `S`."""
    if operators != ["notin"]:
        return None
    return Relation(("in",), (operands[0], SetOperation("difference", NamedSet("R"), operands[1])))


def with_the_other_cases(lines: list[Node]) -> tuple[Node, ...]:
    """The lines of a definition by cases, with "otherwise" as the complement of the conditions before it."""
    *cases, last = (line.items if isinstance(line, Bracketed) else () for line in lines)
    conditions = [case[1] for case in cases if len(case) == 2]
    ordered = all(
        isinstance(part, Relation) for one in conditions for part in (one.items if isinstance(one, ListOf) else (one,))
    )
    if len(last) != 2 or last[1] != OTHERWISE or len(conditions) != len(cases) or not conditions or not ordered:
        return tuple(lines)
    rest: Node = NamedSet("R")
    for condition in conditions:
        rest = SetOperation("difference", rest, condition)
    return (*lines[:-1], Bracketed("(", (last[0], rest), ")"))


def set_by_condition(element: Node, condition: Node) -> Node:
    r"""A set-builder as a set: its condition, with the set that the elements are from unless these are the real numbers."""
    within = isinstance(element, Relation) and element.operators == ("in",) and element.operands[1] == NamedSet("R")
    if isinstance(element, Relation) and not within:
        conditions = condition.items if isinstance(condition, ListOf) and condition.joiner != "or" else (condition,)
        return ListOf((element, *conditions), "and")
    element = element.operands[0] if isinstance(element, Relation) else element
    if not isinstance(element, Symbol):
        return (
            Bracketed("{", (element, condition), "}") if isinstance(element, Bracketed) else _image(element, condition)
        )
    if not _determines(condition, element):
        return Bracketed("{", (element, condition), "}")
    return SetOf((condition,)) if isinstance(condition, Relation) else condition


def _determines(condition: Node, element: Symbol) -> bool:
    """Whether a condition shows which symbol is the element: no other symbol occurs, or every relation has it as a side."""
    if symbols(condition) in ({element.name}, frozenset()):
        return True
    relations = condition.items if isinstance(condition, ListOf) else (condition,)
    return all(
        isinstance(relation, Relation) and (element in relation.operands or relation.operators == ("in",))
        for relation in relations
    )


def _image(element: Node, condition: Node) -> Node:
    r"""The values of an expression under a condition: a family for `k \in \mathbb{Z}`, otherwise both parts in braces."""
    if isinstance(condition, Relation) and condition.operators == ("in",) and condition.operands[1] == NamedSet("Z"):
        return ListOf((element, condition), "and")
    return Bracketed("{", (element, condition), "}")


def set_of_numbers(node: Node) -> Node:
    """The set of numbers that a plain letter after a membership sign denotes; any other node is returned unchanged."""
    return NamedSet(node.name) if isinstance(node, Symbol) and node.name in ("Z", "Q", "R") else node


def half_of_set(name: str, sign: str) -> Node:
    """The numbers of a set that are in a given relation to zero."""
    if name != "R":
        return NamedSet(f"{name}{sign}0")
    zero, infinity = Number(Fraction(0)), Constant("inf")
    if sign.startswith(">"):
        return Bracketed("[" if sign == ">=" else "(", (zero, infinity), ")")
    return Bracketed("(", (Negate(infinity), zero), "]" if sign == "<=" else ")")


def compound_quantity(quantities: list[Node], joiner: str = ",") -> Node | None:
    """Literals with successively smaller units of one dimension, such as 3 ft 2 in, as one quantity in the first unit."""
    total = Fraction(0)
    last: Unit | None = None
    for quantity in quantities:
        if not (isinstance(quantity, Quantity) and isinstance(quantity.value, Number) and quantity.unit.dimension):
            return None
        if last is not None and not (
            quantity.unit.dimension == last.dimension and quantity.value.value * quantity.unit.factor < last.factor
        ):
            return None
        last = quantity.unit
        total += quantity.value.value * last.factor
    first = quantities[0]
    if joiner == "or" or not isinstance(first, Quantity):
        return None
    return Quantity(Number(total / first.unit.factor), first.unit)


def measured_in(node: Node, unit: Unit) -> Quantity:
    """A value with a unit. If the value has a unit of measurement already, both are multiplied, as in dollars per hour."""
    if isinstance(node, Quantity) and not (unit.is_label or node.unit.is_label):
        return Quantity(node.value, node.unit.times(unit))
    return Quantity(node, unit)


def excluded_values(items: list[Node]) -> tuple[Node, ...]:
    """The items, in which each number after `x != 1` becomes a further excluded value."""
    first = items[0]
    if not (isinstance(first, Relation) and first.operators == ("!=",)):
        return tuple(items)
    name = first.operands[0]
    return tuple(item if isinstance(item, Relation) else Relation(("!=",), (name, item)) for item in items)


def alternatives(items: list[Node], joiners: list[str]) -> ListOf | None:
    """Lists with `or` between them: parts of statements, or values of the same names; None for anything else."""
    if {*joiners} == {","} and (solutions := _solutions_of_systems(items)) is not None:
        return solutions
    groups = [[items[0]]]
    for joiner, item in zip(joiners, items[1:], strict=False):
        groups += [[item]] if joiner == "or" else []
        groups[-1] += [item] if joiner != "or" else []
    statements = {*joiners} == {"and", "or"} and all(map(_is_statement, items))
    names = [
        {item.operands[0] for item in group if isinstance(item, Relation) and item.operators == ("=",)}
        for group in groups
    ]
    named = len(names[0]) > 1 and all(
        own == names[0] and len(group) == len(own) for own, group in zip(names, groups, strict=True)
    )
    if len(groups) < 2 or not (statements or named):
        return None
    joiner = "and" if statements else ","
    return ListOf(tuple(ListOf(tuple(group), joiner) if len(group) > 1 else group[0] for group in groups), "or")


def _solutions_of_systems(items: list[Node]) -> ListOf | None:
    """Equations whose names recur in order, as in `x=1, y=2, x=3, y=4`, as solutions of a system; None for other items."""
    names = [item.operands[0] if isinstance(item, Relation) and item.operators == ("=",) else None for item in items]
    size = names.index(names[0], 1) if names[0] in names[1:] else 0
    if size < 2 or None in names or len(items) % size or names != names[:size] * (len(names) // size):
        return None
    return ListOf(tuple(ListOf(tuple(items[start : start + size]), ",") for start in range(0, len(items), size)), "or")


def is_complex(node: Node) -> bool:
    """Whether a bar over an expression is a conjugate: the expression has the imaginary unit or a complex number's letter."""
    named = (subtree.name[0] in COMPLEX_NAMES for subtree in tree.walk(node) if isinstance(subtree, Symbol))
    return any(named) or Constant("i") in tree.walk(node)


def _is_statement(node: Node) -> bool:
    """Whether a part of a statement in brackets is a letter or a nested statement."""
    return isinstance(node, Symbol) or (isinstance(node, Unknown) and node.name in ("and", "or"))


def bracketed(opening: str, inside: Node, closing: str) -> Node:
    """The content of brackets: the items of a tuple or interval, or one expression.

    Raises:
        UnreadableError: If the content cannot be in such brackets.
    """
    if isinstance(inside, ListOf):
        if inside.joiner != "," and opening == "(" and all(map(_is_statement, inside.items)):
            return Unknown(inside.joiner, inside.items)
        if inside.joiner != ",":
            raise UnreadableError("a word between the items of a tuple")
        return Bracketed(opening, inside.items, closing)
    if (opening, closing) not in (("(", ")"), ("[", "]")):
        raise UnreadableError("an interval with only one end")
    return inside
