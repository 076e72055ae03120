"""The parser put together."""

from __future__ import annotations

from collections.abc import Callable

from verifiers.math.grammar.choices import Choices
from verifiers.math.tokens import UnreadableError
from verifiers.math.tree import Node, Symbol
from verifiers.math.units import CURRENCY_SIGNS
from verifiers.math.vocabulary import FUNCTIONS, GREEK, RELATIONS

_UNREAD_COMMANDS = frozenset(
    ("iint", "iiint", "oint", "limsup", "liminf", "partial", "nabla", "end", "circ", "choose", "rvert")
) | frozenset(RELATIONS)


class Parser(Choices):
    """Reads tokens into a tree."""

    def answer(self) -> Node:
        """A whole answer.

        Raises:
            UnreadableError: If the tokens are none.
        """
        start = self.index
        node = self.figure() or self.choice()
        if node is None:
            self.index = start
            node = self.listing()
        self.accept(".")
        if self.token.kind != "end":
            raise UnreadableError(f"{self.token.text!r} where the answer should end")
        return node

    def atom(self) -> Node:
        """The smallest expression that starts here."""
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

    def command(self) -> Node:
        """What a command stands for, with its arguments."""
        name = self.token.text
        if name in FUNCTIONS and name not in ("sqrt", "binom", "cbrt"):
            return self.function()
        if name in GREEK:
            return self.greek()
        if (read := _COMMAND_ATOMS.get(name)) is not None:
            return read(self)
        self.take()
        if name in _UNREAD_COMMANDS or self.at("{", "[", "_", "^"):
            raise UnreadableError(f"the command \\{name}")
        return Symbol(name)


_SIGN_ATOMS: dict[str, Callable[[Parser], Node]] = {
    "(": Parser.bracket,
    "[": Parser.bracket,
    "{": Parser.braces,
    "\\{": Parser.set_braces,
    "|": Parser.bar,
    "...": Parser.ellipsis,
    "\\$": Parser.currency,
    **dict.fromkeys(CURRENCY_SIGNS, Parser.currency),
}
_COMMAND_ATOMS: dict[str, Callable[[Parser], Node]] = {
    "frac": Parser.fraction,
    "unicodefrac": Parser.fraction,
    "sqrt": Parser.root,
    "cbrt": Parser.root,
    "binom": Parser.binomial,
    "pi": Parser.constant,
    "infty": Parser.constant,
    "lvert": Parser.bar,
    "int": Parser.integral,
    "lim": Parser.limit,
    "sum": Parser.series,
    "prod": Parser.series,
    "begin": Parser.matrix,
    "mathbb": Parser.number_set,
    "emptyset": Parser.empty_set,
    **dict.fromkeys(("ldots", "dots", "cdots"), Parser.ellipsis),
    **dict.fromkeys(("lfloor", "lceil", "langle"), Parser.fenced),
    **dict.fromkeys(("overline", "bar", "dot", "ddot", "vec", "hat", "tilde", "overrightarrow"), Parser.accent),
    **dict.fromkeys(("angle", "triangle", "mathcal"), Parser.skip_command),
}
