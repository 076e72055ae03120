"""The grammar of answers; its entry point is `verifiers.math.reading.parse`."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from verifiers.math.reading.assemble import (
    OTHERWISE,
    bracketed,
    compound_quantity,
    determinant,
    difference_of_sets,
    excluded_values,
    half_of_set,
    is_complex,
    measured_in,
    outside_of,
    proper_fraction,
    set_by_condition,
    set_of_numbers,
    times,
    with_the_other_cases,
)
from verifiers.math.reading.cursor import CLOSING_BRACKETS, JOINERS, MAX_DEPTH, OPENING_BRACKETS, Cursor
from verifiers.math.reading.normalize import folded_words
from verifiers.math.reading.tokens import Token, UnreadableError
from verifiers.math.reading.vector_marks import FIGURES, figure, ordered_product
from verifiers.math.tree import (
    Add,
    Apply,
    BasedNumber,
    Bracketed,
    Choice,
    Clock,
    Constant,
    Degrees,
    Derivative,
    Divide,
    Integral,
    Limit,
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
    Series,
    SetOf,
    SetOperation,
    Symbol,
    Unknown,
    Words,
    is_integer_literal,
    symbols,
)
from verifiers.math.units import CURRENCY_SIGNS, MULTIPLES, UNITS, Unit, UnitWord, read_unit
from verifiers.math.values.exact import rational_value
from verifiers.math.vocabulary import (
    FACTOR_STARTS,
    FRACTION_WORDS,
    FUNCTIONS,
    GREEK,
    RELATIONS,
    SIGNS_OF_STATEMENTS,
)

_SET_OPERATIONS = {"cup": "union", "cap": "intersection", "setminus": "difference"}
_CLOSING = {"(": (")", "]"), "[": ("]", ")")}
_NUMBER_SETS = frozenset("RZNQC")
_FUNCTION_ALIASES = {"lg": "log", "binom": "binomial"} | {
    f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")
}
_INVERSES = {name: f"arc{name}" for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")}
_VARIADIC = frozenset(("max", "min", "gcd", "lcm"))
_HALVES = {"+": ">", "-": "<"} | {f"{sign} 0": RELATIONS[sign] for sign in (">", "<", "ge", "le", ">=", "<=")}
_GREEK_FUNCTIONS = {"Gamma": "gamma", "zeta": "zeta"}
_ORDER = r"(?:\^ (?:\{ )?([1-9]) (?:\} )?)?"
_DERIVATIVE = re.compile(rf"frac \{{ (d|partial) {_ORDER}\}} \{{ (d|partial) ([A-Za-z]+) {_ORDER}\}}(?= [^=\s])")
_ALIGNED = frozenset(("aligned", "align*", "align", "split", "gathered"))
_DETERMINANTS = frozenset(("vmatrix", "Vmatrix"))
_MATRICES = frozenset(("matrix", "array", "smallmatrix", "pmatrix", "bmatrix", "Bmatrix")) | _DETERMINANTS
_NAMED_FUNCTIONS = frozenset("fghpqFGH") | frozenset("ABDEIJKLMNOPQRSTUVWXYZ")
_ALWAYS_FUNCTIONS = frozenset("fgh")
_STATEMENT = re.compile(r"[A-Z]|[IVX]{1,4}")  # a choice or the number of a statement, in a list of them
_CURRENCY_CODES = frozenset(("usd", "eur", "gbp", "inr", "rs", "jpy"))
_LETTERS = frozenset("ABCDEFGHIJabcdefghij")
_UNREAD_COMMANDS = frozenset(
    ("iint", "iiint", "oint", "limsup", "liminf", "partial", "nabla", "end", "circ", "choose", "rvert")
) | frozenset(RELATIONS)


class Parser(Cursor):
    """Reads tokens into a tree."""

    # Sums, products, powers, and the arguments of TeX.

    def sum(self) -> Node:
        """Parse terms with signs between them; two terms may be a difference of sets."""
        terms = [self.signed_term()]
        while self.at("+", "-", "pm", "mp"):
            terms.append(self.signed_term())
        node = difference_of_sets(terms) or (Add(tuple(terms)) if len(terms) > 1 else terms[0])
        return Divide(node, self.sum()) if self.accept("over") else node

    def signed_term(self) -> Node:
        """Parse a product with its signs, of which a plus-minus stands for both."""
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
        """Whether a factor starts here that is juxtaposed with the one before."""
        token = self.token
        if token.kind == "symbol":
            return not self.is_letter_union()
        if token.kind == "number":
            before = self.tokens[self.index - 1]
            return before.kind != "number" or (token.spaced and self.tokens[self.index - 2].text in ("^", "sqrt"))
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
            return self.temperature(Degrees(node))
        if self.at("_") and isinstance(node, Bracketed | Words | Number | Multiply):
            raise UnreadableError("an unexpected subscript")
        return None

    def raised(self, node: Node) -> Node:
        """Apply a superscript to an expression: degrees, a transpose, an exponent."""
        if self.accept("circ"):
            return self.temperature(Degrees(node))
        exponent = self.script(signed=True)
        transposed = exponent in (Symbol("T"), Symbol("top"), Symbol("intercal"))
        if isinstance(node, Bracketed) and transposed:
            return Matrix(tuple((item,) for item in node.items))
        if isinstance(node, Matrix) and transposed:
            return Matrix(tuple(zip(*node.rows, strict=True)))
        return Power(node, exponent)

    def temperature(self, node: Degrees) -> Node:
        """Return degrees, or a temperature if the name of a scale follows."""
        scale = self.token.text
        if self.token.kind in ("word", "symbol") and scale.lower() in ("c", "f", "celsius", "fahrenheit"):
            self.take()
            return Quantity(node.value, UNITS["celsius" if scale.lower().startswith("c") else "fahrenheit"])
        return node

    def script(self, *, signed: bool = False) -> Node:
        """Parse an exponent or index: a group in braces, or one token (with a sign in plain text)."""
        if signed and self.at("-", "+"):
            negative = self.take().text == "-"
            node = self.power()
            return Negate(node) if negative else node
        if self.at("{"):
            return self.braces()
        mixed, self.mixed = self.mixed, False
        node = self.power() if signed else self.atom()
        self.mixed = mixed
        return node

    def power_free_atom(self) -> Node:
        """Parse an atom without an exponent, one level deeper."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableError(f"nested more than {MAX_DEPTH} deep")
        node = self.atom()
        self.depth -= 1
        return node

    def argument(self) -> Node:
        """Parse an argument of a TeX command: a group in braces, one digit, or one other token."""
        if self.at("{"):
            return self.braces()
        token = self.token
        if token.kind == "number" and len(token.text) > 1:
            if not token.text.isdigit():
                raise UnreadableError("a decimal argument without braces")
            self.tokens[self.index] = Token("number", token.text[1:], False, Number(Fraction(int(token.text[1:]))))
            return Number(Fraction(int(token.text[0])))
        return self.power_free_atom()

    # Suffixes of a value: units, percent, words, bases; and times of day.

    def quantity(self) -> Node:
        """Parse a value with its suffixes: a unit, a base, a remark in brackets, smaller units."""
        if (clock := self.clock()) is not None:
            return clock
        node = self.sum()
        if self.token.kind == "end":
            return node
        if self.token.text in ("\\$", *CURRENCY_SIGNS):
            node = Quantity(node, UNITS[self.take().text.lstrip("\\")])
        if self.token.kind == "word":
            node = self.with_words(node)
        elif self.at("{", "(") and self.ahead().kind == "word" and self.ahead().text != "mod":
            closing = "}" if self.take().text == "{" else ")"
            self.accept("in")  # dollars
            node = self.with_words(node)
            self.expect(closing)
        elif self.at("/") and self.ahead().kind == "word":
            self.take()
            node = measured_in(
                node, unit_named([UnitWord(word.word, word.exponent, True) for word in self.unit_words()])
            )
        return self.smaller_units(node)

    def smaller_units(self, node: Node) -> Node:
        """Extend a quantity by those in smaller units that follow: `3 ft 2 in`."""
        start = self.index
        self.accept(".")
        if not (isinstance(node, Quantity) and self.token.kind == "number"):
            self.index = start
            return node
        compound = compound_quantity([node, self.quantity()])
        if compound is None:
            self.index = start
        return compound or node

    def clock(self) -> Clock | None:
        """Parse a time of day; None if there is none here."""
        hour, colon, minute = self.token, self.ahead(), self.ahead(2)
        if not (hour.kind == "number" and hour.text.isdigit() and len(hour.text) <= 2 and int(hour.text) <= 24):
            return None
        start = self.index
        named = colon.text == ":" and minute.kind == "number" and minute.text.isdigit() and len(minute.text) == 2
        if named and (colon.spaced or minute.spaced or int(hour.text) > 23 or int(minute.text) > 59):
            return None
        self.index += 3 if named else 1
        half = self.take().text.lower() if self.token.kind == "word" and self.token.text.lower() in ("am", "pm") else ""
        if self.at(":") or not (named or half):
            self.index = start
            return None
        self.accept(".")
        return Clock(int(hour.text), int(minute.text) if named else 0, half)

    def with_words(self, node: Node) -> Node:
        """Apply the words after a value: a part, a multiple, percent, a base, a unit."""
        word = self.token.text.lower()
        if word in FRACTION_WORDS:
            self.take()
            node = Divide(node, Number(Fraction(FRACTION_WORDS[word])))
        elif word in MULTIPLES:
            self.take()
            node = Multiply((node, Number(Fraction(MULTIPLES[word]))))
        elif word in ("percent", "pct") or (word == "per" and self.ahead().text.lower() == "cent"):
            self.index += 1 + (word == "per")
            node = Percent(node)
        elif word in ("degree", "degrees"):
            self.take()
            return self.temperature(Degrees(node))
        words = self.unit_words()
        if not words:
            return node
        unit = unit_named(words)
        if unit.is_label and isinstance(node, Symbol) and not unit.is_general:
            raise UnreadableError("a letter that is not a unit")  # a choice, the article, a name
        return measured_in(node, unit)

    def unit_words(self) -> list[UnitWord]:
        """Consume the words of a unit with their exponents."""
        words: list[UnitWord] = []
        divides = False
        self.skip_of()
        while self.token.kind == "word" and not self.ends_units():
            word = self.take().text
            if word.lower() == "per":
                divides = True
                continue
            words.append(UnitWord(word, self.unit_exponent(), divides))
            if self.at("/") and self.ahead().kind == "word":
                self.take()
                divides = True
            elif self.at("cdot", "*", ".", "-") and self.ahead().kind == "word":
                self.take()
        return words

    def skip_of(self) -> None:
        """Consume the first words of `3/4 of a mile`; "of" before a number would multiply."""
        article = self.ahead().text.lower() in ("a", "an", "the")
        if self.token.text.lower() == "of" and (article or self.ahead().kind == "word"):
            self.index += 1 + article

    def ends_units(self) -> bool:
        """Whether the word here is not part of a unit: it joins, relates, or starts something else."""
        word = self.token.text.lower()
        before = self.tokens[self.index - 1]
        after = self.ahead()
        if word == "in" and (before.kind == "number" or before.text in ("sq", "square", "cubic", "cu")):
            return False  # inches
        if word == "in" and (after.kind == "end" or after.text in ("^", ".", ",", "and")):
            return False  # inches, since there is no set
        return word in JOINERS or word in RELATIONS or word in ("to", "mod")

    def unit_exponent(self) -> int:
        """Consume the exponent of a unit; 1 if there is none."""
        if not self.at("^"):
            return 1
        self.take()
        value = self.script()
        if not (isinstance(value, Number | Negate) and is_integer_literal(value)):
            raise UnreadableError("a unit's exponent that is not an integer")
        exponent = rational_value(value)
        if not 0 < abs(exponent) < 10:
            raise UnreadableError("a unit's exponent beyond the limits")
        return int(exponent)

    # Lists, relations, ratios and set operations.

    def listing(self) -> Node:
        """Parse relations with commas or words between them."""
        items = [self.relation()]
        joiner = ","
        while (separator := self.joiner()) is not None:
            joiner = separator if separator != "," else joiner
            if self.token.kind == "end":
                break
            items.append(self.relation())
        if len(items) == 1:
            return items[0]
        return compound_quantity(items, joiner) or ListOf(excluded_values(items), joiner)

    def relation(self) -> Node:
        """Parse operands with signs of relations between them."""
        operands, operators = [self.name_of_value() or self.remainder()], []
        while (operator := self.relation_sign()) is not None:
            operators.append(operator)
            self.congruent = "mod" in operators
            operand = self.operand() if self.congruent else self.remainder()
            operands.append(set_of_numbers(operand) if operator in ("in", "notin") else operand)
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
        r"""Parse an operand, or the remainder of a constant: `7 \mod 3`."""
        node = self.operand()
        if not self.at("mod") or symbols(node):
            return node
        self.take()
        return Apply("mod", (node, self.operand()))

    def name_of_value(self) -> Node | None:
        r"""Parse a name with brackets before an equals sign: `x(t) =`, `P(A \cap B) =`."""
        token = self.token
        if not (token.kind == "symbol" or token.text in GREEK) or self.ahead().text != "(":
            return None
        end = self.closing_bracket(self.index + 1)
        if end is not None and self.tokens[end + 1].text == "=":
            inside = self.tokens[self.index + 2 : end]
            if len(inside) % 2 and all(
                item.kind == "symbol" if position % 2 == 0 else item.text == "," for position, item in enumerate(inside)
            ):
                self.index = end + 1
                return Unknown(token.text, tuple(Symbol(name.text) for name in inside[::2]))
        if token.text != "P" or end is None or self.tokens[end + 1].text not in ("=", "approx"):
            return None
        brackets = "".join(inner.text for inner in self.tokens[self.index + 1 : end + 1])
        self.index = end + 1
        return Symbol("text:" + token.text + brackets)

    def operand(self) -> Node:
        """Parse a set expression or a ratio."""
        parts = [self.set_expression()]
        while self.at(":") or (self.at("to") and self.token.kind == "word"):
            self.take()
            parts.append(self.sum())
        return Ratio(tuple(parts)) if len(parts) > 1 else parts[0]

    def set_expression(self) -> Node:
        """Parse values with set operations between them."""
        node = self.quantity()
        while (operation := self.set_operation()) is not None:
            node = SetOperation(operation, node, self.quantity())
        return node

    def set_operation(self) -> str | None:
        """Consume the sign of a set operation; None if there is none."""
        if self.is_letter_union():
            self.take()
            return "union"
        if self.token.kind == "command" and self.token.text in _SET_OPERATIONS:
            return _SET_OPERATIONS[self.take().text]
        return None

    # Brackets, braces, sets, bars.

    def inside_group(self) -> Node:
        """Parse the content of brackets, in which the bars and rules of the surroundings do not apply."""
        bars, mixed = self.bars, self.mixed
        self.bars, self.mixed = 0, True
        inside = self.listing()
        self.bars, self.mixed = bars, mixed
        return inside

    def bracket(self) -> Node:
        """Parse round or square brackets."""
        opening = self.take().text
        if self.at(*_CLOSING[opening]):
            raise UnreadableError("empty brackets")
        inside = self.inside_group()
        return bracketed(opening, inside, self.expect(*_CLOSING[opening]))

    def combinations(self) -> Node:
        """Parse the two bracketed arguments of a binomial coefficient."""
        arguments = self.arguments()
        if len(arguments) != 2:
            raise UnreadableError("a binomial coefficient without two arguments")
        return Apply("binomial", arguments)

    def arguments(self) -> tuple[Node, ...]:
        """Parse the bracketed arguments of a call."""
        inside = self.bracket()
        return inside.items if isinstance(inside, Bracketed) else (inside,)

    def braces(self) -> Node:
        """Parse a group in TeX's braces."""
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
        """Parse a set in braces, given by its items or by a condition."""
        self.take()
        if self.accept("\\}"):
            return NamedSet("empty")
        bars, self.bars = self.bars, 1  # a bar here is a separator, and opens nothing
        inside = self.listing_of_set()
        self.bars = bars
        if self.accept("|", ":"):
            condition = self.listing()
            self.expect("\\}")
            return set_by_condition(inside, condition)
        self.expect("\\}")
        return SetOf(inside.items if isinstance(inside, ListOf) else (inside,))

    def listing_of_set(self) -> Node:
        """Parse the items of a set; a colon after the first is the bar of a set-builder, not a ratio."""
        items = [self.relation_of_set()]
        while self.joiner() is not None:
            items.append(self.relation_of_set())
        return ListOf(tuple(items)) if len(items) > 1 else items[0]

    def relation_of_set(self) -> Node:
        """Parse an item of a set, or the first part of a set-builder."""
        node = self.set_expression()
        operator = self.relation_sign()
        if operator is None:
            return node
        value = self.set_expression()
        return Relation((operator,), (node, set_of_numbers(value) if operator in ("in", "notin") else value))

    def bar(self) -> Node:
        """Parse an absolute value, or a determinant between bars."""
        closing = "|" if self.take().text == "|" else "rvert"
        self.bars += 1
        inside = self.sum()
        self.bars -= 1
        self.expect(closing)
        return determinant(inside.rows) if isinstance(inside, Matrix) else Apply("abs", (inside,))

    def fenced(self) -> Node:
        """Parse a floor, a ceiling, or a vector in angle brackets."""
        name = self.take().text
        if name == "langle":
            inside = self.listing()
            self.expect("rangle")
            return Bracketed("<", inside.items if isinstance(inside, ListOf) else (inside,), ">")
        rounding = {"lfloor": "floor", "lceil": "ceil"}[name]
        inside = self.sum()
        self.expect(f"r{rounding}")
        return Apply(rounding, (inside,))

    # Functions, roots, accents and other commands with an argument.

    def root(self) -> Node:
        """Parse a root with its degree."""
        degree: Node = Number(Fraction(3 if self.take().text == "cbrt" else 2))
        if self.accept("["):
            degree = self.sum()
            self.expect("]")
        if self.at("{"):
            return Apply("root", (self.braces(), degree))
        if self.at("("):
            return Apply("root", (self.bracket(), degree))
        return Apply("root", (self.power_free_atom(), degree))

    def binomial(self) -> Node:
        """Parse a binomial coefficient."""
        self.take()
        if self.at("("):
            return self.combinations()
        upper = self.argument()
        return Apply("binomial", (upper, self.argument()))

    def function(self) -> Node:
        """Parse a known function with its exponent or base, applied to its arguments."""
        name = self.take().text
        name = _FUNCTION_ALIASES.get(name, name)
        if name in _VARIADIC and self.at("="):
            return Symbol(name)
        exponent, base = None, None
        while self.at("^", "_"):
            if self.take().text == "^":
                exponent = self.script(signed=True)
            else:
                base = self.script()
        if exponent == Negate(Number(Fraction(1))) and name in _INVERSES:
            name, exponent = _INVERSES[name], None
        arguments = self.function_arguments()
        arguments = arguments if base is None else (*arguments, base)
        if name not in _VARIADIC and len(arguments) > (2 if name == "log" else 1):
            raise UnreadableError(f"{name} with {len(arguments)} arguments")
        if name in _VARIADIC and len(arguments) == 1 and symbols(arguments[0]):
            return Unknown(name, arguments)  # of a name only, as in `max f`
        matrix = arguments[0]
        determined = name == "det" and isinstance(matrix, Matrix)
        node: Node = determinant(matrix.rows) if determined and isinstance(matrix, Matrix) else Apply(name, arguments)
        return node if exponent is None else Power(node, exponent)

    def function_arguments(self) -> tuple[Node, ...]:
        """Parse the arguments of a function, in brackets or as a product after it."""
        if self.token.kind == "word" and len(self.token.text) > 1:
            raise UnreadableError("a function whose argument is text")
        if self.at("("):
            return self.arguments()
        if self.at("{"):
            return (self.braces(),)
        if self.at("\\{"):
            inside = self.set_braces()
            return inside.items if isinstance(inside, SetOf) else (inside,)
        ended = self.at("|", "lvert")  # a slash behind bars divides the function, as in `\\ln|x|/2`
        node = self.signed_factor()
        while (
            self.starts_factor()
            and not (self.token.kind == "command" and self.token.text in FUNCTIONS)
            and not self.at("(")
        ):
            node, ended = times(node, self.power()), False
        if self.at("/") and self.ahead().kind in ("number", "symbol") and not ended:
            self.take()
            node = Divide(node, self.power())
        return (node,)

    def known(self) -> Node:
        """Parse a constant, the empty set, or three dots, which are a symbol."""
        return _KNOWN[self.take().text]

    def greek(self) -> Node:
        """Parse a Greek letter: a symbol, or the function of that name before brackets."""
        name = self.take().text
        if name in _GREEK_FUNCTIONS and self.at("("):
            arguments = self.arguments()
            if len(arguments) != 1:
                raise UnreadableError(f"{name} with {len(arguments)} arguments")
            return Apply(_GREEK_FUNCTIONS[name], arguments)
        if name == "Delta" and self.token.kind == "symbol":  # a change, which is one quantity
            name = f"Delta {self.take().text}"
        return Symbol(name + self.subscript() + self.primes())

    def accent(self) -> Node:
        """Parse an expression under an accent: a conjugate, a vector, or a separate name."""
        name = self.take().text
        inside = self.argument()
        if isinstance(inside, Symbol) and self.at("_"):
            inside = Symbol(inside.name + self.subscript())
        if name == "hat" and isinstance(inside, Constant | Symbol) and (axis := inside.name[0]) in "ijk":
            return Constant("i") if axis == "i" else Symbol(axis)  # a unit vector
        if isinstance(inside, Symbol) and name in ("vec", "overrightarrow"):
            self.vectors.add(inside.name)
        if isinstance(inside, Multiply) and name in ("vec", "overrightarrow"):  # from one point to another
            return Symbol(f"vector {''.join(factor.name for factor in inside.factors if isinstance(factor, Symbol))}")
        if name in ("overline", "bar") and is_complex(inside):
            return Apply("conj", (inside,))
        if isinstance(inside, Symbol) and name not in ("vec", "overrightarrow"):
            return Symbol(f"{'bar' if name == 'overline' else name} {inside.name}")
        if isinstance(inside, Number):  # the period of a continued fraction
            return Unknown(name, (inside,))
        return inside

    def figure(self) -> Node:
        """Parse an angle or a triangle, named by its corners; an angle with one letter is read as that letter."""
        shape, letters = self.take().text, []
        while self.token.kind == "symbol" and self.token.text.isupper() and self.ahead().text not in ("_", "'"):
            letters.append(self.take().text)
        if len(letters) > 1:
            return figure(shape, letters)
        self.index -= len(letters)
        return self.power_free_atom()

    def negation(self) -> Node:
        """Parse the negation of a statement, which is not a factor."""
        self.take()
        return Unknown("not", (self.power(),))

    def skip_command(self) -> Node:
        """Parse the expression after a command that only describes it."""
        self.take()
        return self.power_free_atom()

    def number_set(self) -> Node:
        """Parse a set of numbers in blackboard bold, possibly with the sign of one half of it."""
        self.take()
        braced = self.accept("{")
        name = self.take().text
        if name not in _NUMBER_SETS:
            raise UnreadableError("an unknown set in blackboard bold")
        if braced:
            self.expect("}")
        sign = self.sign_of_half()
        return NamedSet(name) if sign is None else half_of_set(name, sign)

    def sign_of_half(self) -> str | None:
        """Consume the script of a set of numbers that is the sign of its half; None if there is none."""
        if not self.at("^", "_"):
            return None
        braced = self.ahead().text == "{"
        script = [token.text for token in self.tokens[self.index + 1 + braced : self.index + 4 + braced]]
        length = 1 if script[0] in ("+", "-") else 2
        sign = _HALVES.get(" ".join(script[:length]))
        if sign is None or (braced and script[length] != "}"):
            return None
        self.index += 1 + length + 2 * braced
        return sign

    # Fractions, derivatives, integrals, limits, sums and products over an index.

    def fraction(self) -> Node:
        """Parse a fraction, or a derivative written as one."""
        if (derivative := self.derivative()) is not None:
            return derivative
        self.take()
        numerator = self.argument()
        return Divide(numerator, self.argument())

    def derivative(self) -> Node | None:
        r"""Parse `\frac{d}{dx}` and the expression that it applies to; None if the fraction here is another."""
        match = _DERIVATIVE.match(" ".join(token.text for token in self.tokens[self.index : self.index + 14]))
        if match is None or match[1] != match[3] or (match[2] or "1") != (match[5] or "1"):
            return None
        self.index += len(match[0].split())
        return Derivative(self.product(), match[4], int(match[2] or 1))

    def integral(self) -> Node:
        r"""Parse an integral with its differential after the integrand: `\int_0^1 x^2\,dx`."""
        self.take()
        bounds: dict[str, Node] = {}
        while self.at("_", "^"):
            sign = self.take().text
            bounds[sign] = self.script(signed=sign == "^")
        end = self.differential()
        body = self.tokens[self.index : end]
        variable = self.tokens[end + 1].text
        self.index = end + 2
        integrand = self.separate(body) if body else Number(Fraction(1))
        if len(bounds) == 1:
            raise UnreadableError("an integral with one bound")
        return Integral(integrand, variable, bounds.get("_"), bounds.get("^"))

    def differential(self) -> int:
        """The index of the differential of the integral whose integrand starts here.

        Raises:
            UnreadableError: If there is none outside of brackets.
        """
        depth, open_integrals = 0, 1
        for position in range(self.index, len(self.tokens) - 1):
            token, after = self.tokens[position], self.tokens[position + 1]
            depth += (token.text in OPENING_BRACKETS) - (token.text in CLOSING_BRACKETS)
            open_integrals += token.kind == "command" and token.text == "int"
            if (
                depth == 0
                and token == Token("symbol", "d", token.spaced)
                and (after.kind == "symbol" or after.text in GREEK)
            ):
                open_integrals -= 1
            if depth < 0 or not open_integrals:
                break
        if depth or open_integrals:
            raise UnreadableError("an integral without a differential")
        return position

    def separate(self, tokens: list[Token]) -> Node:
        """Parse tokens separately, at this parser's depth."""
        parser = type(self)([*tokens, Token("end", "")])
        parser.depth = self.depth
        node = parser.sum()
        if parser.token.kind != "end":
            raise UnreadableError(f"unexpected {parser.token.text!r} after an expression")
        return node

    def limit(self) -> Node:
        """Parse a limit with its point, and possibly a side, below."""
        self.take()
        self.expect("_")
        self.expect("{")
        variable = self.take()
        self.expect("to", "->")
        end = self.index_of("}")
        while end < len(self.tokens) - 1 and self.tokens[end].text == "}" and self.tokens[end + 1].text == "}":
            end += 1
        point = self.tokens[self.index : end]
        self.index = end
        self.expect("}")
        if variable.kind != "symbol" and variable.text not in GREEK:
            raise UnreadableError("a limit whose variable is not a letter")
        signs = [token.text for token in point if token.text not in ("{", "}")]
        side = signs[-1] if signs[-2:-1] == ["^"] and signs[-1] in ("+", "-") else ""
        if side:
            point = point[: max(position for position, token in enumerate(point) if token.text == "^")]
        return Limit(self.product(), variable.text, self.separate(point), side)

    def series(self) -> Node:
        """Parse a sum or a product over an index."""
        kind = {"sum": "sum", "prod": "product"}[self.take().text]
        lower = upper = None
        while self.at("_", "^"):
            if self.take().text == "_":
                lower = self.index_range()
            else:
                upper = self.script(signed=True)
        if lower is None or upper is None:
            raise UnreadableError(f"a {kind} without its range")
        index, start = lower
        return Series(kind, index, start, upper, self.product())

    def index_range(self) -> tuple[str, Node]:
        """Parse the index below a sum and its first value."""
        self.expect("{")
        name = self.take()
        self.expect("=")
        start = self.sum()
        self.expect("}")
        if name.kind != "symbol":
            raise UnreadableError("an index that is not a letter")
        return name.text, start

    # Matrices, systems and definitions by cases.

    def matrix(self) -> Node:
        """Parse an environment: a matrix, a determinant, a system."""
        self.take()
        name = self.environment()
        if name == "cases" or name in _ALIGNED:
            return self.system(name)
        if name not in _MATRICES:
            raise UnreadableError(f"the unsupported environment {name}")
        if name == "array" and self.at("{"):
            self.environment()
        rows: list[tuple[Node, ...]] = []
        while not self.at("end"):
            rows.append(self.matrix_row())
        self.take()
        if self.environment() != name or len({len(row) for row in rows}) != 1:
            raise UnreadableError("a matrix with rows of different lengths")
        if name == "array" and all(len(row) == 1 and isinstance(row[0], Relation) for row in rows):
            return ListOf(tuple(row[0] for row in rows), "and")
        return determinant(tuple(rows)) if name in _DETERMINANTS else Matrix(tuple(rows))

    def system(self, name: str) -> Node:
        """Parse relations, or values with their conditions, one on each line."""
        if name in _ALIGNED:
            self.drop_alignment()
        lines = [self.line()]
        while self.accept("\\\\") or self.joiner() is not None:
            if not self.at("end"):
                lines.append(self.line())
        self.expect("end")
        if self.environment() != name:
            raise UnreadableError(f"an unclosed environment {name}")
        return ListOf(with_the_other_cases(lines), "and")

    def drop_alignment(self) -> None:
        """Remove the signs that only align the lines of this environment."""
        end = self.index_of("end")
        self.tokens[self.index : end] = [token for token in self.tokens[self.index : end] if token.text != "&"]

    def line(self) -> Node:
        """Parse a relation or, in a definition by cases, a value with its condition."""
        value = self.relation()
        self.accept(",")
        if not self.accept("&"):
            return value
        while self.token.kind == "word" and self.token.text.lower() in ("if", "for", "when", "where"):
            self.take()
        if self.token.kind == "word" and self.token.text.lower() in ("otherwise", "else"):
            self.take()
            return Bracketed("(", (value, OTHERWISE), ")")
        end = self.index_of("\\\\", "end")
        condition = self.tokens[self.index : end]
        if not any(token.kind == "word" and token.text not in RELATIONS for token in condition):
            return Bracketed("(", (value, self.relation()), ")")
        self.index = end
        return Bracketed("(", (value, Words(folded_words(" ".join(token.text for token in condition)))), ")")

    def environment(self) -> str:
        """Consume the name of an environment in braces."""
        self.expect("{")
        name = ""
        while not self.at("}"):
            if self.token.kind == "end":
                raise UnreadableError("an environment without a name")
            name += self.take().text
        self.take()
        return name

    def matrix_row(self) -> tuple[Node, ...]:
        """Parse the entries of one row."""
        entries = [self.relation()]
        while self.accept("&"):
            entries.append(self.relation())
        if not self.accept("\\\\") and not (self.at("end") and self.token.kind == "command"):
            raise UnreadableError("an unclosed matrix row")
        return tuple(entries)

    # Numbers, symbols, calls, words.

    def number(self) -> Node:
        """Parse a number, with a fraction after it as a mixed number."""
        token = self.take()
        assert token.value is not None
        if not self.mixed or not token.text.isdigit() or isinstance(token.value, BasedNumber):
            return token.value
        if self.at("frac", "unicodefrac"):
            node = self.atom()
            proper = proper_fraction(node)
            return Mixed(int(token.text), *proper) if proper is not None else times(token.value, node)
        above, slash, below = self.token, self.ahead(), self.ahead(2)
        fraction = above.spaced and above.text.isdigit() and slash.text == "/" and below.text.isdigit()
        if fraction and 0 < int(above.text) < int(below.text):
            self.index += 3
            return Mixed(int(token.text), int(above.text), int(below.text))
        return token.value

    def symbol(self) -> Node:
        """Parse a constant, a symbol with its subscript and primes, or a call of an unknown function."""
        token = self.take()
        name = token.text
        if name == "m" and self.at("angle"):  # the measure of an angle
            return self.figure()
        if name in ("e", "i") and not self.at("_", "'"):
            return Constant(name)
        name += self.subscript() + self.primes()
        if token.bold:
            self.vectors.add(name)
        if name == "C" and self.at("(") and self.ahead(2).text == ",":
            return self.combinations()
        if self.at("(") and name[0] in _NAMED_FUNCTIONS and (name[0] in _ALWAYS_FUNCTIONS or self.is_call()):
            return Unknown(name, self.arguments())
        if name[0] in _ALWAYS_FUNCTIONS and self.accept_all("^", "{", "-", "1", "}", "("):
            self.index -= 1
            return Unknown(name + "^-1", self.arguments())
        return Symbol(name)

    def is_call(self) -> bool:
        """Whether the brackets ahead hold one symbol or number, as in `P(x)`."""
        return self.ahead().kind in ("symbol", "number") and self.ahead(2).text == ")"

    def word(self) -> Node:
        """Parse a word in the place of a value: an amount, or a label before an equals sign."""
        words = [self.take().text]
        if (len(words[0]) == 1 and self.token.kind not in ("word", "symbol")) or (
            _STATEMENT.fullmatch(words[0]) and (self.token.kind == "end" or self.token.text.lower() in JOINERS)
        ):
            return Symbol(words[0])
        if words[0].lower() in _CURRENCY_CODES and self.ahead(int(self.at("."))).kind == "number":
            self.accept(".")
            return Quantity(self.number(), UNITS[words[0].lower()])
        while self.token.kind == "word" and self.token.text not in ("is", "equals"):
            words.append(self.take().text)
        if not self.at("=", "approx", "is", "equals"):
            raise UnreadableError(f"expected a value, found the word {words[0]!r}")
        return Symbol("text:" + folded_words(" ".join(words)))

    def currency(self) -> Node:
        """Parse an amount after the sign of its currency."""
        sign = self.take().text.lstrip("\\")
        return Quantity(self.signed_factor(), UNITS[sign])

    # Multiple choice: a letter, and the content after it.

    def choice(self) -> Node | None:
        """Parse a letter in round brackets, or before a bracket, and the content after it."""
        start = self.index
        while self.token.kind == "word" and self.token.text.lower() in ("option", "choice", "answer"):
            self.take()
        named = self.index > start
        opened = self.accept("(")
        letter = self.take()
        upper, closed = letter.text.isupper(), self.accept(")")
        marked = named or self.accept(":", ".") or (letter.kind == "word" and self.token.kind == "end")
        if (
            letter.kind in ("symbol", "word")
            and letter.text in _LETTERS
            and (closed or (upper and marked and not opened))
            and (upper or not opened or self.starts_option())
        ):
            return self.choice_content(letter.text.upper())
        self.index = start
        return None

    def starts_option(self) -> bool:
        """Whether the option of a lower-case letter in brackets can start here, rather than a factor or operator."""
        return self.token.kind in ("end", "number", "word") or self.at(".", ":", "frac", "\\$")

    def choice_content(self, letter: str) -> Node | None:
        """Parse the content after a choice's letter; None if that shows that it is not a choice."""
        self.accept(":", ".")
        if self.token.kind == "end":
            return Choice(letter)
        if self.names_other_choice() or self.token.text.lower() in JOINERS:
            return None
        if self.token.kind == "sign" and self.token.text not in ("(", "[", "-", "\\$", "\\{"):
            return None
        start = self.index
        try:
            return Choice(letter, self.listing())
        except UnreadableError:
            if self.tokens[start].kind != "word" and self.tokens[start].kind != "symbol":
                raise
        self.index = len(self.tokens) - 1
        return Choice(letter, Words(folded_words(" ".join(token.text for token in self.tokens[start:]))))

    def names_other_choice(self) -> bool:
        """Whether a second letter in brackets follows, so that the answer offers several choices."""
        rest = self.tokens[self.index :]
        if (
            len([token for token in rest if token.text != "."]) == 2
            and len(rest[0].text) == 1
            and "A" <= rest[0].text <= "J"
        ):
            return True
        return any(
            (before.text, after.text) == ("(", ")") and len(letter.text) == 1 and "A" <= letter.text <= "J"
            for before, letter, after in zip(rest, rest[1:], rest[2:], strict=False)
        )

    # Whole answers, and the expressions that start at a token.

    def answer(self) -> Node:
        """Parse a whole answer.

        Raises:
            UnreadableError: If the tokens are not an answer.
        """
        start = self.index
        node = self.choice()
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
            return self.number()
        if token.kind == "symbol":
            return self.symbol()
        if token.kind == "command":
            return self.command()
        if token.kind == "word":
            return self.word()
        if token.kind == "sign" and (read := _ATOMS.get(token.text)) is not None:
            return read(self)
        raise UnreadableError(f"expected a value, found {token.text or 'the end'!r}")

    def command(self) -> Node:
        """Parse a command with its arguments."""
        name = self.token.text
        if name in FUNCTIONS and name not in ("sqrt", "binom", "cbrt"):
            return self.function()
        if name in GREEK:
            return self.greek()
        if (read := _ATOMS.get(name)) is not None:
            return read(self)
        self.take()
        if name in _UNREAD_COMMANDS or name in SIGNS_OF_STATEMENTS or self.at("{", "[", "_", "^"):
            raise UnreadableError(f"the unsupported command \\{name}")
        return Symbol(name)


