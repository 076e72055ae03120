r"""Rewriting structured golds: statements, equations, labels, conditions, families, sets, floors and ceilings.

Each kind of near miss states why it is wrong. No near miss relies on the verdict of a verifier, and none is made if it might be
right after all, for instance because two values are equal or a floor never differs.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import TypeVar

from verifiers.audit.expressions import Expression, symbol
from verifiers.audit.golds import Gold, Kind
from verifiers.audit.reading import read_expression
from verifiers.audit.registry import equal, near
from verifiers.audit.structures import (
    Condition,
    Family,
    Labelled,
    condition,
    family,
    half_lines,
    indexed_symbol,
    labelled_values,
    letters,
    linear_equation,
    named_list,
    renamed,
    rounded_expression,
    statement,
)
from verifiers.audit.writing import terminating_decimal, write

T = TypeVar("T")
_OPPOSITE = {"<": ">", ">": "<", "\\le": "\\ge", "\\ge": "\\le"}
_STRICTNESS = {"<": "\\le", ">": "\\ge", "\\le": "<", "\\ge": ">"}
_ONE = Expression.constant(1)


def _read(reader: Callable[[str], T | None], gold: Gold) -> T:
    """The structure of a gold; the gold's kind guarantees that it can be read."""
    structure = reader(gold.text)
    assert structure is not None
    return structure


def _new_letter(text: str) -> str | None:
    """A letter that does not occur in a text, and is not a usual name of a constant."""
    return next((name for name in "wvuqpz" if name not in text), None)


# Statements about constants


@equal(Kind.STATEMENT, basis="policy")
def _sides_exchanged(gold: Gold) -> Iterator[str]:
    read = _read(statement, gold)
    if read.sign == "=":
        yield f"{write(read.value)}={read.left}"


@near(Kind.STATEMENT)
def _constant_equation(gold: Gold) -> Iterator[str]:
    """False statements: two about numbers, and the gold with its right side more than doubled, which no rounding explains."""
    read = _read(statement, gold)
    yield "1=2"
    yield "\\sin(1)=7"
    away = _ONE if read.value.decimal(20) >= 0 else -_ONE
    yield f"{read.left}{read.sign}{write(read.value + read.value + away)}"


@near(Kind.STATEMENT, basis="policy")
def _other_statement(gold: Gold) -> Iterator[str]:
    """The gold with both sides doubled, if they are numbers other than 0; the result is true, but about other numbers."""
    read = _read(statement, gold)
    left, right = (None if side is None else side.rational for side in (read_expression(read.left), read.value))
    if left and right:
        double = terminating_decimal(2 * right)
        yield f"{write(Expression.constant(2 * left))}{read.sign}{double or write(Expression.constant(2 * right))}"


# Linear equations: two of them have the same solutions exactly if one is a multiple of the other


@equal(Kind.LINEAR_EQUATION)
def _other_side(gold: Gold) -> Iterator[str]:
    read = _read(linear_equation, gold)
    yield f"{read.words}{write(read.left - read.right)}=0"


@near(Kind.LINEAR_EQUATION)
def _right_side_alone(gold: Gold) -> Iterator[str]:
    """A number, although the gold is a relation between unknowns."""
    read = _read(linear_equation, gold)
    if not read.right.symbols:
        yield write(read.right)


@near(Kind.LINEAR_EQUATION, symmetric=True)
def _other_equation(gold: Gold) -> Iterator[str]:
    """Change the constant, or the sign of one of the unknowns; the result is not a multiple of the gold."""
    read = _read(linear_equation, gold)
    yield f"{write(read.left)}={write(read.right + _ONE)}"
    difference = read.left - read.right
    for name in sorted(difference.symbols):
        terms = {
            monomial: coefficient
            for monomial, coefficient in difference.terms.items()
            if dict(monomial.powers).get(name)
        }
        yield f"{write(difference - Expression(terms) - Expression(terms))}=0"


# Values with labels


def _written(values: Sequence[Labelled]) -> str:
    return ", ".join(f"{one.label}{one.value.text}" for one in values)


