"""The forms an answer can take, read off its tree: labels, assignments, list items, units, percentages, vectors."""

from __future__ import annotations

from fractions import Fraction

from verifiers.math.exact import NotExactError, UndefinedError, rational_value
from verifiers.math.numeric import FILTER_DIGITS, estimate
from verifiers.math.tree import (
    Add,
    Apply,
    Bracketed,
    Choice,
    Clock,
    Constant,
    Degrees,
    Divide,
    ListOf,
    Matrix,
    Multiply,
    NamedSet,
    Negate,
    Node,
    Number,
    Percent,
    PlusMinus,
    Power,
    Quantity,
    Ratio,
    Relation,
    SetOf,
    SetOperation,
    Symbol,
    Unknown,
    Words,
    rewrite,
    symbols,
    walk,
)
from verifiers.math.units import UNITS, Unit

INEQUALITIES = frozenset(("<", "<=", ">", ">=", "!="))
DEGREE = UNITS["degree"]
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_TRIGONOMETRIC = frozenset(("sin", "cos", "tan", "cot", "sec", "csc"))
_MAX_SIGNED_ITEMS = 50


def expand_signs(node: Node) -> Node:
    """Write every plus-minus as two values; all such signs within one item stand for the same choice."""
    if isinstance(node, ListOf | SetOf):
        if len(node.items) > _MAX_SIGNED_ITEMS:
            return node
        items = tuple(signed for item in node.items for signed in _both_signs(item))
        return ListOf(items, node.joiner) if isinstance(node, ListOf) else SetOf(items)
    if isinstance(node, Quantity) and len(values := _both_signs(node.value)) == 2:
        return ListOf(tuple(Quantity(value, node.unit) for value in values), "or")
    values = _both_signs(node)
    return values[0] if len(values) == 1 else ListOf(values, "or")


def _both_signs(node: Node) -> tuple[Node, ...]:
    if not any(isinstance(part, PlusMinus) for part in walk(node)):
        return (node,)
    return _with_sign(node, 1), _with_sign(node, -1)


def _with_sign(node: Node, sign: int) -> Node:
    def choose(part: Node) -> Node | None:
        if not isinstance(part, PlusMinus):
            return None
        value = _with_sign(part.value, sign)
        return value if part.sign == sign else Negate(value)

    return rewrite(node, choose)


def plain(node: Node) -> Node:
    """A set of one item as that item, and a matrix times a number multiplied out."""
    if isinstance(node, SetOf) and len(node.items) == 1:
        return plain(node.items[0])
    if isinstance(node, Multiply | Divide | Negate) and (scaled := _scaled_matrix(node)) is not None:
        return scaled
    return node


def _scaled_matrix(node: Multiply | Divide | Negate) -> Matrix | None:
    if isinstance(node, Negate):
        return _scale(node.value, Negate(Number(Fraction(1))))
    if isinstance(node, Divide):
        return _scale(node.numerator, Divide(Number(Fraction(1)), node.denominator))
    matrices = [factor for factor in node.factors if isinstance(factor, Matrix)]
    if len(matrices) != 1:
        return None
    rest = tuple(factor for factor in node.factors if factor is not matrices[0])
    return _scale(matrices[0], rest[0] if len(rest) == 1 else Multiply(rest))


def _scale(matrix: Node, factor: Node) -> Matrix | None:
    if not isinstance(matrix, Matrix) or matrix.kind == "v":
        return None
    return Matrix(tuple(tuple(Multiply((factor, entry)) for entry in row) for row in matrix.rows), matrix.kind)


# Names in front of an equals sign.


def label(node: Node) -> str | None:
    """What an expression in front of an equals sign names: a symbol, a function of symbols, words; None if nothing."""
    if isinstance(node, Symbol):
        return node.name
    if isinstance(node, Divide) and _is_differential(node.numerator) and _is_differential(node.denominator):
        return f"derivative {node!r}"
    if isinstance(node, Unknown):
        arguments = "" if all(isinstance(argument, Symbol) for argument in node.arguments) else repr(node.arguments)
        return f"{node.name}({arguments})"
    return None


def _is_differential(node: Node) -> bool:
    return isinstance(node, Multiply) and len(node.factors) == 2 and node.factors[0] == Symbol("d")


