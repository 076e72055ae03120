"""A verifier of literal numbers, which are compared as exact fractions."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Annotated, NamedTuple

from verifiers._settings import check_types
from verifiers.bounds import AtLeast
from verifiers.completion.answers import Kind, find
from verifiers.completion.cut import cut, thought_names
from verifiers.completion.denied import is_void_statement
from verifiers.completion.mark import NOTHING, Form
from verifiers.completion.marking import view_of
from verifiers.completion.statements import after_verb, last_line
from verifiers.completion.words import REFUSALS, THOUGHTS
from verifiers.errors import InvalidArgumentError, UnreadableReferenceError
from verifiers.types import Outcome, Problem, Verdict

MAX_LITERAL_LENGTH = 2_000
"""Longest literal that is read, in characters."""
MAX_EXPONENT = 1_000
"""Largest exponent, in absolute value, of a literal in scientific notation."""

# Full-width digits and signs, and the minus of typesetting.
_ASCII = str.maketrans({chr(0xFF00 + offset): chr(0x20 + offset) for offset in range(1, 0x5F)} | {"−": "-"})
_INTEGER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)"
_LITERAL = re.compile(
    rf"(?P<sign>[+-]?)(?:(?P<numerator>{_INTEGER})/(?P<denominator>{_INTEGER})"
    rf"|(?P<decimal>{_INTEGER}(?:\.[0-9]+)?|\.[0-9]+)(?:[eE](?P<exponent>[+-]?[0-9]+))?)"
)


def parse_number(text: str) -> Fraction | None:
    """Read a literal number exactly: `-7`, `0.50`, `3/4`, `1,234.5` or `6.02e23`.

    Returns:
        The value; None if the text is not a literal number, divides by zero, or exceeds `MAX_LITERAL_LENGTH` or `MAX_EXPONENT`.
        A compound expression such as `1+2` or `1/2/3` is not a literal.
    """
    match = _LITERAL.fullmatch(text.translate(_ASCII)) if len(text) <= MAX_LITERAL_LENGTH else None
    if match is None:
        return None
    sign = -1 if match["sign"] == "-" else 1
    if match["decimal"] is None:
        denominator = _whole(match["denominator"])
        return sign * Fraction(_whole(match["numerator"]), denominator) if denominator else None
    whole, _, decimals = match["decimal"].partition(".")
    exponent = match["exponent"] or "0"
    if len(exponent) > MAX_LITERAL_LENGTH or abs(int(exponent)) > MAX_EXPONENT:
        return None
    return sign * _whole(whole + decimals) * Fraction(10) ** (int(exponent) - len(decimals))


def _whole(digits: str) -> int:
    return int(digits.replace(",", ""))


@dataclass(frozen=True)
class NumericVerifier:
    r"""A completion is correct when its answer is a literal number with the reference's value.

    `docs/where-the-answer-stands.md` says where the answer is found; without a mark it is the last number of the completion.
    Only the side after the last equals sign of an equation counts. Words, units, currency and percent signs around the number
    are ignored, and so are calculator annotations (`<<3+4=7>>`).

    Three things never count as an answer and are `INCORRECT`: part of a compound expression (`37+58`, `2 1/2`, `5 million`,
    `3\sqrt{2}`, `2x`), a negated number ("not 95"), and a number offered with alternatives ("5 or 6"). A completion without a
    digit is `NO_ANSWER`. For expressions, and LaTeX other than `\frac{1}{2}`, use the `"math"` verifier.

    The reference is an int, a float (read in its shortest decimal form), a fraction, a `Decimal` or a literal as text.

    Args:
        rel_tol: Largest accepted distance, relative to the reference.
        abs_tol: Largest accepted distance. The wider of both tolerances applies; by default the values must be equal.
        literal_only: Whether the place of the answer (the last line if nothing is marked) must hold nothing but the literal.
        whole: Whether the whole completion must be the literal, apart from white space around it.
        thoughts: Names of the tags that enclose thoughts, which are cut off; a sequence, or text with commas between the names.
        asked: Form of mark that the prompt asks for; answers in this form are preferred to all others.

    Raises:
        InvalidArgumentError: If a tolerance is not a finite number of at least 0, or another argument has the wrong type.
    """

    rel_tol: Annotated[float, AtLeast(0)] = 0.0
    abs_tol: Annotated[float, AtLeast(0)] = 0.0
    literal_only: bool = False
    whole: bool = False
    thoughts: str | Sequence[str] = THOUGHTS
    asked: Form | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "thoughts", thought_names(self.thoughts))
        check_types(self)

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge one completion.

        Raises:
            InvalidArgumentError: If the completion is not text.
            UnreadableReferenceError: If the reference is not a literal number.
        """
        if not isinstance(completion, str):
            raise InvalidArgumentError(f"a completion must be a string, got {completion!r} for problem {problem.id!r}")
        reference = _reference(problem)
        answer = self._find(completion.translate(_ASCII))
        if answer is None:
            return Verdict.of(Outcome.NO_ANSWER)
        value = parse_number(answer.text)
        if answer.objection or value is None:
            reason = answer.objection or "not a literal number"
            return Verdict.of(Outcome.INCORRECT, answer.text, detail={"reason": reason})
        outcome = Outcome.CORRECT if self._close(value, reference) else Outcome.INCORRECT
        return Verdict.of(outcome, answer.text)

    def preferring(self, form: Form) -> NumericVerifier:
        """Return a verifier that prefers answers in the form that a prompt asks for, unless `asked` is already set."""
        return self if self.asked or self.whole else replace(self, asked=form)

    def same_answer(self, first: str, second: str, problem: Problem) -> bool:
        """Whether two answers are literal numbers of the same value, or the same text."""
        one, two = parse_number(first), parse_number(second)
        if one is None or two is None:
            return first == second
        return self._close(one, two) or self._close(two, one)

    def _find(self, completion: str) -> _Candidate | None:
        if self.whole:
            return _only(completion)
        completion = _TEX_FRACTION.sub(r"\1/\2", _CALCULATION.sub("", completion))
        response = cut(completion, thoughts=self.thoughts)
        if response.missing:
            return None
        found = find(
            response.text, _Literals(self), _MARKED if self.literal_only else (*_MARKED, "whole", "number"), self.asked
        )
        if found.other is not None and found.value is not None:
            return _Candidate(found.value.text, f"two answers; the other is {found.other.text}")
        if found.value is None and self.literal_only and found.form == NOTHING:
            return _only(view_of(last_line(response.text)).plain)
        return found.value

    def _close(self, value: Fraction, reference: Fraction) -> bool:
        tolerance = max(Fraction(self.rel_tol) * abs(reference), Fraction(self.abs_tol))
        return abs(value - reference) <= tolerance


