"""Rewriting a gold answer into equal forms and into near misses.

Each transformation names the kinds of gold it applies to, and its label holds for all of them: by mathematics, or by the
default policy of the math verifier (`docs/math.md`), as its basis says. Where neither decides, there is no transformation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from verifiers.audit.expressions import PI, Expression, Monomial, symbol
from verifiers.audit.golds import Gold, Kind, Span, end_value
from verifiers.audit.markings import WRAPPERS
from verifiers.audit.registry import equal, near, optional
from verifiers.audit.writing import latex_fraction, terminating_decimal, write

_RATIONALS = (Kind.INTEGER, Kind.DECIMAL, Kind.FRACTION)
_MARKED = (Kind.INTEGER, Kind.DECIMAL, Kind.FRACTION, Kind.MIXED, Kind.CONSTANT, Kind.CHOICE)
_REALS = (*_RATIONALS, Kind.MIXED)


def _value(gold: Gold) -> Expression:
    assert gold.value is not None
    return gold.value


def _number(gold: Gold) -> Fraction:
    number = _value(gold).rational
    assert number is not None
    return number


# Equal forms of anything


@equal(*Kind)
def _itself(gold: Gold) -> Iterator[str]:
    yield gold.text


@equal(*(kind for kind in Kind if kind is not Kind.UNKNOWN))
def _typography(gold: Gold) -> Iterator[str]:
    yield f" {gold.text} "
    if "$" not in gold.text:
        yield f"${gold.text}$"
    if gold.kind is Kind.TUPLE and "\\left" not in gold.text:
        yield f"\\left{gold.text[:-1]}\\right{gold.text[-1]}"
    if "\\frac" in gold.text:
        yield gold.text.replace("\\frac", "\\dfrac").replace("\\ddfrac", "\\dfrac")


@equal(*_MARKED, basis="policy")
def _marking(gold: Gold) -> Iterator[str]:
    for wrapper in WRAPPERS:
        if wrapper.usual and wrapper.fits(gold.text):
            yield wrapper(gold.text)


# Equal numbers


@equal(Kind.INTEGER)
def _trailing_zeros(gold: Gold) -> Iterator[str]:
    yield f"{_number(gold)}.0"
    yield f"{_number(gold)}.00"


@equal(Kind.INTEGER, basis="policy")
def _leading_zero(gold: Gold) -> Iterator[str]:
    if _number(gold) >= 0:
        yield f"0{_number(gold)}"


@equal(Kind.INTEGER)
def _grouped_thousands(gold: Gold) -> Iterator[str]:
    number = int(_number(gold))
    if abs(number) >= 1000:
        grouped = f"{number:,}"
        yield grouped
        yield grouped.replace(",", "{,}")
        yield grouped.replace(",", "\\,")
        yield str(number)


@equal(Kind.INTEGER, basis="policy")
def _unicode_digits(gold: Gold) -> Iterator[str]:
    yield str(_number(gold)).translate(str.maketrans("0123456789-", "０１２３４５６７８９−"))


@equal(*_REALS, symmetric=True)
def _fraction_of_integers(gold: Gold) -> Iterator[str]:
    number = _number(gold)
    for factor in (2, 7):
        above, below = number.numerator * factor, number.denominator * factor
        sign = "-" if above < 0 else ""
        yield f"{sign}\\frac{{{abs(above)}}}{{{below}}}"
        yield f"{above}/{below}"


@equal(Kind.DECIMAL, Kind.FRACTION, Kind.MIXED, symmetric=True)
def _lowest_terms(gold: Gold) -> Iterator[str]:
    yield latex_fraction(_number(gold))
    yield str(_number(gold))


@equal(Kind.FRACTION, Kind.MIXED, Kind.DECIMAL, symmetric=True)
def _exact_decimal(gold: Gold) -> Iterator[str]:
    decimal = terminating_decimal(_number(gold))
    if decimal is not None and "." in decimal:
        yield decimal
        yield decimal + "0"
        yield decimal.replace("0.", ".", 1) if decimal.lstrip("-").startswith("0.") else decimal


@equal(Kind.FRACTION, Kind.DECIMAL, basis="policy")
def _mixed_number(gold: Gold) -> Iterator[str]:
    number = _number(gold)
    if number > 1 and number.denominator != 1:
        whole, rest = divmod(number, 1)
        yield f"{whole}\\frac{{{rest.numerator}}}{{{rest.denominator}}}"
        yield f"{whole} {rest.numerator}/{rest.denominator}"


@equal(Kind.INTEGER)
def _scientific(gold: Gold) -> Iterator[str]:
    digits = str(_number(gold))
    if digits.isdigit() and len(digits) > 1 and digits != "0" * len(digits):
        mantissa = (digits[0] + "." + digits[1:]).rstrip("0").rstrip(".")
        yield f"{mantissa}\\times10^{{{len(digits) - 1}}}"
        yield f"{mantissa}e{len(digits) - 1}"


@equal(*_REALS, basis="policy")
def _unevaluated(gold: Gold) -> Iterator[str]:
    number = _number(gold)
    yield f"{latex_fraction(number - 43)}+43"
    if number > 0:
        yield f"37\\cdot{latex_fraction(number / 37)}"


@equal(*_RATIONALS, Kind.MIXED, basis="policy")
def _named_value(gold: Gold) -> Iterator[str]:
    yield f"x={latex_fraction(_number(gold))}"


@equal(Kind.INTEGER, basis="policy")
def _set_of_one(gold: Gold) -> Iterator[str]:
    yield f"\\{{{_number(gold)}\\}}"


@equal(Kind.INTEGER, basis="policy")
def _percent_sign(gold: Gold) -> Iterator[str]:
    if _number(gold) >= 1:
        yield f"{_number(gold)}\\%"


@equal(Kind.PERCENT, basis="policy")
def _percent_as_fraction(gold: Gold) -> Iterator[str]:
    yield latex_fraction(_number(gold))
    yield terminating_decimal(_number(gold)) or latex_fraction(_number(gold))


@equal(Kind.NUMERAL, basis="policy")
def _base_left_out(gold: Gold) -> Iterator[str]:
    yield gold.name
    yield f"{gold.name}_{{{gold.base}}}"


@equal(Kind.QUANTITY, basis="policy")
def _unit_left_out(gold: Gold) -> Iterator[str]:
    yield latex_fraction(_number(gold))


@equal(Kind.CONSTANT, basis="policy")
def _long_rounding(gold: Gold) -> Iterator[str]:
    if _value(gold).is_real_constant:
        yield format(_value(gold).decimal(14), "f")


# Equal expressions


@equal(Kind.CONSTANT, Kind.POLYNOMIAL, symmetric=True)
def _rewritten_terms(gold: Gold) -> Iterator[str]:
    value = _value(gold)
    yield write(value)
    yield write(value, backwards=True)
    if all(power < 10 for monomial in value.terms for _, power in monomial.powers):
        yield write(value, "plain")


@equal(Kind.POLYNOMIAL, Kind.CONSTANT)
def _common_factor(gold: Gold) -> Iterator[str]:
    if len(_value(gold).terms) > 1:
        yield f"2\\left({write(_value(gold) * Expression.constant(Fraction(1, 2)))}\\right)"


@equal(Kind.ASSIGNMENT, basis="policy")
def _name_left_out(gold: Gold) -> Iterator[str]:
    yield gold.items[0].text


@equal(Kind.ASSIGNMENT)
def _value_rewritten(gold: Gold) -> Iterator[str]:
    yield f"{gold.name}={write(_value(gold), backwards=True)}"


# Equal containers


@equal(Kind.TUPLE)
def _equal_element(gold: Gold) -> Iterator[str]:
    first, *others = gold.items
    yield f"({', '.join([_element_form(first), *(item.text for item in others)])})"


def _element_form(item: Gold) -> str:
    number = item.number
    return write(_value(item)) if number is None else f"\\frac{{{number.numerator * 2}}}{{{number.denominator * 2}}}"


@equal(Kind.LIST, basis="policy")
def _reordered(gold: Gold) -> Iterator[str]:
    texts = [item.text for item in reversed(gold.items)]
    yield ", ".join(texts)
    yield f"\\{{{', '.join(texts)}\\}}"
    yield f"{', '.join(texts[:-1])} and {texts[-1]}"


@equal(Kind.INTERVAL)
def _named_interval(gold: Gold) -> Iterator[str]:
    if "\\in" not in gold.text.replace("\\infty", ""):
        yield f"x\\in {gold.text}"


@equal(Kind.INTERVAL)
def _swapped_union(gold: Gold) -> Iterator[str]:
    if len(gold.spans) > 1:
        yield "\\cup".join(map(str, reversed(gold.spans)))


@equal(Kind.INTERVAL, basis="policy")
def _inequality(gold: Gold) -> Iterator[str]:
    (first, *more) = gold.spans
    if more or end_value(first.low) is None or end_value(first.high) is None:
        return
    low, high = ("\\le " if bracket in "[]" else "<" for bracket in (first.left, first.right))
    yield f"{first.low}{low}x{high}{first.high}"


@equal(Kind.MATRIX, basis="policy")
def _matrix_brackets(gold: Gold) -> Iterator[str]:
    yield _matrix_text(gold, "bmatrix", [item.text for item in gold.items])
    yield _matrix_text(gold, "pmatrix", [item.text for item in gold.items])


def _matrix_text(gold: Gold, environment: str, entries: list[str]) -> str:
    rows = [entries[start : start + gold.columns] for start in range(0, len(entries), gold.columns)]
    body = " \\\\ ".join(" & ".join(row) for row in rows)
    return f"\\begin{{{environment}}} {body} \\end{{{environment}}}"


@equal(Kind.MATRIX, basis="policy")
def _column_as_tuple(gold: Gold) -> Iterator[str]:
    if gold.columns == 1:
        yield f"({', '.join(item.text for item in gold.items)})"


# Equal words


@equal(Kind.CHOICE, basis="policy")
def _choice_spelling(gold: Gold) -> Iterator[str]:
    letter = gold.name
    yield from (letter, f"{letter}.", f"({letter})", f"\\text{{{letter}}}", f"\\text{{({letter})}}")


@equal(Kind.TEXT, basis="policy")
def _word_case(gold: Gold) -> Iterator[str]:
    yield from (gold.name.lower(), gold.name.capitalize(), f"\\text{{{gold.name.upper()}}}", f"\\textbf{{{gold.name}}}")


@equal(Kind.TEXT, basis="policy")
def _article(gold: Gold) -> Iterator[str]:
    yield f"the {gold.name}"


# Near misses of numbers


@near(*_REALS, symmetric=True)
def _off_by_one(gold: Gold) -> Iterator[str]:
    yield latex_fraction(_number(gold) + 1)
    yield latex_fraction(_number(gold) - 1)


@near(*_REALS, Kind.PERCENT)
def _other_sign(gold: Gold) -> Iterator[str]:
    if _number(gold):
        percent = gold.kind is Kind.PERCENT
        yield f"{latex_fraction(-_number(gold) * 100)}\\%" if percent else latex_fraction(-_number(gold))


@near(Kind.INTEGER)
def _other_magnitude(gold: Gold) -> Iterator[str]:
    number = _number(gold)
    if number:
        yield f"{number}0"
        yield f"{number}7"
        yield f"{number}\\times10^{{2}}"


@near(*_RATIONALS)
def _slightly_off(gold: Gold) -> Iterator[str]:
    """Off by one part in a thousand, in a million, and in ten to the thirteenth."""
    for offset in (Fraction(1, 10**3), Fraction(1, 10**6), Fraction(1, 10**13)):
        number = _number(gold)
        decimal = terminating_decimal(number + (abs(number) or 1) * offset)
        if decimal is not None and terminating_decimal(number) is not None:  # else it may be a correct rounding
            yield decimal


@near(Kind.INTEGER, symmetric=True)
def _inflated_off_by_one(gold: Gold) -> Iterator[str]:
    """Differences below the precision of floats, written so that nothing obviously cancels."""
    power = 2**70
    yield f"{_number(gold) * power + 1}/{power}"


@near(Kind.FRACTION, Kind.MIXED, basis="policy")
def _short_rounding(gold: Gold) -> Iterator[str]:
    value = _value(gold)
    if terminating_decimal(_number(gold)) is None:
        yield from (format(value.decimal(digits), "f") for digits in (2, 4, 6))


@near(Kind.CONSTANT, basis="policy")
def _short_rounding_of_constant(gold: Gold) -> Iterator[str]:
    if _value(gold).is_real_constant:
        yield from (format(_value(gold).decimal(digits), "f") for digits in (3, 6))


@near(Kind.FRACTION, Kind.DECIMAL, symmetric=True)
def _upside_down(gold: Gold) -> Iterator[str]:
    number = _number(gold)
    if number and number not in (1, -1):
        yield latex_fraction(1 / number)


@near(Kind.FRACTION, Kind.DECIMAL)
def _integer_part(gold: Gold) -> Iterator[str]:
    number = _number(gold)
    if number.denominator != 1:
        yield str(int(number))
        yield str(number.numerator)


@near(Kind.DECIMAL, Kind.FRACTION, basis="policy")
def _percent_of_small(gold: Gold) -> Iterator[str]:
    number = _number(gold)
    decimal = terminating_decimal(number)
    if 0 < number < 1 and decimal is not None:
        yield f"{decimal}\\%"
        yield terminating_decimal(number * 100) or ""


@near(Kind.PERCENT)
def _other_percent(gold: Gold) -> Iterator[str]:
    number = _number(gold)
    yield f"{latex_fraction(number * 100 + 1)}\\%"
    yield latex_fraction(number + 1)


@near(Kind.NUMERAL, basis="policy")
def _other_base(gold: Gold) -> Iterator[str]:
    if _number(gold) >= gold.base:
        yield str(_number(gold))
        yield f"{gold.name}_{{10}}"
        yield f"{gold.name}_{{{gold.base + 1}}}"
    yield f"{gold.name}0_{{{gold.base}}}" if _number(gold) else f"1_{{{gold.base}}}"


@near(Kind.QUANTITY)
def _other_amount(gold: Gold) -> Iterator[str]:
    yield latex_fraction(_number(gold) + 1)
    if gold.name == "°":
        yield f"{latex_fraction(_number(gold) + 1)}^\\circ"


_OTHER_UNITS = {
    "cm": "m",
    "m": "cm",
    "km": "m",
    "inches": "feet",
    "feet": "inches",
    "cents": "dollars",
    "hours": "minutes",
}


@near(Kind.QUANTITY, basis="policy")
def _other_unit(gold: Gold) -> Iterator[str]:
    if gold.name in _OTHER_UNITS:
        yield re.sub(rf"(?<![A-Za-z]){gold.name}(?![A-Za-z])", _OTHER_UNITS[gold.name], gold.text)


@near(Kind.QUANTITY, basis="policy")
def _radians(gold: Gold) -> Iterator[str]:
    number = _number(gold)
    if gold.name == "°" and number:
        yield write(Expression.constant(number / 180) * symbol(PI))


# Near misses of expressions


@near(Kind.CONSTANT, Kind.POLYNOMIAL, symmetric=True)
def _other_coefficient(gold: Gold) -> Iterator[str]:
    for monomial in list(_value(gold).terms)[:3]:
        changed = _value(gold) + Expression({monomial: Fraction(1)})
        yield write(changed)


@near(Kind.CONSTANT, Kind.POLYNOMIAL, symmetric=True)
def _one_sign_flipped(gold: Gold) -> Iterator[str]:
    value = _value(gold)
    for monomial, coefficient in list(value.terms.items())[:3]:
        yield write(value - Expression({monomial: 2 * coefficient}))


@near(Kind.CONSTANT, Kind.POLYNOMIAL)
def _term_dropped(gold: Gold) -> Iterator[str]:
    terms = _value(gold).terms
    if len(terms) > 1:
        for monomial in list(terms)[:3]:
            yield write(Expression({other: value for other, value in terms.items() if other != monomial}))


@near(Kind.CONSTANT)
def _root_dropped(gold: Gold) -> Iterator[str]:
    """Leave out each root, π and i, and replace roots by the numbers under them."""
    value = _value(gold)
    dropped = Expression.constant(sum(value.terms.values()))
    if dropped != value:
        yield write(dropped)
    squared = Expression.constant(sum(coefficient * monomial.radicand for monomial, coefficient in value.terms.items()))
    if squared != value:
        yield write(squared)


@near(Kind.POLYNOMIAL, basis="policy")
def _other_variable(gold: Gold) -> Iterator[str]:
    old = min(_value(gold).symbols)
    new = next(name for name in "tuwvq" if name not in _value(gold).symbols)
    renamed = Expression(
        {_renamed(monomial, old, new): coefficient for monomial, coefficient in _value(gold).terms.items()}
    )
    yield write(renamed)


def _renamed(monomial: Monomial, old: str, new: str) -> Monomial:
    powers = sorted((new if name == old else name, power) for name, power in monomial.powers)
    return Monomial(tuple(powers), monomial.radicand, monomial.imaginary)


@near(Kind.ASSIGNMENT)
def _other_value(gold: Gold) -> Iterator[str]:
    yield f"{gold.name}={write(_value(gold) + Expression.constant(1))}"
    yield write(_value(gold) - Expression.constant(1))


@near(Kind.ASSIGNMENT, basis="policy")
def _other_name(gold: Gold) -> Iterator[str]:
    taken = {gold.name, *_value(gold).symbols}
    if not _value(gold).symbols:
        yield f"{next(name for name in 'xyzw' if name not in taken)}={gold.items[0].text}"


# Near misses of containers


@near(Kind.TUPLE)
def _other_order(gold: Gold) -> Iterator[str]:
    texts = [item.text for item in gold.items]
    if [item.value for item in gold.items] != [item.value for item in reversed(gold.items)]:
        yield f"({', '.join(reversed(texts))})"


@near(Kind.TUPLE, basis="policy")
def _other_brackets(gold: Gold) -> Iterator[str]:
    inner = ", ".join(item.text for item in gold.items)
    yield from (f"[{inner}]", f"\\{{{inner}\\}}", inner)
    if _is_proper_interval(gold):
        yield f"({inner}]"


def _is_proper_interval(gold: Gold) -> bool:
    """Whether a pair, read as an interval, is not empty: otherwise (a, b) and (a, b] are both empty."""
    if len(gold.items) != 2:
        return False
    low, high = (_value(item) for item in gold.items)
    return low.is_real_constant and high.is_real_constant and low.decimal(30) < high.decimal(30)


@near(Kind.LIST, basis="policy")
def _brackets_added(gold: Gold) -> Iterator[str]:
    inner = ", ".join(item.text for item in gold.items)
    yield from (f"({inner})", f"[{inner}]")


@near(Kind.TUPLE, Kind.LIST)
def _other_element(gold: Gold) -> Iterator[str]:
    left, right = ("(", ")") if gold.kind is Kind.TUPLE else ("", "")
    for index, item in enumerate(gold.items):
        changed = _value(item) + Expression.constant(1)
        if gold.kind is Kind.LIST and changed in {other.value for other in gold.items}:
            continue
        texts = [write(changed) if other == index else element.text for other, element in enumerate(gold.items)]
        yield left + ", ".join(texts) + right


@near(Kind.TUPLE, Kind.LIST)
def _element_missing_or_extra(gold: Gold) -> Iterator[str]:
    left, right = ("(", ")") if gold.kind is Kind.TUPLE else ("", "")
    texts = [item.text for item in gold.items]
    extra = max((abs(item.number) for item in gold.items if item.number is not None), default=Fraction(0)) + 97
    for changed in (texts[:-1], texts[1:], [*texts, latex_fraction(extra)]):
        if len(changed) > 1 or gold.kind is Kind.LIST:
            yield left + ", ".join(changed) + right


@near(Kind.INTERVAL)
def _other_end(gold: Gold) -> Iterator[str]:
    """Include an excluded end or the reverse, and move an end by one."""
    (first, *more) = gold.spans
    other = {"(": "[", "[": "(", ")": "]", "]": ")"}
    changed = []
    low, high = end_value(first.low), end_value(first.high)
    if low is not None:
        changed.append(Span(other[first.left], first.low, first.high, first.right))
        changed.append(Span(first.left, write(low - Expression.constant(1)), first.high, first.right))
    if high is not None and not more:
        changed.append(Span(first.left, first.low, first.high, other[first.right]))
        changed.append(Span(first.left, first.low, write(high + Expression.constant(1)), first.right))
    yield from ("\\cup".join(map(str, (span, *more))) for span in changed)


@near(Kind.INTERVAL)
def _part_of_union(gold: Gold) -> Iterator[str]:
    if len(gold.spans) > 1:
        yield str(gold.spans[0])
        yield str(gold.spans[-1])


@near(Kind.MATRIX)
def _other_entry(gold: Gold) -> Iterator[str]:
    for index in (0, len(gold.items) - 1):
        changed = write(_value(gold.items[index]) + Expression.constant(1))
        entries = [changed if other == index else item.text for other, item in enumerate(gold.items)]
        yield _matrix_text(gold, "pmatrix", entries)


@near(Kind.MATRIX, basis="policy")
def _other_shape(gold: Gold) -> Iterator[str]:
    entries = [item.text for item in gold.items]
    yield _matrix_text(gold, "vmatrix", entries)
    if gold.columns == 1:
        yield f"\\begin{{pmatrix}} {' & '.join(entries)} \\end{{pmatrix}}"


# Near misses of words


@near(Kind.CHOICE, basis="policy")
def _other_choice(gold: Gold) -> Iterator[str]:
    others = [letter for letter in "ABCDE" if letter != gold.name][:2]
    yield from (f"({others[0]})", others[1], f"{others[0]} and {gold.name}", f"not {gold.name}")


@near(Kind.TEXT)
def _other_word(gold: Gold) -> Iterator[str]:
    yield f"not {gold.name}"
    yield f"\\text{{{gold.name}x}}"
    yield "zzyzx"


# What only an option accepts


def _decimal(value: Fraction) -> Iterator[str]:
    text = terminating_decimal(value)
    if text is not None:
        yield text


@optional(*_RATIONALS, option="rel_tol=0.01")
def _within_one_percent(gold: Gold) -> Iterator[str]:
    if _number(gold):
        yield from _decimal(_number(gold) * Fraction(1009, 1000))


@optional(*_RATIONALS, option="abs_tol=1e-8")
def _within_an_error(gold: Gold) -> Iterator[str]:
    yield from _decimal(_number(gold) + Fraction(5, 10**9))


@optional(*_RATIONALS, option="percent='factor'")
def _hundredth_or_hundredfold(gold: Gold) -> Iterator[str]:
    if _number(gold):
        yield from _decimal(_number(gold) * 100)
        yield from _decimal(_number(gold) / 100)


@optional(Kind.DECIMAL, option="decimal_comma=True")
def _decimal_comma(gold: Gold) -> Iterator[str]:
    yield from (text.replace(".", ",") for text in _decimal(_number(gold)))
