"""The parts under the verifier, against values worked out by hand."""

import math
from fractions import Fraction

import pytest

from verifiers.math.compare.sets import NoSetError, real_set
from verifiers.math.forms import is_literal, unordered
from verifiers.math.reading.assemble import determinant
from verifiers.math.reading.cursor import MAX_DEPTH
from verifiers.math.reading.errors import UnreadableError
from verifiers.math.reading.normalize import folded_words, normal_text, to_ascii, unwrap
from verifiers.math.reading.numerals import repeating_decimal
from verifiers.math.reading.parse import parse
from verifiers.math.reading.phrases import value_of_words
from verifiers.math.reading.tokens import tokenize
from verifiers.math.tree import (
    Add,
    Bracketed,
    Divide,
    ListOf,
    Mixed,
    Multiply,
    Negate,
    Number,
    Power,
    Symbol,
    Words,
    symbols,
)
from verifiers.math.units import UNITS, UnitWord, read_unit
from verifiers.math.values.evaluation import context
from verifiers.math.values.exact import NotExactError, TooLargeError, UndefinedError, begin_work, rational_value, spend
from verifiers.math.values.numeric import FILTER_DIGITS, estimate, numerically_equal
from verifiers.math.values.residues import PRIME, residue, square_root
from verifiers.math.values.sample_points import SamplePoints, sampling_for

X, TWO, THREE = Symbol("x"), Number(Fraction(2)), Number(Fraction(3))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("2x", Multiply((TWO, X))),
        ("2-x", Add((TWO, Negate(X)))),
        ("-x^2", Negate(Power(X, TWO))),
        ("2/3x", Multiply((Divide(TWO, THREE), X))),
        (r"\frac23x", Multiply((Divide(TWO, THREE), X))),
        ("x^2^3", Power(X, Power(TWO, THREE))),
        ("2 1/3", Mixed(2, 1, 3)),
        (r"2\frac13", Mixed(2, 1, 3)),
        ("(2,3)", Bracketed("(", (TWO, THREE), ")")),
        ("2, 3", ListOf((TWO, THREE))),
        ("2 and 3", ListOf((TWO, THREE), "and")),
        ("the Ellipse", Words("ellipse")),
    ],
)
def test_trees(text, tree):
    assert parse(text) == tree


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "()",
        "(",
        "2+",
        r"\frac{1}",
        r"\unknown{1}",
        "2 3",
        "x^",
        "[1,2",
        "log(8,2,3)",
        r"\ln_2 3",
        "sin(1,2)",
        "1 = ",
        r"\begin{pmatrix}1&2\\3\end{pmatrix}",
    ],
)
def test_what_cannot_be_read(text):
    with pytest.raises(UnreadableError):
        parse(text)


def test_nesting_is_bounded():
    parse("(" * (MAX_DEPTH - 2) + "1" + ")" * (MAX_DEPTH - 2))
    with pytest.raises(UnreadableError, match="deep"):
        parse("(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,234", ["1234"]),
        ("1, 234", ["1", "234"]),
        ("(1,234)", ["1", "234"]),
        (r"1,\!234,\!567", ["1234567"]),
        ("12,34", ["12", "34"]),
        ("0,123", ["0", "123"]),
        ("1,234,56", ["1", "234", "56"]),
        (r"\frac12", ["12"]),
        ("1.5e3", ["1.5"]),
    ],
)
def test_digits_are_grouped_into_numbers(text, numbers):
    assert [token.text for token in tokenize(text) if token.kind == "number"] == numbers


