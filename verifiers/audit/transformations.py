"""The table of transformations of gold answers into equal forms and into near misses.

A row names the kinds of gold that its transformation applies to. `policy` after the kinds means that the label follows from the
default policy of the math verifier (`docs/math.md`) instead of mathematics; `symmetric` means that gold and result may be
exchanged. The label holds for all golds of these kinds. Forms that neither mathematics nor the policy decides have no row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction

from verifiers.audit.cases import Label
from verifiers.audit.expressions import PI, Expression, Monomial, symbol
from verifiers.audit.golds import Gold, Kind, Span, end_value
from verifiers.audit.markings import WRAPPERS
from verifiers.audit.registry import Rewrite, enter
from verifiers.audit.writing import latex_fraction, terminating_decimal, write

_RATIONALS = "integer, decimal, fraction"
_REALS = f"{_RATIONALS}, mixed number"
_UNITS = {"cm": "m", "m": "cm", "km": "m", "inches": "feet", "feet": "inches", "cents": "dollars", "hours": "minutes"}
"""For each unit, a different unit."""
_FULL_WIDTH = str.maketrans("0123456789-", "０１２３４５６７８９−")
_ONE, _HALF = Expression.constant(1), Expression.constant(Fraction(1, 2))


def _value(gold: Gold) -> Expression:
    assert gold.value is not None
    return gold.value


def _number(gold: Gold) -> Fraction:
    number = _value(gold).rational
    assert number is not None
    return number


def _if(condition: object, *texts: str) -> tuple[str, ...]:
    return texts if condition else ()


def _of(forms: Callable[[Fraction], Iterable[str]]) -> Rewrite:
    """Turn a function of a number into a rewriting of golds; the function gives the forms of the gold's number."""
    return lambda gold: forms(_number(gold))


def _decimals(others: Callable[[Fraction], list[Fraction]]) -> Rewrite:
    """Make a rewriting of a number into the decimals of other numbers; numbers without a terminating decimal are left out."""
    return lambda gold: [text for n in others(_number(gold)) if (text := terminating_decimal(n)) is not None]


def _named(gold: Gold, *forms: str) -> list[str]:
    """The letter or word of a gold in the given forms."""
    return [form.format(gold.name) for form in forms]


def _marking(gold: Gold) -> list[str]:
    return [wrapper(gold.text) for wrapper in WRAPPERS if wrapper.usual and wrapper.fits(gold.text)]


def _typography(gold: Gold) -> Iterator[str]:
    yield f" {gold.text} "
    if "$" not in gold.text:
        yield f"${gold.text}$"
    if gold.kind is Kind.TUPLE and "\\left" not in gold.text:
        yield f"\\left{gold.text[:-1]}\\right{gold.text[-1]}"
    if "\\frac" in gold.text:
        yield gold.text.replace("\\frac", "\\dfrac").replace("\\ddfrac", "\\dfrac")


# Numbers


def _grouped_thousands(gold: Gold) -> Iterator[str]:
    number = int(_number(gold))
    if abs(number) >= 1000:
        grouped = f"{number:,}"
        yield from (grouped, grouped.replace(",", "{,}"), grouped.replace(",", "\\,"), str(number))


def _fraction_of_integers(gold: Gold) -> Iterator[str]:
    number = _number(gold)
    for factor in (2, 7):
        above, below = number.numerator * factor, number.denominator * factor
        yield f"{'-' if above < 0 else ''}\\frac{{{abs(above)}}}{{{below}}}"
        yield f"{above}/{below}"


def _exact_decimal(gold: Gold) -> Iterator[str]:
    decimal = terminating_decimal(_number(gold))
    if decimal is not None and "." in decimal:
        yield from (decimal, decimal + "0")
        yield decimal.replace("0.", ".", 1) if decimal.lstrip("-").startswith("0.") else decimal


def _mixed_number(gold: Gold) -> Iterator[str]:
    whole, rest = divmod(_number(gold), 1)
    if _number(gold) > 1 and rest:
        yield f"{whole}\\frac{{{rest.numerator}}}{{{rest.denominator}}}"
        yield f"{whole} {rest.numerator}/{rest.denominator}"


