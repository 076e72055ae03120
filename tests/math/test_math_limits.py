"""Wrong values of series, products and limits are refused without computer algebra, and right ones never."""

import pytest

import verifiers
from verifiers.math import ComparisonOptions, Tier
from verifiers.math.reading.read import read
from verifiers.math.values.exact import begin_work
from verifiers.math.values.limits import limits_differ
from verifiers.math.values.tiers import UndecidedError, ValueComparer

GOLDS = [
    (r"\sum_{n=1}^\infty\frac1{n^2}", r"\frac{\pi^2}6", "2"),
    (r"\sum_{n=1}^\infty\frac{1}{n^2+n+1}", r"\sum_{k=1}^\infty\frac{1}{k^2+k+1}", "1"),
    (r"\sum_{n=1}^\infty\frac{(-1)^{n+1}}{n}", r"\ln2", r"\ln3"),
    (r"\sum_{i=0}^\infty\frac{1}{i!}", "e", r"\pi"),
    (r"3-\sum_{n=1}^\infty\frac{n^3}{3^n}", r"-\frac{9}{8}", r"\frac98"),
    (r"\prod_{n=2}^\infty\left(1-\frac1{n^2}\right)", r"\frac12", r"\frac23"),
    (r"\lim_{x\to0}\left(\frac{\tan x}{x}\right)^{1/x^2}", r"e^{1/3}", "1"),
    (r"\lim_{x\to\infty}\frac1{\ln x}", "0", "1"),
    (r"\lim_{x\to0^-}\frac{|x|}{x}", "-1", "1"),
    (r"\sum_{n=0}^\infty x^n", r"\frac{1}{1-x}", r"\frac{1}{1+x}"),  # has a value only for |x| < 1
    (r"\sum_{n=0}^\infty\frac{(-1)^nx^{3n+1}}{3n+1}", r"\int_0^x\frac{1}{1+t^3}\,dt", "x^2"),
    (r"\int_0^x x^2\,dx", r"\frac{x^3}{3}", r"\frac{x^3}{2}"),  # a bound letter that is free in the answer
    (r"\sum_{k=0}^\infty\binom nk x^k", "(1+x)^n", "(1-x)^n"),
]


@pytest.mark.parametrize(("gold", "right", "wrong"), GOLDS)
def test_only_the_wrong_value_is_refused(gold, right, wrong):
    begin_work()
    assert limits_differ(read(gold).tree, read(wrong).tree)
    assert not limits_differ(read(gold).tree, read(right).tree)
    assert not limits_differ(read(right).tree, read(gold).tree)


def test_a_wrong_value_does_not_reach_computer_algebra():
    def algebra(gold, answer):
        raise UndecidedError("asked")

    values = ValueComparer(ComparisonOptions(), algebra)
    begin_work()
    assert values.equal(read(GOLDS[0][0]).tree, read("2").tree) is False
    assert values.tier is Tier.NUMERIC
    with pytest.raises(UndecidedError, match="asked"):
        values.equal(read(GOLDS[0][0]).tree, read(GOLDS[0][1]).tree)


@pytest.mark.parametrize(
    "gold",
    [
        r"\sum_{n=1}^\infty\frac1n",  # diverges
        r"\sum_{n=1}^\infty\frac{n^{200}}{1.5^n}",  # its largest term is the 493rd
        r"\sum_{n=1}^\infty\frac{\lfloor n/1000\rfloor}{n^3}",  # starts at the 1000th
        r"\sum_{n=2}^\infty\frac1{n(\ln n)^2}",  # 2.1097, of which 0.17 lie behind the 400th term
        r"\lim_{x\to0}\frac{1}{x}",
    ],
)
def test_what_does_not_settle_is_left_open(gold):
    begin_work()
    assert not limits_differ(read(gold).tree, read(r"2.1097").tree)


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        (r"\int_0^x\frac{\cos t}{t+4}dt", r"\int_0^x\frac{\sin t}{t+4}dt"),
        (r"\int_0^x\frac{\sin t}{t+3}dt", r"\int_0^x\frac{\sin t}{t+4}dt"),
        (r"\int_0^s s\,ds", r"\int_0^r r\,dr"),
        (r"\int_0^1\frac{\cos t}{t+4}dt", r"\int_0^1\frac{\sin t}{t+4}dt"),
        (r"\sum_{k=0}^\infty\frac{\cos(kx)}{3k+1}", r"\sum_{n=0}^\infty\frac{\sin(nx)}{3n+1}"),
        (r"\sum_{k=0}^\infty\frac{\lceil kx\rceil}{3^k}", r"\sum_{n=0}^\infty\frac{\lfloor nx\rfloor}{3^n}"),
        ("0", r"\int_0^x\frac{\sin t}{t+4}dt"),
        ("x", r"\int_0^x\frac{\sin t}{t+4}dt"),
    ],
)
def test_what_is_under_a_sign_is_compared_and_not_only_its_shape(answer: str, gold: str) -> None:
    assert verifiers.verify("math", rf"$\boxed{{{answer}}}$", gold).outcome == "incorrect"


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        (r"\int_0^x\frac{\sin u}{u+4}du", r"\int_0^x\frac{\sin t}{t+4}dt"),
        (r"\sum_{k=0}^\infty\frac{\sin(kx)}{3k+1}", r"\sum_{n=0}^\infty\frac{\sin(nx)}{3n+1}"),
    ],
)
def test_a_bound_letter_may_be_another(answer: str, gold: str) -> None:
    assert verifiers.verify("math", rf"$\boxed{{{answer}}}$", gold).outcome == "correct"


@pytest.mark.parametrize(
    ("gold", "answer"),
    [(r"\pi", r"\sqrt{\pi^2+10^{-2000}}"), (r"\ln 3", r"\ln(3+10^{-2900})"), ("2", r"2+\sin(10^{-1000})")],
)
def test_what_only_thousands_of_digits_show_is_refused(gold: str, answer: str) -> None:
    assert verifiers.verify("math", rf"$\boxed{{{answer}}}$", gold).outcome == "incorrect"
