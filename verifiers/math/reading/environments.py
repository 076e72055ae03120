"""Matrices, systems and definitions by cases."""

from __future__ import annotations

from verifiers.math.reading.assemble import OTHERWISE, determinant, with_the_other_cases
from verifiers.math.reading.errors import UnreadableError
from verifiers.math.reading.expressions import Expressions
from verifiers.math.reading.normalize import folded_words
from verifiers.math.reading.tokens import Token
from verifiers.math.tree import Bracketed, ListOf, Matrix, Node, Relation, Words
from verifiers.math.vocabulary import RELATIONS

_ALIGNED = frozenset(("aligned", "align*", "align", "split", "gathered"))
_DETERMINANTS = frozenset(("vmatrix", "Vmatrix"))
_MATRICES = frozenset(("matrix", "array", "smallmatrix", "pmatrix", "bmatrix", "Bmatrix")) | _DETERMINANTS


def matrix(parser: Expressions) -> Node:
    """Parse an environment: a matrix, a determinant, a system."""
    parser.take()
    name = _environment(parser)
    if name == "cases" or name in _ALIGNED:
        return _system(parser, name)
    if name not in _MATRICES:
        raise UnreadableError(f"the unsupported environment {name}")
    rows: list[tuple[Node, ...]] = []
    while not parser.at("end"):
        rows.append(_matrix_row(parser))
    parser.take()
    if _environment(parser) != name or len({len(row) for row in rows}) != 1:
        raise UnreadableError("a matrix with rows of different lengths")
    if name == "array" and all(len(row) == 1 and isinstance(row[0], Relation) for row in rows):
        return ListOf(tuple(row[0] for row in rows), "and")
    return determinant(tuple(rows)) if name in _DETERMINANTS else Matrix(tuple(rows))


def _system(parser: Expressions, name: str) -> Node:
    """Parse relations, or values with their conditions, one on each line."""
    _drop_alignment(parser, everywhere=name in _ALIGNED)
    lines = [_line(parser)]
    while parser.accept("\\\\") or parser.joiner() is not None:
        if not parser.at("end"):
            lines.append(_line(parser))
    parser.expect("end")
    if _environment(parser) != name:
        raise UnreadableError(f"an unclosed environment {name}")
    return ListOf(with_the_other_cases(lines), "and")


def _drop_alignment(parser: Expressions, *, everywhere: bool) -> None:
    """Remove the signs that only align the lines of this environment: all signs, or the signs next to a relation sign."""
    start, end = parser.index, parser.index_of("end")
    parser.tokens[start:end] = [
        token
        for before, token, after in zip(
            parser.tokens[start - 1 :], parser.tokens[start:end], parser.tokens[start + 1 :], strict=False
        )
        if token.text != "&" or not (everywhere or _relates(before) or _relates(after))
    ]


def _relates(token: Token) -> bool:
    return token.text in RELATIONS and token.kind != "word"


def _line(parser: Expressions) -> Node:
    """Parse a relation or, in a definition by cases, a value with its condition."""
    value = parser.relation()
    conditional = parser.accept(",") and not isinstance(value, Relation) and not parser.at("\\\\", "end")
    if not parser.accept("&") and not conditional:
        return value
    while parser.token.kind == "word" and parser.token.text.lower() in ("if", "for", "when", "where"):
        parser.take()
    parser.accept("&")
    if parser.token.kind == "word" and parser.token.text.lower() in ("otherwise", "else"):
        parser.take()
        parser.accept(".")
        return Bracketed("(", (value, OTHERWISE), ")")
    end = parser.index_of("\\\\", "end")
    condition = parser.tokens[parser.index : end]
    words = {token.text.lower() for token in condition if token.kind == "word" and token.text not in RELATIONS}
    if words - {"or", "and"}:
        parser.index = end
        said = " ".join(folded_words(token.text) or token.text for token in condition)
        return Bracketed("(", (value, Words(said)), ")")
    return Bracketed("(", (value, parser.listing() if words else parser.relation()), ")")


def _environment(parser: Expressions) -> str:
    """Consume the name of an environment in braces."""
    parser.expect("{")
    name = ""
    while not parser.at("}"):
        if parser.token.kind == "end":
            raise UnreadableError("an environment without a name")
        name += parser.take().text
    parser.take()
    return name


def _matrix_row(parser: Expressions) -> tuple[Node, ...]:
    """Parse the entries of one row."""
    entries = [parser.relation()]
    while parser.accept("&"):
        entries.append(parser.relation())
    if not parser.accept("\\\\") and not (parser.at("end") and parser.token.kind == "command"):
        raise UnreadableError("an unclosed matrix row")
    return tuple(entries)
