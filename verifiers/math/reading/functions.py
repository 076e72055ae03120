"""Parses functions, roots, bars, accents and other commands with an argument."""

from __future__ import annotations

from fractions import Fraction

from verifiers.math.reading.assemble import determinant, is_complex, times
from verifiers.math.reading.brackets import argument, arguments_of_call, braces, bracket, script
from verifiers.math.reading.errors import UnreadableError
from verifiers.math.reading.expressions import Expressions
from verifiers.math.reading.sets import set_braces
from verifiers.math.reading.vector_marks import figure
from verifiers.math.tree import (
    DOTS,
    Apply,
    Bracketed,
    Constant,
    Divide,
    ListOf,
    Matrix,
    Multiply,
    NamedSet,
    Negate,
    Node,
    Number,
    Power,
    SetOf,
    Symbol,
    Unknown,
    symbols,
)
from verifiers.math.vocabulary import FUNCTIONS

_FUNCTION_ALIASES = {"lg": "log", "binom": "binomial"} | {
    f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")
}
_INVERSES = {name: f"arc{name}" for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")}
_VARIADIC = frozenset(("max", "min", "gcd", "lcm"))
_GREEK_FUNCTIONS = {"Gamma": "gamma", "zeta": "zeta"}
KNOWN: dict[str, Node] = {
    "pi": Constant("pi"),
    "infty": Constant("inf"),
    "emptyset": NamedSet("empty"),
} | dict.fromkeys(("...", "ldots", "dots", "cdots"), DOTS)


def bar(parser: Expressions) -> Node:
    """Parse an absolute value, or a determinant between bars."""
    closing = "|" if parser.take().text == "|" else "rvert"
    parser.bars += 1
    inside = parser.sum()
    parser.bars -= 1
    parser.expect(closing)
    return determinant(inside.rows) if isinstance(inside, Matrix) else Apply("abs", (inside,))


def fenced(parser: Expressions) -> Node:
    """Parse a floor, a ceiling, or a vector in angle brackets."""
    name = parser.take().text
    if name == "langle":
        inside = parser.listing()
        parser.expect("rangle")
        return Bracketed("<", inside.items if isinstance(inside, ListOf) else (inside,), ">")
    rounding = {"lfloor": "floor", "lceil": "ceil"}[name]
    inside = parser.sum()
    parser.expect(f"r{rounding}")
    return Apply(rounding, (inside,))


def norm(parser: Expressions) -> Node:
    """Parse a norm between double bars."""
    parser.take()
    inside = parser.sum()
    parser.expect("\\|")
    return Unknown("norm", (inside,))


def root(parser: Expressions) -> Node:
    """Parse a root with its degree."""
    degree: Node = Number(Fraction(3 if parser.take().text == "cbrt" else 2))
    if parser.accept("["):
        degree = parser.sum()
        parser.expect("]")
    if parser.at("{"):
        return Apply("root", (braces(parser), degree))
    if parser.at("("):
        return Apply("root", (bracket(parser), degree))
    return Apply("root", (parser.power_free_atom(), degree))


def binomial(parser: Expressions) -> Node:
    """Parse a binomial coefficient."""
    parser.take()
    if parser.at("("):
        return combinations(parser)
    upper = argument(parser)
    return Apply("binomial", (upper, argument(parser)))


def combinations(parser: Expressions) -> Node:
    """Parse a binomial coefficient that has two bracketed arguments."""
    arguments = arguments_of_call(parser)
    if len(arguments) != 2:
        raise UnreadableError("a binomial coefficient without two arguments")
    return Apply("binomial", arguments)


def function(parser: Expressions) -> Node:
    """Parse a known function with its exponent or base, applied to its arguments."""
    name = parser.take().text
    name = _FUNCTION_ALIASES.get(name, name)
    if name in _VARIADIC and parser.at("="):
        return Symbol(name)
    exponent, base = None, None
    while parser.at("^", "_"):
        if parser.take().text == "^":
            exponent = script(parser, signed=True)
        else:
            base = script(parser)
    if exponent == Negate(Number(Fraction(1))) and name in _INVERSES:
        name, exponent = _INVERSES[name], None
    arguments = _function_arguments(parser)
    arguments = arguments if base is None else (*arguments, base)
    if name not in _VARIADIC and len(arguments) > (2 if name == "log" else 1):
        raise UnreadableError(f"{name} with {len(arguments)} arguments")
    if name in _VARIADIC and len(arguments) == 1 and symbols(arguments[0]):
        return Unknown(name, arguments)  # of a single name, as in `max f`
    matrix = arguments[0]
    determined = name == "det" and isinstance(matrix, Matrix)
    node: Node = determinant(matrix.rows) if determined and isinstance(matrix, Matrix) else Apply(name, arguments)
    return node if exponent is None else Power(node, exponent)


def _function_arguments(parser: Expressions) -> tuple[Node, ...]:
    """Parse the arguments of a function, in brackets or as a product after it."""
    if parser.token.kind == "word" and len(parser.token.text) > 1:
        raise UnreadableError("a function whose argument is text")
    if parser.at("("):
        return arguments_of_call(parser)
    if parser.at("{"):
        return (braces(parser),)
    if parser.at("\\{"):
        inside = set_braces(parser)
        return inside.items if isinstance(inside, SetOf) else (inside,)
    ended = parser.at("|", "lvert")  # a slash after bars divides the function, as in `\\ln|x|/2`
    node = parser.signed_factor()
    while (
        parser.starts_factor()
        and not (parser.token.kind == "command" and parser.token.text in FUNCTIONS)
        and not parser.at("(", "hat")
        and not (parser.token.bold and parser.token.text in "ijk")  # a unit vector
    ):
        node, ended = times(node, parser.power()), False
    if parser.at("/") and parser.ahead().kind in ("number", "symbol") and not ended:
        parser.take()
        node = Divide(node, parser.power())
    return (node,)


def known(parser: Expressions) -> Node:
    """Parse a constant, the empty set, or three dots, which are read as a symbol."""
    return KNOWN[parser.take().text]


def greek(parser: Expressions) -> Node:
    """Parse a Greek letter: a symbol, or the function of that name before brackets."""
    name = parser.take().text
    if name in _GREEK_FUNCTIONS and parser.at("("):
        arguments = arguments_of_call(parser)
        if len(arguments) != 1:
            raise UnreadableError(f"{name} with {len(arguments)} arguments")
        return Apply(_GREEK_FUNCTIONS[name], arguments)
    if name == "Delta" and parser.token.kind == "symbol":  # a change, which is one quantity
        name = f"Delta {parser.take().text}"
    return Symbol(name + parser.subscript() + parser.primes())


def accent(parser: Expressions) -> Node:
    """Parse an expression under an accent: a conjugate, a vector, or a separate name."""
    name = parser.take().text
    inside = argument(parser)
    if isinstance(inside, Symbol | Constant) and parser.at("_"):
        inside = Symbol(inside.name + parser.subscript())
    if name == "hat" and isinstance(inside, Constant | Symbol) and (axis := inside.name[0]) in "ijk":
        return Constant("i") if axis == "i" else Symbol(axis)  # a unit vector
    if isinstance(inside, Symbol) and name in ("vec", "overrightarrow"):
        parser.vectors.add(inside.name)
    if isinstance(inside, Multiply) and name in ("vec", "overrightarrow"):  # from one point to another
        return Symbol(f"vector {''.join(factor.name for factor in inside.factors if isinstance(factor, Symbol))}")
    if name in ("overline", "bar") and is_complex(inside):
        return Apply("conj", (inside,))
    if isinstance(inside, Symbol) and name not in ("vec", "overrightarrow"):
        return Symbol(f"{'bar' if name == 'overline' else name} {inside.name}")
    if isinstance(inside, Number):  # the period of a continued fraction
        return Unknown(name, (inside,))
    return inside


def read_figure(parser: Expressions) -> Node:
    """Parse an angle or a triangle, named by its corners; an angle with one letter is read as that letter."""
    shape, letters = parser.take().text, []
    while parser.token.kind == "symbol" and parser.token.text.isupper() and parser.ahead().text not in ("_", "'"):
        letters.append(parser.take().text)
    if len(letters) > 1:
        return figure(shape, letters)
    parser.index -= len(letters)
    return parser.power_free_atom()


def negation(parser: Expressions) -> Node:
    """Parse the negation of a statement, which is not a factor."""
    parser.take()
    return Unknown("not", (parser.power(),))


def skip_command(parser: Expressions) -> Node:
    """Skip a command that only describes the expression after it, and parse that expression."""
    parser.take()
    return parser.power_free_atom()
