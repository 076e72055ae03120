"""A recursive-descent parser from LaTeX or plain text to the typed tree.

Nothing is evaluated here. Nesting is bounded by `MAX_DEPTH`, both while parsing and of the tree that comes out, so that
every recursion over a tree is bounded too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from verifiers.math import tree
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
    Divide,
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
from verifiers.math.vocabulary import FACTOR_COMMANDS, FUNCTIONS, GREEK, NUMBER_WORDS, RELATIONS

MAX_DEPTH = 40
"""Deepest nesting of a tree."""
MAX_TOKENS = 1500

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
        if len(tokens) > MAX_TOKENS:
            raise UnreadableError(f"{len(tokens)} tokens; at most {MAX_TOKENS} are read")
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
        node = self.choice() or self.listing()
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
                return self.choice_content(letter.text.upper())
            if not opened and (closed or (letter.text.isupper() and self.accept(":", "."))):
                return self.choice_content(letter.text.upper())
        self.index = start
        return None

    def choice_content(self, letter: str) -> Node | None:
        self.accept(":", ".")
        if self.token.kind == "end":
            return Choice(letter)
        if self.token.kind == "sign" and self.token.text not in ("(", "[", "-", "\\$", "\\{"):
            raise UnreadableError("an operation on a choice")
        return Choice(letter, self.listing())

    def listing(self) -> Node:
        items = [self.relation()]
        joiner = ","
        while (found := self.joiner()) is not None:
            joiner = found if found != "," else joiner
            if self.token.kind == "end":
                break
            items.append(self.relation())
        return ListOf(tuple(items), joiner) if len(items) > 1 else items[0]

    def joiner(self) -> str | None:
        found = None
        while self.token.kind != "symbol" and (
            joiner := _JOINERS.get(self.token.text.lower() if self.token.kind == "word" else self.token.text)
        ):
            found = joiner if found in (None, ",") else found
            self.take()
        return found

    def relation(self) -> Node:
        operands, operators = [self.operand()], []
        while (operator := self.relation_sign()) is not None:
            operators.append(operator)
            operands.append(self.operand())
        if self.at("pmod", "bmod", "mod"):
            self.take()
            operators.append("mod")
            operands.append(self.operand())
        if not operators:
            return operands[0]
        return Relation(tuple(operators), tuple(operands))

    def relation_sign(self) -> str | None:
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
            parts.append(self.set_expression())
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
        if self.token.kind == "word":
            node = self.with_words(node)
        elif self.at("{") and self.ahead().kind == "word":
            self.take()
            node = self.with_words(node)
            self.expect("}")
        return _sign_inside(node)

    def clock(self) -> Clock | None:
        hour, colon, minute = self.token, self.ahead(), self.ahead(2)
        if not (hour.kind == "number" and hour.text.isdigit() and len(hour.text) <= 2 and int(hour.text) <= 24):
            return None
        if colon.text == ":" and minute.kind == "number" and minute.text.isdigit() and len(minute.text) == 2:
            if int(minute.text) > 59 or self.ahead(3).text == ":":
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
        if word in MULTIPLES:
            self.take()
            node = Multiply((node, Number(Fraction(MULTIPLES[word]))))
        elif word == "percent":
            self.take()
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

    def temperature(self, node: Degrees) -> Node:
        scale = self.token.text
        if self.token.kind in ("word", "symbol") and scale.lower() in ("c", "f", "celsius", "fahrenheit"):
            self.take()
            return Quantity(node.value, UNITS["celsius" if scale.lower().startswith("c") else "fahrenheit"])
        return node

    def in_base(self, node: Node) -> Node:
        self.take()
        base = self.take()
        digits = self.tokens[self.index - 3].text
        if not (isinstance(node, Number) and is_numeral(digits, base.text)):
            raise UnreadableError("no numeral in a base from 2 to 36")
        return BasedNumber(significant_digits(digits), int(base.text))

    def unit_words(self) -> list[UnitWord]:
        words: list[UnitWord] = []
        divides = False
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

    def ends_units(self) -> bool:
        word = self.token.text.lower()
        before = self.tokens[self.index - 1]
        if word == "in" and (before.kind == "number" or before.text in ("sq", "square", "cubic", "cu")):
            return False  # inches
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
        if len(terms) == 2 and isinstance(terms[0], NamedSet | SetOf) and isinstance(terms[1], Negate):
            return SetOperation("difference", terms[0], terms[1].value)
        return Add(tuple(terms)) if len(terms) > 1 else terms[0]

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
                node = _times(node, self.signed_factor())
            elif self.at("/", "div") and self.ahead().kind != "word":
                self.take()
                node = Divide(node, self.signed_factor())
            elif self.starts_factor():
                node = _times(node, self.power())
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
            return self.tokens[self.index - 1].kind != "number"
        if token.kind == "command":
            return token.text in _FACTOR_STARTS
        if token.text == "{" and self.ahead().kind == "word":
            return False  # a unit in braces
        return token.kind == "sign" and (token.text in ("(", "[", "{") or (token.text == "|" and not self.bars))

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
        return Power(node, self.script(signed=True))

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
        if self.at("frac", "unicodefrac"):
            part = self.command()
            proper = _proper_fraction(part)
            return Mixed(int(token.text), proper) if proper is not None else _times(token.value, part)
        denominator = self.ahead(2)
        if (
            self.token.kind == "number"
            and self.token.spaced
            and self.ahead().text == "/"
            and self.token.text.isdigit()
            and denominator.text.isdigit()
        ):
            part = Divide(_value(self.token), _value(denominator))
            proper = _proper_fraction(part)
            if proper is not None:
                self.index += 3
                return Mixed(int(token.text), proper)
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
        while self.at("^") and self.ahead().text == "prime":
            self.index += 2
            name += "'"
        return name

    def word(self) -> Node:
        """A word where a value should stand: a number word, or a label in front of an equals sign."""
        words = [self.take().text]
        if len(words[0]) == 1 and self.token.kind not in ("word", "symbol"):
            return Symbol(words[0])
        if words[0].lower() in NUMBER_WORDS and self.token.kind != "sign":
            return Number(Fraction(NUMBER_WORDS[words[0].lower()]))
        while self.token.kind in ("word", "symbol") and self.token.text not in ("is", "equals"):
            words.append(self.take().text)
        if not self.at("=", "approx", "is", "equals"):
            raise UnreadableError(f"the word {words[0]!r} where a value should stand")
        return Symbol("text:" + folded_words(" ".join(words)))

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
        return _bracketed(opening, inside, closing)

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
        return Apply("abs", (inside,))

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

    def fraction(self) -> Node:
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
                exponent = self.script(signed=True)
            else:
                base = self.script()
        if exponent == Negate(Number(Fraction(1))) and name in _INVERSES:
            name, exponent = _INVERSES[name], None
        arguments = self.function_arguments()
        arguments = arguments if base is None else (*arguments, base)
        if name not in _VARIADIC and len(arguments) > (2 if name == "log" else 1):
            raise UnreadableError(f"{name} of {len(arguments)} arguments")
        node: Node = Apply(name, arguments)
        return node if exponent is None else Power(node, exponent)

    def function_arguments(self) -> tuple[Node, ...]:
        if self.at("("):
            return self.arguments()
        if self.at("{"):
            return (self.braces(),)
        node = self.signed_factor()
        while (
            self.starts_factor()
            and not (self.token.kind == "command" and self.token.text in FUNCTIONS)
            and not self.at("(")
        ):
            node = _times(node, self.power())
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
        if name in ("cases", "aligned", "align*"):
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
        return Matrix(tuple(rows), _MATRIX_KINDS[name])

    def system(self, name: str) -> Node:
        """Relations, one on each line."""
        lines = [self.relation()]
        while self.accept("\\\\", ",", "&"):
            if not self.at("end"):
                lines.append(self.relation())
        self.expect("end")
        if self.environment() != name:
            raise UnreadableError(f"an environment {name} that does not end")
        return ListOf(tuple(lines), "and")

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


_MATRIX_KINDS = {
    **dict.fromkeys(("matrix", "array", "smallmatrix"), ""),
    **dict.fromkeys(("pmatrix", "bmatrix", "Bmatrix"), "p"),
    **dict.fromkeys(("vmatrix", "Vmatrix"), "v"),
}
_UNREAD_COMMANDS = frozenset(
    ("int", "iint", "iiint", "oint", "lim", "limsup", "liminf", "partial", "nabla", "end", "circ", "choose", "rvert")
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


def _times(left: Node, right: Node) -> Node:
    factors = left.factors if isinstance(left, Multiply) else (left,)
    return Multiply((*factors, right))


def _proper_fraction(node: Node) -> Fraction | None:
    if isinstance(node, Divide) and isinstance(node.numerator, Number) and isinstance(node.denominator, Number):
        top, bottom = node.numerator.value, node.denominator.value
        if tree.is_integer_literal(node.numerator) and tree.is_integer_literal(node.denominator) and 0 < top < bottom:
            return top / bottom
    return None


def _sign_inside(node: Node) -> Node:
    """Move a sign in front of a currency inside it."""
    if isinstance(node, Negate) and isinstance(node.value, Quantity):
        return Quantity(Negate(node.value.value), node.value.unit)
    return node


def _bracketed(opening: str, inside: Node, closing: str) -> Node:
    if isinstance(inside, ListOf):
        if inside.joiner != ",":
            raise UnreadableError("a word between the items of a tuple")
        return Bracketed(opening, inside.items, closing)
    if (opening, closing) not in (("(", ")"), ("[", "]")):
        raise UnreadableError("an interval with one end")
    if isinstance(inside, Matrix) and not inside.kind:
        return Matrix(inside.rows)
    return inside


def _depth_within(node: Node, limit: int) -> bool:
    level = [node]
    for _ in range(limit):
        level = [child for parent in level for child in tree.children(parent)]
        if not level:
            return True
    return False


_WORD_ANSWERS = {
    "no solution": NamedSet("empty"),
    "no solutions": NamedSet("empty"),
    "no real solution": NamedSet("empty"),
    "no real solutions": NamedSet("empty"),
    "empty set": NamedSet("empty"),
    "all real numbers": NamedSet("R"),
    "all reals": NamedSet("R"),
    "real numbers": NamedSet("R"),
    "dne": Words("does not exist"),
    "does not exist": Words("does not exist"),
    "infinity": Constant("inf"),
}
_LEADING = re.compile(
    r"(?:(?:approximately|about|roughly|exactly|just|only|simply|therefore|thus|hence|so|it is|it's|equals|=)[\s,]"
    r"|\\approx(?![A-Za-z])|≈|(?:\\text\s*\{)?\s*(?:the\s+)?(?:final\s+)?answer(?:\s+is\b|\s*:)\s*:?\s*\}?)\s*(?=\S)",
    re.IGNORECASE,
)


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
    text = unwrap(_LEADING.sub("", unwrap(text), count=1) if _LEADING.match(unwrap(text)) else text)
    if not text:
        raise UnreadableError("an empty answer")
    tokens = tokenize(text, thousands=thousands, decimal_comma=decimal_comma)
    if len(tokens) == 1:
        raise UnreadableError("an empty answer")
    words = _as_words(text, tokens)
    if words is not None and words.text in _WORD_ANSWERS:
        return _WORD_ANSWERS[words.text]
    try:
        node = _Parser(_last_conclusion(tokens)).answer()
    except UnreadableError:
        if words is None:
            raise
        return words
    if not _depth_within(node, MAX_DEPTH + 20):
        raise UnreadableError(f"nested more than {MAX_DEPTH} deep")
    return node


def _last_conclusion(tokens: list[Token]) -> list[Token]:
    """What stands behind the last arrow of implication."""
    last = max((index for index, token in enumerate(tokens) if token.text in ("implies", "=>")), default=-1)
    return tokens[last + 1 :]


def _as_words(text: str, tokens: list[Token]) -> Words | None:
    """The answer as prose, if it has a word and nothing that only mathematics has."""
    wordy = any(token.kind == "word" for token in tokens)
    letters = all(token.kind in ("word", "symbol", "end") or token.text in (".", ",", "-", "'") for token in tokens)
    if not (wordy or letters) or any(
        token.kind == "command" and token.text in ("frac", "sqrt", "begin") for token in tokens
    ):
        return None
    return Words(folded_words(text))
