r"""Golds with one mark changed, and master keys: answers that a verifier accepts only if it does not read all of the gold.

A mutation changes one digit, sign, relation, letter, index, power, name or part of a gold of any kind, even of a kind that no
recogniser knows. It is made only if a rule about the text shows that the result is wrong. No rule asks a verifier, or reads the
gold as a verifier does. The rules are narrow: they leave alone arbitrary names, and golds that contain calculations (integrals,
limits, remainders, trigonometric functions), whose value might remain the same.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from fractions import Fraction

from verifiers.audit.golds import Gold, Kind, squeezed
from verifiers.audit.registry import near

_MAX_MUTANTS = 3
"""Maximum number of mutants that one mutation makes of a gold: at the first, the middle and the last possible place."""
_VALUES = ("frac", "dfrac", "tfrac", "sqrt", "left", "right", "cdot", "times", "infty", "pm", "quad")
_SETS = ("le", "leq", "ge", "geq", "ne", "neq", "cup", "mid", "in", "notin", "mathbb", "text", "mathrm")
_PLAIN = frozenset((*_VALUES, *_SETS))
"""LaTeX commands that a gold may contain without hiding the effect of a changed mark."""
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_PROSE = re.compile(r"\\(?:text|mathrm|mbox|textbf|mathbb|operatorname|begin|end)\s*\{[^{}]*\}|[A-Za-z]{3,}")
_LETTER = re.compile(r"(?<![A-Za-z\\])[a-zA-Z](?![A-Za-z])")
_UNKNOWNS = frozenset("xyzuvwabpqrst")
_OTHER_RELATIONS = {
    "<": (">", r"\le "),
    ">": ("<", r"\ge "),
    r"\le": ("<", r"\ge "),
    r"\leq": ("<", r"\ge "),
    r"\ge": (">", r"\le "),
    r"\geq": (">", r"\le "),
    r"\in": (r"\notin ",),
    r"\notin": (r"\in ",),
}
_RELATION = re.compile(r"[<>]|\\(?:leq?|geq?|in|notin)(?![A-Za-z])")
_UNIT_POWER = re.compile(r"(\\(?:text|mathrm)\s*\{[\s~]*[a-z]{1,12}\s*\}\s*)(?:\^\s*(?:\{\s*([23])\s*\}|([23])))?\s*")
_NO_UNITS = re.compile(
    r"degree|percent|(?:^|\{)[\s~]*(?:and|or|to|am|pm|th|st|nd|rd|if|base|mod|e|i|d|sin|cos|tan|log|ln)\b"
)
_BUILDER = re.compile(r"(\\\{\s*)([^{}|:,()]*?)(\s*(?:\\mid(?![A-Za-z])|\||:))")
_NUMBER_MARK = re.compile(r"(?<=[A-Za-z}])_(?:\{(\d)\}|(\d))")

MASTER_KEYS = ("x=7", "y=3x+5", "a=b", "0=0", r"\emptyset", "1")
"""Answers that are wrong for every gold except themselves; a verifier that reads nothing of a gold accepts them."""


def _spread(texts: Iterator[str]) -> Iterator[str]:
    """The first, the middle and the last of the texts."""
    found = list(texts)
    yield from dict.fromkeys((found[0], found[len(found) // 2], found[-1]) if len(found) > _MAX_MUTANTS else found)


def _changed(text: str, match: re.Match[str], new: str) -> str:
    return text[: match.start()] + new + text[match.end() :]


def _outside_prose(text: str, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """The matches that are not in words, in names of environments, or in arguments of font commands."""
    prose = [match.span() for match in _PROSE.finditer(text)]
    return (m for m in pattern.finditer(text) if not any(start <= m.start() < end for start, end in prose))


def _is_plain(text: str) -> bool:
    """Whether a gold has no calculation whose result could survive a change, and no words that could cancel the change."""
    commands = set(_COMMAND.findall(text))
    words = re.search(r"(?<![A-Za-z\\{])[A-Za-z]{2,}", text)
    return commands <= _PLAIN and words is None and not re.search(r"[!|']|\d\s*\^|\^\s*\{?\s*0|(?<![\d.])0|:", text)


def _names(text: str) -> list[re.Match[str]]:
    return [match for match in _outside_prose(text, _LETTER) if match[0] in _UNKNOWNS]


def _fresh(text: str) -> str:
    return next(letter for letter in "wvuqpzyxtsrba" if letter not in text.lower())


@near(*Kind)
def _digit_changed(gold: Gold) -> Iterator[str]:
    """Add one to a digit of a coefficient, an exponent or an end, in a gold with an unknown."""
    text = gold.text
    if not _has_unknowns_only(text):
        return
    digits = (m for m in _outside_prose(text, re.compile(r"\d")) if m[0] != "9")
    yield from _spread(_changed(text, match, str(int(match[0]) + 1)) for match in digits)


@near(*Kind)
def _power_left_out(gold: Gold) -> Iterator[str]:
    """Leave out the power of an unknown."""
    text = gold.text
    if _has_unknowns_only(text):
        powers = _outside_prose(text, re.compile(r"(?<![A-Za-z\\])([a-z])\^(?:\{[2-9]\}|[2-9])"))
        yield from _spread(_changed(text, match, match[1]) for match in powers if match[1] in _UNKNOWNS)


def _has_unknowns_only(text: str) -> bool:
    return _is_plain(text) and bool(_names(text)) and not re.search(r"(?<![A-Za-z\\])[cCkKnNm](?![A-Za-z])", text)


@near(*Kind)
def _relation_changed(gold: Gold) -> Iterator[str]:
    """Replace a relation by its opposite, or a strict relation by the non-strict one and vice versa."""
    text = gold.text
    if (
        "\\ne" in text
        or not _names(text)
        or re.search(r"\\(?:text|mathbb|subset)|[A-Za-z]{3,}", _COMMAND.sub("", text))
    ):
        return
    matches = _outside_prose(text, _RELATION)
    yield from _spread(_changed(text, match, new) for match in matches for new in _OTHER_RELATIONS[match[0]])


@near(*Kind)
def _letter_changed(gold: Gold) -> Iterator[str]:
    """Rename one of several occurrences of an unknown."""
    yield from _letters(gold.text, lambda letter, text: _fresh(text))


@near(*Kind, basis="policy")
def _case_changed(gold: Gold) -> Iterator[str]:
    """Capitalise one of several occurrences of an unknown; by the policy, the capital letter is another symbol."""
    yield from _letters(gold.text, lambda letter, text: letter.upper())


def _letters(text: str, other: Callable[[str, str], str]) -> Iterator[str]:
    if _PROSE.search(_COMMAND.sub("", text)) or not set(_COMMAND.findall(text)) <= _PLAIN - {"text", "mathrm"}:
        return
    names = [match for match in _names(text) if len(re.findall(rf"(?<![A-Za-z\\]){match[0]}(?![A-Za-z])", text)) > 1]
    if "=" not in text and names and _cancels(text, names[0][0]):
        return
    yield from _spread(_changed(text, match, other(match[0], text)) for match in names)


def _cancels(text: str, letter: str) -> bool:
    """Whether an unknown may have no influence: times 0, to the power 0, divided by itself, or subtracted."""
    return (
        re.search(rf"(?<![\d.])0\s*{letter}|\^\s*\{{?0|{letter}\s*/\s*{letter}|-\s*{letter}(?![\^_A-Za-z])", text)
        is not None
    )


@near(*Kind)
def _index_changed(gold: Gold) -> Iterator[str]:
    """Change the index of a name that is not an arbitrary constant."""
    text = gold.text
    for match in itertools.islice(_NUMBER_MARK.finditer(text), _MAX_MUTANTS):
        before = text[: match.start()]
        arbitrary = before[-1:] in "cCkKABFn" and "\\text" not in before
        logarithm = re.search(r"\\(?:log|lg|ln|sum|prod|int|lim|min|max)\s*$|\}$", before)
        if not arbitrary and logarithm is None:
            yield _changed(text, match, f"_{{{int(match[1] or match[2]) + 1}}}")


@near(*Kind, basis="policy")
def _unit_power_changed(gold: Gold) -> Iterator[str]:
    """Raise a unit or a noun after a number to the third power, or to the second if it already has the third."""
    match = re.search(rf"(?<=[\d}}])[\s~\\,]*{_UNIT_POWER.pattern}$", gold.text)
    if (
        match is None
        or _NO_UNITS.search(match[1])
        or _COMMAND.sub("", gold.text[: match.start()]).strip("{}0123456789.,\\!$ ")
    ):
        return
    power = 2 if "3" in (match[2], match[3]) else 3
    yield f"{gold.text[: match.end(1)]}^{{{power}}}"


@near(*Kind)
def _part_left_out(gold: Gold) -> Iterator[str]:
    """Leave out one of several equations for different names."""
    parts = [part.strip() for part in gold.text.strip("$").split(",")]
    names = [re.match(r"([A-Za-z](?:_\d)?)\s*=\s*[^=()\[\]{}]+$", part) for part in parts]
    if len(parts) > 1 and len({name[1] for name in names if name is not None}) == len(parts):
        yield from _spread(", ".join(parts[:index] + parts[index + 1 :]) for index in range(len(parts)))


@near(*Kind)
def _elements_changed(gold: Gold) -> Iterator[str]:
    r"""Replace each element n of a set by 2^n, which changes a bounded set of numbers and the set of all numbers."""
    match = _BUILDER.search(gold.text)
    if match is None or not match[2].strip() or re.search(r"\\(?:in|text)(?![A-Za-z])|=", match[2]):
        return
    yield f"{gold.text[: match.end(1)]}2^{{{match[2].strip()}}}{gold.text[match.end(2) :]}"


@near(*Kind)
def _master_key(gold: Gold) -> Iterator[str]:
    """The master keys that are surely not the gold."""
    yield from (key for key in MASTER_KEYS if _KEYS[key](gold))


def _differs_from(number: int) -> Callable[[Gold], bool]:
    """Make a check that a gold is surely not this number; a gold without a value passes if its digits are not this number."""

    def differs(gold: Gold) -> bool:
        if gold.number is not None:
            return gold.number not in (number, Fraction(number, 100))
        if gold.value is not None or gold.kind in (Kind.CHOICE, Kind.TIME):
            return True
        return (
            _is_plain(gold.text)
            and re.search(rf"(?<!\d){number}(?!\d)", gold.text) is None
            and re.search(r"\d", gold.text) is not None
        )

    return differs


def _is_nonempty(gold: Gold) -> bool:
    """Whether a gold is a value, an equation, or a set that is surely neither empty nor the set of all numbers."""
    return gold.kind not in (Kind.UNKNOWN, Kind.TEXT, Kind.STATEMENT)


_KEYS: dict[str, Callable[[Gold], bool]] = {
    "x=7": _differs_from(7),
    "y=3x+5": lambda gold: "3x" not in squeezed(gold.text),
    "a=b": lambda gold: not {"a", "b"} <= set(gold.text),
    "0=0": lambda gold: bool(gold.number) or (gold.number is None and _is_nonempty(gold)),
    r"\emptyset": _is_nonempty,
    "1": _differs_from(1),
}