def _scientific(gold: Gold) -> Iterator[str]:
    digits = str(_number(gold))
    if digits.isdigit() and len(digits) > 1 and digits != "0" * len(digits):
        mantissa = (digits[0] + "." + digits[1:]).rstrip("0").rstrip(".")
        yield f"{mantissa}\\times10^{{{len(digits) - 1}}}"
        yield f"{mantissa}e{len(digits) - 1}"


def _unevaluated(gold: Gold) -> Iterator[str]:
    yield f"{latex_fraction(_number(gold) - 43)}+43"
    if _number(gold) > 0:
        yield f"37\\cdot{latex_fraction(_number(gold) / 37)}"


def _rounded(gold: Gold, *places: int) -> list[str]:
    value = _value(gold)
    return [format(value.decimal(digits), "f") for digits in places] if value.is_real_constant else []


def _other_sign(gold: Gold) -> Iterator[str]:
    if _number(gold):
        percent = gold.kind is Kind.PERCENT
        yield f"{latex_fraction(-_number(gold) * 100)}\\%" if percent else latex_fraction(-_number(gold))


def _slightly_off(gold: Gold) -> Iterator[str]:
    """Decimals that are off by one part in a thousand, in a million, and in ten to the thirteenth."""
    for offset in (Fraction(1, 10**3), Fraction(1, 10**6), Fraction(1, 10**13)):
        number = _number(gold)
        decimal = terminating_decimal(number + (abs(number) or 1) * offset)
        if decimal is not None and terminating_decimal(number) is not None:  # else it may be a correct rounding
            yield decimal


def _percent_of_small(gold: Gold) -> Iterator[str]:
    decimal = terminating_decimal(_number(gold))
    if 0 < _number(gold) < 1 and decimal is not None:
        yield from (f"{decimal}\\%", terminating_decimal(_number(gold) * 100) or "")


def _other_base(gold: Gold) -> Iterator[str]:
    if _number(gold) >= gold.base:
        yield from (str(_number(gold)), f"{gold.name}_{{10}}", f"{gold.name}_{{{gold.base + 1}}}")
    yield f"{gold.name}0_{{{gold.base}}}" if _number(gold) else f"1_{{{gold.base}}}"


def _other_amount(gold: Gold) -> Iterator[str]:
    yield latex_fraction(_number(gold) + 1)
    if gold.name == "°":
        yield f"{latex_fraction(_number(gold) + 1)}^\\circ"


def _radians(gold: Gold) -> Iterator[str]:
    if gold.name == "°" and _number(gold):
        yield write(Expression.constant(_number(gold) / 180) * symbol(PI))


def _decimal_comma(gold: Gold) -> list[str]:
    return [(terminating_decimal(_number(gold)) or "").replace(".", ",")]


def _other_unit(gold: Gold) -> Iterator[str]:
    if gold.name in _UNITS:
        yield re.sub(rf"(?<![A-Za-z]){gold.name}(?![A-Za-z])", _UNITS[gold.name], gold.text)


# Expressions


def _rewritten_terms(gold: Gold) -> Iterator[str]:
    value = _value(gold)
    yield from (write(value), write(value, backwards=True))
    if all(power < 10 for monomial in value.terms for _, power in monomial.powers):
        yield write(value, "plain")


def _plus_a_monomial(gold: Gold, factor: int, multiplied: bool) -> Iterator[str]:
    """Add to an expression a multiple of one of its first three monomials or, if `multiplied`, of the whole term."""
    for monomial, coefficient in list(_value(gold).terms.items())[:3]:
        yield write(_value(gold) + Expression({monomial: factor * (coefficient if multiplied else Fraction(1))}))


def _root_dropped(gold: Gold) -> Iterator[str]:
    """Leave out every root, π and i, or replace every root by the number under it."""
    terms = _value(gold).terms
    for number in (sum(terms.values()), sum(value * monomial.radicand for monomial, value in terms.items())):
        if Expression.constant(number) != _value(gold):
            yield write(Expression.constant(number))


def _other_variable(gold: Gold) -> Iterator[str]:
    old = min(_value(gold).symbols)
    new = next(name for name in "tuwvq" if name not in _value(gold).symbols)

    def renamed(monomial: Monomial) -> Monomial:
        powers = sorted((new if name == old else name, power) for name, power in monomial.powers)
        return Monomial(tuple(powers), monomial.radicand, monomial.imaginary)

    yield write(Expression({renamed(monomial): coefficient for monomial, coefficient in _value(gold).terms.items()}))


