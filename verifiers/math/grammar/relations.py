"""Lists, relations, ratios and set operations."""

from __future__ import annotations

from verifiers.math.assemble import compound_quantity, excluded_values, outside_of
from verifiers.math.grammar.quantities import Quantities
from verifiers.math.tree import Apply, ListOf, Node, Ratio, Relation, SetOperation, Symbol, Unknown, symbols
from verifiers.math.vocabulary import GREEK

_SET_OPERATIONS = {"cup": "union", "cap": "intersection", "setminus": "difference"}


class Relations(Quantities):
    """Lists, relations, ratios and set operations."""

    def listing(self) -> Node:
        """Relations with commas or words between them."""
        items = [self.relation()]
        joiner = ","
        while (found := self.joiner()) is not None:
            joiner = found if found != "," else joiner
            if self.token.kind == "end":
                break
            items.append(self.relation())
        if len(items) == 1:
            return items[0]
        return compound_quantity(items, joiner) or ListOf(excluded_values(items), joiner)

    def relation(self) -> Node:
        """Operands with signs of relations between them."""
        operands, operators = [self.name_of_value() or self.remainder()], []
        while (operator := self.relation_sign()) is not None:
            operators.append(operator)
            self.congruent = "mod" in operators
            operands.append(self.operand() if self.congruent else self.remainder())
        bracketed = self.at("(") and self.ahead().text == "mod"
        self.index += bracketed
        if self.at("pmod", "mod", "bmod"):
            self.take()
            operators.append("modulo")
            operands.append(self.operand())
        self.congruent = False
        if bracketed:
            self.expect(")")
        if not operators:
            return operands[0]
        return outside_of(operators, operands) or Relation(tuple(operators), tuple(operands))

    def remainder(self) -> Node:
        r"""An operand, or the remainder of a constant: `7 \mod 3`."""
        node = self.operand()
        if not self.at("mod") or symbols(node):
            return node
        self.take()
        return Apply("mod", (node, self.operand()))

    def name_of_value(self) -> Node | None:
        r"""A name with brackets in front of an equals sign: `x(t) =`, `P(A \cap B) =`."""
        token = self.token
        if not (token.kind == "symbol" or token.text in GREEK) or self.ahead().text != "(":
            return None
        end = self.closing_bracket(self.index + 1)
        if end is not None and self.tokens[end + 1].text == "=":
            inside = self.tokens[self.index + 2 : end]
            if inside and all(
                part.kind == "symbol" if place % 2 == 0 else part.text == "," for place, part in enumerate(inside)
            ):
                self.index = end + 1
                return Unknown(token.text, tuple(Symbol(part.text) for part in inside[::2]))
        if token.text != "P" or end is None or self.tokens[end + 1].text not in ("=", "approx"):
            return None
        brackets = "".join(part.text for part in self.tokens[self.index + 1 : end + 1])
        self.index = end + 1
        return Symbol("text:" + token.text + brackets)

    def operand(self) -> Node:
        """A set expression, or a ratio."""
        parts = [self.set_expression()]
        while self.at(":", "to"):
            self.take()
            parts.append(self.sum())
        if len(parts) == 1:
            return parts[0]
        return Ratio(tuple(parts))

    def set_expression(self) -> Node:
        """Values with set operations between them."""
        node = self.quantity()
        while (kind := self.set_operation()) is not None:
            node = SetOperation(kind, node, self.quantity())
        return node

    def set_operation(self) -> str | None:
        """Pass over the sign of a set operation; None if there is none."""
        if self.is_letter_union():
            self.take()
            return "union"
        if self.token.kind == "command" and self.token.text in _SET_OPERATIONS:
            return _SET_OPERATIONS[self.take().text]
        return None
