"""The grammar of answers; its entry point is `verifiers.math.reading.parse`.

`Parser` reads sums, products, powers, lists and relations. The other files of this folder read the parts of these; each
construct has a function that takes the parser.
"""

from __future__ import annotations

from collections.abc import Callable

from verifiers.math.reading.assemble import (
    alternatives,
    compound_quantity,
    difference_of_sets,
    excluded_values,
    outside_of,
    set_of_numbers,
    times,
)
from verifiers.math.reading.brackets import braces, bracket, script
from verifiers.math.reading.calculus import fraction, integral, limit, series, set_series
from verifiers.math.reading.cursor import MAX_DEPTH
from verifiers.math.reading.environments import matrix
from verifiers.math.reading.errors import UnreadableError
from verifiers.math.reading.expressions import Expressions
from verifiers.math.reading.functions import (
    KNOWN,
    accent,
    bar,
    binomial,
    fenced,
    function,
    greek,
    known,
    negation,
    norm,
    read_figure,
    root,
    skip_command,
)
from verifiers.math.reading.lettered import choice
from verifiers.math.reading.quantities import currency, quantity, temperature
from verifiers.math.reading.sets import number_set, set_braces
from verifiers.math.reading.symbols import name_of_value, number, symbol, word
from verifiers.math.reading.tokens import Token
from verifiers.math.reading.vector_marks import FIGURES, ordered_product
from verifiers.math.tree import (
    Add,
    Apply,
    Bracketed,
    Degrees,
    Divide,
    ListOf,
    Matrix,
    Multiply,
    Negate,
    Node,
    Number,
    Percent,
    PlusMinus,
    Power,
    Ratio,
    Relation,
    SetOperation,
    Symbol,
    Words,
    symbols,
)
from verifiers.math.units import CURRENCY_SIGNS
from verifiers.math.vocabulary import FACTOR_STARTS, FUNCTIONS, GREEK, RELATIONS, SIGNS_OF_STATEMENTS

_SET_OPERATIONS = {
    "cup": "union",
    "bigcup": "union",
    "cap": "intersection",
    "bigcap": "intersection",
    "setminus": "difference",
}
_UNREAD_COMMANDS = frozenset(
    ("iint", "iiint", "oint", "limsup", "liminf", "partial", "nabla", "end", "circ", "choose", "rvert")
) | frozenset(RELATIONS)


