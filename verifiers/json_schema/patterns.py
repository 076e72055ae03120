r"""Converts patterns of ECMA-262, with its flag `u`, to patterns of Python's `re`.

Differences are rewritten: `$` is the very end. `\d`, `\w` and `\b` are ASCII. `\s` and `.` have the white space and the line
ends of ECMA-262. `\p{...}` and `\P{...}` are sets of characters, and `\u{...}` is one character. `[]` matches nothing and `[^]`
anything. The sets of general categories come from `unicodedata`, so they follow the Unicode version of this Python. Other
properties, such as `Script=Latin`, are refused, since they need tables that Python does not have.
"""

from __future__ import annotations

import functools
import itertools
import re
import sys
import unicodedata
import warnings
from collections.abc import Iterable
from types import MappingProxyType

Ranges = tuple[tuple[int, int], ...]
"""A set of code points, as ordered ranges, each with its first and last code point."""


class PatternError(ValueError):
    """A pattern that can't be read; the argument says why."""


class PythonPattern(str):
    """A pattern in Python's syntax that prints, compares and hashes like the original pattern."""

    __slots__ = ("original",)

    original: str

    def __new__(cls, written: str, original: str) -> PythonPattern:
        """Keep both forms of the pattern."""
        pattern = super().__new__(cls, written)
        pattern.original = original
        return pattern

    def __repr__(self) -> str:
        return repr(self.original)

    def __eq__(self, other: object) -> bool:
        return self.original == (other.original if isinstance(other, PythonPattern) else other)

    def __hash__(self) -> int:
        return hash(self.original)


def python_pattern(pattern: str) -> PythonPattern:
    """Convert a pattern of ECMA-262 for Python.

    Raises:
        PatternError: If the pattern has an unsupported property, or Python can't read it.
    """
    try:
        written = "".join(_piece(match[0]) for match in _PIECE.finditer(pattern))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about signs in sets whose meaning Python may change
            re.compile(written)
    except PatternError as error:
        raise PatternError(f"the pattern {pattern!r} has {error}") from error
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternError(f"Python can't read the pattern {pattern!r}: {error}") from error
    return PythonPattern(written, pattern)


def load_properties() -> None:
    """Find the characters of every general category, which takes a few tenths of a second the first time."""
    _ranges_by_category()


