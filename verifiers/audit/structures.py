"""Golds with structure beyond a value: statements, equations, labelled values, conditions, families, sets, rounded expressions.

Each reader takes the text of a gold and returns None for anything ambiguous. The results are exact, so that a near miss can be
shown to differ from its gold before it is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_FLOOR
from fractions import Fraction

from verifiers.audit.expressions import Expression, Monomial
from verifiers.audit.golds import Gold, end_value, scalar, split
from verifiers.audit.reading import read_expression, without_spacing

_EQUALITY = re.compile(r"(=|\\approx(?![A-Za-z])|≈)")
_ORDER = re.compile(r"(<|>|≤|≥|\\(?:leq?|geq?|lt|gt)(?![A-Za-z]))")
_RELATION = re.compile(r"[=<>≤≥≈≠]|\\(?:leq?|geq?|lt|gt|neq?|approx|in|equiv|sim|to|mid|pm|mp)(?![A-Za-z])")
_KNOWN_COMMANDS = re.compile(
    r"\\(?:sin|cos|tan|cot|sec|csc|log|ln|sqrt|[dt]?frac|pi|circ|cdot|times|left|right|[,;:! ])(?![A-Za-z])"
)
_WORDS = r"\\(?:text|mbox|textbf|textit|mathrm)\s*\{[^{}]*\}"
_SPACE = r"(?:\s|\\[,;:! ]|\\q?quad(?![A-Za-z]))*"
SIGNS = {"≤": "\\le", "≥": "\\ge", "\\leq": "\\le", "\\geq": "\\ge", "\\lt": "<", "\\gt": ">"}
"""Other spellings of order relations."""


def letters(text: str) -> set[str]:
    """The letters of a text outside commands and words."""
    return set(re.findall(r"[A-Za-z]", re.sub(rf"{_WORDS}|\\[A-Za-z]+", "", text)))


def renamed(text: str, old: str, new: str) -> str:
    """A text with one letter replaced by another, outside commands and words."""
    pieces = re.split(rf"({_WORDS}|\\[A-Za-z]+)", text)
    return "".join(piece if index % 2 else piece.replace(old, new) for index, piece in enumerate(pieces))


@dataclass(frozen=True, slots=True)
class Statement:
    r"""A claim about constants, such as `\sin30^\circ=\frac12`; it is taken as true, since a data set gives it as an answer."""

    left: str
    sign: str
    value: Expression
    """The value of the right side."""


def statement(text: str) -> Statement | None:
    """Read an equation without unknowns, whose right side is a real constant."""
    sides = _EQUALITY.split(text)
    if len(sides) != 3 or any(_RELATION.search(side) or "," in side for side in sides[::2]):
        return None
    if re.search(r"[A-Za-z\\]", _KNOWN_COMMANDS.sub("", sides[0])) or not re.search(r"\d", sides[0]):
        return None
    value = end_value(sides[2])
    return None if value is None else Statement(sides[0].strip(), sides[1], value)


@dataclass(frozen=True, slots=True)
class LinearRelation:
    """A linear equation in several unknowns, possibly after words."""

    words: str
    left: Expression
    right: Expression


def linear_equation(text: str) -> LinearRelation | None:
    """Read a linear equation with rational coefficients in at least two unknowns; no unknown may stand alone on the left."""
    match = re.fullmatch(rf"({_WORDS})?\s*([^=]+)=([^=]+)", text)
    if match is None or re.fullmatch(r"\s*[A-Za-z]\s*", match[2]):
        return None
    left, right = read_expression(match[2]), read_expression(match[3])
    if left is None or right is None:
        return None
    difference = left - right
    linear = all(monomial.degree <= 1 and not monomial.imaginary for monomial in difference.terms)
    return LinearRelation(match[1] or "", left, right) if linear and len(difference.symbols) > 1 else None


@dataclass(frozen=True, slots=True)
class Labelled:
    """One of several named values: the name with its equals sign or colon as written, and the value."""

    label: str
    value: Gold


_LABELLED = re.compile(rf"{_SPACE}((?:{_WORDS}|[A-Za-z]){_SPACE}[=:]?{_SPACE})(\S.*)", re.DOTALL)


def labelled_values(text: str) -> tuple[Labelled, ...]:
    r"""Read `\text{Maximum}=3, \text{Minimum}=1` or `x=1, y=2`: two or more values with different names; else empty."""
    if re.search(r"\d,\d{3}(?!\d)", text):
        return ()
    items = [_labelled(item) for item in re.split(r"[,;]", text)]
    values = tuple(one for one in items if one is not None)
    names = {re.sub(r"[^A-Za-z]", "", one.label).casefold() for one in values}
    return values if len(names) == len(items) == len(values) > 1 else ()


def _labelled(item: str) -> Labelled | None:
    match = _LABELLED.fullmatch(item)
    if match is None or not re.search(r"[=:]", match[1]) or re.fullmatch(r"[deEi]\s*[=:]\s*", match[1]):
        return None
    value = scalar(match[2])
    return None if value is None or value.value is None else Labelled(match[1].strip(), value)


def named_list(text: str) -> tuple[str, tuple[Gold, ...]] | None:
    """Read `x=-1,3`: a letter and several different constants."""
    match = re.fullmatch(r"\s*([A-Za-z])\s*=([^=]+)", text)
    items = split(match[2]) if match and match[1] not in "deEi" else None
    if match is None or items is None or any(end_value(item.text) is None for item in items):
        return None
    return (match[1], items) if len({item.value for item in items}) == len(items) else None


@dataclass(frozen=True, slots=True)
class Condition:
    """An inequality between a letter and a constant, possibly after an expression that holds under this condition."""

    head: str
    letter: str
    sign: str
    """One of `<`, `>`, `\\le`, `\\ge`."""
    bound: Expression


def condition(text: str) -> Condition | None:
    r"""Read `x>3`, `2x\text{ for }x<0` or `\text{True}, x>3`: a text whose only inequality is at the end."""
    parts = _ORDER.split(text)
    match = re.fullmatch(r"(.*?)(?<![A-Za-z\\_^])([A-Za-z])\s*", parts[0], re.DOTALL) if len(parts) == 3 else None
    if match is None or not re.fullmatch(rf"|.*(?:,|{_WORDS}|\\q?quad){_SPACE}", match[1], re.DOTALL):
        return None
    bound = end_value(parts[2])
    if bound is None or re.search(r"\\(?:mid|cup|cap|begin|pm)(?![A-Za-z])|\\\{", match[1]):
        return None
    return Condition(match[1], match[2], SIGNS.get(parts[1], parts[1]), bound)


_SET = re.compile(r"\\\{\s*([A-Za-z])\s*(?:\\mid(?![A-Za-z])|:|\|)\s*([^{}]*(?:\{[^{}]*\}[^{}]*)*?)\s*\\\}")


def half_lines(text: str) -> tuple[Condition, ...]:
    r"""Read one or several different sets such as `\{x\mid x\ge3\}`, separated by commas; empty if there are none."""
    clean = re.sub(r"\\left|\\right(?![A-Za-z])", "", text).strip()
    matches = list(_SET.finditer(clean))
    conditions = [condition(match[2]) for match in matches]
    sets = tuple(
        one for one, match in zip(conditions, matches, strict=True) if one and (one.head, one.letter) == ("", match[1])
    )
    if not sets or len(sets) != len(matches) or not re.fullmatch(r"[\s,]*", _SET.sub("", clean)):
        return ()
    return sets if len({(one.sign, one.bound) for one in sets}) == len(sets) else ()


@dataclass(frozen=True, slots=True)
class Family:
    r"""Constants `start + n step` for all integers n, such as `\frac\pi6+2n\pi`."""

    name: str
    """The name of the values, with its sign, such as `x=`; may be empty."""
    start: Expression
    step: Expression
    letter: str
    ending: str
    """The text that says that the letter is any integer."""


_INTEGERS = re.compile(
    rf"[,;]?{_SPACE}(?:\(\s*)?([A-Za-z])\s*\\in\s*\\(?:mathbb|mathbf)\s*(?:\{{Z\}}|Z)\s*\)?{_SPACE}$"
)


def family(text: str) -> Family | None:
    r"""Read `x=\frac\pi6+2n\pi, n\in\mathbb Z`."""
    ending = _INTEGERS.search(text)
    match = re.fullmatch(r"(\s*[A-Za-z]\s*=)?([^=,;]+)", text[: ending.start()]) if ending else None
    value = read_expression(match[2]) if match else None
    if ending is None or match is None or value is None or value.symbols != {ending[1]}:
        return None
    start, step = _linear_parts(value, ending[1])
    if not step.terms or not (step.is_real_constant and start.is_real_constant):
        return None
    return Family((match[1] or "").strip(), start, step, ending[1], ending[0])


def _linear_parts(value: Expression, letter: str) -> tuple[Expression, Expression]:
    """The terms without a letter, and the letter's factor, which still contains the letter if its power is above 1."""
    parts: list[dict[Monomial, Fraction]] = [{}, {}]
    for monomial, coefficient in value.terms.items():
        powers = dict(monomial.powers)
        power = powers.pop(letter, 0)
        kept = {**powers, letter: power - 1} if power > 1 else powers
        rest = Monomial(tuple(sorted(kept.items())), monomial.radicand, monomial.imaginary)
        parts[power > 0][rest] = coefficient
    return Expression(parts[0]), Expression(parts[1])