def _reference(problem: Problem) -> Fraction:
    reference = problem.reference
    number: Fraction | None = None
    if isinstance(reference, bool):
        number = None  # a bool is an int in Python, but not a number to a reader
    elif isinstance(reference, Rational):
        number = Fraction(reference)
    elif isinstance(reference, float | Decimal) and math.isfinite(reference):
        number = Fraction(repr(reference) if isinstance(reference, float) else reference)
    elif isinstance(reference, str):
        number = parse_number(reference.strip())
    if number is None:
        raise UnreadableReferenceError(
            f"the numeric verifier needs a literal number as reference, got {reference!r} of problem {problem.id!r}; "
            "for expressions use the 'math' verifier"
        )
    return number


class _Candidate(NamedTuple):
    """A part of a completion that should be the answer, and the reason if the number in it does not count."""

    text: str
    objection: str = ""


def _only(text: str) -> _Candidate | None:
    return _Candidate(text.strip()) if re.search("[0-9]", text) else None


_TEX_FRACTION = re.compile(
    rf"(?<![\w)}}\].])(?<![\d)}}\].]\s)(?<!\b\w\s)\\[dt]?frac\s*\{{\s*({_INTEGER})\s*\}}\s*\{{\s*({_INTEGER})\s*\}}(?!\s*[\w\\({{^/*])"
)
"""Matches a fraction of two whole numbers that is not part of a larger expression, such as `2\frac{1}{2}`."""
_CALCULATION = re.compile(r"<<[^<>\n]*>>")
_MARKED: tuple[Form, ...] = ("box", "hashes", "tag", "json", "phrase")
_DIGIT = re.compile("[0-9]")
_BEGINS_WITH_NUMBER = re.compile(
    r"[^\w\\=]*(?:(?:about|approximately|around|roughly|nearly|exactly|only|just|a\stotal\sof)\s+[^\w\\=]*)?[0-9]",
    re.IGNORECASE,
)
_NAMED = re.compile(r"(?:\A|[\s,;($])[A-Za-z]\s*\Z")
"""Matches a name before an equals sign, as in `36 at x = 12`."""
_EQUALS = re.compile(r"\bequals\b", re.IGNORECASE)
_TWO_NAMES = re.compile(
    r"\b(?P<name>[A-Za-z])\s*=[^=]{0,60}[0-9][^=]{0,60}(?:[,;]|\band\b|\bor\b)\s*(?!(?P=name)\b)[A-Za-z]\s*=",
    re.IGNORECASE,
)
"""Matches two equations for different names, as in `x = 5, y = 3`."""
_FRAGMENT = re.compile(r"[0-9]\s*(?:[-+*/×÷^=]|\sx|\\(?:times|cdot|div|frac))\s*\Z")
_NUMBER_AND_UNIT = re.compile(r"[^\w=]*[0-9][0-9.,/]*[^\w=]*(?:[A-Za-z]+[^\w=]*){0,2}")
_REACH = 400
_NO_PROBLEM = Problem("", "", 0)


