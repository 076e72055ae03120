"""Reads numbers in digits: integers in groups (`1{,}234`), decimals, scientific notation, numerals with a base."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from verifiers.math.reading.errors import UnreadableError
from verifiers.math.tree import BasedNumber, Node, Number

MAX_EXPONENT = 4000
"""Largest power of ten in a literal in scientific notation."""

_SEPARATOR = r"(?:\{,\}|\\,|,\s*\\!\s*|\\!\s*,\s*(?:\\!\s*)?|\\;|\\ |~)"
_DIGITS = (
    rf"[0-9]{{1,3}}(?:(?:\s*{_SEPARATOR}\s*[0-9]{{3}})+(?![0-9])|(?:(?:,[0-9]{{3}})+|(?: [0-9]{{3}})+)(?![0-9])(?!,[0-9]))"
    r"|[0-9]+"
)
_NUMBER = re.compile(rf"(?P<whole>{_DIGITS})?(?P<point>\.(?P<decimals>[0-9]*))?")
_UNGROUPED_NUMBER = re.compile(r"(?P<whole>[0-9]+)?(?P<point>\.(?P<decimals>[0-9]*))?")
_BARE_COMMAS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+")
_BELOW_MIXED = re.compile(r"\s?/\s?[0-9]")
# If a comma is the decimal sign, points separate groups of three digits; any other point is a decimal sign, too.
_COMMA_NUMBER = re.compile(
    r"(?P<whole>[0-9]{1,3}(?:\.[0-9]{3})+(?!\.?[0-9])|[0-9]+)?(?P<point>[,.](?P<decimals>[0-9]+)(?![,.]?[0-9]))?"
)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]{1,6})(?![0-9A-Za-z.])")
_REPEATING = re.compile(
    r"\s*(?:\\(?:overline|bar|dot|overset\{\\cdot\})\s*\{([0-9]+)\}|\\(?:bar|overline|dot)\s*([0-9])|\(([0-9]+)\))"
)
_DOTTED_PERIOD = re.compile(r"\s*\\dot\s*\{?([0-9])\}?([0-9]*)\\dot\s*\{?([0-9])\}?")
_ELLIPSIS = re.compile(r"\s*(?:\.\.\.|\\(?:l|c)?dots(?![A-Za-z]))")
_START = re.compile(r"\.?[0-9]|\.\s*\\(?:overline|bar|dot)(?![A-Za-z])")
_BASED = re.compile(
    r"(?P<digits>[0-9][0-9A-Z]*(?:\.[0-9A-Z]+)?)\s*_\s*(?:(?P<bare>[0-9])"
    r"|\{\s*(?:\\text\s*\{\s*(?P<text>[0-9]{1,2}|[a-z]{3,8})\s*\}|\(?(?P<braced>[0-9]{1,2}|[a-z]{3,8})\)?)\s*\})"
)
_PARENTHESISED_BASE = re.compile(
    r"\(\s*(?P<digits>[0-9][0-9A-Z]*)\s*\)\s*_\s*(?:\{\s*(?P<braced>[0-9]{1,2})\s*\}|(?P<bare>[0-9]))"
)


@dataclass(frozen=True, slots=True)
class Literal:
    """A number in a text: its digits and point as written, its value, and its end."""

    text: str
    value: Node
    end: int


def starts_number(text: str, position: int) -> bool:
    """Whether a number starts at a position."""
    return _START.match(text, position) is not None


def based_literal(text: str, position: int) -> Literal | None:
    """A numeral with its base, possibly in brackets; None if no such numeral starts here.

    Raises:
        UnreadableError: If a digit in brackets is not a digit of the base.
    """
    match = _BASED.match(text, position) or _PARENTHESISED_BASE.match(text, position)
    if match is None:
        return None
    digits, base = (
        match["digits"],
        next(filter(None, (match[name] for name in match.re.groupindex if name != "digits"))),
    )
    if not _is_numeral(digits, base):
        if text[position] == "(":
            raise UnreadableError("a digit that its base does not have")
        return None
    return Literal(digits, BasedNumber(_significant_digits(digits), int(base)), match.end())


def literal(text: str, position: int, *, grouped: bool, listed: bool, decimal_comma: bool) -> Literal:
    """Read the number at a position.

    Args:
        text: The text.
        position: The position at which the number starts.
        grouped: Whether digits may be grouped; in a script they may not.
        listed: Whether a bare comma separates items rather than groups.
        decimal_comma: Whether a comma between digits is the decimal sign.

    Raises:
        UnreadableError: If the number is ambiguous or beyond the limits.
    """
    pattern = _COMMA_NUMBER if decimal_comma else _NUMBER if grouped else _UNGROUPED_NUMBER
    match = pattern.match(text, position)
    if match is None or match.end() == position:
        raise UnreadableError("a number with ambiguous points and commas")
    whole = match["whole"] or ""
    mixed = " " in whole and _BELOW_MIXED.match(text, match.end())
    separate = listed and _BARE_COMMAS.fullmatch(whole)
    if mixed or separate or (len(whole) > 3 and whole[0] == "0" and not whole.isdigit()):  # not groups of one number
        match = _UNGROUPED_NUMBER.match(text, position)
        assert match is not None
        whole = match["whole"]
    digits = "".join(sign for sign in whole if sign.isdigit())
    value, end = _value(digits, match["decimals"], text, match.end())
    return Literal(digits + (match["point"] or ""), value, end)


def _value(digits: str, decimals: str | None, text: str, end: int) -> tuple[Number, int]:
    """The value of digits that end at a position, and the end of a period or a power of ten that follows them."""
    if decimals is not None and (repeating := _repetend(decimals, text, end)) is not None:
        prefix, block, end = repeating
        return Number(repeating_decimal(digits, prefix, block)), end
    exponent = 0
    if match := _EXPONENT.match(text, end):
        exponent, end = int(match[1]), match.end()
        if abs(exponent) > MAX_EXPONENT:
            raise UnreadableError("a power of ten beyond the limit")
    value = Fraction(int(digits + (decimals or "") or "0"), 10 ** len(decimals or "")) * Fraction(10) ** exponent
    if not decimals and not exponent:
        return Number(value), end
    significant = len((digits + (decimals or "")).lstrip("0"))
    return Number(value, len(decimals or "") - exponent, significant), end


def _repetend(decimals: str, text: str, end: int) -> tuple[str, str, int] | None:
    """The digits of a decimal before its marked period, the period, and the mark's end; None if no period is marked."""
    if match := _DOTTED_PERIOD.match(text, end):  # dots over the first and the last digit
        return decimals, match[1] + match[2] + match[3], match.end()
    if match := _REPEATING.match(text, end):
        return decimals, match[1] or match[2] or match[3], match.end()
    if match := _ELLIPSIS.match(text, end):
        if (block := _visible_block(decimals)) is None:
            raise UnreadableError("a decimal that ends in dots and does not repeat visibly")
        return decimals, block, match.end()
    return None


def _is_numeral(digits: str, base: str) -> bool:
    """Whether these are the digits of a numeral with a base from 2 to 36, with at most one point."""
    if len(base) > 2 or not base.isdigit() or not 2 <= int(base) <= 36:
        return False
    return digits.count(".") < 2 and all(int(digit, 36) < int(base) for digit in digits if digit != ".")


def _significant_digits(digits: str) -> str:
    """A numeral without leading zeros, except one before a point."""
    shorter = digits.lstrip("0")
    return shorter if shorter and shorter[0] != "." else f"0{shorter}"


def _visible_block(decimals: str) -> str | None:
    """The period that the digits before an ellipsis show: one digit three times, or a longer block twice."""
    for length in range(1, len(decimals) // 2 + 1):
        block = decimals[-length:]
        if decimals.endswith(block * (3 if length == 1 else 2)):
            return block
    return None


def repeating_decimal(whole: str, prefix: str, block: str) -> Fraction:
    """The value of a decimal whose last digits repeat for ever."""
    head = Fraction(int(whole or "0")) + Fraction(int(prefix or "0"), 10 ** len(prefix))
    return head + Fraction(int(block), (10 ** len(block) - 1) * 10 ** len(prefix))
