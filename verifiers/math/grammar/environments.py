"""Matrices, systems and definitions by cases."""

from __future__ import annotations

from verifiers.math.assemble import OTHERWISE, determinant, with_the_other_cases
from verifiers.math.grammar.calculus import Calculus
from verifiers.math.tokens import UnreadableError
from verifiers.math.tree import Bracketed, ListOf, Matrix, Node, Relation

_ALIGNED = frozenset(("aligned", "align*", "align", "split", "gathered"))
_MATRIX_KINDS = {
    **dict.fromkeys(("matrix", "array", "smallmatrix"), ""),
    **dict.fromkeys(("pmatrix", "bmatrix", "Bmatrix"), "p"),
    **dict.fromkeys(("vmatrix", "Vmatrix"), "v"),
}


class Environments(Calculus):
    """Matrices, systems and definitions by cases."""

    def matrix(self) -> Node:
        """An environment: a matrix, a determinant, a system."""
        self.take()
        name = self.environment()
        if name == "cases" or name in _ALIGNED:
            return self.system(name)
        if name not in _MATRIX_KINDS:
            raise UnreadableError(f"the environment {name}")
        if name == "array" and self.at("{"):
            self.environment()
        rows: list[tuple[Node, ...]] = []
        while not self.at("end"):
            rows.append(self.matrix_row())
        self.take()
        if self.environment() != name or len({len(row) for row in rows}) != 1:
            raise UnreadableError("a matrix with uneven rows")
        if name == "array" and all(len(row) == 1 and isinstance(row[0], Relation) for row in rows):
            return ListOf(tuple(row[0] for row in rows), "and")
        if _MATRIX_KINDS[name] == "v":
            return determinant(tuple(rows))
        return Matrix(tuple(rows), _MATRIX_KINDS[name])

    def system(self, name: str) -> Node:
        """Relations, or values with their conditions, one on each line."""
        if name in _ALIGNED:
            self.drop_alignment()
        lines = [self.line()]
        while self.accept("\\\\") or self.joiner() is not None:
            if not self.at("end"):
                lines.append(self.line())
        self.expect("end")
        if self.environment() != name:
            raise UnreadableError(f"an environment {name} that does not end")
        return ListOf(with_the_other_cases(lines), "and")

    def drop_alignment(self) -> None:
        """Remove the signs that only align the lines of this environment."""
        end = next((place for place in range(self.index, len(self.tokens)) if self.tokens[place].text == "end"), None)
        self.tokens[self.index : end] = [token for token in self.tokens[self.index : end] if token.text != "&"]

    def line(self) -> Node:
        """A relation; in a definition by cases a value with its condition."""
        value = self.relation()
        self.accept(",")
        if not self.accept("&"):
            return value
        while self.token.kind == "word" and self.token.text.lower() in ("if", "for", "when", "where"):
            self.take()
        if self.token.kind == "word" and self.token.text.lower() in ("otherwise", "else"):
            self.take()
            return Bracketed("(", (value, OTHERWISE), ")")
        return Bracketed("(", (value, self.relation()), ")")

    def environment(self) -> str:
        """Pass over the name of an environment in braces."""
        self.expect("{")
        name = ""
        while not self.at("}"):
            if self.token.kind == "end":
                raise UnreadableError("an environment without a name")
            name += self.take().text
        self.take()
        return name

    def matrix_row(self) -> tuple[Node, ...]:
        """The entries of one row."""
        entries = [self.relation()]
        while self.accept("&"):
            entries.append(self.relation())
        if not self.accept("\\\\") and not (self.at("end") and self.token.kind == "command"):
            raise UnreadableError("a matrix row that does not end")
        return tuple(entries)
