"""Kinds of gold answers, recognised conservatively and without any verifier."""

from __future__ import annotations

import enum
import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from verifiers.audit.expressions import Expression
from verifiers.audit.reading import read_expression, without_spacing


class Kind(enum.StrEnum):
    """The types of gold that transformations apply to."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    FRACTION = "fraction"
    MIXED = "mixed number"
    PERCENT = "percent"
    CONSTANT = "constant"
    """An irrational or complex number: surds, multiples of π, Gaussian numbers."""
    POLYNOMIAL = "polynomial"
    ASSIGNMENT = "assignment"
    """`x=5`, `y=2x+3`: a name and its value."""
    QUANTITY = "quantity"
    """A number with a unit, a currency sign or degrees."""
    NUMERAL = "numeral"
    """`52_8`: digits with their base."""
    TUPLE = "tuple"
    LIST = "list"
    """Values without order, with or without braces."""
    INTERVAL = "interval"
    """An interval, or a union of disjoint intervals in increasing order."""
    MATRIX = "matrix"
    STATEMENT = "statement"
    r"""`\sin30^\circ=\frac12`: an equation without unknowns."""
    LINEAR_EQUATION = "linear equation"
    """A linear equation in two or more unknowns, possibly after words."""
    LABELLED = "labelled values"
    r"""`x=1, y=2` or `\text{Maximum}=3, \text{Minimum}=1`."""
    NAMED_LIST = "named list"
    """`x=-1,3`: several values of one name."""
    CONDITION = "condition"
    r"""`x>3`, or an expression with a condition, such as `2x\text{ for }x>3`."""
    HALF_LINES = "sets by condition"
    r"""`\{x\mid x\ge3\}`, or several such sets."""
    FAMILY = "family"
    r"""Infinitely many numbers, such as `\frac\pi6+2n\pi, n\in\mathbb Z`."""
    ROUNDED = "floors and ceilings"
    TIME = "time"
    """A time of day, such as `12:00`."""
    INDEXED = "indexed"
    """An expression of symbols with numbers as indices."""
    CHOICE = "choice"
    TEXT = "text"
    UNKNOWN = "unknown"
    """Not recognised; only transformations that need no structure apply."""


@dataclass(frozen=True, slots=True)
class Span:
    """One interval, with its ends as written."""

    left: str
    low: str
    high: str
    right: str

    def __str__(self) -> str:
        return f"{self.left}{self.low},{self.high}{self.right}"


@dataclass(frozen=True, slots=True)
class Gold:
    """A gold answer with its recognised structure."""

    text: str
    kind: Kind
    value: Expression | None = None
    """The value of a number, polynomial, quantity or assignment."""
    items: tuple[Gold, ...] = ()
    """The elements of a tuple, list or matrix (row by row)."""
    name: str = ""
    """The name of an assignment, the unit of a quantity, the letter of a choice, the words of a text."""
    base: int = 10
    columns: int = 0
    """Number of columns of a matrix."""
    spans: tuple[Span, ...] = ()

    @property
    def number(self) -> Fraction | None:
        """The value if it is a rational number, else None."""
        return None if self.value is None else self.value.rational


_INTEGER = re.compile(r"[+-]?(?:\d{1,60}|\d{1,3}(?:,\d{3}){1,15})")
_DECIMAL = re.compile(r"-?\d{0,30}\.\d{1,30}")
_FRACTION = re.compile(r"-?\\[dt]?frac\s*(?:\{\d{1,30}\}\s*\{\d{1,30}\}|\d\s*\d|\d\s*\{\d{1,30}\}|\{\d{1,30}\}\s*\d)")
_SLASHED = re.compile(r"-?\d{1,30}\s*/\s*\d{1,30}")
_MIXED = re.compile(r"(\d{1,9})\s*(\\[dt]?frac\s*(?:\{\d{1,9}\}\s*\{\d{1,9}\}|\d\s*\d))")


def _ungrouped(text: str) -> str:
    r"""Digits without LaTeX's separators of thousands: `10,\!080`, `58{,}500`."""
    return re.sub(r"(?<=\d)(?:,\\!\s*|\{,\}|\\,)(?=\d{3}(?!\d))", "", text)


def rational(text: str) -> Fraction | None:
    """Read an integer, a decimal or a fraction of integers."""
    text = _ungrouped(text.strip())
    if _INTEGER.fullmatch(text):
        return Fraction(text.replace(",", ""))
    if _DECIMAL.fullmatch(text) or _SLASHED.fullmatch(text):
        return Fraction(text.replace(" ", "")) if not re.search(r"/\s*0+$", text) else None
    if _FRACTION.fullmatch(text):
        value = read_expression(text)
        return None if value is None else value.rational
    return None


