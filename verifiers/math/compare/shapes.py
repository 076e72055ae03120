"""Properties of a tree as a collection: its items, its brackets, and whether it can only be a set."""

from __future__ import annotations

from verifiers.math.tree import (
    Bracketed,
    Constant,
    ListOf,
    Matrix,
    NamedSet,
    Negate,
    Node,
    Relation,
    SetOf,
    SetOperation,
    SetSeries,
    Symbol,
)

INEQUALITIES = frozenset(("<", "<=", ">", ">=", "!="))


def items(node: Node) -> tuple[Node, ...]:
    """The items of a list or a set; anything else is one item."""
    return node.items if isinstance(node, ListOf | SetOf) else (node,)


def items_in_brackets(node: Node) -> tuple[Node, ...]:
    """The items of a list, a set or a tuple."""
    return node.items if isinstance(node, Bracketed) else items(node)


def bracket_kind(node: Bracketed) -> str:
    """The brackets; angle brackets around a vector count as round brackets."""
    return "()" if node.opening == "<" else node.opening + node.closing


def is_interval(node: Bracketed) -> bool:
    """Whether brackets with two items can be an interval."""
    return len(node.items) == 2 and node.opening in "(["


def is_infinite(node: Node) -> bool:
    """Whether a node is an infinity, with or without a sign."""
    return node == Constant("inf") or (isinstance(node, Negate) and is_infinite(node.value))


def is_set_builder(node: Node) -> bool:
    """Whether a node is a set given by a condition."""
    return isinstance(node, SetOf) and len(node.items) == 1 and isinstance(node.items[0], Relation)


def is_set_like(node: Node) -> bool:
    """Whether a tree can only be a set of real numbers: a union, an inequality, a half-open or infinite interval."""
    if isinstance(node, SetOperation | SetSeries | NamedSet):
        return True
    if isinstance(node, Relation):
        return bool(set(node.operators) & (INEQUALITIES | {"in"}))
    if isinstance(node, Bracketed):
        return is_interval(node) and (bracket_kind(node) in ("(]", "[)") or any(map(is_infinite, node.items)))
    return (isinstance(node, ListOf) or is_set_builder(node)) and all(is_set_like(item) for item in items(node))


def parameter(node: Node) -> tuple[str, Node] | None:
    r"""The symbol that the last item of a list declares, as in `n \\in \\mathbb{Z}`, and its set; None if there is none."""
    if not isinstance(node, ListOf) or len(node.items) < 2:
        return None
    last = node.items[-1]
    name, *rest = last.operands if isinstance(last, Relation) and last.operators == ("in",) else (last,)
    return (name.name, rest[0]) if rest and isinstance(rest[0], NamedSet) and isinstance(name, Symbol) else None


def integer_parameter(node: Node) -> str | None:
    r"""The symbol that the last item of a list declares to be an integer, as in `n \\in \\mathbb{Z}`; None if there is none."""
    name, domain = parameter(node) or ("", node)
    return name if domain == NamedSet("Z") else None


def vector_entries(node: Matrix) -> tuple[Node, ...] | None:
    """The entries of a matrix with one column or one row."""
    if len(node.rows) > 1 and len(node.rows[0]) > 1:
        return None
    return tuple(entry for row in node.rows for entry in row)


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
