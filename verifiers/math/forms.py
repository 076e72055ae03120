"""The forms an answer can take, read off its tree: labels, assignments, list items, units, percentages, vectors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from verifiers.math.exact import rational_or_none, substitute
from verifiers.math.numeric import real_value
from verifiers.math.tree import (
    Add,
    Apply,
    Bracketed,
    Choice,
    Clock,
    Constant,
    Degrees,
    Derivative,
    Divide,
    Integral,
    Limit,
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
    Sentence,
    Series,
    SetOf,
    SetOperation,
    Symbol,
    Unknown,
    Words,
    is_integer_literal,
    rewrite,
    symbols,
    walk,
)
from verifiers.math.units import CURRENCIES, UNITS, Unit
from verifiers.math.vocabulary import GREEK

INEQUALITIES = frozenset(("<", "<=", ">", ">=", "!="))
DEGREE = UNITS["degree"]
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!=", "~": "~"}
_TRIGONOMETRIC = frozenset(("sin", "cos", "tan", "cot", "sec", "csc"))
_NAMING = frozenset(("det", "max", "min", "gcd", "lcm", "mod"))
_MAX_SIGNED_ITEMS = 50
_MAX_FREE_SIGNS = 3


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
    joiner = "and" if isinstance(node, Relation) and "!=" in node.operators else "or"
    return values[0] if len(values) == 1 else ListOf(values, joiner)


def _both_signs(node: Node) -> tuple[Node, ...]:
    if not any(isinstance(part, PlusMinus) for part in walk(node)):
        return (node,)
    if isinstance(node, Relation) and node.operators == ("=",) and isinstance(node.operands[0], Symbol):
        return tuple(Relation(("=",), (node.operands[0], value)) for value in _both_signs(node.operands[1]))
    if isinstance(node, Add) and _signs_are_free(node):
        return tuple(Add(terms) for terms in itertools.product(*map(_both_signs, node.terms)))
    return _with_sign(node, 1), _with_sign(node, -1)


def _signs_are_free(node: Add) -> bool:
    """Whether two or three terms of a sum have a plus-minus, which then are chosen apart; a minus-plus would tie them."""
    signed = [term for term in node.terms if any(isinstance(part, PlusMinus) for part in walk(term))]
    signs = {part.sign for term in signed for part in walk(term) if isinstance(part, PlusMinus)}
    return 2 <= len(signed) <= _MAX_FREE_SIGNS and signs == {1}


def _with_sign(node: Node, sign: int) -> Node:
    def choose(part: Node) -> Node | None:
        if not isinstance(part, PlusMinus):
            return None
        value = _with_sign(part.value, sign)
        return value if part.sign == sign else Negate(value)

    return rewrite(node, choose)


def plain(node: Node) -> Node:
    """A set of one item as that item, and a matrix times a number multiplied out; a list without what it need not say."""
    if isinstance(node, ListOf):
        return _without_exclusions(node)
    single = isinstance(node, SetOf) and len(node.items) == 1 and not is_set_like(node)
    if isinstance(node, SetOf) and single and not isinstance(node.items[0], SetOf | NamedSet | Bracketed):
        return plain(node.items[0])
    if isinstance(node, Relation) and _is_tuple_in_set(node):
        return node.operands[1]
    if isinstance(node, Relation) and (named := named_ratio(node)) is not None:
        return Ratio(tuple(named.values()))
    if isinstance(node, Multiply) and (point := _named_point(node)) is not None:
        return point
    if isinstance(node, Add) and (total := _entrywise(list(map(plain, node.terms)), Add)) is not None:
        return total
    if isinstance(node, Multiply | Divide | Negate) and (scaled := _scaled_matrix(node)) is not None:
        return scaled
    return node


def _is_tuple_in_set(node: Relation) -> bool:
    r"""Whether a relation says where a tuple of names lies, as in `(x,y)\\in\\{(1,2)\\}`."""
    names = node.operands[0]
    if node.operators != ("in",) or not isinstance(names, Bracketed) or not isinstance(node.operands[1], SetOf):
        return False
    return all(isinstance(name, Symbol) for name in names.items)


def named_ratio(node: Node) -> dict[str, Node] | None:
    """The parts of a ratio of names by their names, as in `a:b=2:3`; None for anything else."""
    if not isinstance(node, Relation) or node.operators != ("=",):
        return None
    ratio, value = node.operands
    if not isinstance(ratio, Ratio) or not isinstance(value, Ratio | Clock):
        return None
    names, parts = [part.name for part in ratio.parts if isinstance(part, Symbol)], ratio_parts(value)
    named = parts is not None and len(set(names)) == len(ratio.parts) == len(parts)
    return dict(zip(names, parts, strict=True)) if parts is not None and named else None


def _named_point(node: Multiply) -> Bracketed | None:
    """The coordinates of a point with its letter in front: `P(1,2)`."""
    name, *rest = node.factors
    coordinates = rest[0] if len(rest) == 1 else None
    named = isinstance(name, Symbol) and len(name.name) == 1 and name.name.isupper()
    if not (named and isinstance(coordinates, Bracketed) and coordinates.opening == "("):
        return None
    return Bracketed("<", coordinates.items, ">")  # no interval


def _scaled_matrix(node: Multiply | Divide | Negate) -> Matrix | Bracketed | None:
    """A matrix, or a tuple, times a number."""
    one = Number(Fraction(1))
    if isinstance(node, Negate):
        return _entrywise((plain(node.value),), lambda entries: Negate(*entries))
    if isinstance(node, Divide):
        return _entrywise((plain(node.numerator),), lambda entries: Multiply((Divide(one, node.denominator), *entries)))
    factors = [plain(factor) for factor in node.factors]
    matrices = [factor for factor in factors if isinstance(factor, Matrix | Bracketed)]
    rest = tuple(factor for factor in factors if not isinstance(factor, Matrix | Bracketed))
    return _entrywise(matrices, lambda entries: Multiply((*rest, *entries))) if len(matrices) == 1 else None


def _entrywise(terms: Sequence[Node], entry: Callable[[tuple[Node, ...]], Node]) -> Matrix | Bracketed | None:
    """Matrices of one shape, or tuples of one length, put together entry by entry; None for anything else."""
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


# Names in front of an equals sign.


def label(node: Node) -> str | None:
    """What an expression in front of an equals sign names: a symbol, a function of symbols, words; None if nothing."""
    if isinstance(node, Symbol):
        return node.name
    if isinstance(node, Unknown):
        generic = node.name not in _NAMING and all(
            isinstance(argument, Symbol) and argument.name.islower() for argument in node.arguments
        )
        arguments = "" if generic else repr(node.arguments)
        return f"{node.name}({arguments})"
    return None


def is_named_thing(node: Node) -> bool:
    """Whether an expression names a thing that has a value: `AB`, `AB/CD`, `[ABC]`, `|S|`, `tan A`, `max f`."""
    if isinstance(node, Apply):
        inside = node.arguments[0]
        if node.name in _NAMING:
            return bool(symbols(node))
        return (node.name == "abs" and (_is_capital(inside) or is_named_thing(inside))) or (
            node.name in _TRIGONOMETRIC
            and (_is_capital(inside) or (isinstance(inside, Symbol) and inside.name in GREEK))
        )
    if isinstance(node, Limit | Integral | Derivative | Series):
        return bool(symbols(node)) or any(isinstance(part, Unknown) for part in walk(node))
    if isinstance(node, Divide):
        return all(_is_capital(part) or is_named_thing(part) for part in (node.numerator, node.denominator))
    if isinstance(node, Multiply) and all(isinstance(factor, Symbol) for factor in node.factors):
        names = [factor.name for factor in node.factors if isinstance(factor, Symbol)]
        return all(name[0].isupper() for name in names[names[0] == "m" :])
    return False


def is_word_of_letters(node: Node) -> bool:
    """Whether three or more capitals are written as one: the name of a polygon, outcomes in a row; no product."""
    factors = node.factors if isinstance(node, Multiply) else ()
    return len(factors) > 2 and all(
        isinstance(factor, Symbol) and len(factor.name) == 1 and factor.name.isupper() for factor in factors
    )


def _is_capital(node: Node) -> bool:
    return isinstance(node, Symbol) and node.name[0].isupper()


def solved(node: Relation) -> tuple[str | None, Node]:
    """The name and the value of an equation that is solved for a name; (None, the left side) of any other."""
    if set(node.operators) == {"="} or node.operators in (("~",), (":",)):
        first, last = node.operands[0], node.operands[-1]
        for named, value in ((first, last), (last, first)):
            name = label(named)
            if name is not None and not (isinstance(named, Symbol) and named.name in symbols(value)):
                return name, value
    return None, node.operands[0]


def names_agree(gold: str, answer: str) -> bool:
    """Whether two names may stand for one quantity: equal, words, or `y` for the value of a function."""
    if gold.startswith("text:") and answer.startswith("text:") and not (_is_formula(gold) and _is_formula(answer)):
        ours, theirs = (frozenset(name.removeprefix("text:").split()) for name in (gold, answer))
        return ours <= theirs or theirs <= ours
    if gold == answer:
        return True
    if gold.startswith("text:") or answer.startswith("text:"):
        return not any(map(_is_formula, (gold, answer)))
    return "y" in (gold, answer) and (gold.endswith("()") or answer.endswith("()"))


def _is_formula(name: str) -> bool:
    """Whether a name is read as text and is none, such as `P(A|B)`: it says of what the value is."""
    return name.startswith("text:") and "(" in name and " " not in name


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


def residue_alone(node: Node) -> Node:
    r"""A residue without its modulus: the 3 of `3 \pmod 7`. A congruence says less than an equation."""
    if not isinstance(node, Relation) or node.operators != ("modulo",):
        return node
    return node.operands[0] if len(node.operands) == 2 and is_integer_literal(node.operands[0]) else node


_CONSTANTS_OF_INTEGRATION = frozenset("cCK")
_INDICES = frozenset(("_1", "_2", "_3", "_4"))


def with_constants_named(gold: Node, answer: Node) -> Node:
    """An answer whose arbitrary constants are called as the gold calls its own, in the order of their indices."""
    ours, theirs = map(arbitrary_constants, (gold, answer))
    if len(ours) != len(theirs) or symbols(answer) & {*ours} or symbols(gold) & {*theirs}:
        return answer
    return renamed(answer, dict(zip(theirs, ours, strict=True)))


def arbitrary_constants(node: Node) -> list[str]:
    r"""The constant of integration of a sum, or the constants of a general solution, such as `C_1` and `C_2`."""
    if (constant := free_constant(node)) is not None:
        return [constant]
    constants = [name for name in symbols(node) if name[0] in _CONSTANTS_OF_INTEGRATION and name[1:] in _INDICES]
    return sorted(constants, key=lambda name: name[1:])


def is_made_of_parameters(node: Node) -> bool:
    """Whether `m+n` or `m/n` names what is asked for: made of different letters, none of which is a usual unknown."""
    parts = (
        node.terms if isinstance(node, Add) else (node.numerator, node.denominator) if isinstance(node, Divide) else ()
    )
    names = [part.name for part in parts if isinstance(part, Symbol)]
    return len(names) == len(parts) == len(set(names)) > 1 and all(
        len(name) == 1 and "a" <= name <= "w" for name in names
    )


def is_indefinite(node: Node) -> bool:
    """Whether a node is an integral without bounds."""
    return isinstance(node, Integral) and node.lower is None


def free_constant(node: Node) -> str | None:
    """The constant of integration of a sum: its one term of that name, which stands nowhere else."""
    if not isinstance(node, Add):
        return None
    constants = [term for term in node.terms if isinstance(term, Symbol) and term.name in _CONSTANTS_OF_INTEGRATION]
    if len(constants) != 1:
        return None
    name = constants[0].name
    return None if any(name in symbols(term) for term in node.terms if term is not constants[0]) else name


def difference(node: Relation) -> Node:
    """Left side minus right side."""
    return Add((node.operands[0], Negate(node.operands[1])))


def forms_of(node: Relation) -> tuple[Relation, ...]:
    """An equation, and where it is solved for a name by a fraction, the same without the fraction: `y=1/x` as `xy=1`."""
    for named, value in (node.operands, node.operands[::-1]):
        if isinstance(named, Symbol) and isinstance(value, Divide) and symbols(value.denominator):
            return node, Relation(node.operators, (Multiply((named, value.denominator)), value.numerator))
    return (node,)


def reversed_chain(node: Relation) -> tuple[tuple[str, ...], tuple[Node, ...]]:
    """A chain read from right to left."""
    return tuple(_FLIPPED.get(operator, operator) for operator in reversed(node.operators)), node.operands[::-1]


def assignments(node: Node) -> dict[str, Node] | None:
    """Values of several names: `x=2, y=3` or `(x,y)=(2,3)`; None for anything else."""
    if isinstance(node, ListOf) and node.joiner != "or" and all(isinstance(item, Relation) for item in node.items):
        return _assigned([item for item in node.items if isinstance(item, Relation)])
    if isinstance(node, Relation) and node.operators == ("=",):
        names_, values = node.operands
        if (
            isinstance(names_, Bracketed)
            and isinstance(values, Bracketed)
            and bracket_kind(names_) == bracket_kind(values) == "()"
        ):
            names = [item.name for item in names_.items if isinstance(item, Symbol)]
            if len(names) == len(names_.items) == len(values.items):
                return dict(zip(names, values.items, strict=True))
    if isinstance(node, Relation) and len(node.operands) > 2 and set(node.operators) == {"="}:
        *sides, value = node.operands
        shared = {side.name: value for side in sides if isinstance(side, Symbol)}
        return shared if len(shared) == len(sides) and not symbols(value) else None
    return None


def named_members(node: Node) -> dict[str, Node] | None:
    """Values with words in front of them, as in `Anna 3, Ben 5`, by those words; None for anything else."""
    found: dict[str, Node] = {}
    for item in node.items if isinstance(node, ListOf) else ():
        words, value = item.parts if isinstance(item, Sentence) and len(item.parts) == 2 else (None, None)
        if isinstance(words, Words) and value is not None:
            letter, stated = solved(value) if isinstance(value, Relation) else (None, value)
            found[f"text:{words.text} {letter or ''}".rstrip()] = stated if letter else value
    return found if isinstance(node, ListOf) and len(found) == len(node.items) else None


def _assigned(equations: list[Relation]) -> dict[str, Node] | None:
    """The values of names; f(a) and f(b) are one name in two equations, and two in one list."""
    pairs = [(node, *solved(node)) for node in equations]
    for exactly in (False, True):
        values = {f"{name} {node.operands[0]}" if exactly else name: value for node, name, value in pairs if name}
        if len(values) == len(pairs):
            return values
    return None


# Sets, lists and brackets.


def is_set_like(node: Node) -> bool:
    """Whether a tree can only be a set of real numbers: a union, an inequality, a half-open or infinite interval."""
    if isinstance(node, SetOperation | NamedSet):
        return True
    if isinstance(node, Relation):
        return bool(set(node.operators) & (INEQUALITIES | {"in"}))
    if isinstance(node, Bracketed):
        return is_interval(node) and (bracket_kind(node) in ("(]", "[)") or any(map(is_infinite, node.items)))
    return (isinstance(node, ListOf) or is_set_builder(node)) and all(is_set_like(item) for item in items(node))


def is_set_builder(node: Node) -> bool:
    """Whether a node is a set that is given by a condition."""
    return isinstance(node, SetOf) and len(node.items) == 1 and isinstance(node.items[0], Relation)


def between(node: Node) -> Node:
    """A chain of two inequalities around a symbol as the interval that it means."""
    if not (isinstance(node, Relation) and len(node.operands) == 3 and isinstance(node.operands[1], Symbol)):
        return node
    operators, operands = node.operators, node.operands
    if set(operators) <= {">", ">="}:
        return between(Relation(*reversed_chain(node)))
    if not set(operators) <= {"<", "<="}:
        return node
    opening, closing = "[" if operators[0] == "<=" else "(", "]" if operators[1] == "<=" else ")"
    return Bracketed(opening, (operands[0], operands[2]), closing)


def is_interval(node: Bracketed) -> bool:
    """Whether brackets with two items can be an interval."""
    return len(node.items) == 2 and node.opening in "(["


def is_infinite(node: Node) -> bool:
    """Whether a node is an infinity, with or without a sign."""
    return node == Constant("inf") or (isinstance(node, Negate) and is_infinite(node.value))


def bracket_kind(node: Bracketed) -> str:
    """The brackets, where angle brackets around a vector are round ones."""
    return "()" if node.opening == "<" else node.opening + node.closing


def named_collection(node: Node) -> tuple[str | None, Node]:
    """A list or a set with the name it was given, such as a function defined by cases; None for the name of any other node."""
    if isinstance(node, Relation) and node.operators == ("=",):
        name, value = _set_name(node.operands[0]), node.operands[1]
        if name is not None and (isinstance(value, ListOf | SetOf) or is_set_like(value)):
            return name, value
    return None, node


def _set_name(node: Node) -> str | None:
    """What a set is called: a name, or an operation on names, whose two sides have no order but in a difference."""
    if not isinstance(node, SetOperation):
        return label(node)
    sides = [_set_name(side) or repr(side) for side in (node.left, node.right)]
    return f"{node.kind} of {' and '.join(sides if node.kind == 'difference' else sorted(sides))}"


def as_set(node: Node) -> Node:
    """Numbers, alone or listed, as a set of them; intervals joined by a word as their union."""
    if isinstance(node, ListOf):
        node = ListOf(without_labels(node.items), node.joiner)
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


def shared_label(nodes: Sequence[Node]) -> str | None:
    """The name that all items which have one are said to be values of, the first among them; None if there is none."""
    names = {solved(node)[0] if len(node.operands) == 2 else None for node in nodes if isinstance(node, Relation)}
    return names.pop() if len(names) == 1 and isinstance(nodes[0], Relation) else None


def without_labels(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Drop `x =` in front of items, where all that are labelled have one label and the first is."""
    if shared_label(nodes) is None:
        return nodes
    return tuple(solved(node)[1] if isinstance(node, Relation) else node for node in nodes)