def _number(text: str) -> Gold | None:
    value = rational(text)
    if value is None:
        return None
    plain = _ungrouped(text)
    kind = Kind.INTEGER if _INTEGER.fullmatch(plain) else Kind.DECIMAL if _DECIMAL.fullmatch(plain) else Kind.FRACTION
    return Gold(text, kind, Expression.constant(value))


def _mixed(text: str) -> Gold | None:
    match = _MIXED.fullmatch(text)
    fraction = rational(match[2]) if match else None
    if match is None or fraction is None or not 0 < fraction < 1:
        return None
    return Gold(text, Kind.MIXED, Expression.constant(int(match[1]) + fraction))


def _percent(text: str) -> Gold | None:
    match = re.fullmatch(r"([\d.]+)\s*\\?%", text)
    value = rational(match[1]) if match else None
    return None if value is None else Gold(text, Kind.PERCENT, Expression.constant(value / 100))


_UNIT = re.compile(r"(.{1,60}?)\s*\\(?:text|mbox|mathrm)\s*\{\s*([a-z]{2,20})\s*\}\s*(?:\^\s*\{?[23]\}?)?")


def _quantity(text: str) -> Gold | None:
    for pattern, unit in ((r"\\?\$\s*(.+)", "$"), (r"(.+?)\s*\^\s*(?:\\circ|\{\s*\\circ\s*\})", "°")):
        match = re.fullmatch(pattern, text)
        if match and (value := rational(match[1])) is not None and not match[1].startswith("$"):
            return Gold(text, Kind.QUANTITY, Expression.constant(value), name=unit)
    match = _UNIT.fullmatch(text)
    if match and match[2] not in _NOT_UNITS and (value := rational(match[1])) is not None:
        return Gold(text, Kind.QUANTITY, Expression.constant(value), name=match[2])
    return None


_NOT_UNITS = ("and", "or", "to", "am", "pm", "th", "st", "nd", "rd", "base", "percent", "degrees", "degree", "mod")


def _numeral(text: str) -> Gold | None:
    match = re.fullmatch(r"(\d{1,40})_(?:\{(\d{1,2})\}|(\d))", text)
    base = int(match[2] or match[3]) if match else 0
    if match is None or not 2 <= base <= 9 or any(int(digit) >= base for digit in match[1]):
        return None
    return Gold(text, Kind.NUMERAL, Expression.constant(int(match[1], base)), name=match[1], base=base)


def _choice(text: str) -> Gold | None:
    match = re.fullmatch(r"\\text\{\s*\(([A-J])\)\s*\}|\(([A-J])\)|\(\\text\{([A-J])\}\)", text)
    letter = next((group for group in match.groups() if group), "") if match else ""
    return Gold(text, Kind.CHOICE, name=letter) if letter else None


def _text(text: str) -> Gold | None:
    match = re.fullmatch(r"\\text\{\s*([A-Za-z]{3,20})\s*\}|([a-z]{3,20})", text)
    word = (match[1] or match[2]) if match else ""
    known = word.lower() in ("none", "undefined", "infinity", "infinite", "true", "false", "yes", "sin", "cos", "tan")
    return Gold(text, Kind.TEXT, name=word) if word and not known else None


_UNIT_LETTERS = frozenset("mgshlLNVWJKACFT")


def _expression(text: str) -> Gold | None:
    value = read_expression(text)
    if value is None or len(value.terms) == 0 or re.fullmatch(r"[-+\s]*[A-Za-z]", text):
        return None
    if not value.symbols:
        return Gold(text, Kind.CONSTANT, value) if value.rational is None else None
    (monomial, *more) = value.terms
    if not more and monomial.degree == 1 and value.symbols <= _UNIT_LETTERS:
        return None  # "5m" may be five metres
    return Gold(text, Kind.POLYNOMIAL, value)


def _assignment(text: str) -> Gold | None:
    name, equals, right = (side.strip() for side in text.partition("="))
    if not equals or not re.fullmatch(r"[a-zA-Z]", name) or name in "deEi":
        return None
    inner = scalar(right)
    if inner is None or inner.value is None or name in inner.value.symbols:
        return None
    return Gold(text, Kind.ASSIGNMENT, inner.value, (inner,), name=name)


def scalar(text: str) -> Gold | None:
    """Recognise a number, a constant or a polynomial."""
    text = text.strip()
    return next((gold for recognise in (_number, _mixed, _expression) if (gold := recognise(text)) is not None), None)


def split(text: str) -> tuple[Gold, ...] | None:
    """The elements between commas, if each is a single value and no comma can separate thousands."""
    if re.search(r"\d,\d{3}(?!\d)", text):
        return None
    items = [scalar(item) for item in text.split(",")]
    return None if None in items or len(items) < 2 else tuple(item for item in items if item is not None)