def test_repeating_decimals():
    assert repeating_decimal("0", "1", "6") == Fraction(1, 6)
    assert repeating_decimal("", "", "142857") == Fraction(1, 7)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2+3*4", Fraction(14)),
        (r"\frac{1}{2}-\frac13", Fraction(1, 6)),
        ("2^{-3}", Fraction(1, 8)),
        ("8^{2/3}", Fraction(4)),
        (r"\sqrt[3]{-27}", Fraction(-3)),
        ("5!", Fraction(120)),
        ("7!!", Fraction(105)),
        (r"\binom{5}{2}", Fraction(10)),
        (r"\lfloor -3/2 \rfloor", Fraction(-2)),
        (r"\sum_{k=1}^{4} k^2", Fraction(30)),
        (r"\prod_{i=1}^{4} i", Fraction(24)),
        (r"\log_2 \frac18", Fraction(-3)),
        (r"\gcd(12, 18)", Fraction(6)),
        ("12%", Fraction(3, 25)),
    ],
)
def test_rational_values(text, value):
    begin_work()
    assert rational_value(parse(text)) == value


@pytest.mark.parametrize("text", [r"\sqrt2", "x", r"\pi", "2^{10^9}", "9^{9^{9^9}}", "100000!", r"\log 2"])
def test_what_is_not_evaluated_exactly(text):
    begin_work()
    with pytest.raises(NotExactError):
        rational_value(parse(text))


@pytest.mark.parametrize("text", ["1/0", "0^{-1}", "0^0", "(-1)!", r"\log 0"])
def test_what_has_no_value(text):
    begin_work()
    with pytest.raises(UndefinedError):
        rational_value(parse(text))


def test_work_is_bounded_and_counted_from_the_start_of_each_comparison():
    begin_work()
    for _ in range(150):
        spend(100)
    with pytest.raises(TooLargeError):
        spend(10_000)
    begin_work()
    spend(10_000)


def test_the_field_is_one():
    assert pow(3, PRIME - 1, PRIME) == 1
    assert PRIME % 8 == 1
    for value in (2, 3, 5, 97, PRIME - 1):
        assert square_root(value) ** 2 % PRIME == value


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (r"(\sqrt2+\sqrt3)^2", r"5+2\sqrt6"),
        (r"\sqrt{12}", r"2\sqrt3"),
        (r"\sqrt{-4}", "2i"),
        (r"\frac{1}{1+\sqrt2}", r"\sqrt2-1"),
        (r"(1+i)^{8}", "16"),
        ("(x+y)^3", "x^3+3x^2y+3xy^2+y^3"),
        (r"\frac{\pi^2-1}{\pi-1}", r"\pi+1"),
        (r"2^{10^{6}}", r"4^{500000}"),
        ("5^{3/2}", r"5\sqrt5"),
    ],
)
def test_equal_expressions_have_equal_residues(one, two):
    begin_work()
    assert residue(parse(one)) == residue(parse(two))
    assert residue(parse(one)) != residue(parse(f"{two}+1"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"\sin 30^\circ", 0.5),
        (r"\sin^2 2", math.sin(2) ** 2),
        (r"\tan^{-1} 1", math.pi / 4),
        (r"\ln 2", math.log(2)),
        (r"\log 2", math.log10(2)),
        (r"\log_2 3", math.log2(3)),
        (r"e^{-2}", math.exp(-2)),
        (r"\sqrt[3]{-2}", -(2 ** (1 / 3))),
        (r"\cosh 1", math.cosh(1)),
        (r"\left|-\pi\right|", math.pi),
        (r"\sin 2 \cos 3", math.sin(2) * math.cos(3)),
        (r"\frac{\sin 2}{2}", math.sin(2) / 2),
    ],
)
def test_numeric_values(text, value):
    begin_work()
    assert float(estimate(parse(text), FILTER_DIGITS).value) == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize(
    ("gold", "answer", "same"),
    [
        (r"\sqrt{x^2}", "|x|", True),
        (r"\sqrt{x^2}", "x", False),
        (r"\sin 2x", r"2\sin x\cos x", True),
        (r"e^{1000}+1-e^{1000}", "1", None),  # 434 digits cancel
        (r"e^{1000}+1-e^{1000}", "0", None),
        (r"e^{100}+1-e^{100}", "1", True),
        (r"e^{100}+1-e^{100}", "2", False),
        (r"\sqrt{3+2\sqrt2}-1-\sqrt2", "0", True),
        (r"\sqrt{3+2\sqrt2}-1-\sqrt2", "10^{-60}", False),
        (r"\sin(10^{-50})", "10^{-50}", False),
        (r"2^{n+1}", r"2\cdot2^n", True),
        (r"\binom{n}{2}", r"\frac{n(n-1)}{2}", True),
        (r"\frac{1}{x-x}", "1", None),
    ],
)
def test_numeric_comparison_notices_cancellation(gold, answer, same):
    begin_work()
    assert numerically_equal(parse(gold), parse(answer)) is same


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (r"(-\infty,3)\cup(3,\infty)", r"x\ne 3"),
        (r"[0,1]\cup[1,2)", "[0,2)"),
        (r"[0,3)\cap(1,5]", "(1,3)"),
        (r"[0,3]\setminus(1,2)", r"[0,1]\cup[2,3]"),
        (r"|x|<2", "(-2,2)"),
        (r"(0,1)\cup\{1\}", "(0,1]"),
    ],
)
def test_real_sets_have_one_form(one, two):
    begin_work()
    marks = [[(mark.end.value, mark.at, mark.after) for mark in real_set(parse(text)).marks] for text in (one, two)]
    assert marks[0] == marks[1]