def is_named_thing(node: Node) -> bool:
    """Whether an expression names a thing that has a value: a segment `AB`, an area `[ABC]`, `tan A`."""
    if isinstance(node, Apply):
        inside = node.arguments[0]
        return (node.name == "abs" and is_named_thing(inside)) or (
            node.name in _TRIGONOMETRIC and isinstance(inside, Symbol) and inside.name[0].isupper()
        )
    if isinstance(node, Multiply) and all(isinstance(factor, Symbol) for factor in node.factors):
        names = [factor.name for factor in node.factors if isinstance(factor, Symbol)]
        return all(name[0].isupper() for name in names[names[0] == "m" :])
    return False


def solved(node: Relation) -> tuple[str | None, Node]:
    """The name and the value of an equation that is solved for a name; (None, the left side) of any other."""
    if set(node.operators) == {"="}:
        first, last = node.operands[0], node.operands[-1]
        for named, value in ((first, last), (last, first)):
            name = label(named)
            if name is not None and not (isinstance(named, Symbol) and named.name in symbols(value)):
                return name, value
    return None, node.operands[0]


def names_agree(gold: str, answer: str) -> bool:
    """Whether two names may stand for one quantity: equal, words, or `y` for the value of a function."""
    if gold == answer or gold.startswith("text:") or answer.startswith("text:"):
        return True
    return "y" in (gold, answer) and (gold.endswith("()") or answer.endswith("()"))


def renaming(gold: Relation, answer: Relation) -> dict[str, str]:
    """How the arguments of the answer's function are called in the gold's."""
    ours, theirs = gold.operands[0], answer.operands[0]
    if isinstance(ours, Unknown) and isinstance(theirs, Unknown) and len(ours.arguments) == len(theirs.arguments):
        pairs = zip(ours.arguments, theirs.arguments, strict=True)
        return {
            two.name: one.name
            for one, two in pairs
            if isinstance(one, Symbol) and isinstance(two, Symbol) and one != two
        }
    return {}


def renamed(node: Node, names: dict[str, str]) -> Node:
    """An expression with symbols renamed."""
    return rewrite(
        node, lambda part: Symbol(names[part.name]) if isinstance(part, Symbol) and part.name in names else None
    )


def difference(node: Relation) -> Node:
    """Left side minus right side."""
    return Add((node.operands[0], Negate(node.operands[1])))


def reversed_chain(node: Relation) -> tuple[tuple[str, ...], tuple[Node, ...]]:
    """A chain read from right to left."""
    return tuple(_FLIPPED.get(operator, operator) for operator in reversed(node.operators)), tuple(
        reversed(node.operands)
    )


def assignments(node: Node) -> dict[str, Node] | None:
    """Values of several names: `x=2, y=3` or `(x,y)=(2,3)`; None for anything else."""
    if isinstance(node, ListOf) and all(isinstance(item, Relation) for item in node.items):
        pairs = [_assignment(item) for item in node.items]
        names = [pair[0] for pair in pairs if pair is not None]
        return dict(pair for pair in pairs if pair) if len(set(names)) == len(pairs) else None
    if isinstance(node, Relation) and node.operators == ("=",):
        names_, values = node.operands
        if (
            isinstance(names_, Bracketed)
            and isinstance(values, Bracketed)
            and len(names_.items) == len(values.items)
            and all(isinstance(item, Symbol) for item in names_.items)
        ):
            return {
                item.name: value
                for item, value in zip(names_.items, values.items, strict=True)
                if isinstance(item, Symbol)
            }
    return None


def _assignment(node: Node) -> tuple[str, Node] | None:
    if isinstance(node, Relation):
        name, value = solved(node)
        if name is not None:
            return name, value
    return None


# Sets, lists and brackets.


def is_set_like(node: Node) -> bool:
    """Whether a tree can only be a set of real numbers: a union, an inequality, a half-open or infinite interval."""
    if isinstance(node, SetOperation | NamedSet):
        return True
    if isinstance(node, Relation):
        if set(node.operators) & (INEQUALITIES | {"in"}):
            return True
        return node.operators == ("=",) and label(node.operands[0]) is not None and is_set_like(node.operands[1])
    if isinstance(node, Bracketed):
        return is_interval(node) and (bracket_kind(node) in ("(]", "[)") or any(map(is_infinite, node.items)))
    return isinstance(node, ListOf) and all(is_set_like(item) for item in node.items)