_DECLINED = re.compile(REFUSALS.pattern, re.IGNORECASE)


def _last_line_with_digit(text: str) -> tuple[str, str]:
    """The last line that contains a digit, and the text below the line; at most a few hundred characters of each."""
    digit = max(text.rfind(sign) for sign in "0123456789")
    end = text.find("\n", digit)
    line = text[max(text.rfind("\n", 0, digit) + 1, digit - _REACH) : end if end >= 0 else len(text)]
    return line[: 2 * _REACH], text[digit:].partition("\n")[2].strip()[: 2 * _REACH]


@dataclass(slots=True)
class _Literals(Kind[_Candidate]):
    """Candidates for a numeric answer: any text that contains a digit."""

    verifier: NumericVerifier

    def read(self, content: str, form: Form) -> _Candidate | None:
        """The number in a mark's content, with the objection to it if there is one."""
        if not _DIGIT.search(content):
            return None
        if form == "number":
            line, behind = _last_line_with_digit(content)
            if _DECLINED.search(f"{line}\n{behind}"):
                return None
            plain = _typeset(view_of(line).plain)
            is_cut_off = not behind and _FRAGMENT.search(plain) is not None
            return None if is_cut_off or is_void_statement(plain) else _last_number(plain)
        plain = _typeset(view_of(content, inline=True).plain)
        if form == "second" and not _NUMBER_AND_UNIT.fullmatch(plain):
            return None
        if self.verifier.literal_only:
            return _only(plain)
        if form == "whole" and (not _NUMBER_AND_UNIT.fullmatch(plain) or _FRAGMENT.search(plain)):
            return None
        is_sentence = form == "phrase" and not _BEGINS_WITH_NUMBER.match(plain)
        return _first_number(after_verb(plain) if is_sentence else plain)

    def same(self, first: _Candidate, second: _Candidate) -> bool:
        """Whether two candidates are the same number."""
        return self.verifier.same_answer(first.text, second.text, _NO_PROBLEM) and bool(first.objection) == bool(
            second.objection
        )


# Boundaries between words: white space, relation signs, and a colon that does not denote a ratio.
_BREAK = re.compile(r"[^\S\n]+|(\n|[=≈]|\\approx)|(?<![0-9]):")
_WRAPPING = "$€£¥#*_`\"'“”‘’()[]{}\\%°"
_CLOSING = _WRAPPING + ".,;:!?"
_SIGNS = ["+", "-", "−", "–", "*", "/", "×", "÷", "·", "^", "**", "\\times", "\\cdot", "\\div"]
_OPERATORS = frozenset([*_SIGNS, "times", "plus", "minus", "over", "x", "twice", "half", "double", "triple"])
_CONTINUATIONS = re.compile(
    r"[+*/×÷·^(√π]|\\(?:times|cdot|div|pi|sqrt|frac)|\*\*|[xyzn]\b|(?:pi|sqrt|plus|minus|over|"
    r"squared|cubed|hundred|thousand|million|billion|trillion)\b"
)
_RELATION = re.compile(
    r"(?:half|twice|double|triple|.*%|multiples?|factors?|divisors?|powers?|squares?|cubes?|root) of"
    r"|(?:less|more|greater|fewer|larger|smaller) than",
    re.IGNORECASE,
)
"""Matches words before a number that make the number a part of another value."""
_DEGREES = re.compile(r"\s*(?:\^\s*(?:\{\s*)?\\circ\b(?:\s*\})?|\\degree\b)")
_SEPARATOR = re.compile(r"(?<=[0-9])(?:\{,\}|\\[,!;: ])(?=[0-9]{3}(?![0-9]))")
_MINUS = re.compile(
    r"(?<![-\w])(?:(?<!non )negative|(?:\A|(?<=\n)|(?<=[=≈:] )|(?<=\b(?:is|be) )|(?<=\b(?:are|was) )|(?<=\bequals ))minus)"
    r"\s+(?=[$(*]{0,3}[0-9])",
    re.IGNORECASE,
)
"""Matches `negative` before a number, and `minus` if no number comes before it from which it could subtract."""