def unit_named(words: list[UnitWord]) -> Unit:
    """The unit or counted noun that the words after a number name.

    Raises:
        UnreadableError: If they name neither.
    """
    unit = read_unit(tuple(words))
    if unit is None:
        raise UnreadableError("words after a number that do not name a unit")
    return unit


_KNOWN = {"pi": Constant("pi"), "infty": Constant("inf"), "emptyset": NamedSet("empty")} | dict.fromkeys(
    ("...", "ldots", "dots", "cdots"), Symbol("...")
)
_ATOMS: dict[str, Callable[[Parser], Node]] = {
    **dict.fromkeys(_KNOWN, Parser.known),
    **dict.fromkeys(("(", "["), Parser.bracket),
    "{": Parser.braces,
    "\\{": Parser.set_braces,
    "|": Parser.bar,
    **dict.fromkeys(("\\$", *CURRENCY_SIGNS), Parser.currency),
    "frac": Parser.fraction,
    "unicodefrac": Parser.fraction,
    "sqrt": Parser.root,
    "cbrt": Parser.root,
    "binom": Parser.binomial,
    "lvert": Parser.bar,
    "int": Parser.integral,
    "lim": Parser.limit,
    "sum": Parser.series,
    "prod": Parser.series,
    "begin": Parser.matrix,
    "mathbb": Parser.number_set,
    **dict.fromkeys(("lfloor", "lceil", "langle"), Parser.fenced),
    **dict.fromkeys(("overline", "bar", "dot", "ddot", "vec", "hat", "tilde", "overrightarrow"), Parser.accent),
    **dict.fromkeys(FIGURES, Parser.figure),
    "mathcal": Parser.skip_command,
    "neg": Parser.negation,
}
