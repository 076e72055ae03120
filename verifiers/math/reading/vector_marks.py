r"""Reads vectors, matrices and figures named by letters: products that don't commute, component form, names of angles.

An answer may omit the marks of a vector (`\vec a`, bold). Names whose order matters in the gold or in the answer are therefore
read as vectors in both.
"""

from __future__ import annotations

import re
from fractions import Fraction

from verifiers.math.tree import (
    Add,
    Bracketed,
    Constant,
    Matrix,
    Multiply,
    Negate,
    Node,
    Number,
    Power,
    Relation,
    Symbol,
    Unknown,
    rewrite,
    symbols,
    walk,
)

CROSS, MATRIX = "cross product", "matrix product"
FIGURES = ("angle", "triangle")
_MARKED = re.compile(
    r"\\(?:vec|overrightarrow|mathbf|boldsymbol|bm|bold|hat|angle|triangle)(?![A-Za-z])|(?<![A-Za-z])[jk](?![A-Za-z])"
)
_AXES = "ijk"
_ONE, _ZERO = Number(Fraction(1)), Number(Fraction(0))


def is_marked(text: str) -> bool:
    """Whether an answer's normal text may contain vectors, matrices or figures."""
    return _MARKED.search(text) is not None


# While parsing.


def ordered_product(left: Node, right: Node, vectors: set[str], *, crossed: bool) -> Node | None:
    """The cross product of two vectors or the product of two matrices, where order matters; None for other factors.

    Swapping the factors of a cross product changes its sign.
    """
    kind = CROSS if crossed else MATRIX
    *scalars, last = left.factors if isinstance(left, Multiply) else (left,)
    if not (_has_direction(last, kind, vectors) and _has_direction(right, kind, vectors)):
        return None
    if not crossed:
        product: Node = Unknown(kind, (*_matrix_factors(last), *_matrix_factors(right)))
    elif repr(right) < repr(last):
        product = Negate(Unknown(kind, (right, last)))
    else:
        product = Unknown(kind, (last, right))
    return Multiply((*scalars, product)) if scalars else product


def _has_direction(node: Node, kind: str, vectors: set[str]) -> bool:
    """Whether an expression is a vector or, if `kind` is a product of matrices, a matrix."""
    if isinstance(node, Symbol):
        return node.name in vectors and (kind == CROSS or node.name[0].isupper())
    if isinstance(node, Add):
        return all(_has_direction(term, kind, vectors) for term in node.terms)
    if isinstance(node, Negate | Power):
        return _has_direction(node.value if isinstance(node, Negate) else node.base, kind, vectors)
    if isinstance(node, Multiply):
        return sum(_has_direction(factor, kind, vectors) for factor in node.factors) == 1
    return isinstance(node, Unknown) and node.name == kind


def _matrix_factors(node: Node) -> tuple[Node, ...]:
    return node.arguments if isinstance(node, Unknown) else (node,)


def figure(shape: str, letters: list[str]) -> Symbol:
    """The name of an angle or a triangle; an angle is the same if its letters are reversed."""
    if shape == "angle" and len(letters) == 3 and letters[0] > letters[2]:
        letters = letters[::-1]
    return Symbol(f"{shape} {''.join(letters)}")


# While comparing.


def ordered_names(node: Node) -> frozenset[str]:
    """The names of vectors and matrices in products that don't commute; the other expression may omit their marks."""
    products = [subtree for subtree in walk(node) if isinstance(subtree, Unknown) and subtree.name in (CROSS, MATRIX)]
    return frozenset().union(*map(symbols, products))


def aligned(gold: Node, answer: Node) -> tuple[Node, Node]:
    """A gold and an answer in a common form: vectors as coordinates, if either is written so."""
    return _as_coordinates(gold, _dimension(answer)), _as_coordinates(answer, _dimension(gold))


def _dimension(node: Node) -> int:
    """The number of coordinates of a vector in component form, possibly after its name; 0 for anything else."""
    value = node.operands[-1] if isinstance(node, Relation) and node.operators == ("=",) else node
    if isinstance(value, Bracketed):
        return len(value.items)
    return len(value.rows) if isinstance(value, Matrix) and len(value.rows[0]) == 1 else 0


def _as_coordinates(node: Node, dimension: int) -> Node:
    """Write a vector given by unit vectors in coordinates; the imaginary unit alone is not a vector."""
    axes = {_axis(subtree) for subtree in walk(node)} - {-1}
    if _dimension(node) or not axes & {1, 2} or max(axes) >= dimension or dimension > len(_AXES):
        return node

    def coordinates(subtree: Node) -> Node | None:
        units = tuple(_ONE if axis == _axis(subtree) else _ZERO for axis in range(dimension))
        return Bracketed("<", units, ">") if _axis(subtree) >= 0 else None

    return rewrite(node, coordinates)


def _axis(node: Node) -> int:
    """The index of the unit vector with this name; -1 for any other name."""
    name = node.name if isinstance(node, Symbol | Constant) else ""
    return _AXES.index(name) if len(name) == 1 and name in _AXES else -1