def _typeset(plain: str) -> str:
    """Write minus signs, degrees and separators of thousands that are words or TeX as plain characters."""
    plain = _MINUS.sub("-", plain)
    if "\\" not in plain and "{,}" not in plain:
        return plain
    return _DEGREES.sub("°", _SEPARATOR.sub(",", plain))


_GLUED_UNIT = re.compile(
    r"(?<=[0-9])(?:°[A-Za-z]?|[kcm]m|[km]?g|lbs?|oz|ml|ft|mph|km/h|hrs?|mins?|[ap]m|GB|MB|st|nd|rd|th)$"
)
_CONNECTIVES = frozenset(["or", "and", "to", "either", "maybe", "perhaps", "possibly", "&", "|", "/", "-", "–"])


def _first_number(text: str) -> _Candidate | None:
    if _TWO_NAMES.search(text):
        return _Candidate(text.strip(), "several numbers")
    text = _EQUALS.sub("=", text)
    left, _, right = text.rpartition("=")
    begins_with_number = _BEGINS_WITH_NUMBER.match(text) is not None
    is_equation = left != "" and _DIGIT.search(right) and not (begins_with_number and _NAMED.search(left))
    words = _words(right if is_equation else text)
    numbers = _positions(words)
    if not numbers:
        return None
    if not _BEGINS_WITH_NUMBER.match(" ".join(words)) and not all(
        _are_equal(words[numbers[0]], words[at]) for at in numbers
    ):
        return _Candidate(words[numbers[0]], "several numbers")
    return _read(words, numbers, 0)


def _last_number(text: str) -> _Candidate | None:
    words = ["\n", *_words(text)]  # the completion's first line is a line as well
    numbers = _positions(words)
    return _read(words, numbers, len(numbers) - 1) if numbers else None


def _words(text: str) -> list[str]:
    return [word for word in _BREAK.split(text) if word]


def _positions(words: list[str]) -> list[int]:
    return [index for index, word in enumerate(words) if re.search("[0-9]", word)]


def _read(words: list[str], numbers: list[int], which: int) -> _Candidate:
    at = numbers[which]
    literal = _GLUED_UNIT.sub("", words[at].lstrip(_WRAPPING).rstrip(_CLOSING)).replace("-$", "-")
    return _Candidate(literal, _objection(words, at) or _offered(words, numbers, which))


def _objection(words: list[str], at: int) -> str:
    """The reason why a number among words is part of something larger; empty if the number stands alone."""
    before = words[at - 1] if at else ""
    if before.lower() in ("of", "than") and at > 1 and _RELATION.fullmatch(f"{words[at - 2]} {before}"):
        return "part of a compound expression"
    bullet = before in ("-", "*") and at > 1 and words[at - 2] == "\n"
    after = words[at + 1] if at + 1 < len(words) and words[at][-1] not in ".,;:!?" else ""
    if (before.lower() in _OPERATORS and not bullet) or _CONTINUATIONS.match(after.lower().lstrip("$")):
        return "part of a compound expression"
    if after.lower() in _OPERATORS and any(re.search("[0-9]", word) for word in words[at + 2 : at + 3]):
        return "part of a compound expression"
    if re.search(r"[0-9]$", before) or re.match("[0-9]", after):
        return "numbers side by side"
    if before.lower() == "not" or before.lower().endswith("n't"):
        return "a negated number"
    return ""


def _are_equal(one: str, other: str) -> bool:
    """Whether two words are numbers with the same value; one of them may be a percentage."""
    values = []
    for word in (one, other):
        value = parse_number(word.lstrip(_WRAPPING).rstrip(_CLOSING))
        values.append(value / 100 if value is not None and "%" in word else value)
    return values[0] is not None and values[0] == values[1]


def _offered(words: list[str], numbers: list[int], which: int) -> str:
    """A message if the text offers several values, among them this number; empty if the number is the only value."""
    for others in (numbers[:which][::-1], numbers[which + 1 :]):
        last = numbers[which]
        for other in others:
            between = [word.strip(",").lower() for word in words[min(last, other) + 1 : max(last, other)]]
            is_listed = not between and words[min(last, other)].endswith(",")
            if not is_listed and not (between and all(word in _CONNECTIVES for word in between)):
                break
            if not _are_equal(words[numbers[which]], words[other]):
                return "one of several numbers offered"
            last = other
    return ""