def _other_name(gold: Gold) -> Iterator[str]:
    if not _value(gold).symbols:
        yield f"{next(name for name in 'xyzw' if name != gold.name)}={gold.items[0].text}"


# Containers


def _texts(gold: Gold) -> list[str]:
    return [item.text for item in gold.items]


def _inner(gold: Gold) -> str:
    return ", ".join(_texts(gold))


def _like(gold: Gold, texts: Iterable[str]) -> str:
    """Write elements in the form of the gold: as a tuple, or as a list without brackets."""
    return f"({', '.join(texts)})" if gold.kind is Kind.TUPLE else ", ".join(texts)


def _equal_element(gold: Gold) -> Iterator[str]:
    first, number = gold.items[0], gold.items[0].number
    doubled = (
        write(_value(first)) if number is None else f"\\frac{{{number.numerator * 2}}}{{{number.denominator * 2}}}"
    )
    yield _like(gold, [doubled, *_texts(gold)[1:]])


def _other_order(gold: Gold) -> Iterator[str]:
    if [item.value for item in gold.items] != [item.value for item in gold.items[::-1]]:
        yield _like(gold, _texts(gold)[::-1])


def _reordered(gold: Gold) -> Iterator[str]:
    texts = _texts(gold)[::-1]
    yield from (", ".join(texts), f"\\{{{', '.join(texts)}\\}}", f"{', '.join(texts[:-1])} and {texts[-1]}")


def _inequality(gold: Gold) -> Iterator[str]:
    (first, *more) = gold.spans
    if more or end_value(first.low) is None or end_value(first.high) is None:
        return
    low, high = ("\\le " if bracket in "[]" else "<" for bracket in (first.left, first.right))
    yield f"{first.low}{low}x{high}{first.high}"


def _matrix(gold: Gold, environment: str, entries: list[str]) -> str:
    rows = [entries[start : start + gold.columns] for start in range(0, len(entries), gold.columns)]
    body = " \\\\ ".join(" & ".join(row) for row in rows)
    return f"\\begin{{{environment}}} {body} \\end{{{environment}}}"


def _other_brackets(gold: Gold) -> Iterator[str]:
    inner = _inner(gold)
    yield from (f"[{inner}]", f"\\{{{inner}\\}}", inner)
    if len(gold.items) == 2:
        low, high = map(_value, gold.items)
        if low.is_real_constant and high.is_real_constant and low.decimal(30) < high.decimal(30):  # else both are empty
            yield f"({inner}]"


def _other_element(gold: Gold) -> Iterator[str]:
    for index, item in enumerate(gold.items):
        changed = _value(item) + _ONE
        if gold.kind is Kind.TUPLE or changed not in {other.value for other in gold.items}:
            yield _like(gold, [write(changed) if other == index else text for other, text in enumerate(_texts(gold))])


def _element_missing_or_extra(gold: Gold) -> Iterator[str]:
    texts = _texts(gold)
    extra = max((abs(item.number) for item in gold.items if item.number is not None), default=Fraction(0)) + 97
    for changed in (texts[:-1], texts[1:], [*texts, latex_fraction(extra)]):
        if len(changed) > 1 or gold.kind is Kind.LIST:
            yield _like(gold, changed)


def _other_end(gold: Gold) -> Iterator[str]:
    """Include an excluded end or exclude an included end, and move an end by one."""
    (first, *more) = gold.spans
    other = {"(": "[", "[": "(", ")": "]", "]": ")"}
    changed = []
    low, high = end_value(first.low), end_value(first.high)
    if low is not None:
        changed.append(Span(other[first.left], first.low, first.high, first.right))
        changed.append(Span(first.left, write(low - _ONE), first.high, first.right))
    if high is not None and not more:
        changed.append(Span(first.left, first.low, first.high, other[first.right]))
        changed.append(Span(first.left, first.low, write(high + _ONE), first.right))
    yield from ("\\cup".join(map(str, (span, *more))) for span in changed)


def _other_entry(gold: Gold) -> Iterator[str]:
    for index in (0, len(gold.items) - 1):
        entries = _texts(gold)
        entries[index] = write(_value(gold.items[index]) + _ONE)
        yield _matrix(gold, "pmatrix", entries)