def without_condition(node: Node) -> Node:
    r"""A list without a last item that leaves the others what they are, `n \\in \\mathbb{Z}`, or `n \\ge 1` behind `a_n=`."""
    if not isinstance(node, ListOf) or len(node.items) < 2 or not isinstance(node.items[-1], Relation):
        return node
    *rest, condition = node.items
    assert isinstance(condition, Relation)
    name, domain = condition.operands[0], condition.operands[-1]
    if not isinstance(name, Symbol) or any(map(is_set_like, rest)):  # of sets it would leave the integers only
        return node
    index = isinstance(rest[0], Relation) and (solved(rest[0])[0] or "").partition("_")[2] == name.name
    whole = integer_parameter(node) is not None or (
        index and condition.operators == ("in",) and domain == NamedSet("N")
    )
    first = index and condition.operators == (">=",) and domain in (Number(Fraction(0)), Number(Fraction(1)))
    if not (whole or first) or not any(name.name in symbols(item) for item in rest):
        return node
    return rest[0] if len(rest) == 1 else ListOf(tuple(rest), node.joiner)


def integer_parameter(node: Node) -> str | None:
    r"""The symbol that the last item of a list says is an integer, `n \\in \\mathbb{Z}`; None if it says no such thing."""
    last = items(node)[-1]
    name, *rest = last.operands if isinstance(last, Relation) and last.operators == ("in",) else (last,)
    return name.name if rest == [NamedSet("Z")] and isinstance(name, Symbol) else None


