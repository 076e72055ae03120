"""A recursive-descent parser from LaTeX or plain text to the typed tree.

Nothing is evaluated here. Nesting is bounded by `MAX_DEPTH`, both while parsing and of the tree that comes out, so that
every recursion over a tree is bounded too.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from fractions import Fraction

from verifiers.math import tree
from verifiers.math.assemble import (
    bracketed,
    compound_quantity,
    difference_of_sets,
    excluded_values,
    expanded_determinant,
    is_complex,
    proper_fraction,
    sign_inside,
    times,
    united_conditions,
    values_of,
)
from verifiers.math.text import folded_words, unwrap
from verifiers.math.tokens import Token, UnreadableError, is_numeral, significant_digits, tokenize
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
)
from verifiers.math.units import CURRENCY_SIGNS, MULTIPLES, UNITS, UnitWord, read_unit
from verifiers.math.vocabulary import (
    FACTOR_COMMANDS,
    FRACTION_WORDS,
    FUNCTIONS,
    GREEK,
    NO_NOUNS,
    NUMBER_WORDS,
    RELATIONS,
    TENS,
)
from verifiers.math.wording import (
    QUARTERS,
    REALS_EXCEPT,
    SCALES,
    WORD_ANSWERS,
    essence,
    is_verdict,
    listed_names,
    value_of_words,
    with_round_brackets,
)

MAX_DEPTH = 40
"""Deepest nesting of a tree."""

_JOINERS = {",": ",", ";": ",", "and": "and", "or": "or", "lor": "or", "land": "and"}
_SET_OPERATIONS = {"cup": "union", "cap": "intersection", "setminus": "difference"}
_NUMBER_SETS = frozenset("RZNQC")
_CLOSING = {"(": (")", "]"), "[": ("]", ")")}
_FUNCTION_ALIASES = {"lg": "log", "binom": "binomial"} | {
    f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")
}
_INVERSES = {name: f"arc{name}" for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")}
_HALVES = {"am": "am", "a": "am", "pm": "pm", "p": "pm"}
_FACTOR_STARTS = FUNCTIONS | GREEK | FACTOR_COMMANDS
_VARIADIC = frozenset(("max", "min", "gcd", "lcm"))
_NAMED_FUNCTIONS = frozenset("fghpqFGH") | frozenset("ABDEIJKLMNOPQRSTUVWXYZ")
_ALWAYS_FUNCTIONS = frozenset("fgh")
_ORDINALS = frozenset(("st", "nd", "rd", "th"))


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.index, self.depth, self.bars = tokens, 0, 0, 0
        self.mixed = True  # whether a fraction behind an integer makes a mixed number of it

    # Moving over the tokens.

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def ahead(self, count: int = 1) -> Token:
        return self.tokens[min(self.index + count, len(self.tokens) - 1)]

    def take(self) -> Token:
        token = self.token
        if token.kind != "end":
            self.index += 1
        return token

    def at(self, *texts: str) -> bool:
        return self.token.kind != "symbol" and self.token.text in texts

    def accept(self, *texts: str) -> bool:
        if self.at(*texts):
            self.index += 1
            return True
        return False

    def expect(self, *texts: str) -> str:
        if not self.at(*texts):
            raise UnreadableError(f"expected {' or '.join(texts)}, found {self.token.text or 'the end'!r}")
        return self.take().text

    # Lists and relations.

    def answer(self) -> Node:
        start = self.index
        node = self.choice()
        if node is None:
            self.index = start
            node = self.listing()
        self.accept(".")
        if self.token.kind != "end":
            raise UnreadableError(f"{self.token.text!r} where the answer should end")
        return node

    def choice(self) -> Node | None:
        """A letter in round brackets, or with a bracket behind it, and what follows."""
        start = self.index
        while self.token.kind == "word" and self.token.text.lower() in ("option", "choice", "answer"):
            self.take()
        opened = self.accept("(")
        letter = self.take()
        named = self.index - start - opened > 1
        if (
            letter.kind in ("symbol", "word")
            and len(letter.text) == 1
            and letter.text.upper() <= "J"
            and letter.text.isalpha()
        ):
            closed = self.accept(")")
            upper = letter.text.isupper() or closed
            if (
                upper
                and (opened == closed)
                and (closed or named or (letter.kind == "word" and self.token.kind == "end"))
            ):
                if letter.text.isupper() or not opened or self.starts_option():
                    return self.choice_content(letter.text.upper())
            elif not opened and (closed or (letter.text.isupper() and self.accept(":", "."))):
                return self.choice_content(letter.text.upper())
        self.index = start
        return None

    def starts_option(self) -> bool:
        """Whether what stands here can be the option behind a small letter in brackets, and no factor or operator."""
        return self.token.kind in ("end", "number", "word") or self.at(".", ":", "frac", "\\$")

    def choice_content(self, letter: str) -> Node | None:
        self.accept(":", ".")
        if self.token.kind == "end":
            return Choice(letter)
        if self.names_other_choice():
            return None
        if self.token.kind == "sign" and self.token.text not in ("(", "[", "-", "\\$", "\\{"):
            return None
        start = self.index
        try:
            return Choice(letter, self.listing())
        except UnreadableError:
            if self.tokens[start].kind != "word" and self.tokens[start].kind != "symbol":
                raise
        if any(is_verdict(token.text) for token in self.tokens[start:]):
            raise UnreadableError("a remark on a choice")
        self.index = len(self.tokens) - 1
        return Choice(letter, Words(folded_words(" ".join(token.text for token in self.tokens[start:]))))

    def names_other_choice(self) -> bool:
        """Whether a second letter in brackets follows, so that more than one choice is offered."""
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

    def listing(self) -> Node:
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

    def joiner(self) -> str | None:
        found = None
        while self.token.kind != "symbol" and (
            joiner := _JOINERS.get(self.token.text.lower() if self.token.kind == "word" else self.token.text)
        ):
            found = joiner if found in (None, ",") else found
            self.take()
        return found

    def relation(self) -> Node:
        operands, operators = [self.name_of_value() or self.operand()], []
        while (operator := self.relation_sign()) is not None:
            operators.append(operator)
            operands.append(self.operand())
        bracketed = self.at("(") and self.ahead().text == "mod"
        self.index += bracketed
        if self.at("pmod", "mod"):
            self.take()
            operators.append("modulo")
            operands.append(self.operand())
        if bracketed:
            self.expect(")")
        if not operators:
            return operands[0]
        return united_conditions(operators, operands) or Relation(tuple(operators), tuple(operands))

    def name_of_value(self) -> Node | None:
        r"""A name with brackets in front of an equals sign: `x(t) =`, `P(A \\cap B) =`."""
        token = self.token
        if token.kind != "symbol" or self.ahead().text != "(":
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

    def closing_bracket(self, start: int) -> int | None:
        """Where the round bracket that opens at a token is closed."""
        depth = 0
        for place in range(start, len(self.tokens)):
            depth += (self.tokens[place].text == "(") - (self.tokens[place].text == ")")
            if depth == 0:
                return place
        return None

    def relation_sign(self) -> str | None:
        if self.at("in") and self.token.kind == "word" and self.ahead().kind == "end":
            return None
        if self.token.kind in ("symbol", "number", "end") or (sign := RELATIONS.get(self.token.text)) is None:
            return None
        if self.take().text == "is" and self.at("equal"):
            self.take()
            self.accept("to")
        return sign

    def operand(self) -> Node:
        parts = [self.set_expression()]
        while self.at(":", "to"):
            self.take()
            parts.append(self.sum())
        if len(parts) == 1:
            return parts[0]
        return Ratio(tuple(parts))

    def set_expression(self) -> Node:
        node = self.quantity()
        while (kind := self.set_operation()) is not None:
            node = SetOperation(kind, node, self.quantity())
        return node

    def set_operation(self) -> str | None:
        if self.is_letter_union():
            self.take()
            return "union"
        if self.token.kind == "command" and self.token.text in _SET_OPERATIONS:
            return _SET_OPERATIONS[self.take().text]
        return None

    def is_letter_union(self) -> bool:
        """Whether a letter U stands between two sets."""
        before, after = self.tokens[self.index - 1].text, self.ahead().text
        return self.token.text == "U" and before in (")", "]", "\\}") and after in ("(", "[", "\\{")

    # What may stand behind a value: units, percent, times of day.

    def quantity(self) -> Node:
        if (clock := self.clock()) is not None:
            return clock
        node = self.sum()
        if self.token.text in ("\\$", *CURRENCY_SIGNS):
            node = Quantity(node, UNITS[self.take().text.lstrip("\\")])
        if self.is_and_part():
            self.index += 2
            node = Add((node, self.listing()))
        elif self.token.kind == "word":
            node = self.with_words(node)
        elif self.at("(") and self.ahead().text == "base":
            self.take()
            node = self.in_base(node)
            self.expect(")")
        elif self.is_unit_fraction():
            node = self.with_unit_fraction(node)
        elif self.at("{") and self.ahead().kind == "word":
            self.take()
            node = self.with_words(node)
            self.expect("}")
        elif self.at("(") and self.ahead().kind == "word" and self.ahead().text != "mod":
            node = self.with_remark(node)
        elif isinstance(node, Number) and self.ends_in_feet_or_inches():
            node = self.in_feet_or_inches(node)
        elif self.at("/") and self.ahead().kind == "word":
            self.take()
            unit = read_unit(tuple(UnitWord(word.word, word.exponent, True) for word in self.unit_words()))
            if unit is None:
                raise UnreadableError("words behind a number that name no unit")
            node = Quantity(node, unit)
        elif isinstance(node, Degrees) and self.ahead().text == "'":
            node = self.with_arc_minutes(node)
        elif self.is_ohm():
            self.take()
            node = Quantity(node, UNITS["ohm"])
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

    def ends_in_feet_or_inches(self) -> bool:
        """Whether marks of inches stand here, or one of feet with inches behind it; alone it may be a derivative's."""
        return self.at('"') or (self.at("'") and (self.ahead().text == "'" or self.ahead().kind == "number"))

    def in_feet_or_inches(self, node: Node) -> Node:
        inches = self.take().text == '"' or self.accept("'")
        return Quantity(node, UNITS["inch" if inches else "foot"])

    def is_and_part(self) -> bool:
        """Whether a part in words is added: `2 and a half`."""
        return self.at("and") and self.ahead().text == "a" and self.ahead(2).text in ("half", "third", "quarter")

    def with_arc_minutes(self, node: Degrees) -> Node:
        """Degrees with minutes, and perhaps seconds, of arc."""
        value, size = [node.value], 60
        while self.token.kind == "number" and self.ahead().text == "'" and size <= 3600:
            value.append(Divide(self.number(), Number(Fraction(size))))
            self.index += 1 + (self.ahead().text == "'")
            size *= 60
        return Degrees(Add(tuple(value)))

    def is_ohm(self) -> bool:
        """Whether a capital omega that ends the answer stands behind a number."""
        before = self.tokens[self.index - 1]
        return (
            self.at("Omega") and self.ahead().kind == "end" and (before.kind == "number" or before.text in ("}", ")"))
        )

    def with_remark(self, node: Node) -> Node:
        """A value with its unit, its name, or another form of it in brackets: `12 (cm)`, `12 (twelve)`, `3/4 (or 0.75)`."""
        self.expect("(")
        if self.accept("or"):
            node = ListOf((node, self.relation()), "or")
        elif self.token.text.lower() in NUMBER_WORDS or self.token.text.lower() in TENS:
            if self.sum() != node:
                raise UnreadableError("a number with the name of another")
        else:
            node = self.with_words(node)
        self.expect(")")
        return node

    def clock(self) -> Clock | None:
        hour, colon, minute = self.token, self.ahead(), self.ahead(2)
        if not (hour.kind == "number" and hour.text.isdigit() and len(hour.text) <= 2 and int(hour.text) <= 24):
            return None
        if colon.text == ":" and minute.kind == "number" and minute.text.isdigit() and len(minute.text) == 2:
            if colon.spaced or minute.spaced:
                return None
            if int(hour.text) > 23 or int(minute.text) > 59 or self.ahead(3).text == ":":
                return None
            self.index += 3
            return Clock(int(hour.text), int(minute.text), self.half())
        before = self.index
        self.take()
        half = self.half()
        if not half:
            self.index = before
            return None
        return Clock(int(hour.text), 0, half)

    def half(self) -> str:
        word = self.token
        if word.kind not in ("word", "symbol") or word.text.lower() not in _HALVES:
            return ""
        if len(word.text) == 2:
            self.take()
            self.accept(".")
            return _HALVES[word.text.lower()]
        if self.ahead().text == "." and self.ahead(2).text.lower() == "m":
            self.index += 3
            self.accept(".")
            return _HALVES[word.text.lower()]
        return ""

    def with_words(self, node: Node) -> Node:
        word = self.token.text.lower()
        counted = FRACTION_WORDS.get(word) or (4 if word in QUARTERS and self.behind_word() else None)
        if counted is not None:
            self.take()
            node = Divide(node, Number(Fraction(counted)))
        elif word in MULTIPLES:
            self.take()
            node = Multiply((node, Number(Fraction(MULTIPLES[word]))))
        elif word == "percent" or (word == "per" and self.ahead().text.lower() == "cent"):
            self.index += 1 + (word == "per")
            node = Percent(node)
        elif word == "base":
            return self.in_base(node)
        elif word in ("degree", "degrees"):
            self.take()
            return self.temperature(Degrees(node))
        words = self.unit_words()
        if not words:
            return node
        unit = read_unit(tuple(words))
        if unit is None:
            raise UnreadableError("words behind a number that name no unit")
        return Quantity(node, unit)

    def with_unit_fraction(self, node: Node) -> Node:
        r"""A value and its unit as a fraction: `5 \\frac{\\text{m}}{\\text{s}}`."""
        self.take()
        words: list[UnitWord] = []
        for divides in (False, True):
            self.expect("{")
            words += [UnitWord(word.word, word.exponent, divides) for word in self.unit_words()]
            self.expect("}")
        unit = read_unit(tuple(words))
        if unit is None:
            raise UnreadableError("words behind a number that name no unit")
        return Quantity(node, unit)

    def temperature(self, node: Degrees) -> Node:
        scale = self.token.text
        if self.token.kind in ("word", "symbol") and scale.lower() in ("c", "f", "celsius", "fahrenheit"):
            self.take()
            return Quantity(node.value, UNITS["celsius" if scale.lower().startswith("c") else "fahrenheit"])
        return node

    def behind_word(self) -> bool:
        """Whether the token before is a word, or joined to one by a hyphen."""
        before = self.tokens[self.index - 1]
        return (self.tokens[self.index - 2] if before.text == "-" else before).kind == "word"

    def in_base(self, node: Node) -> Node:
        digits = self.tokens[self.index - 1 - (self.tokens[self.index - 1].text == "(")].text
        self.take()
        base = self.take()
        if not (isinstance(node, Number) and is_numeral(digits, base.text)):
            raise UnreadableError("no numeral in a base from 2 to 36")
        return BasedNumber(significant_digits(digits), int(base.text))

    def unit_words(self) -> list[UnitWord]:
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
            elif self.at("/") and self.ahead().text == "(" and self.ahead(2).kind == "word":
                self.index += 2
                words += [UnitWord(below.word, below.exponent, True) for below in self.unit_words()]
                self.expect(")")
            elif self.at("cdot", "*", ".", "-") and self.ahead().kind == "word":
                self.take()
        return words

    def skip_of(self) -> None:
        """Pass over the first words of `3/4 of a mile`; "of" in front of a number would multiply."""
        article = self.ahead().text.lower() in ("a", "an", "the")
        if self.token.text.lower() == "of" and (article or self.ahead().kind == "word"):
            self.index += 1 + article

    def ends_units(self) -> bool:
        word = self.token.text.lower()
        before = self.tokens[self.index - 1]
        after = self.ahead()
        if word == "in" and (before.kind == "number" or before.text in ("sq", "square", "cubic", "cu")):
            return False  # inches
        if word == "in" and (after.kind == "end" or after.text in ("^", ".", ",", "and")):
            return False  # inches, for there is no set
        return word in _JOINERS or word in RELATIONS or word == "to"

    def unit_exponent(self) -> int:
        if not self.at("^"):
            return 1
        self.take()
        value = self.script()
        if not (isinstance(value, Number | Negate) and tree.is_integer_literal(value)):
            raise UnreadableError("a unit's exponent that is no integer")
        exponent = (
            value.value
            if isinstance(value, Number)
            else -value.value.value
            if isinstance(value.value, Number)
            else None
        )
        if exponent is None or abs(exponent) > 9:
            raise UnreadableError("a unit's exponent past the limit")
        return int(exponent)

    # Sums, products, powers.

    def sum(self) -> Node:
        terms = [self.signed_term()]
        while self.at("+", "-", "pm", "mp"):
            terms.append(self.signed_term())
        node = difference_of_sets(terms) or (Add(tuple(terms)) if len(terms) > 1 else terms[0])
        return Divide(node, self.sum()) if self.accept("over") else node

    def signed_term(self) -> Node:
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
        node = self.power()
        while True:
            if self.accept("*", "cdot", "times"):
                node = times(node, self.signed_factor())
            elif self.at("/", "div") and self.ahead().kind != "word":
                self.take()
                node = Divide(node, self.signed_factor())
            elif self.accept("bmod"):
                node = Apply("mod", (node, self.signed_factor()))
            elif self.starts_factor():
                node = times(node, self.power())
            else:
                return node

    def signed_factor(self) -> Node:
        negative = False
        while self.at("-", "+"):
            negative ^= self.take().text == "-"
        node = self.power()
        return Negate(node) if negative else node

    def starts_factor(self) -> bool:
        token = self.token
        if token.kind == "symbol":
            return not self.is_letter_union()
        if token.kind == "number":
            before = self.tokens[self.index - 1]
            if self.ahead().text == "'":
                return False  # minutes of arc
            return before.kind != "number" or (token.spaced and self.tokens[self.index - 2].text == "^")
        if token.kind == "command":
            return token.text in _FACTOR_STARTS and not self.is_unit_fraction() and not self.is_ohm()
        if token.text in ("{", "(") and self.ahead().kind == "word":
            return False  # a unit in braces, a remark in brackets
        return token.kind == "sign" and (token.text in ("(", "[", "{") or (token.text == "|" and not self.bars))

    def is_unit_fraction(self) -> bool:
        """Whether a fraction of units in words starts here, behind its number."""
        return self.token.text == "frac" and self.ahead().text == "{" and self.ahead(2).kind == "word"

    def power(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableError(f"nested more than {MAX_DEPTH} deep")
        node = self.atom()
        while (after := self.postfix(node)) is not None:
            node = after
        self.depth -= 1
        return node

    def postfix(self, node: Node) -> Node | None:
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
        if self.accept("circ"):
            return self.temperature(Degrees(node))
        if self.at("{") and self.ahead().text == "circ" and self.ahead(2).text == "}":
            self.index += 3
            return self.temperature(Degrees(node))
        if self.at("{") and self.ahead().text in _ORDINALS and self.ahead(2).text == "}":
            self.index += 3
            return node
        if self.token.kind == "word" and self.token.text in _ORDINALS:
            self.take()
            return node
        exponent = self.script(signed=True)
        if isinstance(node, Matrix) and exponent in (Symbol("T"), Symbol("top"), Symbol("intercal")):
            return Matrix(tuple(zip(*node.rows, strict=True)), node.kind)
        return Power(node, exponent)

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

    # Atoms.

    def atom(self) -> Node:
        token = self.token
        if token.kind == "number":
            return self.number()
        if token.kind == "symbol":
            return self.symbol()
        if token.kind == "command":
            return self.command()
        if token.kind == "word":
            return self.word()
        if token.kind == "sign" and (read := _SIGN_ATOMS.get(token.text)) is not None:
            return read(self)
        raise UnreadableError(f"{token.text or 'the end'!r} where a value should stand")

    def number(self) -> Node:
        token = self.take()
        assert token.value is not None
        if not self.mixed or not token.text.isdigit() or isinstance(token.value, BasedNumber):
            return token.value
        if self.at("frac", "unicodefrac") and not self.is_unit_fraction():
            part = self.command()
            proper = proper_fraction(part)
            return Mixed(int(token.text), *proper) if proper is not None else times(token.value, part)
        denominator = self.ahead(2)
        if (
            self.token.kind == "number"
            and self.token.spaced
            and self.ahead().text == "/"
            and self.token.text.isdigit()
            and denominator.text.isdigit()
        ):
            part = Divide(_value(self.token), _value(denominator))
            proper = proper_fraction(part)
            if proper is not None:
                self.index += 3
                return Mixed(int(token.text), *proper)
        return token.value

    def symbol(self) -> Node:
        name = self.take().text
        if name in ("e", "i") and not self.at("_", "'"):
            return Constant(name)
        name += self.subscript() + self.primes()
        if name == "C" and self.at("(") and self.ahead(2).text == ",":
            return self.combinations()
        if self.at("(") and name[0] in _NAMED_FUNCTIONS and (name[0] in _ALWAYS_FUNCTIONS or self.is_call()):
            return Unknown(name, self.arguments())
        if name[0] in _ALWAYS_FUNCTIONS and self.at("^") and self.ahead(3).text == "1" and self.ahead(5).text == "(":
            self.index += 5
            return Unknown(name + "^-1", self.arguments())
        return Symbol(name)

    def is_call(self) -> bool:
        """Whether the brackets ahead hold one symbol or number, as in `P(x)`."""
        return self.ahead().kind in ("symbol", "number") and self.ahead(2).text == ")"

    def combinations(self) -> Node:
        arguments = self.arguments()
        if len(arguments) != 2:
            raise UnreadableError("a binomial coefficient without two arguments")
        return Apply("binomial", arguments)

    def arguments(self) -> tuple[Node, ...]:
        inside = self.bracket()
        return inside.items if isinstance(inside, Bracketed) else (inside,)

    def subscript(self) -> str:
        if not self.accept("_"):
            return ""
        if not self.at("{"):
            return "_" + self.take().text
        depth, name = 0, "_"
        while self.token.kind != "end":
            text = self.take().text
            depth += (text == "{") - (text == "}")
            if depth == 0:
                return name
            name += text if text != "{" else ""
        raise UnreadableError("a subscript that does not end")

    def primes(self) -> str:
        name = ""
        while self.at("'"):
            name += self.take().text
        while self.at("^") and self.ahead(1 + (self.ahead().text == "{")).text == "prime":
            while self.at("^", "{", "}", "prime"):
                name += "'" if self.take().text == "prime" else ""
        return name

    def word(self) -> Node:
        """A word where a value should stand: a number word, or a label in front of an equals sign."""
        words = [self.take().text]
        if (len(words[0]) == 1 and self.token.kind not in ("word", "symbol")) or (
            _STATEMENT.fullmatch(words[0]) and (self.token.kind == "end" or self.token.text.lower() in _JOINERS)
        ):
            return Symbol(words[0])
        if words[0].lower() in _CURRENCY_CODES and self.token.kind == "number":
            return Quantity(self.number(), UNITS[words[0].lower()])
        if (number := self.number_in_words(words[0].lower())) is not None:
            return number
        while self.token.kind in ("word", "symbol") and self.token.text not in ("is", "equals"):
            words.append(self.take().text)
            if words[-1].lower() in ("except", "excluding") and folded_words(" ".join(words)) in REALS_EXCEPT:
                if self.token.text.lower() == "for":
                    self.take()
                excluded = self.listing()
                return SetOperation("difference", NamedSet("R"), SetOf(values_of(excluded)))
        if not self.at("=", "approx", "is", "equals"):
            raise UnreadableError(f"the word {words[0]!r} where a value should stand")
        return Symbol("text:" + folded_words(" ".join(words)))

    def number_in_words(self, first: str) -> Node | None:
        """A number in words up to 99, whose first word was taken; larger ones are products and sums of these."""
        if first == "half":
            return Divide(Number(Fraction(1)), Number(Fraction(2)))
        if first not in TENS and first not in NUMBER_WORDS:
            return None
        words = [first]
        while (following := self.following_number_word()) is not None:
            words.append(following)
        if self.at("-") and self.ahead().kind == "word":
            if self.ahead().text.lower() not in FRACTION_WORDS and self.ahead().text.lower() not in QUARTERS:
                return None
            self.take()
        elif self.token.kind == "sign" and self.token.text not in (",", ")", "}"):
            return None
        value = value_of_words(words)
        if value is None:
            raise UnreadableError("words that are no number")
        return Number(Fraction(value))

    def following_number_word(self) -> str | None:
        """Take the next word of a number in words, with the hyphen or the `and` before it."""
        joined = self.at("-") or (self.at("and") and self.tokens[self.index - 1].text.lower() in SCALES)
        word = self.ahead() if joined else self.token
        name = word.text.lower()
        if word.kind != "word" or not (name in TENS or name in NUMBER_WORDS or (name in SCALES and not joined)):
            return None
        self.index += 1 + joined
        return name

    def currency(self) -> Node:
        sign = self.take().text.lstrip("\\")
        return Quantity(self.signed_factor(), UNITS[sign])

    def inside_group(self) -> Node:
        bars, mixed = self.bars, self.mixed
        self.bars, self.mixed = 0, True
        inside = self.listing()
        self.bars, self.mixed = bars, mixed
        return inside

    def bracket(self) -> Node:
        opening = self.take().text
        if self.at(*_CLOSING[opening]):
            raise UnreadableError("empty brackets")
        inside = self.inside_group()
        closing = self.expect(*_CLOSING[opening])
        return bracketed(opening, inside, closing)

    def braces(self) -> Node:
        self.expect("{")
        if self.accept("}"):
            raise UnreadableError("an empty group")
        inside = self.inside_group()
        if self.accept("choose"):
            inside = Apply("binomial", (inside, self.relation()))
        self.expect("}")
        return SetOf(inside.items) if isinstance(inside, ListOf) else inside

    def set_braces(self) -> Node:
        self.take()
        if self.accept("\\}"):
            return NamedSet("empty")
        bars, self.bars = self.bars, 1  # a bar here separates, and opens nothing
        inside = self.listing_of_set()
        self.bars = bars
        if self.accept("|", ":"):
            inside = self.listing()
            self.expect("\\}")
            return inside
        self.expect("\\}")
        return SetOf(inside.items if isinstance(inside, ListOf) else (inside,))

    def listing_of_set(self) -> Node:
        """The items of a set; a colon after the first is the bar of a set-builder, and no ratio."""
        items = [self.relation_of_set()]
        while self.joiner() is not None:
            items.append(self.relation_of_set())
        return ListOf(tuple(items)) if len(items) > 1 else items[0]

    def relation_of_set(self) -> Node:
        node = self.set_expression()
        operator = self.relation_sign()
        return node if operator is None else Relation((operator,), (node, self.set_expression()))

    def bar(self) -> Node:
        closing = "|" if self.take().text == "|" else "rvert"
        self.bars += 1
        inside = self.sum()
        self.bars -= 1
        self.expect(closing)
        return expanded_determinant(inside.rows) if isinstance(inside, Matrix) else Apply("abs", (inside,))

    # Commands.

    def command(self) -> Node:
        name = self.token.text
        if name in FUNCTIONS and name not in ("sqrt", "binom", "cbrt"):
            return self.function()
        if name in GREEK:
            self.take()
            return Symbol(name + self.subscript() + self.primes())
        if (read := _COMMAND_ATOMS.get(name)) is not None:
            return read(self)
        self.take()
        if name in _UNREAD_COMMANDS or self.at("{", "[", "_", "^"):
            raise UnreadableError(f"the command \\{name}")
        return Symbol(name)

    def integral(self) -> Node:
        r"""An integral with its differential behind the integrand: `\\int_0^1 x^2\\,dx`."""
        self.take()
        bounds: dict[str, Node] = {}
        while self.at("_", "^"):
            sign = self.take().text
            bounds[sign] = self.script(signed=sign == "^")
        place = self.differential()
        body = self.tokens[self.index : place]
        variable = self.tokens[place + 1].text
        self.index = place + 2
        integrand = self.separate(body) if body else Number(Fraction(1))
        if len(bounds) == 1:
            raise UnreadableError("an integral with one bound")
        return Integral(integrand, variable, bounds.get("_"), bounds.get("^"))

    def differential(self) -> int:
        """Where the differential of the integral stands whose integrand starts here.

        Raises:
            UnreadableError: If there is none outside of brackets.
        """
        depth, open_integrals = 0, 1
        for place in range(self.index, len(self.tokens) - 1):
            token, after = self.tokens[place], self.tokens[place + 1]
            depth += (token.text in _OPENING_BRACKETS) - (token.text in _CLOSING_BRACKETS)
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
        return place

    def separate(self, tokens: list[Token]) -> Node:
        """Read tokens by themselves, as deep as this parser already is."""
        parser = _Parser([*tokens, Token("end", "")])
        parser.depth = self.depth
        node = parser.sum()
        if parser.token.kind != "end":
            raise UnreadableError(f"{parser.token.text!r} where an expression should end")
        return node

    def limit(self) -> Node:
        self.take()
        self.expect("_")
        self.expect("{")
        variable = self.take()
        self.expect("to", "rightarrow", "->")
        end = next(
            (place for place in range(self.index, len(self.tokens)) if self.tokens[place].text == "}"), self.index
        )
        while end < len(self.tokens) - 1 and self.tokens[end].text == "}" and self.tokens[end + 1].text == "}":
            end += 1
        point = self.tokens[self.index : end]
        self.index = end
        self.expect("}")
        if variable.kind != "symbol" and variable.text not in GREEK:
            raise UnreadableError("a limit of something that is no variable")
        signs = [token.text for token in point if token.text not in ("{", "}")]
        side = signs[-1] if signs[-2:-1] == ["^"] and signs[-1] in ("+", "-") else ""
        if side:
            point = point[: max(place for place, token in enumerate(point) if token.text == "^")]
        return Limit(self.product(), variable.text, self.separate(point), side)

    def derivative(self) -> Node | None:
        r"""The derivative that `\\frac{d}{dx}` takes of what follows; None if the fraction here is another."""
        found = _DERIVATIVE.match(" ".join(token.text for token in self.tokens[self.index : self.index + 14]))
        if found is None or found[1] != found[3] or (found[2] or "1") != (found[5] or "1"):
            return None
        self.index += len(found[0].split())
        return Derivative(self.product(), found[4], int(found[2] or 1))

    def quotient_of_differentials(self) -> Symbol | None:
        r"""The name `\\frac{dy}{dx}`, in which nothing cancels."""
        found = _DIFFERENTIALS.match(" ".join(token.text for token in self.tokens[self.index : self.index + 9]))
        if found is None:
            return None
        self.index += 9
        return Symbol(f"d{found[1]}/d{found[2]}")

    def fraction(self) -> Node:
        if (derivative := self.derivative()) is not None:
            return derivative
        if (name := self.quotient_of_differentials()) is not None:
            return name
        self.take()
        numerator = self.argument()
        return Divide(numerator, self.argument())

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

    def power_free_atom(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableError(f"nested more than {MAX_DEPTH} deep")
        node = self.atom()
        self.depth -= 1
        return node

    def root(self) -> Node:
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
        self.take()
        if self.at("("):
            return self.combinations()
        upper = self.argument()
        return Apply("binomial", (upper, self.argument()))

    def function(self) -> Node:
        name = self.take().text
        name = _FUNCTION_ALIASES.get(name, name)
        exponent, base = None, None
        while self.at("^", "_"):
            if self.take().text == "^":
                exponent = self.first_digit() or self.script(signed=True)
            else:
                base = self.first_digit() or self.script()
        if exponent == Negate(Number(Fraction(1))) and name in _INVERSES:
            name, exponent = _INVERSES[name], None
        arguments = self.function_arguments()
        arguments = arguments if base is None else (*arguments, base)
        if name not in _VARIADIC and len(arguments) > (2 if name == "log" else 1):
            raise UnreadableError(f"{name} of {len(arguments)} arguments")
        matrix = arguments[0]
        determined = name == "det" and isinstance(matrix, Matrix)
        node: Node = (
            expanded_determinant(matrix.rows) if determined and isinstance(matrix, Matrix) else Apply(name, arguments)
        )
        return node if exponent is None else Power(node, exponent)

    def first_digit(self) -> Node | None:
        r"""The first digit of a function's index where the others are the argument, as TeX reads `\\log_28`."""
        token, after = self.token, self.ahead()
        if token.kind != "number" or len(token.text) < 2 or not token.text.isdigit():
            return None
        if after.kind in ("number", "symbol") or (after.kind == "command" and after.text in _FACTOR_STARTS):
            return None
        if after.text in ("(", "{", "["):
            return None
        rest = token.text[1:]
        self.tokens[self.index] = Token("number", rest, True, Number(Fraction(int(rest))))
        return Number(Fraction(int(token.text[0])))

    def function_arguments(self) -> tuple[Node, ...]:
        if self.at("("):
            return self.arguments()
        if self.at("{"):
            return (self.braces(),)
        if self.at("\\{"):
            inside = self.set_braces()
            return inside.items if isinstance(inside, SetOf) else (inside,)
        node = self.signed_factor()
        while (
            self.starts_factor()
            and not (self.token.kind == "command" and self.token.text in FUNCTIONS)
            and not self.at("(")
        ):
            node = times(node, self.power())
        if self.at("/") and self.ahead().kind in ("number", "symbol"):
            self.take()
            node = Divide(node, self.power())
        return (node,)

    def constant(self) -> Node:
        return Constant({"pi": "pi", "infty": "inf"}[self.take().text])

    def fenced(self) -> Node:
        name = self.take().text
        if name == "langle":
            inside = self.listing()
            self.expect("rangle")
            return Bracketed("<", inside.items if isinstance(inside, ListOf) else (inside,), ">")
        kind = {"lfloor": "floor", "lceil": "ceil"}[name]
        inside = self.sum()
        self.expect(f"r{kind}")
        return Apply(kind, (inside,))

    def accent(self) -> Node:
        name = self.take().text
        inside = self.argument()
        if name == "hat" and isinstance(inside, Constant | Symbol):
            return Symbol(f"hat {_DOTLESS.get(inside.name, inside.name)}")
        if isinstance(inside, Multiply) and name in ("vec", "overrightarrow"):  # from one point to another
            return Symbol(f"vector {''.join(factor.name for factor in inside.factors if isinstance(factor, Symbol))}")
        if name in ("overline", "bar") and is_complex(inside):
            return Apply("conj", (inside,))
        if isinstance(inside, Symbol) and name not in ("vec", "overrightarrow"):
            return Symbol(f"{name} {inside.name}")
        return inside

    def skip_command(self) -> Node:
        self.take()
        return self.power_free_atom()

    def number_set(self) -> Node:
        self.take()
        letter = self.argument()
        if isinstance(letter, Symbol) and letter.name in _NUMBER_SETS:
            return NamedSet(letter.name)
        raise UnreadableError("an unknown set in blackboard bold")

    def empty_set(self) -> Node:
        self.take()
        return NamedSet("empty")

    def ellipsis(self) -> Node:
        self.take()
        return Symbol("...")

    def series(self) -> Node:
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
        self.expect("{")
        name = self.take()
        self.expect("=")
        start = self.sum()
        self.expect("}")
        if name.kind != "symbol":
            raise UnreadableError("an index that is no letter")
        return name.text, start

    def matrix(self) -> Node:
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
            return expanded_determinant(tuple(rows))
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
        return ListOf(tuple(lines), "and")

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
            return Bracketed("(", (value, Words("otherwise")), ")")
        return Bracketed("(", (value, self.relation()), ")")

    def environment(self) -> str:
        self.expect("{")
        name = ""
        while not self.at("}"):
            if self.token.kind == "end":
                raise UnreadableError("an environment without a name")
            name += self.take().text
        self.take()
        return name

    def matrix_row(self) -> tuple[Node, ...]:
        entries = [self.relation()]
        while self.accept("&"):
            entries.append(self.relation())
        if not self.accept("\\\\") and not (self.at("end") and self.token.kind == "command"):
            raise UnreadableError("a matrix row that does not end")
        return tuple(entries)


_ORDER = r"(?:\^ (?:\{ )?([1-9]) (?:\} )?)?"
_DERIVATIVE = re.compile(rf"frac \{{ (d|partial) {_ORDER}\}} \{{ (d|partial) ([A-Za-z]+) {_ORDER}\}}(?= [^=\s])")
_DIFFERENTIALS = re.compile(r"frac \{ (?:d|partial) ([A-Za-z]+) \} \{ (?:d|partial) ([A-Za-z]+) \}$")
_ALIGNED = frozenset(("aligned", "align*", "align", "split", "gathered"))
_MATRIX_KINDS = {
    **dict.fromkeys(("matrix", "array", "smallmatrix"), ""),
    **dict.fromkeys(("pmatrix", "bmatrix", "Bmatrix"), "p"),
    **dict.fromkeys(("vmatrix", "Vmatrix"), "v"),
}
_UNREAD_COMMANDS = frozenset(
    ("iint", "iiint", "oint", "limsup", "liminf", "partial", "nabla", "end", "circ", "choose", "rvert")
) | frozenset(RELATIONS)
_SIGN_ATOMS: dict[str, Callable[[_Parser], Node]] = {
    "(": _Parser.bracket,
    "[": _Parser.bracket,
    "{": _Parser.braces,
    "\\{": _Parser.set_braces,
    "|": _Parser.bar,
    "...": _Parser.ellipsis,
    "\\$": _Parser.currency,
    **dict.fromkeys(CURRENCY_SIGNS, _Parser.currency),
}
_COMMAND_ATOMS: dict[str, Callable[[_Parser], Node]] = {
    "frac": _Parser.fraction,
    "unicodefrac": _Parser.fraction,
    "sqrt": _Parser.root,
    "cbrt": _Parser.root,
    "binom": _Parser.binomial,
    "pi": _Parser.constant,
    "infty": _Parser.constant,
    "lvert": _Parser.bar,
    "int": _Parser.integral,
    "lim": _Parser.limit,
    "sum": _Parser.series,
    "prod": _Parser.series,
    "begin": _Parser.matrix,
    "mathbb": _Parser.number_set,
    "emptyset": _Parser.empty_set,
    **dict.fromkeys(("ldots", "dots", "cdots"), _Parser.ellipsis),
    **dict.fromkeys(("lfloor", "lceil", "langle"), _Parser.fenced),
    **dict.fromkeys(("overline", "bar", "vec", "hat", "tilde", "overrightarrow"), _Parser.accent),
    **dict.fromkeys(("angle", "triangle", "mathcal"), _Parser.skip_command),
}


def _value(token: Token) -> Node:
    assert token.value is not None
    return token.value


_DOTLESS = {"imath": "i", "jmath": "j"}
_STATEMENT = re.compile(r"[A-Z]|[IVX]{1,4}")  # a choice or the number of a statement, in a list of them


_CURRENCY_CODES = frozenset(("usd", "eur", "gbp", "inr", "rs", "jpy"))


def _depth_within(node: Node, limit: int) -> bool:
    level = [node]
    for _ in range(limit):
        level = [child for parent in level for child in tree.children(parent)]
        if not level:
            return True
    return False


def parse(text: str, *, thousands: bool = True, decimal_comma: bool = False) -> Node:
    """Read an answer.

    Args:
        text: The answer, LaTeX or plain.
        thousands: Whether digits grouped by bare commas are one number.
        decimal_comma: Whether a comma between digits is the decimal sign.

    Returns:
        The tree; `Words` for prose.

    Raises:
        UnreadableError: If the text is neither mathematics within the bounds nor prose.
    """
    text = essence(unwrap(text))
    if not text:
        raise UnreadableError("an empty answer")
    text = with_round_brackets(text)
    tokens = tokenize(text, thousands=thousands, decimal_comma=decimal_comma)
    if len(tokens) == 1:
        raise UnreadableError("an empty answer")
    words = _as_words(text, tokens)
    if isinstance(words, Words) and words.text in WORD_ANSWERS:
        return WORD_ANSWERS[words.text]
    try:
        node = _Parser(_last_conclusion(tokens)).answer()
    except UnreadableError:
        with contextlib.suppress(UnreadableError):  # then it is prose, or nothing
            if (named := _value_behind_name(tokens)) is not None:
                return named
        if words is None:
            raise
        return words
    if not _depth_within(node, MAX_DEPTH + 20):
        raise UnreadableError(f"nested more than {MAX_DEPTH} deep")
    return node


def _value_behind_name(tokens: list[Token]) -> Node | None:
    r"""The value in an equation whose left side cannot be read and so can only name something: `\\mathbb{P}(A) = 1/2`."""
    depth, equals = 0, None
    for place, token in enumerate(tokens):
        depth += (token.text in _OPENING_BRACKETS) - (token.text in _CLOSING_BRACKETS)
        if depth == 0 and (token.text in _SEPARATING or token.text.lower() in NO_NOUNS):
            return None
        if depth == 0 and token.text == "=":
            equals = place
    if not equals:
        return None
    name = "text:" + "".join(token.text for token in tokens[:equals])
    return Relation(("=",), (Symbol(name), _Parser(tokens[equals + 1 :]).answer()))


_OPENING_BRACKETS = frozenset(("(", "[", "{", "\\{"))
_CLOSING_BRACKETS = frozenset((")", "]", "}", "\\}"))
_SEPARATING = frozenset((",", ";", "or", "and", "lor", "land")) | (frozenset(RELATIONS) - {"=", "approx"})


def _last_conclusion(tokens: list[Token]) -> list[Token]:
    """What stands behind the last arrow of implication."""
    last = max((index for index, token in enumerate(tokens) if token.text in ("implies", "=>")), default=-1)
    return tokens[last + 1 :]


def _as_words(text: str, tokens: list[Token]) -> Words | ListOf | None:
    """The answer as prose, or names in a list, if it has a word and nothing that only mathematics has."""
    wordy = any(token.kind == "word" for token in tokens)
    letters = all(token.kind in ("word", "symbol", "end") or token.text in (".", ",", "-", "'") for token in tokens)
    if not (wordy or letters) or any(
        token.kind == "command" and token.text in ("frac", "sqrt", "begin") for token in tokens
    ):
        return None
    return listed_names(text) or Words(folded_words(text))
