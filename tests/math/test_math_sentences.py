"""Golds in words, with or without mathematics among them: they can be read, and only what says the same is accepted."""

import pytest

from verifiers import Outcome
from verifiers.math import MathVerifier, Tier

verifier = MathVerifier()

IN_WORDS = [
    "The graph is symmetric about the origin.",
    "converges absolutely",
    "Some dogs are not brown.",
    "If it rains, then she stays home.",
    "Nonlinear, second order",
    "fail to reject the null hypothesis",
    "reflexive and symmetric, but not transitive",
]
WITH_MATHEMATICS = [
    r"Yes; $\lim_{x\to 0} f(x)=f(0)$.",
    r"No, since $\det A=0$.",
    r"The zeros are $x=\frac{1}{2}$ and $x=-3$, each of multiplicity $1$.",
    r"The angle is $30^{\circ}$, so the triangle is a right triangle.",
    r"hyperbola with vertices $(\pm 3,0)$ and foci $(\pm 5,0)$",
    r"domain: $(-\infty,2]$, range: $[0,\infty)$",
    r"$\{(1,0),(0,1)\}$ is linearly independent",
    r"Reject $H_0$; $z=2.31>1.96$",
    r"dimension 2; basis $\{(1,0,1),(0,1,1)\}$",
    r"The limit does not exist because $\lim_{x\to0^-}f(x)=-1$ and $\lim_{x\to0^+}f(x)=1$.",
    r"$\sum_{n=0}^{\infty}\frac{x^n}{n!}$ with radius of convergence $\infty$",
    r"$\triangle ABC \cong \triangle DEF$ by SAS",
    r"$\overline{AB}\parallel\overline{CD}$",
    r"$\forall x\,\exists y\,(x+y=0)$",
    r"(a) $\frac{1}{3}$ (b) $\frac{2}{3}$ (c) increasing",
    r"\$15,000 at 8\% and \$5,000 at 10\%",
    r"$\mathrm{SO_4}^{2-}$",
]


@pytest.mark.parametrize("gold", IN_WORDS + WITH_MATHEMATICS)
def test_a_gold_with_words_is_read(gold):
    assert verifier.compare(gold, gold).outcome is Outcome.CORRECT
    for other in ("zebra 77", "5", "yes", r"\frac12"):
        assert verifier.compare(other, gold).outcome is Outcome.INCORRECT


@pytest.mark.parametrize("gold", IN_WORDS)
def test_words_are_compared_as_text_and_say_so(gold):
    words = gold.split()
    for index in range(len(words)):
        others = (words[:index] + words[index + 1 :], [*words[:index], "zebra", *words[index:]])
        for other in map(" ".join, others):
            finding = verifier.compare(other, gold)
            said = words[index].lower() in ("a", "an", "the") and "zebra" not in other
            assert (finding.outcome is Outcome.CORRECT) is said, other
            assert finding.tier in (Tier.PROSE, Tier.TEXT)
    assert verifier.compare(f"zebra {gold}", gold).tier is Tier.PROSE


@pytest.mark.parametrize("gold", [r"The flux is $\iint_S F$.", r"Yes, $\frac{1}$", r"zero, since $\oint_C 5 = 0$"])
def test_mathematics_that_cannot_be_read_is_no_evidence(gold):
    assert verifier.compare(gold, gold).outcome is Outcome.CORRECT
    assert verifier.compare("5", gold).outcome is Outcome.VERIFIER_ERROR