@equal(Kind.LABELLED, basis="policy")
def _labels_in_other_order(gold: Gold) -> Iterator[str]:
    yield _written(labelled_values(gold.text)[::-1])


@near(Kind.LABELLED)
def _swapped_labels(gold: Gold) -> Iterator[str]:
    """Exchange two values that are not equal, so that each name has the wrong value."""
    values = labelled_values(gold.text)
    for index, (one, two) in enumerate(itertools.pairwise(values)):
        if one.value.value != two.value.value:
            changed = [Labelled(one.label, two.value), Labelled(two.label, one.value)]
            yield _written([*values[:index], *changed, *values[index + 2 :]])


@near(Kind.LABELLED)
def _part_of_labelled(gold: Gold) -> Iterator[str]:
    values = labelled_values(gold.text)
    yield _written(values[:1])
    yield _written(values[1:])


@near(Kind.NAMED_LIST)
def _part_of_named_list(gold: Gold) -> Iterator[str]:
    """Leave out one of several different values."""
    name, items = _read(named_list, gold)
    yield f"{name}={', '.join(item.text for item in items[1:])}"
    yield f"{name}={', '.join(item.text for item in items[:-1])}"


@near(Kind.NAMED_LIST, Kind.LINEAR_EQUATION, Kind.ROUNDED, basis="policy")
def _other_letter(gold: Gold) -> Iterator[str]:
    new = _new_letter(gold.text)
    if new is not None:
        yield renamed(gold.text, min(letters(gold.text)), new)


# Conditions


def _condition(read: Condition, sign: str, bound: Expression, letter: str = "") -> str:
    return f"{read.head}{letter or read.letter}{sign} {write(bound)}"


@equal(Kind.CONDITION)
def _relation_reversed(gold: Gold) -> Iterator[str]:
    read = _read(condition, gold)
    yield f"{read.head}{write(read.bound)}{_OPPOSITE[read.sign]} {read.letter}"


@near(Kind.CONDITION)
def _flipped_condition(gold: Gold) -> Iterator[str]:
    """Reverse the direction of the inequality or change its bound; the solutions then differ by whole intervals."""
    read = _read(condition, gold)
    yield _condition(read, _OPPOSITE[read.sign], read.bound)
    yield _condition(read, read.sign, read.bound + _ONE)


@near(Kind.CONDITION)
def _other_strictness(gold: Gold) -> Iterator[str]:
    """Change the strictness of an inequality that stands alone; text before the inequality might already include the end."""
    read = _read(condition, gold)
    if not read.head:
        yield _condition(read, _STRICTNESS[read.sign], read.bound)


@near(Kind.CONDITION, basis="policy")
def _condition_on_other_letter(gold: Gold) -> Iterator[str]:
    read = _read(condition, gold)
    new = _new_letter(gold.text)
    if new is not None:
        yield _condition(read, read.sign, read.bound, new)


# Sets by their conditions


def _sets(sets: Sequence[Condition]) -> str:
    return ", ".join(f"\\{{{one.letter}\\mid {_condition(one, one.sign, one.bound)}\\}}" for one in sets)


@near(Kind.HALF_LINES)
def _flipped_set(gold: Gold) -> Iterator[str]:
    """Reverse the inequality of one set, unless the result is already among the sets."""
    sets = half_lines(gold.text)
    signs = _OPPOSITE[sets[0].sign]
    changed = Condition("", sets[0].letter, signs, sets[0].bound)
    if all((one.sign, one.bound) != (changed.sign, changed.bound) for one in sets):
        yield _sets([changed, *sets[1:]])


@near(Kind.HALF_LINES)
def _subset_or_superset(gold: Gold) -> Iterator[str]:
    """Leave out one of several different sets, and add a different set."""
    sets = half_lines(gold.text)
    if len(sets) > 1:
        yield _sets(sets[1:])
        yield _sets(sets[:-1])
    bounds = [one.bound for one in sets]
    other = next(bound for number in range(97, 200) if (bound := bounds[0] + Expression.constant(number)) not in bounds)
    yield _sets([*sets, Condition("", sets[0].letter, sets[0].sign, other)])


