"""The countdown game: reach a target with given numbers and the four operations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from verifiers._settings import check_types
from verifiers.completion.answers import Kind, find
from verifiers.completion.cut import cut, thought_names
from verifiers.completion.mark import EXPLICIT, Form
from verifiers.completion.marking import view_of
from verifiers.completion.statements import last_line
from verifiers.completion.words import NAMING, THOUGHTS, CueFinder
from verifiers.errors import InvalidArgumentError, UnreadableReferenceError
from verifiers.types import Outcome, Problem, Verdict

MAX_LENGTH = 1_000
"""Longest expression that is read, in characters."""
MAX_DEPTH = 50
"""Deepest nesting of parentheses that is read."""

_TOKEN = re.compile(r"\s*([0-9]+|[-+*/()])")
_DECORATION = " \t\n$`."
_FORMS: tuple[Form, ...] = (*EXPLICIT, "phrase", "value", "number")
_TEX_SIGNS = {r"\times": "*", r"\cdot": "*", r"\div": "/", r"\left": "", r"\right": ""}
_TEX = re.compile(r"\\(?:times|cdot|div|left|right)(?![A-Za-z])")
_EXPRESSION = re.compile(r"(?:[^A-Za-z]|\bx\b)+")
_SYMBOLS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-"})


@dataclass(frozen=True, slots=True)
class CountdownReference:
    """The numbers given, repeats included, and the target to reach.

    Raises:
        InvalidArgumentError: If there are no numbers, or one is not a whole number of at least 0.
    """

    numbers: tuple[int, ...]
    target: int

    def __post_init__(self) -> None:
        if not self.numbers or any(type(number) is not int or number < 0 for number in self.numbers):
            raise InvalidArgumentError(f"expected one or more whole numbers of at least 0, got {self.numbers!r}")
        if type(self.target) is not int:
            raise InvalidArgumentError(f"the target must be a whole number, got {self.target!r}")


def _read_reference(reference: object) -> CountdownReference:
    """Return a `CountdownReference` unchanged, or make one from a mapping with its fields."""
    if isinstance(reference, Mapping) and reference.keys() == {"numbers", "target"}:
        numbers = reference["numbers"]
        if not isinstance(numbers, list | tuple):
            raise InvalidArgumentError(f"expected a list of whole numbers of at least 0, got {numbers!r}")
        return CountdownReference(tuple(numbers), reference["target"])
    if not isinstance(reference, CountdownReference):
        raise InvalidArgumentError(
            "the countdown verifier needs a CountdownReference(numbers, target) as its reference, or a mapping with 'numbers' "
            f"and 'target', got {reference!r}"
        )
    return reference


@dataclass(frozen=True)
class CountdownVerifier:
    """A completion is correct when its expression has the target's value and uses the given numbers by the rules.

    `docs/where-the-answer-stands.md` says where the expression stands; without a mark, it is the last line. The expression
    consists of the given numbers, the signs `+ - * /` (also `× · ÷ −`, and TeX's) and parentheses, with an optional `= target`
    after it. Values are exact fractions.

    * Each given number is used exactly once, or at most once with `use_all=False`. Digits are never joined to a number.
    * Every sign stands between two operands: a unary minus or plus is not an operation of the game, so `-3+5` is incorrect,
      while the value of `3-5` may well be negative.
    * Juxtaposition is not multiplication: `2(3)` is incorrect.
    * Dividing by zero is incorrect.

    A completion without an expression is `NO_ANSWER`, and so is a completion whose last line also contains words.

    Args:
        use_all: Whether every given number must be used.
        thoughts: Names of the tags that enclose thoughts, which are cut off; a sequence, or text with commas between the names.
        asked: Form of mark that the prompt asks for; answers in this form are preferred to all others.

    Raises:
        InvalidArgumentError: If `use_all` is not a bool, `thoughts` are not names, or `asked` is not a form.
    """

    use_all: bool = True
    thoughts: str | Sequence[str] = THOUGHTS
    asked: Form | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "thoughts", thought_names(self.thoughts))
        check_types(self)

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge one completion.

        Raises:
            UnreadableReferenceError: If the reference is neither a `CountdownReference` nor a mapping with its fields.
        """
        try:
            reference = _read_reference(problem.reference)
        except InvalidArgumentError as error:
            raise UnreadableReferenceError(f"problem {problem.id!r}: {error}") from error
        response = cut(completion, thoughts=self.thoughts)
        found = find(response.text, _Expressions(), _FORMS, self.asked)
        answer = found.value
        if answer is None:
            return Verdict.of(Outcome.NO_ANSWER, detail={"reason": response.missing or found.form})
        if found.other is not None:
            return Verdict.of(Outcome.INCORRECT, answer, detail={"reason": f"two answers; the other is {found.other}"})
        try:
            value = self._value(answer, reference)
        except _Unacceptable as reason:
            return Verdict.of(Outcome.INCORRECT, answer, detail={"reason": str(reason)})
        outcome = Outcome.CORRECT if value == reference.target else Outcome.INCORRECT
        return Verdict.of(outcome, answer, detail={"value": str(value)})

    def preferring(self, form: Form) -> CountdownVerifier:
        """Return a verifier that prefers answers in the form that a prompt asks for, unless `asked` is already set."""
        return self if self.asked else replace(self, asked=form)

    def _value(self, answer: str, reference: CountdownReference) -> int | Fraction:
        if len(answer) > MAX_LENGTH:
            raise _Unacceptable(f"the expression is longer than {MAX_LENGTH} characters")
        expression, equals, claimed = answer.partition("=")
        if equals and claimed.strip() != str(reference.target):
            raise _Unacceptable(f"expected {reference.target} after '=', got {claimed.strip()!r}")
        tokens = _tokens(expression)
        self._check_numbers(tokens, reference)
        return _Parser(tokens).value()

    def _check_numbers(self, tokens: list[str], reference: CountdownReference) -> None:
        # Checked on the text and before evaluation, so that values stay as small as the given numbers allow.
        numbers, allowed = [token for token in tokens if token.isdigit()], [str(number) for number in reference.numbers]
        if sorted(numbers) == sorted(allowed):
            return
        used, given = Counter(numbers), Counter(allowed)
        for number in used - given:
            raise _Unacceptable(f"{number} is used {used[number]} times and given {given[number]} times")
        if self.use_all:
            for number in given - used:
                raise _Unacceptable(f"{number} is given {given[number]} times and used {used[number]} times")


class _Expressions(Kind[str]):
    """Candidates for the answer in the countdown game: numbers with signs between them."""

    cues = CueFinder(NAMING.pattern, NAMING)

    def read(self, content: str, form: Form) -> str | None:
        """The expression in a mark's content, with this verifier's signs; None if the content is not an expression."""
        answer = (
            view_of(last_line(content) if form == "number" else content, inline=form != "number")
            .plain.strip(_DECORATION)
            .translate(_SYMBOLS)
        )
        answer = _TEX.sub(lambda sign: _TEX_SIGNS[sign[0]], answer)
        is_marked = form in EXPLICIT
        return answer if re.search("[0-9]", answer) and (is_marked or _EXPRESSION.fullmatch(answer)) else None

    def same(self, first: str, second: str) -> bool:
        """Whether two expressions are the same text."""
        return re.sub(r"\s|=.*", "", first) == re.sub(r"\s|=.*", "", second)


class _Unacceptable(Exception):
    """An expression breaks a rule, which the message names."""


def _tokens(expression: str) -> list[str]:
    tokens: list[str] = []
    position, expression = 0, expression.rstrip()
    while position < len(expression):
        match = _TOKEN.match(expression, position)
        if match is None:
            raise _Unacceptable(f"unexpected text {expression[position:].strip()[:20]!r}")
        tokens.append(match[1])
        position = match.end()
    return tokens


class _Parser:
    """Recursive descent over `sum = product (+|- product)*`, `product = atom (*|/ atom)*`, `atom = number | (sum)`."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = [*tokens, ""]
        self._position = 0

    def value(self) -> int | Fraction:
        value = self._sum(0)
        if self._peek():
            raise _Unacceptable(f"unexpected {self._peek()!r} after the expression")
        return value

    def _peek(self) -> str:
        return self._tokens[self._position]

    def _next(self) -> str:
        self._position += 1
        return self._tokens[self._position - 1]

    def _sum(self, depth: int) -> int | Fraction:
        value = self._product(depth)
        while self._peek() in ("+", "-"):
            sign = 1 if self._next() == "+" else -1
            value += sign * self._product(depth)
        return value

    def _product(self, depth: int) -> int | Fraction:
        value = self._atom(depth)
        while self._peek() in ("*", "/"):
            if self._next() == "*":
                value *= self._atom(depth)
            else:
                value = _quotient(value, self._atom(depth))
        return value

    def _atom(self, depth: int) -> int | Fraction:
        token = self._next()
        if token.isdigit():
            return int(token)
        if token != "(":
            raise _Unacceptable(f"expected a number or '(', got {token or 'the end'!r}")
        if depth == MAX_DEPTH:
            raise _Unacceptable(f"parentheses are nested deeper than {MAX_DEPTH}")
        value = self._sum(depth + 1)
        if self._next() != ")":
            raise _Unacceptable("a parenthesis is not closed")
        return value


def _quotient(dividend: int | Fraction, divisor: int | Fraction) -> Fraction:
    if divisor == 0:
        raise _Unacceptable("division by zero")
    return Fraction(dividend) / divisor
