"""Numbers: integers, fractions, decimals, percentages, numerals and numbers with units."""

from __future__ import annotations

import math
import random
from fractions import Fraction

from verifiers.audit.subjects.drawn import Drawn, not_zero, subject
from verifiers.audit.writing import latex_fraction, terminating_decimal


def digits_exchanged(text: str) -> tuple[str, ...]:
    """The numeral with its last two different neighbouring digits exchanged; empty if it has no such pair."""
    places = [at for at in range(1, len(text) - 1) if text[at] != text[at + 1] and text[at : at + 2].isdigit()]
    return tuple(text[:at] + text[at + 1] + text[at] + text[at + 2 :] for at in places[-1:])


def _repeating_decimal(value: Fraction) -> str:
    r"""A rational number as a decimal, with its repeating digits under `\overline`."""
    sign = "-" if value < 0 else ""
    whole, rest = divmod(abs(value), 1)
    digits, seen = "", dict[Fraction, int]()
    while rest and rest not in seen:
        seen[rest] = len(digits)
        digit, rest = divmod(10 * rest, 1)
        digits += str(digit)
    if rest:
        digits = f"{digits[: seen[rest]]}\\overline{{{digits[seen[rest] :]}}}"
    return f"{sign}{whole}.{digits}" if digits else f"{sign}{whole}"


@subject
def _integer(rng: random.Random) -> Drawn:
    a, b, c = rng.randint(12, 99), rng.randint(12, 99), rng.randint(2, 500)
    gold = str(a * b + c)
    wrong = (*digits_exchanged(gold), gold[:-1], gold + gold[-1], str(a * (b + c)), f"-{gold}")
    return Drawn(f"What is ${a}\\cdot {b}+{c}$?", gold, (f"{gold}.0", f"{a * b + c:,}"), wrong)


@subject
def _binomial(rng: random.Random) -> Drawn:
    n, k = rng.randint(6, 20), rng.randint(2, 4)
    value = math.comb(n, k)
    wrong = (str(math.comb(n, k + 1) if n != 2 * k + 1 else value - 1), str(value + 1), str(math.perm(n, k)), str(n**k))
    return Drawn(f"What is $\\binom{{{n}}}{{{k}}}$?", str(value), (f"{value:,}", f"{value}.0"), wrong)


@subject
def _power(rng: random.Random) -> Drawn:
    base, power, more = rng.randint(2, 9), rng.randint(3, 5), rng.randint(2, 99)
    gold = str(base**power + more)
    wrong = (
        str(base * power + more),
        str(base ** (power - 1) + more),
        str(base**power - more),
        *digits_exchanged(gold),
    )
    return Drawn(f"Compute ${base}^{power}+{more}$.", gold, (f"{base**power + more:,}", f"{gold}.00"), wrong)


@subject
def _large_integer(rng: random.Random) -> Drawn:
    n = rng.randint(11, 40)
    value = 2**n
    right = (
        str(value),
        f"{value:,}",
        *(f"{value:,}".replace(",", sign) for sign in ("{,}", "\\,", " ")),
        f"2\\cdot 2^{{{n - 1}}}",
    )
    wrong = (f"2^{{{n - 1}}}", f"{n}^2", f"2\\cdot {n}", f"-2^{{{n}}}", str(value + 1), *digits_exchanged(str(value)))
    return Drawn(f"How many subsets does a set of {n} elements have?", f"2^{{{n}}}", right, wrong)


@subject
def _scientific(rng: random.Random) -> Drawn:
    mantissa, power = rng.choice([n for n in range(11, 100) if n % 10]), rng.randint(4, 9)
    text = f"{mantissa // 10}.{mantissa % 10}"
    right = (
        str(mantissa * 10 ** (power - 1)),
        f"{text} \\cdot 10^{{{power}}}",
        f"{mantissa}\\times 10^{{{power - 1}}}",
    )
    wrong = (
        f"{text}\\times 10^{{{power + 1}}}",
        f"{text}\\times 10^{{-{power}}}",
        f"{mantissa}\\times 10^{{{power}}}",
        text,
    )
    prompt = f"How many grams are {mantissa * 10 ** (power - 4)} kilograms?"
    return Drawn(prompt, f"{text}\\times 10^{{{power}}}", right, wrong)