def _inside(text: str, left: str, right: str) -> str | None:
    """The text between two matching brackets."""
    clean = re.sub(r"\\left\s*|\\right\s*", "", text).strip()
    if not (clean.startswith(left) and clean.endswith(right)):
        return None
    inner = clean[len(left) : len(clean) - len(right)]
    return None if re.search(r"[\[\]]|\\[{}]", inner) or not _is_balanced(inner) else inner


def _is_balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


def _tuple(text: str) -> Gold | None:
    inner = _inside(text, "(", ")")
    items = split(inner) if inner is not None else None
    return None if items is None else Gold(text, Kind.TUPLE, items=items)


def _list(text: str) -> Gold | None:
    inner = _inside(text, "\\{", "\\}")
    boxed = ", ".join(_BOX.findall(text)) if _BOXES.fullmatch(text) else text
    items = split(boxed if inner is None else inner)
    if items is None or len({item.value for item in items}) != len(items):
        return None
    return Gold(boxed, Kind.LIST, items=items)


_BOX = re.compile(r"\\boxed\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")
_BOXES = re.compile(rf"[\s$]*{_BOX.pattern}(?:(?:[\s$,]|and)+{_BOX.pattern})+[\s$.]*")


_SPAN = re.compile(r"\s*([(\[])([^(\[,]+),([^,\])]+)([)\]])\s*")
_INFINITE = ("\\infty", "+\\infty", "-\\infty")


def _interval(text: str) -> Gold | None:
    clean = re.sub(r"^\s*[a-z]\s*\\in(?![A-Za-z])|\\left(?![A-Za-z])|\\right(?![A-Za-z])", "", text)
    spans = [_span(interval) for interval in re.split(r"\\cup(?![A-Za-z])", clean)]
    if None in spans:
        return None
    known = tuple(span for span in spans if span is not None)
    certain = (
        len(known) > 1
        or clean.strip() != text.strip()
        or any(end in _INFINITE for end in (known[0].low, known[0].high))
    )
    if not certain and {known[0].left, known[0].right} not in ({"(", "]"}, {"[", ")"}):
        return None  # (a, b) may be a point, [a, b] a vector
    return Gold(text, Kind.INTERVAL, spans=known) if _rises(known) else None


def _span(text: str) -> Span | None:
    match = _SPAN.fullmatch(text)
    if match is None:
        return None
    left, low, high, right = match[1], match[2].strip(), match[3].strip(), match[4]
    for end, bracket, infinity in ((low, left, "-\\infty"), (high, right, "\\infty")):
        if end in _INFINITE and (end.lstrip("+") != infinity or bracket in "[]"):
            return None
        if end not in _INFINITE and end_value(end) is None:
            return None
    return Span(left, low, high, right)


def end_value(text: str) -> Expression | None:
    """The value of a finite end of an interval, if the end is recognised as a real constant."""
    gold = scalar(text)
    return gold.value if gold is not None and gold.value is not None and gold.value.is_real_constant else None


def _rises(spans: tuple[Span, ...]) -> bool:
    """Whether no interval is empty or a point, and each begins after the end of the previous interval without touching it."""
    ends = [end_value(end) for span in spans for end in (span.low, span.high)]
    if any(end is None for end in ends[1:-1]):
        return False  # an infinite end in the middle
    for index, (one, two) in enumerate(itertools.pairwise(ends)):
        if one is None or two is None:
            continue
        if one == two:
            left, right = spans[index // 2], spans[(index + 1) // 2]
            if left is right or left.right == "]" or right.left == "[":
                return False
        elif one.decimal(30) > two.decimal(30):
            return False
    return True


_MATRIX = re.compile(r"\\begin\{([pb])matrix\}(.+)\\end\{\1matrix\}", re.DOTALL)


def _matrix(text: str) -> Gold | None:
    match = _MATRIX.fullmatch(text)
    if match is None:
        return None
    rows = [[scalar(entry) for entry in row.split("&")] for row in match[2].strip().removesuffix("\\\\").split("\\\\")]
    entries = tuple(entry for row in rows for entry in row if entry is not None)
    columns = len(rows[0])
    if len(entries) != len(rows) * columns or any(len(row) != columns for row in rows):
        return None
    return Gold(text, Kind.MATRIX, items=entries, columns=columns) if len(entries) > 1 else None


RECOGNISERS: tuple[Callable[[str], Gold | None], ...] = (
    _number,
    _mixed,
    _percent,
    _numeral,
    _quantity,
    _choice,
    _text,
    _expression,
    _assignment,
    _interval,
    _tuple,
    _list,
    _matrix,
)
"""The recognisers of single kinds, in the order in which they are tried."""


def squeezed(text: str) -> str:
    """A text without spacing."""
    return re.sub(r"\s+", "", without_spacing(text)).replace("\\%", "%")
