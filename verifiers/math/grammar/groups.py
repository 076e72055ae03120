"""Brackets, braces, sets, bars."""

from __future__ import annotations

from verifiers.math.assemble import bracketed, determinant, set_by_condition
from verifiers.math.grammar.relations import Relations
from verifiers.math.tokens import UnreadableError
from verifiers.math.tree import Apply, Bracketed, ListOf, Matrix, NamedSet, Node, Relation, SetOf, Symbol

_CLOSING = {"(": (")", "]"), "[": ("]", ")")}


class Groups(Relations):
    """Brackets, braces, sets, bars."""

    def inside_group(self) -> Node:
        """What stands between two brackets, where neither a bar nor a rule of what surrounds them holds."""
        bars, mixed = self.bars, self.mixed
        self.bars, self.mixed = 0, True
        inside = self.listing()
        self.bars, self.mixed = bars, mixed
        return inside

    def bracket(self) -> Node:
        """What stands in round or square brackets."""
        opening = self.take().text
        if self.at(*_CLOSING[opening]):
            raise UnreadableError("empty brackets")
        inside = self.inside_group()
        closing = self.expect(*_CLOSING[opening])
        return bracketed(opening, inside, closing)

    def combinations(self) -> Node:
        """The binomial coefficient of two arguments in brackets."""
        arguments = self.arguments()
        if len(arguments) != 2:
            raise UnreadableError("a binomial coefficient without two arguments")
        return Apply("binomial", arguments)

    def arguments(self) -> tuple[Node, ...]:
        """The arguments of a call, in brackets."""
        inside = self.bracket()
        return inside.items if isinstance(inside, Bracketed) else (inside,)

    def braces(self) -> Node:
        """What stands in the braces of TeX."""
        self.expect("{")
        if self.accept("}"):
            raise UnreadableError("an empty group")
        inside = self.inside_group()
        if self.accept("choose"):
            inside = Apply("binomial", (inside, self.relation()))
        self.expect("}")
        if isinstance(inside, Symbol) and self.at("_"):
            return Symbol(inside.name + self.subscript())
        return SetOf(inside.items) if isinstance(inside, ListOf) else inside

    def set_braces(self) -> Node:
        """A set in braces, by its items or by a condition."""
        self.take()
        if self.accept("\\}"):
            return NamedSet("empty")
        bars, self.bars = self.bars, 1  # a bar here separates, and opens nothing
        inside = self.listing_of_set()
        self.bars = bars
        if self.accept("|", ":"):
            condition = self.listing()
            self.expect("\\}")
            return set_by_condition(inside, condition)
        self.expect("\\}")
        return SetOf(inside.items if isinstance(inside, ListOf) else (inside,))

    def listing_of_set(self) -> Node:
        """The items of a set; a colon after the first is the bar of a set-builder, and no ratio."""
        items = [self.relation_of_set()]
        while self.joiner() is not None:
            items.append(self.relation_of_set())
        return ListOf(tuple(items)) if len(items) > 1 else items[0]

    def relation_of_set(self) -> Node:
        """An item of a set, or the first part of a set-builder."""
        node = self.set_expression()
        operator = self.relation_sign()
        return node if operator is None else Relation((operator,), (node, self.set_expression()))

    def bar(self) -> Node:
        """An absolute value, or a determinant between bars."""
        closing = "|" if self.take().text == "|" else "rvert"
        self.bars += 1
        inside = self.sum()
        self.bars -= 1
        self.expect(closing)
        return determinant(inside.rows) if isinstance(inside, Matrix) else Apply("abs", (inside,))

    def fenced(self) -> Node:
        """A floor, a ceiling, or a vector in angle brackets."""
        name = self.take().text
        if name == "langle":
            inside = self.listing()
            self.expect("rangle")
            return Bracketed("<", inside.items if isinstance(inside, ListOf) else (inside,), ">")
        kind = {"lfloor": "floor", "lceil": "ceil"}[name]
        inside = self.sum()
        self.expect(f"r{kind}")
        return Apply(kind, (inside,))
