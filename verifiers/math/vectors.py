r"""Vectors, matrices and figures that are named by letters: what does not commute, component form, names of angles.

An answer may leave out what marks a letter as a vector (`\vec a`, bold). So marks matter only where both sides have them.
"""

from __future__ import annotations

import re
from fractions import Fraction

from verifiers.math.tree import (
    Add,
    Bracketed,
    Constant,
    Divide,
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
    """Whether an answer's normal text may hold what this module is about."""
    return _MARKED.search(text) is not None


# While parsing.


def cross_product(left: Node, right: Node, vectors: set[str]) -> Node | None:
    """The product of two vectors by a cross, which changes its sign when they are swapped; None for other factors."""
    *scalars, last = left.factors if isinstance(left, Multiply) else (left,)
    if not (_is_vector(last, vectors) and _is_vector(right, vectors)):
        return None
    swapped = repr(right) < repr(last)
    product: Node = Unknown(CROSS, (right, last) if swapped else (last, right))
    product = Negate(product) if swapped else product
    return Multiply((*scalars, product)) if scalars else product


def matrix_product(left: Node, right: Node, vectors: set[str]) -> Node | None:
    """The product of two matrices side by side, which keeps its order; None for other factors."""
    *scalars, last = left.factors if isinstance(left, Multiply) else (left,)
    if not (_is_matrix(last, vectors) and _is_matrix(right, vectors)):
        return None
    product = Unknown(MATRIX, (*_matrix_factors(last), *_matrix_factors(right)))
    return Multiply((*scalars, product)) if scalars else product


def _is_vector(node: Node, vectors: set[str]) -> bool:
    if isinstance(node, Symbol):
        return node.name in vectors
    if isinstance(node, Add):
        return all(_is_vector(term, vectors) for term in node.terms)
    if isinstance(node, Negate):
        return _is_vector(node.value, vectors)
    if isinstance(node, Multiply):
        return sum(_is_vector(factor, vectors) for factor in node.factors) == 1
    return isinstance(node, Unknown) and node.name == CROSS


def _is_matrix(node: Node, vectors: set[str]) -> bool:
    if isinstance(node, Symbol):
        return node.name in vectors and node.name[0].isupper()
    if isinstance(node, Power):
        return _is_matrix(node.base, vectors)
    if isinstance(node, Add):
        return all(_is_matrix(term, vectors) for term in node.terms)
    return isinstance(node, Unknown) and node.name == MATRIX


def _matrix_factors(node: Node) -> tuple[Node, ...]:
    return node.arguments if isinstance(node, Unknown) else (node,)


def figure(kind: str, letters: list[str]) -> Symbol:
    """The name of an angle or a triangle; an angle is the same read from its other side."""
    if kind == "angle" and len(letters) == 3 and letters[0] > letters[2]:
        letters = letters[::-1]
    return Symbol(f"{kind} {''.join(letters)}")


# While comparing.


def aligned(gold: Node, answer: Node) -> tuple[Node, Node]:
    """A gold and an answer in forms that can be compared: marks that only one of them has are dropped."""
    if _is_ordered(gold) != _is_ordered(answer):
        gold, answer = _commuting(gold), _commuting(answer)
    if _is_figure(gold) != _is_figure(answer):
        gold, answer = _letters(gold), _letters(answer)
    if _in_components(gold) and _in_components(answer):
        return _with_unit_vectors(gold), _with_unit_vectors(answer)
    return _as_coordinates(gold, _dimension(answer)), _as_coordinates(answer, _dimension(gold))


def _is_ordered(node: Node) -> bool:
    return any(isinstance(part, Unknown) and part.name in (CROSS, MATRIX) for part in walk(node))


def _commuting(node: Node) -> Node:
    def product(part: Node) -> Node | None:
        if not (isinstance(part, Unknown) and part.name in (CROSS, MATRIX)):
            return None
        return Multiply(tuple(map(_commuting, part.arguments)))

    return rewrite(node, product)


def _is_figure(node: Node) -> bool:
    return isinstance(node, Symbol) and node.name.startswith(tuple(f"{kind} " for kind in FIGURES))


def _letters(node: Node) -> Node:
    if not (isinstance(node, Symbol) and _is_figure(node)):
        return node
    return Multiply(tuple(Symbol(letter) for letter in node.name.partition(" ")[2]))


def _stated(node: Node) -> Node:
    """What is said behind the name of a vector."""
    return node.operands[-1] if isinstance(node, Relation) and node.operators == ("=",) else node


def _restated(node: Node, value: Node) -> Node:
    return Relation(node.operators, (*node.operands[:-1], value)) if isinstance(node, Relation) else value


def _dimension(node: Node) -> int:
    """How many coordinates a vector has that is written by them; 0 for anything else."""
    value = _stated(node)
    if isinstance(value, Bracketed):
        return len(value.items)
    return len(value.rows) if isinstance(value, Matrix) and len(value.rows[0]) == 1 else 0


def _as_coordinates(node: Node, dimension: int) -> Node:
    """A sum of multiples of unit vectors as coordinates, if there are as many as wanted."""
    value = _stated(node)
    if dimension not in (2, 3) or not _in_components(node) or (dimension == 2 and 2 in _axes(value)):
        return node
    coordinates = tuple(_coordinate(value, axis) for axis in range(dimension))
    return _restated(node, Bracketed("<", coordinates, ">"))


def _axis(node: Node) -> int | None:
    """Which unit vector a name is."""
    if not isinstance(node, Symbol | Constant):
        return None
    name = node.name.removeprefix("hat ")
    return _AXES.index(name) if len(name) == 1 and name in _AXES else None


def _axes(node: Node) -> set[int]:
    return {axis for part in walk(node) if (axis := _axis(part)) is not None}


def _in_components(node: Node) -> bool:
    """Whether an expression is linear in unit vectors; the imaginary unit alone is none."""
    value = _stated(node)
    return bool(_axes(value) & {1, 2}) and _is_linear(value)


def _is_linear(node: Node) -> bool:
    if _axis(node) is not None:
        return True
    if isinstance(node, Add):
        return all(map(_is_linear, node.terms))
    if isinstance(node, Negate):
        return _is_linear(node.value)
    if isinstance(node, Divide):
        return _is_linear(node.numerator) and not _axes(node.denominator)
    if not isinstance(node, Multiply):
        return False
    with_axes = [factor for factor in node.factors if _axes(factor)]
    return len(with_axes) == 1 and _is_linear(with_axes[0])


def _coordinate(node: Node, axis: int) -> Node:
    def value(part: Node) -> Node | None:
        found = _axis(part)
        return None if found is None else _ONE if found == axis else _ZERO

    return rewrite(node, value)


def _with_unit_vectors(node: Node) -> Node:
    def name(part: Node) -> Node | None:
        found = _axis(part)
        return None if found is None else Symbol(f"hat {_AXES[found]}")

    return rewrite(node, name)
