"""What joins, follows and encloses values: signs, units, relations, brackets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction

from verifiers.math import tree
from verifiers.math.assemble import (
    bracketed,
    compound_quantity,
    determinant,
    difference_of_sets,
    excluded_values,
    measured_in,
    outside_of,
    set_by_condition,
    sign_inside,
    times,
)
from verifiers.math.exact import rational_value
from verifiers.math.grammar.cursor import JOINERS, MAX_DEPTH, Cursor
from verifiers.math.tokens import Token, UnreadableError
from verifiers.math.tree import (
    Add,
    Apply,
    Bracketed,
    Clock,
    Degrees,
    Divide,
    ListOf,
    Matrix,
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
    SetOperation,
    Symbol,
    Unknown,
    Words,
    symbols,
)
from verifiers.math.units import CURRENCY_SIGNS, MULTIPLES, UNITS, Unit, UnitWord, read_unit
from verifiers.math.vectors import ordered_product
from verifiers.math.vocabulary import FACTOR_STARTS, FRACTION_WORDS, GREEK, RELATIONS

_SET_OPERATIONS = {"cup": "union", "cap": "intersection", "setminus": "difference"}
_CLOSING = {"(": (")", "]"), "[": ("]", ")")}


class Operators(Cursor, ABC):
    """What joins, follows and encloses values: signs, units, relations, brackets."""

    @abstractmethod
    def atom(self) -> Node:
        """The smallest expression that starts here."""

    # Sums, products, powers, and the arguments of TeX.

    def sum(self) -> Node:
        """Terms with signs between them; two terms may be a difference of sets."""
        terms = [self.signed_term()]
        while self.at("+", "-", "pm", "mp"):
            terms.append(self.signed_term())
        node = difference_of_sets(terms) or (Add(tuple(terms)) if len(terms) > 1 else terms[0])
        return Divide(node, self.sum()) if self.accept("over") else node

    def signed_term(self) -> Node:
        """A product with its signs, of which a plus-minus stands for both."""
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
        if both:
            return PlusMinus(term, both * sign)
        return Negate(term) if sign < 0 else term

    def product(self) -> Node:
        """Factors with a sign of multiplication or division between them, or side by side."""
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
        """A factor that may have signs in front."""
        negative = False
        while self.at("-", "+"):
            negative ^= self.take().text == "-"
        node = self.power()
        return Negate(node) if negative else node

    def starts_factor(self) -> bool:
        """Whether a factor starts here that stands beside the one before."""
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
        """An atom with what is written on its right: exponents, factorials, percent signs, degrees."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableError(f"nested more than {MAX_DEPTH} deep")
        node = self.atom()
        while (after := self.postfix(node)) is not None:
            node = after
        self.depth -= 1
        return node

    def postfix(self, node: Node) -> Node | None:
        """What one sign on the right makes of an expression; None where there is none."""
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
            raise UnreadableError("a subscript on something that has none")
        return None

    def raised(self, node: Node) -> Node:
        """An expression with what stands raised behind it: degrees, a transpose, an exponent."""
        if self.accept("circ"):
            return self.temperature(Degrees(node))
        exponent = self.script(signed=True)
        transposed = exponent in (Symbol("T"), Symbol("top"), Symbol("intercal"))
        if isinstance(node, Bracketed) and transposed:
            return Matrix(tuple((item,) for item in node.items))
        if isinstance(node, Matrix) and transposed:
            return Matrix(tuple(zip(*node.rows, strict=True)), node.kind)
        return Power(node, exponent)

    def temperature(self, node: Degrees) -> Node:
        """Degrees, or a temperature where the name of a scale follows."""
        scale = self.token.text
        if self.token.kind in ("word", "symbol") and scale.lower() in ("c", "f", "celsius", "fahrenheit"):
            self.take()
            return Quantity(node.value, UNITS["celsius" if scale.lower().startswith("c") else "fahrenheit"])
        return node

    def script(self, *, signed: bool = False) -> Node:
        """An exponent or index: a group in braces, or one token (with a sign in plain text)."""
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
        """An atom that takes no exponent, one level deeper."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableError(f"nested more than {MAX_DEPTH} deep")
        node = self.atom()
        self.depth -= 1
        return node

    def argument(self) -> Node:
        """An argument of a TeX command: a group in braces, one digit, or one other token."""
        if self.at("{"):
            return self.braces()
        token = self.token
        if token.kind == "number" and len(token.text) > 1:
            if not token.text.isdigit():
                raise UnreadableError("a decimal as an argument without braces")
            self.tokens[self.index] = Token("number", token.text[1:], False, Number(Fraction(int(token.text[1:]))))
            return Number(Fraction(int(token.text[0])))
        return self.power_free_atom()

    # What stands behind a value: units, percent, words, bases; and times of day.

    def quantity(self) -> Node:
        """A value with what belongs to it: a unit, a base, a remark in brackets, smaller units."""
        if (clock := self.clock()) is not None:
            return clock
        node = self.sum()
        if self.token.kind == "end":
            return sign_inside(node)
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
        return self.smaller_units(sign_inside(node))

    def smaller_units(self, node: Node) -> Node:
        """A quantity with what follows it in a smaller unit: `3 ft 2 in`."""
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
        """A time of day; None if none stands here."""
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
        """A value with the words behind it: a part, a multiple, percent, a base, a unit."""
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
        if unit.is_label and isinstance(node, Symbol) and not unit.label.startswith("unit"):
            raise UnreadableError("a letter that counts nothing")  # a choice, the article, a name
        return measured_in(node, unit)

    def unit_words(self) -> list[UnitWord]:
        """Pass over the words of a unit with their exponents."""
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
        """Pass over the first words of `3/4 of a mile`; "of" in front of a number would multiply."""
        article = self.ahead().text.lower() in ("a", "an", "the")
        if self.token.text.lower() == "of" and (article or self.ahead().kind == "word"):
            self.index += 1 + article

    def ends_units(self) -> bool:
        """Whether a word here is no part of a unit: it joins, relates, or starts something else."""
        word = self.token.text.lower()
        before = self.tokens[self.index - 1]
        after = self.ahead()
        if word == "in" and (before.kind == "number" or before.text in ("sq", "square", "cubic", "cu")):
            return False  # inches
        if word == "in" and (after.kind == "end" or after.text in ("^", ".", ",", "and")):
            return False  # inches, for there is no set
        return word in JOINERS or word in RELATIONS or word in ("to", "mod")

    def unit_exponent(self) -> int:
        """Pass over the exponent of a unit; 1 if there is none."""
        if not self.at("^"):
            return 1
        self.take()
        value = self.script()
        if not (isinstance(value, Number | Negate) and tree.is_integer_literal(value)):
            raise UnreadableError("a unit's exponent that is no integer")
        exponent = rational_value(value)
        if abs(exponent) > 9:
            raise UnreadableError("a unit's exponent past the limit")
        return int(exponent)

    # Lists, relations, ratios and set operations.

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

    # Brackets, braces, sets, bars.

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


def unit_named(words: list[UnitWord]) -> Unit:
    """The unit or counted noun of the words behind a number.

    Raises:
        UnreadableError: If they name none.
    """
    unit = read_unit(tuple(words))
    if unit is None:
        raise UnreadableError("words behind a number that name no unit")
    return unit