@pytest.mark.parametrize("text", ["[2,1]", r"[0,\infty]", "(a,1)", "x+y>2", r"(0,1,2)", "5"])
def test_what_is_no_set_of_reals(text):
    begin_work()
    with pytest.raises(NoSetError):
        real_set(parse(text))


def test_units():
    metre = UNITS["m"]
    assert read_unit((UnitWord("square"), UnitWord("feet"))).factor == Fraction("0.3048") ** 2
    assert read_unit((UnitWord("m"), UnitWord("s", 2, divides=True))).dimension == (("length", 1), ("time", -2))
    assert read_unit((UnitWord("liters"),)).dimension == metre.power(3).dimension
    assert read_unit((UnitWord("children"), UnitWord("tickets"))).is_label
    assert read_unit((UnitWord("is"), UnitWord("wrong"))) is None


def test_text():
    assert to_ascii("2½×10⁻³") == r"2\unicodefrac{1}{2}\times 10^{-3}"
    assert unwrap(" **$5$.** ") == "5"
    assert unwrap(r"\$5") == r"\$5"
    assert normal_text(r"\left( 1 ,\, \dfrac{1}{2} \right)") == normal_text(r"(1,\frac{1}{2})")
    assert normal_text("1 1/2") != normal_text("11/2")
    assert normal_text("1, 234") != normal_text("1,234")
    assert folded_words("The answer, A") == "answer a"


def test_trees_know_their_parts():
    assert symbols(parse(r"\sum_{k=1}^{n} k x")) == {"n", "x"}
    assert unordered(parse("x+2y")) == unordered(parse("y*2+x"))
    assert unordered(parse("x-y")) != unordered(parse("y-x"))
    assert all(is_literal(parse(text)) for text in ("5", "-1/2", r"25\%", "(1,2)", "x=5", r"1.2\times10^5", "5 cm"))
    assert not any(is_literal(parse(text)) for text in ("4+1", "5!", r"\sqrt2", "2^3", "(1+1,2)", r"\frac{1+1}{2}"))


# Points at which expressions with symbols are compared.


def coordinates(gold, answer, name):
    sampling = sampling_for(parse(gold), parse(answer))
    return [float(sampling.coordinate(context(30), sample, name)) for sample in range(sampling.count)]


def test_smooth_expressions_are_compared_at_a_few_points():
    assert sampling_for(parse(r"\sin x"), parse(r"\cos x")) == SamplePoints(names=("x",))


