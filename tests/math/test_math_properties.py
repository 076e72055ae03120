"""Properties that hold for every answer, and a fuzz of random and mutated strings.

`RLVR_FUZZ=1000000 make test-long` puts a million random strings instead of a hundred thousand.
"""

import os
import random
import re
import time
from fractions import Fraction

import pytest
from hypothesis import given, settings, strategies as st
from math_corpus import PAIRS

from verifiers import Outcome, Problem
from verifiers.math import MathVerifier

verifier = MathVerifier()
integers = st.integers(-(10**12), 10**12)
small = st.integers(-40, 40)
fractions = st.fractions(max_denominator=500)


def correct(gold, answer):
    finding = verifier.compare(answer, gold)
    assert finding.outcome in (Outcome.CORRECT, Outcome.INCORRECT), finding
    return finding.outcome is Outcome.CORRECT


def latex(value):
    sign = "-" if value < 0 else ""
    return f"{sign}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


SPELLINGS = [
    latex,
    str,
    lambda value: f"{value.numerator * 3}/{value.denominator * 3}",
    lambda value: f"\\dfrac{{{value.numerator}}}{{{value.denominator}}}",
    lambda value: f"x = {value}",
    lambda value: f"\\left({value}\\right)",
    lambda value: f"{value.numerator} \\cdot {value.denominator}^{{-1}}",
]


@given(fractions, fractions, st.sampled_from(SPELLINGS), st.sampled_from(SPELLINGS[:4]))
@settings(max_examples=300)
def test_fractions_are_equal_exactly_when_their_values_are(one, two, spell_answer, spell_gold):
    assert correct(spell_gold(one), spell_answer(one))
    hundredth = max(abs(one), abs(two)) >= 1 and 100 * min(abs(one), abs(two)) == max(abs(one), abs(two))
    if one != two and not hundredth:
        assert not correct(spell_gold(one), spell_answer(two))


@given(integers, st.integers(1, 3))
def test_near_misses_of_integers(value, step):
    grouped = f"{value:,}"
    assert correct(str(value), grouped)
    assert correct(grouped, str(value))
    assert correct(grouped.replace(",", r"\,"), grouped.replace(",", "{,}"))
    assert not correct(str(value), str(value + step))
    assert not correct(grouped, f"{value - step:,}")


@given(st.integers(1, 10**9), st.integers(1, 12))
def test_a_decimal_is_its_fraction(digits, places):
    decimal = f"{digits // 10**places}.{digits % 10**places:0{places}d}"
    assert correct(str(Fraction(digits, 10**places)), decimal)
    assert correct(decimal, f"{digits}\\times 10^{{-{places}}}")
    assert not correct(str(Fraction(digits + 1, 10**places)), decimal)


@given(st.integers(2, 10**6), st.integers(1, 10**6))
def test_surds_are_told_apart_exactly(radicand, factor):
    gold = f"{factor}\\sqrt{{{radicand}}}"
    assert correct(gold, f"\\sqrt{{{factor**2 * radicand}}}")
    assert not correct(gold, f"\\sqrt{{{factor**2 * radicand + 1}}}")
    assert not correct(gold, f"{factor}\\sqrt{{{radicand}}}+10^{{-40}}")


@given(st.lists(small, min_size=2, max_size=5), st.randoms())
def test_polynomials_are_equal_up_to_algebra(roots, shuffler):
    factors = [f"(x-({root}))" for root in roots]
    shuffled = shuffler.sample(factors, len(factors))
    coefficients = [1]
    for root in roots:
        shifted = [*coefficients, 0]
        coefficients = [a - root * b for a, b in zip(shifted, [0, *coefficients], strict=True)]
    degree = len(roots)
    expanded = "+".join(f"({value})x^{{{degree - index}}}" for index, value in enumerate(coefficients))
    assert correct("".join(factors), "".join(shuffled))
    assert correct(expanded, "".join(factors))
    assert not correct(expanded, "".join(factors) + "+1")
    assert not correct(expanded, "".join(factors[1:]))


@given(st.lists(small, min_size=2, max_size=6, unique=True), st.randoms())
def test_lists_have_no_order_and_tuples_have(items, shuffler):
    shuffled = shuffler.sample(items, len(items))
    ours, theirs = ", ".join(map(str, items)), ", ".join(map(str, shuffled))
    assert correct(ours, theirs)
    assert correct(ours, f"\\{{{theirs}\\}}")
    assert correct(f"({ours})", f"({theirs})") == (items == shuffled)
    assert not correct(ours, f"({theirs})")
    assert not correct(ours, f"{theirs}, 99")
    assert not correct(ours, ", ".join(map(str, items[1:])))


