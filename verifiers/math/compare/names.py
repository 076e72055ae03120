"""Finds the names before values, as in `x=5`, and decides whether two names denote the same thing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from verifiers.math.compare.shapes import is_set_like
from verifiers.math.tree import (
    Add,
    Apply,
    Derivative,
    Divide,
    Integral,
    Limit,
    ListOf,
    Multiply,
    Negate,
    Node,
    Number,
    Power,
    Relation,
    Series,
    SetOf,
    SetOperation,
    Symbol,
    Unknown,
    rewrite,
    symbols,
    walk,
)
from verifiers.math.vocabulary import GREEK

_TRIGONOMETRIC = frozenset(("sin", "cos", "tan", "cot", "sec", "csc"))
_OF_MATRICES = (Negate(Number(Fraction(1))), Symbol("T"))
"""Exponents of an inverse and a transpose, which can be names of values."""
_NAMING = frozenset(("det", "max", "min", "gcd", "lcm", "mod", "norm"))


def label(node: Node) -> str | None:
    """The name that an expression before an equals sign denotes: a symbol, a function of symbols, or words; else None."""
    if isinstance(node, Symbol):
        return node.name
    if isinstance(node, Unknown):
        generic = node.name not in _NAMING and all(
            isinstance(argument, Symbol) and argument.name.islower() for argument in node.arguments
        )
        arguments = "" if generic else repr(node.arguments)
        return f"{node.name}({arguments or ',' * (len(node.arguments) - 1)})"
    if isinstance(node, Power) and _is_capital(node.base) and node.exponent in _OF_MATRICES:
        return f"{label(node.base)}^{node.exponent}"
    return None


def is_named_thing(node: Node) -> bool:
    """Whether an expression names a thing with a value: `AB`, `AB/CD`, `[ABC]`, `|S|`, `tan A`, `max f`."""
    if isinstance(node, Apply):
        inside = node.arguments[0]
        if node.name in _NAMING:
            return bool(symbols(node))
        return (node.name == "abs" and (_is_capital(inside) or is_named_thing(inside))) or (
            node.name in _TRIGONOMETRIC
            and (_is_capital(inside) or (isinstance(inside, Symbol) and inside.name in GREEK))
        )
    if isinstance(node, Limit | Integral | Derivative | Series):
        return bool(symbols(node)) or any(isinstance(subtree, Unknown) for subtree in walk(node))
    if isinstance(node, Divide):
        return all(_is_capital(side) or is_named_thing(side) for side in (node.numerator, node.denominator))
    if isinstance(node, Multiply) and all(isinstance(factor, Symbol) for factor in node.factors):
        names = [factor.name for factor in node.factors if isinstance(factor, Symbol)]
        return all(name[0].isupper() for name in names[names[0] == "m" :])
    return False


def _is_capital(node: Node) -> bool:
    return isinstance(node, Symbol) and (node.name[0].isupper() or node.name.startswith("angle "))


def is_word_of_letters(node: Node) -> bool:
    """Whether an expression is a word of three or more capitals, such as a polygon or a sequence of outcomes."""
    factors = node.factors if isinstance(node, Multiply) else ()
    return len(factors) > 2 and all(
        isinstance(factor, Symbol) and len(factor.name) == 1 and factor.name.isupper() for factor in factors
    )


def is_made_of_parameters(node: Node) -> bool:
    """Whether an expression such as `m+n` names the quantity asked for: its letters differ, and none is a usual unknown."""
    parts = (
        node.terms if isinstance(node, Add) else (node.numerator, node.denominator) if isinstance(node, Divide) else ()
    )
    names = [part.name for part in parts if isinstance(part, Symbol)]
    return len(names) == len(parts) == len(set(names)) > 1 and all(
        len(name) == 1 and "a" <= name <= "w" for name in names
    )


def solved(node: Relation) -> tuple[str | None, Node]:
    """The name and the value of an equation that is solved for a name; (None, the left side) of any other equation."""
    if set(node.operators) == {"="} or node.operators in (("~",), (":",)):
        first, last = node.operands[0], node.operands[-1]
        for named, value in ((first, last), (last, first)):
            name = label(named)
            if name is not None and not (isinstance(named, Symbol) and named.name in symbols(value)):
                return name, value
    return None, node.operands[0]


_CALLED = re.compile(r"\(,*\)$")
"""Matches the arguments of a function of variables in its label."""


def names_agree(gold: str, answer: str) -> bool:
    """Whether two names may denote one quantity: equal names, words, `x` and `x(t)`, or `y` and the value of a function."""
    if gold.startswith("text:") and answer.startswith("text:") and not (_is_formula(gold) and _is_formula(answer)):
        ours, theirs = (frozenset(name.removeprefix("text:").split()) for name in (gold, answer))
        return ours <= theirs or theirs <= ours
    if gold == answer or _CALLED.sub("", gold) == answer or gold == _CALLED.sub("", answer):
        return True
    if gold.startswith("text:") or answer.startswith("text:"):
        return not any(map(_is_formula, (gold, answer)))
    return "y" in (gold, answer) and (gold.endswith("()") or answer.endswith("()"))


def _is_formula(name: str) -> bool:
    """Whether a name read as text is a formula, such as `P(A|B)`, that determines the value."""
    return name.startswith("text:") and "(" in name and " " not in name


def renaming(gold: Relation, answer: Relation) -> dict[str, str]:
    """Map the arguments' names in the answer's function to those in the gold's function."""
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
        node,
        lambda leaf: Symbol(names[leaf.name]) if isinstance(leaf, Symbol) and leaf.name in names else None,
    )


def shared_label(nodes: Sequence[Node]) -> str | None:
    """The name that all named items share, if the first item is named; else None."""
    names = {solved(node)[0] if len(node.operands) == 2 else None for node in nodes if isinstance(node, Relation)}
    return names.pop() if len(names) == 1 and isinstance(nodes[0], Relation) else None


def without_labels(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Drop `x =` before items, if all labelled items, including the first, have the same label."""
    if shared_label(nodes) is None:
        return nodes
    return tuple(solved(node)[1] if isinstance(node, Relation) else node for node in nodes)


def named_collection(node: Node) -> tuple[str | None, Node]:
    """A list or a set with its name, such as a function defined by cases; the name is None for any other node."""
    if isinstance(node, Relation) and node.operators == ("=",):
        name, value = _set_name(node.operands[0]), node.operands[1]
        if name is not None and (isinstance(value, ListOf | SetOf) or is_set_like(value)):
            return name, value
    return None, node


def _set_name(node: Node) -> str | None:
    """The name of a set, or of a set operation on names; the two operands are unordered except in a difference."""
    if isinstance(node, Apply) and all(isinstance(argument, Symbol) for argument in node.arguments):
        return f"{node.name}()"  # a known function that is defined by cases
    if not isinstance(node, SetOperation):
        return label(node)
    sides = [_set_name(side) or repr(side) for side in (node.left, node.right)]
    return f"{node.kind} of {' and '.join(sides if node.kind == 'difference' else sorted(sides))}"