_INDEXED = re.compile(r"(?<![A-Za-z0-9\\])([abf-jl-z])((?:\^(?:\w|\{[^{}]*\}))?)_(?:(\d)|\{(\d{1,3})\})(?![({])")


def indexed_symbol(text: str) -> re.Match[str] | None:
    """The only symbol with a number as its index (group 1: its letter, group 2: its exponent); None if there are more.

    Letters that often denote constants of integration are excluded, since such a constant may have any name. Letters after a
    digit are excluded too, since they may be digits themselves.
    """
    matches = list(_INDEXED.finditer(text))
    plain = len(matches) == 1 and "\\text" not in text and _RELATION.search(text) is None
    return matches[0] if plain and text.count("_") == 1 else None


# Floors and ceilings.

_INNERMOST = re.compile(r"\\l(floor|ceil)(?![A-Za-z])((?:(?!\\[lr](?:floor|ceil)).)*)\\r\1(?![A-Za-z])", re.DOTALL)
_LOGARITHM = re.compile(r"\s*\\log_(?:(\d)|\{(\d{1,3})\})\s*(.+?)\s*", re.DOTALL)
_SURE = Fraction(1, 10**20)
_TRIED = 200
_MIN_DEFINED = 50


@dataclass(frozen=True, slots=True)
class Rounded:
    """An expression with floors or ceilings, as a function of one letter that stands for positive integers."""

    text: str
    letter: str

    def value(self, number: int) -> Expression | None:
        """The exact value at an integer; None if it is undefined or cannot be read."""
        text = renamed(self.text, self.letter, f"{{{number}}}")
        while (group := _INNERMOST.search(text)) is not None:
            whole = _rounded(group[1], group[2])
            if whole is None:
                return None
            text = f"{text[: group.start()]}{{{whole}}}{text[group.end() :]}"
        return read_expression(text)

    def groups(self) -> Iterator[re.Match[str]]:
        """Find the innermost floors and ceilings; group 1 is `floor` or `ceil`, and group 2 the expression that is rounded."""
        return _INNERMOST.finditer(self.text)

    def differs(self, other: str) -> bool:
        """Whether another expression has a different exact value at one of the first integers, and so is surely wrong."""
        theirs = Rounded(other, self.letter)
        for number in range(1, _TRIED + 1):
            one = self.value(number)
            two = theirs.value(number) if one is not None else None
            if one is not None and two is not None and one != two:
                return True
        return False