def _without_exclusions(node: ListOf) -> Node:
    r"""A list without conditions such as `x \\ne 0` that its first item has anyway, because it divides by `x`."""
    value, *rest = node.items
    kept = (value, *(item for item in rest if not _is_implied(item, value)))
    return value if len(kept) == 1 else ListOf(kept, node.joiner)


def _is_implied(condition: Node, value: Node) -> bool:
    if not isinstance(condition, Relation) or condition.operators != ("!=",) or symbols(condition.operands[1]):
        return False
    name, excluded = condition.operands
    below = [part.denominator for part in walk(value) if isinstance(part, Divide)]
    return isinstance(name, Symbol) and any(
        name.name in symbols(part) and rational_or_none(substitute(part, name.name, excluded)) == 0 for part in below
    )


# Matrices and vectors.


def as_matrix(node: Node) -> Node:
    """A list of rows in square brackets as a matrix."""
    if (
        isinstance(node, Bracketed)
        and node.opening == "["
        and all(isinstance(item, Bracketed) and bracket_kind(item) == "[]" for item in node.items)
    ):
        rows = tuple(item.items for item in node.items if isinstance(item, Bracketed))
        return Matrix(rows) if len({len(row) for row in rows}) == 1 else node
    return node


def vector_entries(node: Matrix) -> tuple[Node, ...] | None:
    """The entries of a matrix with one column or one row."""
    if len(node.rows) > 1 and len(node.rows[0]) > 1:
        return None
    return tuple(entry for row in node.rows for entry in row)