BRACKETS = (st.sampled_from("(["), st.sampled_from(")]"))


@given(small, st.integers(1, 30), *BRACKETS, *BRACKETS)
def test_intervals_keep_their_brackets(low, width, left, right, other_left, other_right):
    high = low + width
    answer = f"{other_left}{low},{high}{other_right}"
    assert correct(f"{left}{low},{high}{right}", answer) == ((left, right) == (other_left, other_right))
    below, above = {"(": "<", "[": r"\le"}[left], {")": "<", "]": r"\le"}[right]
    assert correct(f"{left}{low},{high}{right}", f"{low} {below} x {above} {high}")


@given(small, small, small, small)
def test_complex_numbers_do_not_depend_on_order(a, b, c, d):
    assert correct(f"{a}+({b})i", f"({b})i+{a}")
    assert correct(f"{a}+({b})i", f"{c}+({d})i") == ((a, b) == (c, d))


@given(st.integers(2, 36), st.integers(1, 10**6))
def test_numerals_keep_their_base(base, value):
    digits, rest = "", value
    while rest:
        digits, rest = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[rest % base] + digits, rest // base
    if digits.isdigit():
        gold = f"{digits}_{{{base}}}"
        assert correct(gold, digits)
        assert correct(gold, gold)
        assert not correct(gold, f"{digits}_{{{base + 1 if base < 36 else 35}}}")
        assert not correct(gold, str(int(digits) + 1))


MARK = re.compile(r"\\(?:begin|end|text)\{[^{}]{,9}\}|\\[A-Za-z]+|\\?.")
HOSTILE = ["9^{9^9}", r"\prod_{n=1}^{500}", r"\sum_{k=1}^{10}", r"\boxed{", r"\text{", "\x00", "é", "😀"]
PIECES = sorted({mark for pair in PAIRS for mark in MARK.findall(f"{pair.gold}{pair.answer[:200]}")}) + HOSTILE
"""The marks of the corpus, and some that it lacks."""


GOLDS = sorted({pair.gold for pair in PAIRS})


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.sampled_from(GOLDS))
@settings(max_examples=500)
def test_any_text_is_judged(text, gold):
    for completion in (text, f"\\boxed{{{text}}}"):
        verdict = verifier(completion, Problem("", text, gold))
        assert verdict.outcome in (Outcome.CORRECT, Outcome.INCORRECT, Outcome.NO_ANSWER)
    assert verifier.compare(text, text).outcome in (Outcome.CORRECT, Outcome.VERIFIER_ERROR)


def mutated(text, generator):
    pieces = list(text)
    for _ in range(generator.randint(1, 4)):
        chance, index = generator.random(), generator.randrange(len(pieces) + 1)
        if chance < 0.4:
            pieces.insert(index, generator.choice(PIECES))
        elif chance < 0.6 and pieces:
            del pieces[index % len(pieces)]
        elif chance < 0.8 and pieces:
            pieces[index % len(pieces)] = generator.choice(PIECES)
        else:
            other = generator.choice(PAIRS).answer
            pieces[index:index] = other[: generator.randint(1, 12)]
    return "".join(pieces)


FUZZ = int(os.environ.get("RLVR_FUZZ", "100000"))


@pytest.mark.parametrize(("seed", "count"), [(0, 1000), pytest.param(1, FUZZ, marks=pytest.mark.long)])
def test_fuzz(seed, count):
    generator = random.Random(seed)
    for _ in range(count):
        if generator.random() < 0.7:
            answer = mutated(generator.choice(PAIRS).answer, generator)
        else:
            answer = "".join(generator.choices(PIECES, k=generator.randint(1, 25)))
        gold = generator.choice(GOLDS)
        started = time.process_time()
        finding = verifier.compare(answer, gold)
        # Computer algebra has a process and a deadline of its own.
        assert time.process_time() - started < 5, (answer, gold)
        allowed = (Outcome.CORRECT, Outcome.INCORRECT, Outcome.TIMEOUT)
        assert finding.outcome in allowed, (answer, gold, finding)