def is_interval(node: Bracketed) -> bool:
    """Whether brackets with two items can be an interval."""
    return len(node.items) == 2 and node.opening in "(["


def is_infinite(node: Node) -> bool:
    """Whether a node is an infinity, with or without a sign."""
    return node == Constant("inf") or (isinstance(node, Negate) and is_infinite(node.value))


def bracket_kind(node: Bracketed) -> str:
    """The brackets, where angle brackets around a vector are round ones."""
    return "()" if node.opening == "<" else node.opening + node.closing


def labelled_set(node: Node) -> tuple[str | None, Node]:
    """A set with the name it was given."""
    if isinstance(node, Relation) and node.operators == ("=",) and is_set_like(node.operands[1]):
        return label(node.operands[0]), node.operands[1]
    return None, node


def as_set(node: Node) -> Node:
    """Numbers, alone or listed, as a set of them; intervals joined by a word as their union."""
    if isinstance(node, ListOf):
        if all(isinstance(item, Bracketed) for item in node.items) and node.joiner in ("or", "and"):
            union = node.items[0]
            for item in node.items[1:]:
                union = SetOperation("union", union, item)
            return union
        if not any(isinstance(item, Relation | NamedSet | Bracketed) for item in node.items):
            return SetOf(node.items)
    if isinstance(node, ListOf | SetOf | Relation | Bracketed | SetOperation | NamedSet | Matrix | Words | Choice):
        return node
    return SetOf((node,))


def items(node: Node) -> tuple[Node, ...]:
    """The items of a list or a set; anything else is one item."""
    return node.items if isinstance(node, ListOf | SetOf) else (node,)


def items_in_brackets(node: Node) -> tuple[Node, ...]:
    """The items of a list, a set or a tuple."""
    return node.items if isinstance(node, Bracketed) else items(node)