# Words, choices, times, ratios.


def choice_letter(node: Node) -> str | None:
    """The letter of a choice, also where it stands alone."""
    if isinstance(node, Choice):
        return node.letter
    if isinstance(node, Symbol) and len(node.name) == 1 and node.name.isupper():
        return node.name
    return node.text.upper() if isinstance(node, Words) and len(node.text) == 1 else None


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
        if inner is None or inner.is_label:
            return value, node.unit
        return value, replace(inner, noun=node.unit.label) if node.unit.is_label else inner
    if isinstance(node, Degrees):
        return node.value, DEGREE
    factors = node.factors if isinstance(node, Multiply) else ()
    quantities = [factor for factor in factors if isinstance(factor, Quantity)]
    if len(quantities) == 1:
        (one,) = quantities
        return Multiply(tuple(one.value if factor is one else factor for factor in factors)), one.unit
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


def with_plain_degrees(node: Node) -> Node:
    """Degrees as plain numbers, except in the arguments of functions and in exponents."""
    if not any(isinstance(part, Degrees) for part in walk(node)):
        return node

    def strip(part: Node) -> Node | None:
        if isinstance(part, Apply | Power):
            return part
        return with_plain_degrees(part.value) if isinstance(part, Degrees) else None

    return rewrite(node, strip)