@pytest.mark.parametrize("gold", ["|x-20|", r"\max(x,20)", r"\sqrt{(x-20)^2}"])
def test_pieces_are_compared_on_both_sides_of_every_constant(gold):
    values = coordinates(gold, "x", "x")
    assert min(values) < -20 < max(value for value in values if value < 0) < 0
    assert any(0 < value < 20 for value in values)
    assert max(values) > 20


def test_a_constant_given_by_arithmetic_is_a_place_where_pieces_end():
    assert max(coordinates(r"\min(x,10^{12})", "x", "x")) > 10**12


def test_steps_are_compared_at_integers_halves_and_between():
    values = coordinates(r"\lfloor x\rfloor", r"\lceil x\rceil-1", "x")
    assert any(value == int(value) for value in values)
    assert any(value != int(value) and 2 * value == int(2 * value) for value in values)
    assert any(2 * value != int(2 * value) for value in values)


@pytest.mark.parametrize("gold", ["n!", r"\binom{n}{70}", "(-1)^n", r"\sum_{k=1}^{n} k"])
def test_symbols_of_discrete_expressions_are_integers(gold):
    assert all(value == int(value) >= 3 for value in coordinates(gold, "n", "n"))


def test_steps_of_an_integer_are_compared_at_all_small_ones_and_beside_powers_and_multiples():
    values = coordinates(r"\lfloor n/700\rfloor", "n", "n")
    assert all(value == int(value) for value in values)
    assert {*range(1, 41), 511, 512, 513, 999, 1000, 1001, 699, 700, 701, 1399, 1400} <= {*values}


def test_integers_reach_past_the_constants():
    assert max(coordinates(r"\binom{n}{70}", "0", "n")) > 70


def test_a_term_too_small_to_be_seen_is_no_proof_of_equality():
    assert numerically_equal(parse("13"), parse(r"13+\sin(10^{-9000})")) is None
    assert numerically_equal(parse("13"), parse("13+10^{-40}")) is False


# Numbers in words, determinants, compound quantities.


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("seven", 7),
        ("ninety nine", 99),
        ("two hundred six", 206),
        ("three thousand forty one", 3041),
        ("one million two thousand three", 1002003),
        ("six seven", None),
        ("twenty twelve", None),
        ("two hundred hundred", None),
        ("two thousand three thousand", None),
    ],
)
def test_numbers_in_words(words, value):
    assert value_of_words(words.split()) == value


@pytest.mark.parametrize(
    ("rows", "value"),
    [
        (((5,),), 5),
        (((1, 2), (3, 4)), -2),
        (((2, 0, 1), (1, 3, 2), (1, 1, 4)), 18),  # 2(12-2) + (1-3)
        (((0, 0, 0, 1), (0, 0, 1, 0), (0, 1, 0, 0), (1, 0, 0, 0)), 1),
    ],
)
def test_determinants(rows, value):
    entries = tuple(tuple(Number(Fraction(entry)) for entry in row) for row in rows)
    assert rational_value(determinant(entries)) == value


def test_no_determinant_of_other_shapes_or_too_many_rows():
    for rows in (((TWO, THREE),), ((TWO,) * 6,) * 6):
        with pytest.raises(UnreadableError, match="determinant"):
            determinant(rows)


def test_bound_names_do_not_tell_expressions_apart():
    assert unordered(parse(r"\int_0^1 x^2\,dx")) == unordered(parse(r"\int_0^1 t^2\,dt"))
    assert unordered(parse(r"\sum_{k=1}^n k^2")) == unordered(parse(r"\sum_{j=1}^n j^2"))
    assert unordered(parse(r"\sum_{k=1}^n kx")) != unordered(parse(r"\sum_{x=1}^n xk"))
    assert unordered(parse(r"\lim_{x\to0^+} x")) != unordered(parse(r"\lim_{x\to0^-} x"))
