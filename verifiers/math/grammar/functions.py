"""Functions, roots, accents and other commands with an argument."""

from __future__ import annotations

from fractions import Fraction

from verifiers.math.assemble import determinant, half_of_set, is_complex, times
from verifiers.math.grammar.groups import Groups
from verifiers.math.tokens import UnreadableError
from verifiers.math.tree import (
    Apply,
    Constant,
    Divide,
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
from verifiers.math.vectors import FIGURES, figure
from verifiers.math.vocabulary import FUNCTIONS, RELATIONS

_NUMBER_SETS = frozenset("RZNQC")
_FUNCTION_ALIASES = {"lg": "log", "binom": "binomial"} | {
    f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")
}
_INVERSES = {name: f"arc{name}" for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")}
_VARIADIC = frozenset(("max", "min", "gcd", "lcm"))
_HALVES = {"+": ">", "-": "<"} | {f"{sign} 0": RELATIONS[sign] for sign in (">", "<", "ge", "le", ">=", "<=")}
_GREEK_FUNCTIONS = {"Gamma": "gamma", "zeta": "zeta"}


class Functions(Groups):
    """Functions, roots, accents and other commands with an argument."""

    def root(self) -> Node:
        """A root with its degree."""
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
        """A binomial coefficient."""
        self.take()
        if self.at("("):
            return self.combinations()
        upper = self.argument()
        return Apply("binomial", (upper, self.argument()))

    def function(self) -> Node:
        """A known function with its exponent or base, applied to its arguments."""
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
        if name in _VARIADIC and len(arguments) == 1 and symbols(arguments[0]):
            return Unknown(name, arguments)  # of a thing that is only named, as in `max f`
        matrix = arguments[0]
        determined = name == "det" and isinstance(matrix, Matrix)
        node: Node = determinant(matrix.rows) if determined and isinstance(matrix, Matrix) else Apply(name, arguments)
        return node if exponent is None else Power(node, exponent)

    def function_arguments(self) -> tuple[Node, ...]:
        """The arguments of a function, in brackets or as a product behind it."""
        if self.token.kind == "word" and len(self.token.text) > 1:
            raise UnreadableError("a function of words")
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
        """A constant that is written as a command."""
        return Constant({"pi": "pi", "infty": "inf"}[self.take().text])

    def greek(self) -> Node:
        """A Greek letter: a symbol, or the function of that name in front of brackets."""
        name = self.take().text
        if name in _GREEK_FUNCTIONS and self.at("("):
            arguments = self.arguments()
            if len(arguments) != 1:
                raise UnreadableError(f"{name} of {len(arguments)} arguments")
            return Apply(_GREEK_FUNCTIONS[name], arguments)
        if name == "Delta" and self.token.kind == "symbol":  # a change, which is one quantity
            name = f"Delta {self.take().text}"
        return Symbol(name + self.subscript() + self.primes())

    def accent(self) -> Node:
        """An expression under an accent: a conjugate, a vector, or a name of its own."""
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
        return inside

    def figure(self) -> Symbol | None:
        """The name of an angle or a triangle that is a whole answer; None for anything else."""
        kind, letters = self.token, self.tokens[self.index + 1 : -1]
        if kind.text not in FIGURES or len(letters) < 2:
            return None
        if not all(letter.kind == "symbol" and letter.text.isupper() for letter in letters):
            return None
        self.index = len(self.tokens) - 1
        return figure(kind.text, [letter.text for letter in letters])

    def skip_command(self) -> Node:
        """What stands behind a command that says only what it is."""
        self.take()
        return self.power_free_atom()

    def number_set(self) -> Node:
        """A set of numbers in blackboard bold, perhaps with a sign that says which half of it is meant."""
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
        """Pass over the script of a set of numbers that is the sign of its half; None if there is none."""
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

    def empty_set(self) -> Node:
        """The empty set."""
        self.take()
        return NamedSet("empty")