_ESCAPE = (
    r"\\[pP]\{(?P<property>[^{}]*)\}|\\u\{(?P<point>[0-9A-Fa-f]+)\}"
    r"|\\u(?P<high>[dD][89abAB][0-9A-Fa-f]{2})\\u(?P<low>[dD][c-fC-F][0-9A-Fa-f]{2})|\\."
)
_ESCAPES = re.compile(_ESCAPE, re.DOTALL)
_PIECE = re.compile(_ESCAPE + r"|\[(?:\\.|[^\]\\])*\]|\(\?<(?=[A-Za-z_])|.", re.DOTALL)
_LAST = sys.maxunicode
_LINE_ENDS: Ranges = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
_SETS: dict[str, Ranges] = {
    "d": ((0x30, 0x39),),
    "w": ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)),
    "s": (
        *((0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029)),
        *((0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
    ),
}
_WRITTEN = {"$": r"\Z", "(?<": "(?P<", r"\b": r"(?a:\b)", r"\B": r"(?a:\B)", "[]": "(?!)", "[^]": "(?s:.)"}


def _piece(piece: str) -> str:
    if piece in _WRITTEN:
        return _WRITTEN[piece]
    if piece == ".":
        return _as_class(_complement(_LINE_ENDS))
    if len(piece) > 1 and piece.startswith("["):
        sign = "[^" if piece.startswith("[^") else "["
        content = _ESCAPES.sub(_in_class, piece[len(sign) : -1])
        return f"{sign}{content}]" if content else _WRITTEN[f"{sign}]"]
    if match := _ESCAPES.fullmatch(piece):
        ranges = _set_of(match)
        return _in_class(match) if ranges is None else _as_class(ranges)
    return piece


def _as_class(ranges: Ranges) -> str:
    return f"[{_written(ranges)}]" if ranges else _WRITTEN["[]"]


def _in_class(escape: re.Match[str]) -> str:
    """An escape in the form that it has inside brackets; escapes of single characters are the same inside and outside."""
    ranges = _set_of(escape)
    if ranges is not None:
        return _written(ranges)
    if escape["point"]:
        return rf"\U{int(escape['point'], 16):08x}"
    if escape["high"]:
        high, low = int(escape["high"], 16), int(escape["low"], 16)
        return rf"\U{0x10000 + ((high - 0xD800) << 10) + low - 0xDC00:08x}"
    return escape[0]


def _set_of(escape: re.Match[str]) -> Ranges | None:
    r"""The set of characters that an escape such as `\d` or `\P{Lu}` denotes; None if it does not denote a set."""
    letter = escape[0][1]
    if escape["property"] is not None:
        ranges = _property(escape["property"])
    elif letter.lower() in _SETS:
        ranges = _SETS[letter.lower()]
    else:
        return None
    return _complement(ranges) if letter.isupper() else ranges


def _written(ranges: Ranges) -> str:
    return "".join(rf"\U{first:08x}-\U{last:08x}" for first, last in ranges)


def _complement(ranges: Ranges) -> Ranges:
    firsts = [0, *(last + 1 for _, last in ranges)]
    lasts = [*(first - 1 for first, _ in ranges), _LAST]
    return tuple((first, last) for first, last in zip(firsts, lasts, strict=True) if first <= last)


# Properties


_NAMES = """
L Letter, LC Cased_Letter, Lu Uppercase_Letter, Ll Lowercase_Letter, Lt Titlecase_Letter, Lm Modifier_Letter, Lo Other_Letter,
M Mark Combining_Mark, Mn Nonspacing_Mark, Mc Spacing_Mark, Me Enclosing_Mark, N Number, Nd Decimal_Number digit,
Nl Letter_Number, No Other_Number, P Punctuation punct, Pc Connector_Punctuation, Pd Dash_Punctuation, Ps Open_Punctuation,
Pe Close_Punctuation, Pi Initial_Punctuation, Pf Final_Punctuation, Po Other_Punctuation, S Symbol, Sm Math_Symbol,
Sc Currency_Symbol, Sk Modifier_Symbol, So Other_Symbol, Z Separator, Zs Space_Separator, Zl Line_Separator,
Zp Paragraph_Separator, C Other, Cc Control cntrl, Cf Format, Cs Surrogate, Co Private_Use, Cn Unassigned
"""
_CATEGORIES = MappingProxyType({name: names.split()[0] for names in _NAMES.split(",") for name in names.split()})
"""The short name of every general category, by each of its names (ECMA-262, table "Value aliases for General_Category")."""
_CASED = ("Lu", "Ll", "Lt")


def _property(name: str) -> Ranges:
    key, assigned, value = name.partition("=")
    category = _CATEGORIES.get(value if assigned and key in ("gc", "General_Category") else name)
    if category is not None:
        return _of_category(category)
    if name == "Any":
        return ((0, _LAST),)
    if name == "ASCII":
        return ((0, 0x7F),)
    if name == "Assigned":
        return _complement(_of_category("Cn"))
    raise PatternError(
        f"the Unicode property {name!r}, which is not supported: expected a general category, such as L, Lu or "
        "Uppercase_Letter, or Any, ASCII or Assigned; write other sets as ranges, such as [\\u0370-\\u03ff]"
    )


@functools.cache
def _of_category(name: str) -> Ranges:
    wanted = (
        _CASED if name == "LC" else tuple(category for category in _ranges_by_category() if category.startswith(name))
    )
    return _joined(itertools.chain.from_iterable(_ranges_by_category()[category] for category in wanted))


def _joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and joined[-1][1] + 1 == first:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return tuple(joined)


@functools.cache
def _ranges_by_category() -> dict[str, list[tuple[int, int]]]:
    ranges: dict[str, list[tuple[int, int]]] = {}
    first = 0
    for category, characters in itertools.groupby(map(unicodedata.category, map(chr, range(_LAST + 1)))):
        end = first + sum(1 for _ in characters)
        ranges.setdefault(category, []).append((first, end - 1))
        first = end
    return ranges