@subject
def _decimal(rng: random.Random) -> Drawn:
    pieces = rng.choice([4, 5, 8, 16, 20, 25, 40])
    length = rng.choice([n for n in range(11, 300) if n % pieces])
    value = Fraction(length, pieces)
    gold = terminating_decimal(value) or ""
    wrong = (
        gold[:-1] + str(int(gold[-1]) % 9 + 1),
        gold.replace(".", ""),
        gold + "1",
        str(int(value)),
        gold.replace(".", ".0"),
    )
    prompt = f"A ribbon of {length} metres is cut into {pieces} equal pieces. How many metres long is each?"
    return Drawn(prompt, gold, (latex_fraction(value), gold + "0", str(value)), wrong)


@subject
def _fraction(rng: random.Random) -> Drawn:
    b, d = rng.sample([2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13], 2)
    one, two = Fraction(not_zero(rng, 12), b), Fraction(rng.randint(1, 12), d)
    value = one + two
    if value.denominator == 1:
        value, two = value + Fraction(1, 7), two + Fraction(1, 7)
    above, below = value.numerator, value.denominator
    sign = "-" if above < 0 else ""
    right = (
        f"\\frac{{{above}}}{{{below}}}",
        f"{sign}\\dfrac{{{abs(above)}}}{{{below}}}",
        f"{above}/{below}",
        f"\\frac{{{3 * above}}}{{{3 * below}}}",
        f"{sign}\\tfrac{{{abs(above)}}}{{{below}}}",
        f"{sign}{{{abs(above)} \\over {below}}}",
        f"{above} \\div {below}",
        _repeating_decimal(value),
    )
    wrong = (
        f"{sign}\\frac{{{abs(above)}}}{{{below + 1}}}",
        f"{sign}\\frac{{{abs(above) + 1}}}{{{below}}}",
        latex_fraction(-value),
        str(above),
        *(() if abs(above) == below or abs(above) == 1 else (f"{sign}\\frac{{{below}}}{{{abs(above)}}}",)),
    )
    prompt = f"What is ${latex_fraction(one)}+{latex_fraction(two)}$?"
    return Drawn(prompt, latex_fraction(value), right, wrong)


@subject
def _percentage(rng: random.Random) -> Drawn:
    part, whole = rng.randint(2, 98), rng.choice([200, 300, 500])
    if part == 50:
        part = 51
    right = (f"{part} \\%", f"{part}.0\\%", f"{part}%", f"{part} \\text{{ percent}}")
    wrong = (f"{part + 1}\\%", f"{100 - part}\\%", f"{part}0\\%", f"-{part}\\%", f"{part}.5\\%")
    return Drawn(f"What percentage of {whole} is {part * whole // 100}?", f"{part}\\%", right, wrong)


@subject
def _quantity(rng: random.Random) -> Drawn:
    hours, speed = rng.randint(2, 9), rng.randint(11, 130)
    way = hours * speed
    right = (
        f"{way}\\text{{ km}}",
        f"{way}\\,\\mathrm{{km}}",
        f"{way}.0 \\text{{ km}}",
        f"{way}~\\text{{km}}",
        f"{way} km",
        f"{way} \\text{{ kilometers}}",
    )
    wrong = (f"{way + 1} \\text{{ km}}", f"{speed} \\text{{ km}}", f"-{way} \\text{{ km}}", str(way - 1))
    return Drawn(f"How far does a car get in {hours} hours at {speed} km/h?", f"{way} \\text{{ km}}", right, wrong)


@subject
def _numeral(rng: random.Random) -> Drawn:
    base, value = rng.randint(2, 9), rng.randint(20, 600)
    digits, rest = "", value
    while rest:
        digits, rest = str(rest % base) + digits, rest // base
    changed = digits[:-1] + str((int(digits[-1]) + 1) % base)
    wrong = (f"{changed}_{base}", f"{digits}0_{base}", *(f"{text}_{base}" for text in digits_exchanged(digits)))
    return Drawn(
        f"Write {value} in base {base}.",
        f"{digits}_{base}",
        (f"{digits}_{{{base}}}", f"({digits})_{base}", f"({digits})_{{{base}}}"),
        wrong,
    )
