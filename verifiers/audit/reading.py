"""A conservative reader that turns LaTeX into an `Expression`; ambiguous text is not read at all."""

from __future__ import annotations

import re
from fractions import Fraction

from verifiers.audit.expressions import PI, Expression, NotExpressibleError, square_root, symbol

MAX_LENGTH = 200
"""Maximum length of a text that is read, in characters."""
_MAX_DIGITS = 60
_TOKEN = re.compile(r"\s*(?:(\d+\.?\d*|\.\d+)|(\\(?:frac|sqrt|pi)(?![A-Za-z]))|([A-Za-z])|([-+*/^(){}]))")
_SPACES = re.compile(r"\\left(?![A-Za-z])|\\right(?![A-Za-z])|\\[!,;: ]|\\displaystyle(?![A-Za-z])")
_TWO_NUMBERS = re.compile(
    r"\d\s+[\d.]|\d\s*\\[dt]?frac"
)  # "1 1/2" and "1\frac12" are mixed numbers, "1 2" can be anything
_WORD = re.compile(r"(?<!\\)(?<![A-Za-z\\])[A-Za-z]{2,}")
_PRODUCT_LETTERS = frozenset(
    "abcnxyz"
)  # side by side, these are products; other letters may be units, words or segments
_NOT_SYMBOLS = frozenset("deEO")  # a constant, a differential, look-alikes


def without_spacing(text: str) -> str:
    """LaTeX without spacing commands, with fractions and products in one spelling."""
    text = _SPACES.sub(" ", text.strip().strip("$"))
    text = re.sub(r"\\[dt]frac(?![A-Za-z])", r"\\frac", text)
    return re.sub(r"\\(?:cdot|times)(?![A-Za-z])|·|×", "*", text).replace("−", "-").strip()


def read_expression(text: str) -> Expression | None:
    """Read a polynomial with rational coefficients, square roots of integers, π and i; None for anything else."""
    if len(text) > MAX_LENGTH or _is_ambiguous(clean := without_spacing(text)):
        return None
    try:
        return _ExpressionParser(_tokens(clean)).whole()
    except (NotExpressibleError, ZeroDivisionError):
        return None


def _is_ambiguous(text: str) -> bool:
    if _TWO_NUMBERS.search(text):
        return True
    return any(not set(word[0]) <= _PRODUCT_LETTERS for word in _WORD.finditer(re.sub(r"\\[A-Za-z]+", "\\\\", text)))


def _tokens(text: str) -> list[str]:
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise NotExpressibleError(f"cannot read {text[position : position + 10]!r}")
        tokens.append(match[0].strip())
        position = match.end()
    return tokens


class _ExpressionParser:
    """A recursive-descent parser of tokens, for sums of products of powers."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._position = 0

    def whole(self) -> Expression:
        result = self._sum()
        if self._position != len(self._tokens):
            raise NotExpressibleError("text after the expression")
        return result

    def _peek(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        if not token:
            raise NotExpressibleError("the text ends too early")
        self._position += 1
        return token

    def _expect(self, token: str) -> None:
        if self._take() != token:
            raise NotExpressibleError(f"expected {token!r}")

    def _sum(self) -> Expression:
        negative = self._peek() == "-"
        if self._peek() in ("+", "-"):
            self._take()
        total = -self._product() if negative else self._product()
        while self._peek() in ("+", "-"):
            total = total + self._product() if self._take() == "+" else total - self._product()
        return total

    def _product(self) -> Expression:
        result = self._power()
        while (token := self._peek()) and token not in "+-)}":
            if token == "*":
                self._take()
                result = result * self._power()
            elif token == "/":
                result = self._quotient(result)
            else:
                result = result * self._juxtaposed()
        return result

    def _quotient(self, numerator: Expression) -> Expression:
        self._take()
        quotient = numerator / self._power()
        if self._peek() not in ("", "+", "-", ")", "}"):
            raise NotExpressibleError("a/bc is ambiguous")
        return quotient

    def _juxtaposed(self) -> Expression:
        before, token = self._tokens[self._position - 1], self._peek()
        if token[0].isdigit() or token[0] == "." or (token == "(" and before.isalpha()):
            raise NotExpressibleError("ambiguous juxtaposition")
        return self._power()

    def _power(self) -> Expression:
        base = self._atom()
        if self._peek() != "^":
            return base
        self._take()
        exponent = self._braced_integer() if self._peek() == "{" else self._digit()
        return base**exponent

    def _braced_integer(self) -> int:
        self._expect("{")
        token = self._take()
        self._expect("}")
        if not token.isdigit() or len(token) > 2:
            raise NotExpressibleError("an exponent that is not a small integer")
        return int(token)

    def _digit(self) -> int:
        """The single digit that LaTeX takes as an argument without braces."""
        token = self._take()
        if not token[0].isdigit() or "." in token:
            raise NotExpressibleError("expected a digit")
        if token[1:]:
            self._position -= 1
            self._tokens[self._position] = token[1:]
        return int(token[0])

    def _atom(self) -> Expression:
        token = self._take()
        if token in ("(", "{"):
            inner = self._sum()
            self._expect(")" if token == "(" else "}")
            return inner
        if token == "\\frac":
            return self._argument() / self._argument()
        if token == "\\sqrt":
            return self._root()
        if token == "\\pi":
            return symbol(PI)
        return _number(token) if token[0].isdigit() or token[0] == "." else _symbol(token)

    def _argument(self) -> Expression:
        if self._peek() in ("{", "\\pi"):
            return self._atom()
        if self._peek().isalpha():
            return _symbol(self._take())
        return Expression.constant(self._digit())

    def _root(self) -> Expression:
        radicand = self._argument().rational
        if radicand is None or radicand.denominator != 1 or radicand < 0:
            raise NotExpressibleError("the root of something other than a natural number")
        return square_root(radicand.numerator)


def _number(token: str) -> Expression:
    if len(token) > _MAX_DIGITS or token.endswith("."):
        raise NotExpressibleError("a number that is long or ends in a point")
    return Expression.constant(Fraction(token))


def _symbol(token: str) -> Expression:
    if not token.isalpha() or token in _NOT_SYMBOLS:
        raise NotExpressibleError(f"{token!r} is not a symbol")
    return symbol(token)
