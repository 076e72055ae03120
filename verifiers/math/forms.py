"""The written form of an answer: whether it is a literal, and a key that ignores the order of terms and bound names."""

from __future__ import annotations

from fractions import Fraction

from verifiers.math.tree import (
    Add,
    BasedNumber,
    Bracketed,
    Choice,
    Clock,
    Constant,
    Degrees,
    Divide,
    ListOf,
    Matrix,
    Mixed,
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
    Symbol,
    Words,
    bound_name,
    children,
    rewrite,
)

LITERALS = (Number, Mixed, BasedNumber, Constant, Symbol, Words, Clock, NamedSet)
_WRAPPERS = (Negate, Percent, Degrees, Quantity, Ratio, Bracketed, SetOf, ListOf, Choice, Matrix, PlusMinus)


def is_literal(node: Node) -> bool:
    """Whether an answer leaves no operation to carry out: it is a number, a fraction of integers, or the like."""
    if isinstance(node, LITERALS):
        return True
    if isinstance(node, Divide):
        return is_integer_literal(node.numerator) and is_integer_literal(node.denominator)
    if isinstance(node, Multiply):
        return is_scientific(node)
    if isinstance(node, Negate) and isinstance(node.value, Negate):
        return False
    if isinstance(node, Relation):
        return all(is_literal(operand) for operand in node.operands)
    return isinstance(node, _WRAPPERS) and all(is_literal(child) for child in children(node))


def is_integer_literal(node: Node) -> bool:
    """Whether a node is written as an integer, with at most a sign."""
    if isinstance(node, Negate):
        return is_integer_literal(node.value)
    return isinstance(node, Number) and node.value.denominator == 1 and node.decimals is None


def is_scientific(node: Multiply) -> bool:
    """Whether a product is scientific notation: a literal times a literal power of ten."""
    if len(node.factors) != 2 or not isinstance(node.factors[1], Power):
        return False
    power = node.factors[1]
    return (
        isinstance(node.factors[0], Number)
        and power.base == Number(Fraction(10))
        and is_integer_literal(power.exponent)
    )


def unordered(node: Node, level: int = 0) -> object:
    """A hashable key for an expression, the same for any order of terms and factors and any names of bound variables."""
    if isinstance(node, Add):
        return ("Add", frozenset(_counted(node.terms, level)))
    if isinstance(node, Multiply):
        return ("Multiply", frozenset(_counted(node.factors, level)))
    bound = bound_name(node)
    values = {name: getattr(node, name) for name in node.__dataclass_fields__}
    if bound is not None:
        level += 1
        values = {name: value for name, value in values.items() if name not in ("index", "variable")}
        values["body"] = _with_name(values["body"], bound, Symbol(f"bound {level}"))
    return (type(node).__name__, tuple(_key(value, level) for value in values.values()))


def _key(value: object, level: int) -> object:
    if isinstance(value, Node):
        return unordered(value, level)
    return tuple(_key(item, level) for item in value) if isinstance(value, tuple) else value


def _with_name(node: Node, name: str, symbol: Symbol) -> Node:
    """An expression with a bound variable renamed, also where the variable is the index of a name: the `n` of `a_n`."""

    def replaced(leaf: Node) -> Node | None:
        if isinstance(leaf, Symbol) and leaf.name.endswith(f"_{name}"):
            return Symbol(leaf.name.removesuffix(name) + symbol.name)
        return symbol if isinstance(leaf, Symbol | Constant) and leaf.name == name else None

    return rewrite(node, replaced)


def _counted(nodes: tuple[Node, ...], level: int) -> dict[tuple[object, int], None]:
    seen: dict[object, int] = {}
    counted: dict[tuple[object, int], None] = {}
    for node in nodes:
        key = unordered(node, level)
        seen[key] = seen.get(key, 0) + 1
        counted[key, seen[key]] = None
    return counted