# Families of constants


def _family(read: Family, start: Expression, step: Expression, letter: str = "") -> str:
    letter = letter or read.letter
    return f"{read.name}{write(start + step * symbol(letter))}{renamed(read.ending, read.letter, letter)}"


@equal(Kind.FAMILY)
def _other_bound_letter(gold: Gold) -> Iterator[str]:
    read = _read(family, gold)
    yield from (_family(read, read.start, read.step, letter) for letter in "km" if letter not in letters(gold.text))


@equal(Kind.FAMILY)
def _other_start(gold: Gold) -> Iterator[str]:
    """Describe the same constants from the next constant on, and with the opposite step."""
    read = _read(family, gold)
    yield _family(read, read.start + read.step, read.step)
    yield _family(read, read.start, -read.step)


@near(Kind.FAMILY)
def _other_family(gold: Gold) -> Iterator[str]:
    """Keep only every second constant, give twice as many constants, and give only the constants halfway between."""
    read = _read(family, gold)
    half = Expression.constant(Fraction(1, 2)) * read.step
    yield _family(read, read.start, read.step + read.step)
    yield _family(read, read.start, half)
    yield _family(read, read.start + half, read.step)


# Floors and ceilings


@near(Kind.ROUNDED, basis="policy", symmetric=True)
def _off_by_one_floor(gold: Gold) -> Iterator[str]:
    """Change the rounding, or shift the rounded letter by one, but only if some integer shows that the values differ.

    By policy, the letter can be any positive integer, although a problem may say that it is even.
    """
    read = _read(rounded_expression, gold)
    for group in read.groups():
        direction, inner = group[1], group[2]
        other, correction = ("ceil", "-1") if direction == "floor" else ("floor", "+1")
        swapped = f"\\l{other}{inner}\\r{other}"
        changed = [swapped, f"({swapped}{correction})"] + [
            f"\\l{direction}{renamed(inner, read.letter, f'{{({read.letter}{by})}}')}\\r{direction}"
            for by in ("+1", "-1")
        ]
        for piece in changed:
            answer = f"{read.text[: group.start()]}{piece}{read.text[group.end() :]}".replace("*", "\\cdot ")
            if read.differs(answer.replace("\\cdot ", "*")):
                yield answer


@near(Kind.ROUNDED)
def _one_more_or_less(gold: Gold) -> Iterator[str]:
    yield f"{gold.text}+1"
    yield f"{gold.text}-1"


# Times and indices


@near(Kind.TIME)
def _other_minute(gold: Gold) -> Iterator[str]:
    """Change the minute; since the hour is not 0, the result also differs from the gold if both are read as ratios."""
    hour, minute = gold.text.split(":")
    yield f"{hour}:{(int(minute) + 1) % 60:02}"


@near(Kind.INTEGER, basis="policy")
def _time_for_number(gold: Gold) -> Iterator[str]:
    number = gold.number
    if number is not None and 0 < number < 24:
        yield f"{number}:00"


@near(Kind.POLYNOMIAL, basis="policy")
def _index_added(gold: Gold) -> Iterator[str]:
    """Add an index to one letter, which makes the letter another symbol; the result is not a numeral."""
    assert gold.value is not None
    text = write(gold.value)
    indexed = re.sub(r"(?<![A-Za-z\\])([a-hj-zA-Z](?:\^\{\d+\})?)(?![A-Za-z}])", r"\1_{10}", text, count=1)
    if indexed != text:
        yield indexed


@near(Kind.INDEXED, basis="policy")
def _other_index(gold: Gold) -> Iterator[str]:
    """Remove or change the index of the only symbol that has an index, so that it becomes another symbol."""
    match = _read(indexed_symbol, gold)
    before, after = gold.text[: match.start()], gold.text[match.end() :]
    plain = f"{match[1]}{match[2]}"
    if match[1] not in letters(before + after):
        yield f"{before}{plain}{after}"
    yield f"{before}{plain}_{{{int(match[3] or match[4]) + 1}}}{after}"