def rounded_expression(text: str) -> Rounded | None:
    """Read a polynomial of floors and ceilings in one letter, if it is defined for at least half of the first integers."""
    clean = without_spacing(text)
    names = letters(clean)
    if _INNERMOST.search(clean) is None or len(names) != 1 or names <= set("deEi") or _RELATION.search(clean):
        return None
    rounded = Rounded(clean, names.pop())
    defined = sum(rounded.value(number) is not None for number in range(1, 2 * _MIN_DEFINED + 1))
    return rounded if defined >= _MIN_DEFINED else None


def _rounded(direction: str, inner: str) -> int | None:
    """The floor or ceiling of a constant; None if it is not certain."""
    match = _LOGARITHM.fullmatch(inner)
    if match is not None:
        return _rounded_logarithm(direction, int(match[1] or match[2]), match[3])
    value = read_expression(inner)
    if value is None or not value.is_real_constant:
        return None
    number = value.rational
    if (
        number is None
    ):  # an irrational number, which is not an integer: its digits decide, unless it is very close to an integer
        digits = Fraction(value.decimal(30).to_integral_value(ROUND_FLOOR))
        rest = Fraction(value.decimal(30)) - digits
        if not _SURE < rest < 1 - _SURE:
            return None
        number = digits + rest
    return -(-number // 1) if direction == "ceil" else number // 1


def _rounded_logarithm(direction: str, base: int, argument: str) -> int | None:
    """The floor or ceiling of a logarithm, by comparing powers of its base."""
    alone = re.fullmatch(r"\d+", argument) or (argument[0] + argument[-1] in ("{}", "()") and _is_one_group(argument))
    value = read_expression(argument) if alone else None
    number = None if value is None else value.rational
    if base < 2 or number is None or number < 1:
        return None
    power = 0
    while Fraction(base) ** (power + 1) <= number:
        power += 1
    return power + (direction == "ceil" and Fraction(base) ** power != number)


def _is_one_group(text: str) -> bool:
    """Whether the first bracket of a text is closed by its last character."""
    depth = 0
    for index, character in enumerate(text):
        depth += (character in "({") - (character in ")}")
        if not depth:
            return index == len(text) - 1
    return False
