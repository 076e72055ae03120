"""The plain form of an answer: without unnecessary braces, conditions and products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from verifiers.math.compare.choices import named_ratio
from verifiers.math.compare.names import solved
from verifiers.math.compare.shapes import (
    INEQUALITIES,
    bracket_kind,
    integer_parameter,
    is_set_like,
    items,
    parameter,
)
from verifiers.math.tree import (
    DOTS,
    Add,
    Bracketed,
    Divide,
    ListOf,
    Matrix,
    Multiply,
    NamedSet,
    Negate,
    Node,
    Number,
    Ratio,
    Relation,
    Sentence,
    SetOf,
    Symbol,
    Words,
    symbols,
    walk,
)
from verifiers.math.values.exact import rational_or_none, signed_number, substitute

MAX_VALUES = 60
"""Maximum number of values of an index that are listed."""

REAL_PARAMETERS = frozenset(("t", "s", "r", "lambda", "mu"))
"""Letters that are real numbers in coordinates, unlike letters that are usually integers."""
INTEGER_PARAMETERS = frozenset("nmkjlpqNMK")
"""Letters that are usually integers."""


def plain(node: Node) -> Node:
    """Replace a set of one item by the item, multiply out a matrix times a number, and drop unnecessary items of a list."""
    if (values := _values_of_index(node)) is not None:
        return values
    if isinstance(node, Sentence) and len(node.parts) == 3 and _has_condition(node):
        return ListOf(node.parts[::2])
    if isinstance(node, ListOf):
        return _without_exclusions(node)
    single = isinstance(node, SetOf) and len(node.items) == 1 and not is_set_like(node)
    if isinstance(node, SetOf) and single and not isinstance(node.items[0], SetOf | NamedSet | Bracketed):
        return plain(node.items[0])
    if isinstance(node, Relation) and _is_tuple_in_set(node):
        return node.operands[1]
    if isinstance(node, Relation) and node.operators == ("in",) and parameter(node.operands[1]) is not None:
        return _each_equal(node.operands[0], node.operands[1])
    if isinstance(node, Relation) and (named := named_ratio(node)) is not None:
        return Ratio(tuple(named.values()))
    if isinstance(node, Relation) and node.operators == ("=",) and isinstance(node.operands[0], Bracketed):
        return Relation(("=",), (node.operands[0], plain(node.operands[1])))
    if isinstance(node, Multiply) and (point := _named_point(node)) is not None:
        return point
    if isinstance(node, Add) and (total := _entrywise(list(map(plain, node.terms)), Add)) is not None:
        return total
    if isinstance(node, Multiply | Divide | Negate) and (scaled := _scaled_matrix(node)) is not None:
        return scaled
    return node


def _is_tuple_in_set(node: Relation) -> bool:
    r"""Whether a relation states that a tuple of names is in a set, as in `(x,y)\\in\\{(1,2)\\}`."""
    names = node.operands[0]
    if node.operators != ("in",) or not isinstance(names, Bracketed) or not isinstance(node.operands[1], SetOf):
        return False
    return all(isinstance(name, Symbol) for name in names.items)


def _has_condition(node: Sentence) -> bool:
    """Whether a sentence is a value with a condition in words, as in `2x for x>0`, which a comma could join as well."""
    value, *words, condition = node.parts
    inequality = isinstance(condition, Relation) and set(condition.operators) <= INEQUALITIES | {"in"}
    return words in _CONDITIONAL and inequality and not is_set_like(value)


_CONDITIONAL = [[Words(word)] for word in ("for", "if", "when", "where", "with")]


def _each_equal(name: Node, family: Node) -> Node:
    r"""The family in `x \\in \\{2\\pi k \\mid k \\in \\mathbb{Z}\\}` as equations and the declaration of its parameter."""
    assert isinstance(family, ListOf)
    members = [member for item in family.items[:-1] for member in items(item)]
    return ListOf((*(Relation(("=",), (name, member)) for member in members), family.items[-1]), family.joiner)


def without_braces(node: Node) -> Node:
    """A set-builder with a declared parameter as a list of its values and the declaration; anything else unchanged."""
    listed = ListOf(node.items, "and") if isinstance(node, Bracketed) and node.opening == "{" else node
    return listed if parameter(listed) is not None else node


def _values_of_index(node: Node) -> Node | None:
    r"""The values of an expression for the listed integers: `1, 3, 5` for `2k+1, k=0,1,2`; None for anything else."""
    braces = isinstance(node, Bracketed) and node.opening == "{" and len(node.items) == 2
    if not isinstance(node, ListOf | Bracketed) or not (braces or isinstance(node, ListOf)):
        return None
    value, *numbers = [one for item in node.items for one in items(item)]
    first = numbers[0] if len(numbers) > 1 else None
    if not isinstance(first, Relation) or first.operators != ("=",) or not isinstance(first.operands[0], Symbol):
        return None
    index = first.operands[0].name
    integers = _integers([first.operands[1], *numbers[1:]]) if index in symbols(value) else None
    if integers is None:
        return None
    values = tuple(substitute(value, index, signed_number(integer)) for integer in integers)
    return SetOf(values) if braces else ListOf(values)


def _integers(nodes: list[Node]) -> list[int] | None:
    """The integers of a list such as `0, 1, 2` or `0, 1, ..., 7`; None for a list with anything else."""
    numbers: list[int] = []
    dots = False
    for node in nodes:
        number = rational_or_none(node)
        if node == DOTS and numbers and not dots:
            dots = True
        elif number is None or number.denominator != 1:
            return None
        else:
            step = numbers[-1] - numbers[-2] if len(numbers) > 1 else 1
            if dots and not (0 < step <= number - numbers[-1] < MAX_VALUES and (number - numbers[-1]) % step == 0):
                return None
            numbers += range(numbers[-1] + step, int(number), step) if dots else []
            numbers.append(int(number))
            dots = False
    return None if dots or len(numbers) > MAX_VALUES else numbers


def named_point(node: Node) -> Node:
    """`P=(1,2)` as `P(1,2)`; anything else unchanged."""
    if isinstance(node, Relation) and node.operators == ("=",) and isinstance(node.operands[0], Symbol):
        point = Multiply(node.operands)
        return node if _named_point(point) is None else point
    return node


def point_name(node: Node) -> str | None:
    """The letter before a point's coordinates; None for anything else."""
    if not isinstance(node, Multiply) or _named_point(node) is None:
        return None
    name = node.factors[0]
    return name.name if isinstance(name, Symbol) else None