def _other_shape(gold: Gold) -> Iterator[str]:
    yield _matrix(gold, "vmatrix", _texts(gold))
    if gold.columns == 1:
        yield f"\\begin{{pmatrix}} {' & '.join(_texts(gold))} \\end{{pmatrix}}"


def _other_choice(gold: Gold) -> Iterator[str]:
    first, second = [letter for letter in "ABCDE" if letter != gold.name][:2]
    yield from (f"({first})", second, f"{first} and {gold.name}", f"not {gold.name}")


_Table = Mapping[str, tuple[str, Rewrite]]
_EQUAL: _Table = {
    "itself": (", ".join(Kind), lambda gold: [gold.text]),
    "typography": (", ".join(kind for kind in Kind if kind is not Kind.UNKNOWN), _typography),
    "marking": (f"{_REALS}, constant, choice; policy", _marking),
    "trailing-zeros": ("integer", _of(lambda n: [f"{n}.0", f"{n}.00"])),
    "leading-zero": ("integer; policy", _of(lambda n: _if(n >= 0, f"0{n}"))),
    "grouped-thousands": ("integer", _grouped_thousands),
    "unicode-digits": ("integer; policy", _of(lambda n: [str(n).translate(_FULL_WIDTH)])),
    "fraction-of-integers": (f"{_REALS}; symmetric", _fraction_of_integers),
    "lowest-terms": ("decimal, fraction, mixed number; symmetric", _of(lambda n: [latex_fraction(n), str(n)])),
    "exact-decimal": ("fraction, mixed number, decimal; symmetric", _exact_decimal),
    "mixed-number": ("fraction, decimal; policy", _mixed_number),
    "scientific": ("integer", _scientific),
    "unevaluated": (f"{_REALS}; policy", _unevaluated),
    "named-value": (f"{_REALS}; policy", _of(lambda n: [f"x={latex_fraction(n)}"])),
    "set-of-one": ("integer; policy", _of(lambda n: [f"\\{{{n}\\}}"])),
    "percent-sign": ("integer; policy", _of(lambda n: _if(n >= 1, f"{n}\\%"))),
    "percent-as-fraction": (
        "percent; policy", _of(lambda n: [latex_fraction(n), terminating_decimal(n) or latex_fraction(n)]),
    ),
    "base-left-out": ("numeral; policy", lambda gold: [gold.name, f"{gold.name}_{{{gold.base}}}"]),
    "unit-left-out": ("quantity; policy", _of(lambda n: [latex_fraction(n)])),
    "long-rounding": ("constant; policy", lambda gold: _rounded(gold, 14)),
    "rewritten-terms": ("constant, polynomial; symmetric", _rewritten_terms),
    "common-factor": (
        "polynomial, constant",
        lambda gold: _if(len(_value(gold).terms) > 1, f"2\\left({write(_value(gold) * _HALF)}\\right)"),
    ),
    "name-left-out": ("assignment; policy", lambda gold: [gold.items[0].text]),
    "value-rewritten": ("assignment", lambda gold: [f"{gold.name}={write(_value(gold), backwards=True)}"]),
    "equal-element": ("tuple", _equal_element),
    "reordered": ("list; policy", _reordered),
    "named-interval": (
        "interval", lambda gold: _if("\\in" not in gold.text.replace("\\infty", ""), f"x\\in {gold.text}"),
    ),
    "swapped-union": ("interval", lambda gold: _if(len(gold.spans) > 1, "\\cup".join(map(str, gold.spans[::-1])))),
    "inequality": ("interval; policy", _inequality),
    "matrix-brackets": ("matrix; policy", lambda gold: [_matrix(gold, name, _texts(gold)) for name in ("bmatrix", "pmatrix")]),
    "column-as-tuple": ("matrix; policy", lambda gold: _if(gold.columns == 1, f"({_inner(gold)})")),
    "choice-spelling": ("choice; policy", lambda gold: _named(gold, "{}", "{}.", "({})", "\\text{{{}}}", "\\text{{({})}}")),
    "word-case": (
        "text; policy",
        lambda gold: [gold.name.lower(), gold.name.capitalize(), f"\\text{{{gold.name.upper()}}}", f"\\textbf{{{gold.name}}}"],
    ),
    "article": ("text; policy", lambda gold: _named(gold, "the {}")),
}  # fmt: skip
_NEAR: _Table = {
    "off-by-one": (f"{_REALS}; symmetric", _of(lambda n: [latex_fraction(n + 1), latex_fraction(n - 1)])),
    "other-sign": (f"{_REALS}, percent", _other_sign),
    "other-magnitude": ("integer", _of(lambda n: _if(n, f"{n}0", f"{n}7", f"{n}\\times10^{{2}}"))),
    "slightly-off": (_RATIONALS, _slightly_off),
    # Differences below the precision of floats, written so that nothing obviously cancels.
    "inflated-off-by-one": ("integer; symmetric", _of(lambda n: [f"{n * 2**70 + 1}/{2**70}"])),
    "short-rounding": (
        "fraction, mixed number; policy",
        lambda gold: _rounded(gold, 2, 4, 6) if terminating_decimal(_number(gold)) is None else [],
    ),
    "short-rounding-of-constant": ("constant; policy", lambda gold: _rounded(gold, 3, 6)),
    "upside-down": ("fraction, decimal; symmetric", _of(lambda n: [latex_fraction(1 / n)] if n not in (0, 1, -1) else [])),
    "integer-part": ("fraction, decimal", _of(lambda n: _if(n.denominator != 1, str(int(n)), str(n.numerator)))),
    "percent-of-small": ("decimal, fraction; policy", _percent_of_small),
    "other-percent": ("percent", _of(lambda n: [f"{latex_fraction(n * 100 + 1)}\\%", latex_fraction(n + 1)])),
    "other-base": ("numeral; policy", _other_base),
    "other-amount": ("quantity", _other_amount),
    "other-unit": ("quantity; policy", _other_unit),
    "radians": ("quantity; policy", _radians),
    "other-coefficient": ("constant, polynomial; symmetric", lambda gold: _plus_a_monomial(gold, 1, multiplied=False)),
    "one-sign-flipped": ("constant, polynomial; symmetric", lambda gold: _plus_a_monomial(gold, -2, multiplied=True)),
    "term-dropped": (
        "constant, polynomial",
        lambda gold: _plus_a_monomial(gold, -1, multiplied=True) if len(_value(gold).terms) > 1 else [],
    ),
    "root-dropped": ("constant", _root_dropped),
    "other-variable": ("polynomial; policy", _other_variable),
    "other-value": ("assignment", lambda gold: [f"{gold.name}={write(_value(gold) + _ONE)}", write(_value(gold) - _ONE)]),
    "other-name": ("assignment; policy", _other_name),
    "other-order": ("tuple", _other_order),
    "other-brackets": ("tuple; policy", _other_brackets),
    "brackets-added": ("list; policy", lambda gold: [f"({_inner(gold)})", f"[{_inner(gold)}]"]),
    "other-element": ("tuple, list", _other_element),
    "element-missing-or-extra": ("tuple, list", _element_missing_or_extra),
    "other-end": ("interval", _other_end),
    "part-of-union": ("interval", lambda gold: _if(len(gold.spans) > 1, str(gold.spans[0]), str(gold.spans[-1]))),
    "other-entry": ("matrix", _other_entry),
    "other-shape": ("matrix; policy", _other_shape),
    "other-choice": ("choice; policy", _other_choice),
    "other-word": ("text", lambda gold: [*_named(gold, "not {}", "\\text{{{}x}}"), "zzyzx"]),
}  # fmt: skip
_OPTIONAL: Mapping[str, tuple[str, str, Rewrite]] = {
    "within-one-percent": (_RATIONALS, "rel_tol=0.01", _decimals(lambda n: [n * Fraction(1009, 1000)] if n else [])),
    "within-an-error": (_RATIONALS, "abs_tol=1e-8", _decimals(lambda n: [n + Fraction(5, 10**9)])),
    "hundredth-or-hundredfold": (_RATIONALS, "percent='factor'", _decimals(lambda n: [n * 100, n / 100] if n else [])),
    "decimal-comma": ("decimal", "decimal_comma=True", _decimal_comma),
}
"""Rewritings that a verifier accepts only with an option: the kinds of gold, the option, and the rewriting."""

for _label, _table in ((Label.CORRECT, _EQUAL), (Label.WRONG, _NEAR)):
    for _name, (_kinds, _rewrite) in _table.items():
        enter(_name, _label, _kinds, _rewrite)
for _name, (_kinds, _option, _rewrite) in _OPTIONAL.items():
    enter(_name, Label.ANY, _kinds, _rewrite, option=_option)