def without_labels(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Drop `x =` in front of items, where all that are labelled have one label and the first is."""
    names = {_solved_name(node) for node in nodes if isinstance(node, Relation)}
    if len(names) != 1 or None in names or not isinstance(nodes[0], Relation):
        return nodes
    return tuple(solved(node)[1] if isinstance(node, Relation) else node for node in nodes)


def without_condition(node: Node) -> Node:
    """A list without a last item that says which whole numbers a symbol of the others stands for."""
    if not isinstance(node, ListOf) or len(node.items) < 2 or not isinstance(node.items[-1], Relation):
        return node
    *rest, condition = node.items
    assert isinstance(condition, Relation)
    name, domain = condition.operands[0], condition.operands[-1]
    whole = condition.operators == ("in",) and domain in (NamedSet("Z"), NamedSet("N"))
    if not whole or not isinstance(name, Symbol) or not any(name.name in symbols(item) for item in rest):
        return node
    return rest[0] if len(rest) == 1 else ListOf(tuple(rest), node.joiner)


def _solved_name(node: Relation) -> str | None:
    return solved(node)[0] if len(node.operands) == 2 else None


# Matrices and vectors.


def as_matrix(node: Node) -> Node:
    """A list of rows in square brackets as a matrix."""
    if isinstance(node, Bracketed) and node.opening == "[" and all(_is_row(item) for item in node.items):
        rows = tuple(item.items for item in node.items if isinstance(item, Bracketed))
        return Matrix(rows) if len({len(row) for row in rows}) == 1 else node
    return node


def _is_row(node: Node) -> bool:
    return isinstance(node, Bracketed) and bracket_kind(node) == "[]"


def vector_entries(node: Matrix) -> tuple[Node, ...] | None:
    """The entries of a matrix with one column or one row."""
    if node.kind == "v" or (len(node.rows) > 1 and len(node.rows[0]) > 1):
        return None
    return tuple(entry for row in node.rows for entry in row)


def is_vector(node: Node) -> bool:
    """Whether brackets can hold the coordinates of a vector."""
    return isinstance(node, Bracketed) and bracket_kind(node) in ("()", "[]")


# Words, choices, times, ratios.


def choice_letter(node: Node) -> str | None:
    """The letter of a choice, also where it stands alone."""
    if isinstance(node, Choice):
        return node.letter
    if isinstance(node, Symbol) and len(node.name) == 1 and node.name.isupper():
        return node.name
    if isinstance(node, Words) and len(node.text) == 1:
        return node.text.upper()
    return None


def as_clock(node: Node) -> Node:
    """A whole number as an hour."""
    if isinstance(node, Number) and node.value.denominator == 1 and node.decimals is None and node.value <= 24:
        return Clock(int(node.value), 0, "")
    return node


def ratio_parts(node: Node) -> tuple[Node, ...] | None:
    """The parts of a ratio; a number is its ratio to one, a time of day without its half may be a ratio."""
    if isinstance(node, Ratio):
        return node.parts
    if isinstance(node, Clock) and not node.half:
        return Number(Fraction(node.hour)), Number(Fraction(node.minute))
    if isinstance(node, ListOf | SetOf | Bracketed | Relation | Matrix | Words | Clock | SetOperation | NamedSet):
        return None
    return node, Number(Fraction(1))


# Units and percentages.


def split_unit(node: Node) -> tuple[Node, Unit | None]:
    """A value and its unit; degrees are a unit."""
    if isinstance(node, Negate):
        value, unit = split_unit(node.value)
        return (Negate(value), unit) if unit is not None else (node, None)
    if isinstance(node, Quantity):
        value, inner = split_unit(node.value)
        return value, inner if inner is not None and not inner.is_label else node.unit
    if isinstance(node, Degrees):
        return node.value, DEGREE
    if isinstance(node, Multiply) and isinstance(node.factors[0], Quantity):
        return Multiply((node.factors[0].value, *node.factors[1:])), node.factors[0].unit
    return node, None


def unit_from_letters(node: Node) -> tuple[Node, Unit | None]:
    """Read symbols behind a number as its unit: `5m`, `5 m/s`."""
    factors = node.factors if isinstance(node, Multiply) else (node,)
    if isinstance(node, Divide) and isinstance(node.numerator, Multiply):
        below = _letter_unit(node.denominator)
        value, above = unit_from_letters(node.numerator)
        return (value, above.times(below.power(-1))) if above is not None and below is not None else (node, None)
    unit = _letter_unit(factors[-1])
    if unit is None or len(factors) < 2 or any(symbols(factor) for factor in factors[:-1]):
        return node, None
    return factors[0] if len(factors) == 2 else Multiply(factors[:-1]), unit


def _letter_unit(node: Node) -> Unit | None:
    if isinstance(node, Symbol):
        return UNITS.get(node.name)
    if isinstance(node, Power) and isinstance(node.base, Symbol) and isinstance(node.exponent, Number):
        unit = UNITS.get(node.base.name)
        small = node.exponent.value in (2, 3)
        return unit.power(int(node.exponent.value)) if unit is not None and small else None
    return None


def measured(unit: Unit | None) -> Unit | None:
    """A unit of measurement; None for a counted noun."""
    return None if unit is None or unit.is_label else unit


def names_other_thing(one: Unit, two: Unit) -> bool:
    """Whether of two units one measures and the other counts things by name."""
    return one.is_label != two.is_label and "unit" not in (one.label + two.label)


def without_unit(node: Node) -> Node:
    """A value without its unit, but with degrees."""
    if isinstance(node, Quantity):
        return without_unit(node.value)
    return Negate(without_unit(node.value)) if isinstance(node, Negate) else node


def without_percent(node: Node) -> tuple[bool, Node]:
    """Whether a number is a percentage, and the number in front of the sign."""
    if isinstance(node, Percent):
        return True, node.value
    if isinstance(node, Negate):
        percent, value = without_percent(node.value)
        return percent, Negate(value) if percent else node
    return False, node


def at_least_one(node: Node) -> bool:
    """Whether a constant is at least one in absolute value."""
    try:
        return abs(rational_value(node)) >= 1
    except (NotExactError, UndefinedError):
        pass
    try:
        return bool(abs(estimate(node, FILTER_DIGITS).value) >= 1) if not symbols(node) else False
    except (NotExactError, UndefinedError):
        return False