def _named_point(node: Multiply) -> Bracketed | None:
    """The coordinates of a point after its letter: `P(1,2)`."""
    name, *rest = node.factors
    coordinates = rest[0] if len(rest) == 1 else None
    named = isinstance(name, Symbol) and len(name.name) == 1 and name.name.isupper()
    if not (named and isinstance(coordinates, Bracketed) and coordinates.opening == "("):
        return None
    return Bracketed("<", coordinates.items, ">")  # not an interval


def _scaled_matrix(node: Multiply | Divide | Negate) -> Matrix | Bracketed | None:
    """A matrix or a tuple multiplied by a number."""
    one = Number(Fraction(1))
    if isinstance(node, Negate):
        return _entrywise((plain(node.value),), lambda entries: Negate(*entries))
    if isinstance(node, Divide):
        return _entrywise((plain(node.numerator),), lambda entries: Multiply((Divide(one, node.denominator), *entries)))
    factors = [plain(factor) for factor in node.factors]
    matrices = [factor for factor in factors if isinstance(factor, Matrix | Bracketed)]
    rest = tuple(factor for factor in factors if not isinstance(factor, Matrix | Bracketed))
    if len(matrices) != 1:
        return None
    zero = Number(Fraction(0))
    return _entrywise(matrices, lambda entries: zero if entries == (zero,) else Multiply((*rest, *entries)))


def _entrywise(terms: Sequence[Node], entry: Callable[[tuple[Node, ...]], Node]) -> Matrix | Bracketed | None:
    """Matrices of one shape, or tuples of one length, combined entry by entry; None for anything else."""
    first, rows = terms[0], [_rows(term) for term in terms]
    if (
        len({type(term) for term in terms}) > 1
        or any(not row for row in rows)
        or len({tuple(map(len, row)) for row in rows}) > 1
    ):
        return None
    combined = tuple(tuple(map(entry, zip(*row, strict=True))) for row in zip(*rows, strict=True))
    return Matrix(combined) if isinstance(first, Matrix) else Bracketed("(", combined[0], ")")


def _rows(node: Node) -> tuple[tuple[Node, ...], ...]:
    """The entries of a matrix, or of a tuple as one row; empty for anything else."""
    if isinstance(node, Bracketed) and bracket_kind(node) == "()":
        return (node.items,)
    return node.rows if isinstance(node, Matrix) else ()


def _without_exclusions(node: ListOf) -> Node:
    r"""A list without conditions such as `x \\ne 0` that its first item implies, because it divides by `x`."""
    value, *rest = node.items
    kept = (value, *(item for item in rest if not _is_implied(item, value)))
    return value if len(kept) == 1 else ListOf(kept, node.joiner)


def _is_implied(condition: Node, value: Node) -> bool:
    if not isinstance(condition, Relation) or condition.operators != ("!=",) or symbols(condition.operands[1]):
        return False
    name, excluded = condition.operands
    below = [node.denominator for node in walk(value) if isinstance(node, Divide)]
    return isinstance(name, Symbol) and any(
        name.name in symbols(denominator) and rational_or_none(substitute(denominator, name.name, excluded)) == 0
        for denominator in below
    )


def without_condition(node: Node) -> Node:
    r"""A list without a last item that restricts nothing, such as `n \\in \\mathbb{Z}` or `C \\in \\mathbb{R}`."""
    if not isinstance(node, ListOf) or len(node.items) < 2 or not isinstance(node.items[-1], Relation):
        return node
    *rest, condition = node.items
    assert isinstance(condition, Relation)
    name, domain = condition.operands[0], condition.operands[-1]
    while domain == NamedSet("R") and len(rest) > 1 and isinstance(rest[-1], Symbol):
        rest.pop()  # declared together with the last name
    points = len(rest) > 1 or isinstance(rest[0], Bracketed | Matrix)
    if not isinstance(name, Symbol) or any(map(is_set_like, rest)) or (points and name.name in REAL_PARAMETERS):
        return node  # the condition would restrict sets, or the points of a line, to integers
    index = isinstance(rest[0], Relation) and (solved(rest[0])[0] or "").partition("_")[2] == name.name
    whole = integer_parameter(node) is not None or (
        index and condition.operators == ("in",) and domain == NamedSet("N")
    )
    first = index and condition.operators == (">=",) and domain in (Number(Fraction(0)), Number(Fraction(1)))
    real = condition.operators == ("in",) and domain == NamedSet("R") and name.name not in INTEGER_PARAMETERS
    if whole and name.name.partition("_")[0] in ("c", "C"):
        return node  # an arbitrary constant is a real number
    if not (whole or first or real) or not any(name.name in symbols(item) for item in rest):
        return node
    return rest[0] if len(rest) == 1 else ListOf(tuple(rest), node.joiner)


def without_last(node: Node) -> Node:
    """A list without its last item."""
    assert isinstance(node, ListOf)
    return node.items[0] if len(node.items) == 2 else ListOf(node.items[:-1], node.joiner)