def measured(unit: Unit | None) -> Unit | None:
    """A unit of measurement; None for a counted noun."""
    return None if unit is None or unit.is_label else unit


def names_other_thing(one: Unit, two: Unit) -> bool:
    """Whether two units cannot go together: a measure and a counted noun, or nouns of which neither only says more."""
    if "unit" in (one.label + two.label):
        degrees = {degree for unit in (one, two) if (degree := _length_degree(unit)) is not None}
        return len(degrees) > 1
    if one.is_label != two.is_label:
        return True
    return _nouns_differ(*((unit.label if unit.is_label else unit.noun) for unit in (one, two)))


def _nouns_differ(one: str, two: str) -> bool:
    """Whether two nouns name different things, because neither is left out or the other with more words."""
    ours, theirs = (
        frozenset(word.removesuffix("s").removesuffix("'") for word in noun.partition(" of ")[0].split())
        for noun in (one, two)
    )
    return not (ours <= theirs or theirs <= ours)


def _length_degree(unit: Unit) -> int | None:
    """1 for a length, 2 for an area or square units, 3 for a volume; 0 for other measures, None for a noun."""
    if unit.is_label:
        _, power, degree = unit.label.partition("^")
        return int(degree[0]) if power else None
    (name, exponent), *rest = unit.dimension
    return exponent if name == "length" and not rest else 0


def prices(one: Unit, two: Unit) -> bool:
    """Whether one of two units is a currency, and the other the same per something, which the first leaves unsaid."""
    shared = set(one.dimension) & set(two.dimension)
    rest = set(one.dimension) ^ set(two.dimension)
    currency = len(shared) == 1 and shared <= CURRENCIES and (len(one.dimension) == 1 or len(two.dimension) == 1)
    return currency and all(degree < 0 for _, degree in rest)


def without_unit(node: Node) -> Node:
    """A value without its units, but with degrees."""
    return rewrite(node, lambda part: without_unit(part.value) if isinstance(part, Quantity) else None)


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
    value = None if symbols(node) else rational_or_none(node) or real_value(node)
    return value is not None and bool(abs(value) >= 1)
