"""Parses numbers, symbols, calls of functions, and words in the place of a value."""

from __future__ import annotations

import re

from verifiers.math.reading.assemble import proper_fraction, times
from verifiers.math.reading.brackets import arguments_of_call
from verifiers.math.reading.cursor import JOINERS
from verifiers.math.reading.errors import UnreadableError
from verifiers.math.reading.expressions import Expressions
from verifiers.math.reading.functions import combinations, read_figure
from verifiers.math.reading.normalize import folded_words
from verifiers.math.reading.tokens import Token
from verifiers.math.tree import BasedNumber, Bracketed, Constant, Matrix, Mixed, Node, Quantity, SetOf, Symbol, Unknown
from verifiers.math.units import UNITS
from verifiers.math.vocabulary import GREEK

_NAMED_FUNCTIONS = frozenset("fghpqFGH") | frozenset("ABDEIJKLMNOPQRSTUVWXYZ")
_CONDITIONED = frozenset("ELP")
_ALWAYS_FUNCTIONS = frozenset("fgh")
_STATEMENT = re.compile(r"[A-Z]|[IVX]{1,4}")  # a choice or the number of a statement, in a list of them
_CURRENCY_CODES = frozenset(("usd", "eur", "gbp", "inr", "rs", "jpy"))


def number(parser: Expressions) -> Node:
    """Parse a number; a fraction after it makes a mixed number."""
    token = parser.take()
    assert token.value is not None
    if not parser.mixed or not token.text.isdigit() or isinstance(token.value, BasedNumber):
        return token.value
    if parser.at("frac", "unicodefrac"):
        node = parser.atom()
        proper = proper_fraction(node)
        return Mixed(int(token.text), *proper) if proper is not None else times(token.value, node)
    above, slash, below = parser.token, parser.ahead(), parser.ahead(2)
    fraction = above.spaced and above.text.isdigit() and slash.text == "/" and below.text.isdigit()
    if fraction and 0 < int(above.text) < int(below.text):
        parser.index += 3
        return Mixed(int(token.text), int(above.text), int(below.text))
    return token.value


def symbol(parser: Expressions) -> Node:
    """Parse a constant, a symbol with its subscript and primes, or a call of an unknown function."""
    token = parser.take()
    name = token.text
    if name == "m" and parser.at("angle"):  # the measure of an angle
        return read_figure(parser)
    if name in ("e", "i") and not parser.at("_", "'"):
        return Constant(name)
    name += parser.subscript() + parser.primes()
    if token.bold:
        parser.vectors.add(name)
    if name == "C" and parser.at("(") and parser.ahead(2).text == ",":
        return combinations(parser)
    if parser.at("(") and name[0] in _CONDITIONED and (condition := _conditioned(parser, name)) is not None:
        return condition
    if parser.at("(") and name[0] in _NAMED_FUNCTIONS and (name[0] in _ALWAYS_FUNCTIONS or _is_call(parser)):
        return _extremum(parser, Unknown(name, arguments_of_call(parser)))
    if name[0] in _ALWAYS_FUNCTIONS and parser.accept_all("^", "{", "-", "1", "}", "("):
        parser.index -= 1
        return Unknown(name + "^-1", arguments_of_call(parser))
    return Symbol(name)


def _conditioned(parser: Expressions, name: str) -> Unknown | None:
    """Parse the arguments of an expectation, a likelihood or a probability with a condition, as in `E(Y|X)`."""
    end = parser.closing_bracket(parser.index)
    if end is None or [token.text for token in parser.tokens[parser.index : end]].count("|") != 1:
        return None
    parser.take()
    bars, parser.bars = parser.bars, 1  # a bar inside is a separator
    arguments = [parser.listing()]
    parser.expect("|")
    arguments.append(parser.listing())
    parser.bars = bars
    parser.expect(")")
    return Unknown(f"{name}|", tuple(arguments))


def _extremum(parser: Expressions, value: Unknown) -> Unknown:
    r"""The maximum or minimum of a function whose value has such an index, `f(x)_{\max}`; without one, the value itself."""
    if not parser.at("_"):
        return value
    name = parser.subscript().removeprefix("_")
    if name not in ("max", "min"):
        raise UnreadableError("an unexpected subscript")
    return Unknown(name, (value,))


def _is_call(parser: Expressions) -> bool:
    """Whether the brackets ahead hold one symbol or number, as in `P(x)`."""
    return (parser.ahead().kind == "number" or _is_letter(parser.ahead())) and parser.ahead(2).text == ")"


def word(parser: Expressions) -> Node:
    """Parse a word in the place of a value: an amount, or a label before an equals sign."""
    words = [parser.take().text]
    if (len(words[0]) == 1 and parser.token.kind not in ("word", "symbol")) or (
        _STATEMENT.fullmatch(words[0]) and (parser.token.kind == "end" or parser.token.text.lower() in JOINERS)
    ):
        return Symbol(words[0])
    if words[0].lower() in _CURRENCY_CODES and parser.ahead(int(parser.at("."))).kind == "number":
        parser.accept(".")
        return Quantity(number(parser), UNITS[words[0].lower()])
    if words[0].casefold() == "span" and parser.at("\\{", "("):
        return _span(parser.atom())
    while parser.token.kind == "word" and parser.token.text not in ("is", "equals"):
        words.append(parser.take().text)
    if not parser.at("=", "approx", "is", "equals"):
        raise UnreadableError(f"expected a value, found the word {words[0]!r}")
    return Symbol("text:" + folded_words(" ".join(words)))


def _span(inside: Node) -> Unknown:
    """The span of one vector, or of several in a set or in brackets."""
    listed = isinstance(inside, SetOf | Bracketed) and all(
        isinstance(item, Bracketed | Matrix) for item in inside.items
    )
    return Unknown("span", inside.items if listed and isinstance(inside, SetOf | Bracketed) else (inside,))


def name_of_value(parser: Expressions) -> Node | None:
    r"""Parse a name with brackets before an equals sign: `x(t) =`, `P(A \cap B) =`, `\text{rank}(A) =`."""
    token, end = parser.token, None
    textual = token.kind == "word" or token.text == "P"
    if (textual or _is_letter(token)) and parser.ahead().text == "(":
        end = parser.closing_bracket(parser.index + 1)
    if end is None or parser.tokens[end + 1].text not in ("=", "approx"):
        return None
    inside = parser.tokens[parser.index + 2 : end]
    listed = len(inside) % 2 and all(
        _is_letter(item) if position % 2 == 0 else item.text == "," for position, item in enumerate(inside)
    )
    if listed and token.kind != "word" and parser.tokens[end + 1].text == "=":
        parser.index = end + 1
        return Unknown(token.text, tuple(Symbol(name.text) for name in inside[::2]))
    if not textual or not inside:
        return None
    parser.index = end + 1
    return Symbol(
        f"text:{token.text.casefold() if token.kind == 'word' else token.text}({''.join(item.text for item in inside)})"
    )


def _is_letter(token: Token) -> bool:
    return token.kind == "symbol" or token.text in GREEK