class Parser(Expressions):
    """Reads tokens into a tree."""

    def sum(self) -> Node:
        """Parse terms with signs between them; two terms may be a difference of sets."""
        terms = [self.signed_term()]
        while self.at("+", "-", "pm", "mp"):
            terms.append(self.signed_term())
        node = difference_of_sets(terms) or (Add(tuple(terms)) if len(terms) > 1 else terms[0])
        return Divide(node, self.sum()) if self.accept("over") else node

    def signed_term(self) -> Node:
        """Parse a product with its signs; a plus-minus gives both signs."""
        sign, both = 1, 0
        while self.at("+", "-", "pm", "mp"):
            text = self.take().text
            sign = -sign if text == "-" else sign
            both = {"pm": 1, "mp": -1}.get(text, both)
        if self.at("/") and self.tokens[self.index - 1].text == "+":  # "+/-" in plain text
            self.take()
            self.expect("-")
            both = 1
        term = self.product()
        return PlusMinus(term, both * sign) if both else Negate(term) if sign < 0 else term

    def product(self) -> Node:
        """Parse factors with a sign of multiplication or division between them, or side by side."""
        node = self.power()
        while self.token.kind != "end":
            if self.accept("*", "cdot", "times"):
                crossed = self.tokens[self.index - 1].text == "times"
                factor = self.signed_factor()
                product = (
                    ordered_product(node, factor, self.vectors, crossed=True) if crossed and self.vectors else None
                )
                node = product or times(node, factor)
            elif self.at("/", "div") and self.ahead().kind != "word":
                self.take()
                node = Divide(node, self.signed_factor())
            elif not self.congruent and self.accept("bmod"):
                node = Apply("mod", (node, self.signed_factor()))
            elif self.starts_factor():
                factor = self.power()
                product = ordered_product(node, factor, self.vectors, crossed=False) if self.vectors else None
                node = product or times(node, factor)
            else:
                break
        return node

    def signed_factor(self) -> Node:
        """Parse a factor, possibly after signs."""
        negative = False
        while self.at("-", "+"):
            negative ^= self.take().text == "-"
        node = self.power()
        return Negate(node) if negative else node

    def starts_factor(self) -> bool:
        """Whether a factor starts here that is juxtaposed with the previous factor."""
        token = self.token
        if token.kind == "symbol":
            return not self.is_letter_union()
        if token.kind == "number":
            before = self.tokens[self.index - 1]
            return before.kind != "number" or (token.spaced and self.tokens[self.index - 2].text in ("^", "_", "sqrt"))
        if token.kind == "command":
            return token.text in FACTOR_STARTS
        if token.text in ("{", "(") and (self.ahead().kind == "word" or self.ahead().text == "approx"):
            return False  # a unit in braces, a remark in brackets
        return token.kind == "sign" and (token.text in ("(", "[", "{") or (token.text == "|" and not self.bars))

    def power(self) -> Node:
        """Parse an atom with its postfixes: exponents, factorials, percent signs, degrees."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableError(f"nested more than {MAX_DEPTH} deep")
        node = self.atom()
        while (after := self.postfix(node)) is not None:
            node = after
        self.depth -= 1
        return node

    def postfix(self, node: Node) -> Node | None:
        """Apply one postfix to an expression; None if there is none."""
        if self.token.kind == "end":
            return None
        if self.accept("!"):
            return Apply("factorial2" if self.accept("!") else "factorial", (node,))
        if self.accept("%", "\\%"):
            return Percent(node)
        if self.accept("^", "**"):
            return self.raised(node)
        if self.at("circ") and self.ahead().kind in ("end", "sign"):
            self.take()
            return temperature(self, Degrees(node))
        if self.at("_") and isinstance(node, Bracketed | Words | Number | Multiply):
            raise UnreadableError("an unexpected subscript")
        return None

    def raised(self, node: Node) -> Node:
        """Apply a superscript to an expression: degrees, a transpose, an exponent."""
        if self.accept("circ"):
            return temperature(self, Degrees(node))
        exponent = script(self, signed=True)
        transposed = exponent in (Symbol("T"), Symbol("top"), Symbol("intercal"))
        if isinstance(node, Bracketed) and transposed:
            return Matrix(tuple((item,) for item in node.items))
        if isinstance(node, Matrix) and transposed:
            return Matrix(tuple(zip(*node.rows, strict=True)))
        return Power(node, exponent)

    def power_free_atom(self) -> Node:
        """Parse an atom without an exponent, one level deeper."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableError(f"nested more than {MAX_DEPTH} deep")
        node = self.atom()
        self.depth -= 1
        return node

    def listing(self) -> Node:
        """Parse relations with commas or words between them."""
        items = [self.relation()]
        joiner, joiners = ",", list[str]()
        while (separator := self.joiner()) is not None:
            joiner = separator if separator != "," else joiner
            joiners.append(separator)
            if self.token.kind == "end" and separator == ",":
                break
            items.append(self.relation())
        if len(items) == 1:
            return items[0]
        return (
            compound_quantity(items, joiner) or alternatives(items, joiners) or ListOf(excluded_values(items), joiner)
        )

    def relation(self) -> Node:
        """Parse operands with signs of relations between them."""
        first = name_of_value(self) or (self.operand() if self.congruent else self.remainder())
        operands, operators = [first], []
        while (operator := self.relation_sign()) is not None:
            operators.append(operator)
            self.congruent |= operator == "mod"
            operand = self.operand() if self.congruent else self.remainder()
            operands.append(set_of_numbers(operand) if operator in ("in", "notin") else operand)
        bracketed = self.at("(") and self.ahead().text == "mod"
        self.index += bracketed
        if self.at("pmod", "mod", "bmod"):
            self.take()
            operators.append("modulo")
            operands.append(self.operand())
            self.congruent = False  # until then further residues may follow, as in `1,4 \\bmod 5`
        if bracketed:
            self.expect(")")
        if not operators:
            return operands[0]
        return outside_of(operators, operands) or Relation(tuple(operators), tuple(operands))

    def remainder(self) -> Node:
        r"""Parse an operand, or the remainder of a constant: `7 \mod 3`."""
        node = self.operand()
        if not self.at("mod") or symbols(node):
            return node
        self.take()
        return Apply("mod", (node, self.operand()))

    def operand(self) -> Node:
        """Parse a set expression or a ratio."""
        parts = [self.set_expression()]
        while self.at(":") or (self.at("to") and self.token.kind == "word"):
            self.take()
            parts.append(self.sum())
        return Ratio(tuple(parts)) if len(parts) > 1 else parts[0]

    def set_expression(self) -> Node:
        """Parse values with set operations between them."""
        node = quantity(self)
        while (operation := self.set_operation()) is not None:
            node = SetOperation(operation, node, quantity(self))
        return node

    def set_operation(self) -> str | None:
        """Consume the sign of a set operation; None if there is none."""
        if self.is_letter_union():
            self.take()
            return "union"
        if self.token.kind == "command" and self.token.text in _SET_OPERATIONS:
            return _SET_OPERATIONS[self.take().text]
        return None

    def separate(self, tokens: list[Token]) -> Node:
        """Parse tokens separately, at this parser's depth."""
        parser = type(self)([*tokens, Token("end", "")])
        parser.depth = self.depth
        node = parser.sum()
        if parser.token.kind != "end":
            raise UnreadableError(f"unexpected {parser.token.text!r} after an expression")
        return node

    def answer(self) -> Node:
        """Parse a whole answer.

        Raises:
            UnreadableError: If the tokens are not an answer.
        """
        self.accept("approx")
        start = self.index
        node = choice(self)
        if node is None:
            self.index = start
            node = self.listing()
        self.accept(".")
        if self.token.kind != "end":
            raise UnreadableError(f"unexpected {self.token.text!r} after the answer")
        return node

    def atom(self) -> Node:
        """Parse the smallest expression that starts here."""
        token = self.token
        if token.kind == "number":
            return number(self)
        if token.kind == "symbol":
            return symbol(self)
        if token.kind == "command":
            return self.command()
        if token.kind == "word":
            return word(self)
        if token.kind == "sign" and (read := _ATOMS.get(token.text)) is not None:
            return read(self)
        raise UnreadableError(f"expected a value, found {token.text or 'the end'!r}")

    def command(self) -> Node:
        """Parse a command with its arguments."""
        name = self.token.text
        if name in FUNCTIONS and name not in ("sqrt", "binom", "cbrt"):
            return function(self)
        if name in GREEK:
            return greek(self)
        if (read := _ATOMS.get(name)) is not None:
            return read(self)
        self.take()
        if name in _UNREAD_COMMANDS or name in SIGNS_OF_STATEMENTS or self.at("{", "[", "_", "^"):
            raise UnreadableError(f"the unsupported command \\{name}")
        return Symbol(name)


_ATOMS: dict[str, Callable[[Expressions], Node]] = {
    **dict.fromkeys(KNOWN, known),
    **dict.fromkeys(("(", "["), bracket),
    "{": braces,
    "\\{": set_braces,
    "|": bar,
    **dict.fromkeys(("\\$", *CURRENCY_SIGNS), currency),
    "frac": fraction,
    "unicodefrac": fraction,
    "sqrt": root,
    "cbrt": root,
    "binom": binomial,
    "lvert": bar,
    "int": integral,
    "lim": limit,
    "sum": series,
    "prod": series,
    **dict.fromkeys(("bigcup", "bigcap"), set_series),
    "\\|": norm,
    "begin": matrix,
    "mathbb": number_set,
    **dict.fromkeys(("lfloor", "lceil", "langle"), fenced),
    **dict.fromkeys(("overline", "bar", "dot", "ddot", "vec", "hat", "tilde", "overrightarrow"), accent),
    **dict.fromkeys(FIGURES, read_figure),
    "mathcal": skip_command,
    "neg": negation,
}
