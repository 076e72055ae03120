"""Whole completions, with the gold answer: extraction and comparison together; `corpus.toml` has the comparisons alone."""

import pytest

from verifiers import Outcome, Problem
from verifiers.math import MathVerifier

RIGHT = [
    ("Final Answer: The final answer is $[2,5)$. I hope it is correct.", "[2,5)"),
    ("<think>maybe 4</think>\nThe answer is \\boxed{5}", "5"),
    (r"\boxed{4} no wait \boxed{5}", "5"),
    (r"\boxed{1}, \boxed{2}", "1,2"),
    (r"\boxed 5", "5"),
    (r"\boxed{\frac12} or \boxed{0.5}", "0.5"),
    (r"The answer is 7. \boxed{5}", "5"),
    (r"<answer> \boxed{5} </answer>", "5"),
    ("the answer is $1.5$ meters because of that.", "1.5"),
    ("The answer is 3.14 (approximately).", "3.14"),
    ("Answer: $\\frac{3}{4}$\n\nExplanation: we add 1 and 2.", "3/4"),
    ("The answer is:\n\\[ x = 5 \\]", "5"),
    ("\\boxed{5}\n\n\\boxed{6}", "6"),
    ("The answer is five.", "5"),
    (r"The answer is \$5.", "5"),
    ("The answer is $5 million.", "5000000"),
    ("**Answer:** 5 and nothing **else**", "5 and nothing else"),
    ("The answer is negative 5.", "-5"),
    ("The answer is B, not A.", "B"),
    ("The answer is: Yes, it is.", r"\text{yes}"),
    ("<answer>#### 10</answer>", "10"),
    ("Answer: B) 12", "(B)"),
    ("the answer is $5!$", "120"),
    ("the answer is 5!", "5"),
    (r"\boxed{\displaystyle \frac12}", "0.5"),
    (r"\boxed{\large 5}", "5"),
    (r"\boxed{\textcolor{red}{5}}", "5"),
    ("The answer is 1,000, 2,000.", "1000,2000"),
    ("It is not hard to see that the answer is 5.", "5"),
    ("2^(n+1)", "2^{n+1}"),
    ("e^(i*pi/3)", r"\frac12+\frac{\sqrt3}{2}i"),
    ("log(8,2)", "3"),
    (r"\sqrt{2}(\cos 45^\circ + i \sin 45^\circ)", "1+i"),
    ("i/2", r"\frac{i}{2}"),
    ("0.25 or 25%", "0.25"),
    ("5 feet", "5 ft"),
    ("x₁ = 2", "2"),
    (r"\boxed{10^\circ\text{C}}", "10"),
    (r"\boxed{\text{Sum} = 5}", "5"),
    (r"The answer is $\frac{1}{2}$ or $0.5$.", "1/2"),
    ("The final answer is 42$", "42"),
    (r"\[ x = 42 \]", "42"),
    (r"So the answer is $(-\infty, 2) \cup (3, \infty)$.", r"(-\infty,2)\cup(3,\infty)"),
    (r"The answer is x \in (-\infty, 2) \cup (3, \infty)", r"(-\infty,2)\cup(3,\infty)"),
    (r"The final answer is $n \cdot (n-1)!$.", "n!"),
    (r"The answer is $f (x) = 2x$.", "f(x)=2x"),
    (r"The answer is the point (1, 2).", "(1,2)"),
    (r"The answer is $5$, i.e. five.", "5"),
    (r"\boxed{\boxed{\text{False}}}", "False"),
]
WRONG = [
    ("The answer is B, not A.", "A"),
    ("The answer is negative 5.", "5"),
    ("The answer is **5** or 6.", "5"),
    ("The answer is A dog.", "A"),
    ("<answer>#### 10</answer>", "1"),
    (r"\boxed{V = s^3 = 4^3 = 64}", "4"),
    ("The answer is $2 (x+1)$.", "2"),
    ("The final answer is $x^2 (y+1)$.", "x^2"),
    ("The answer is 5, but it could be 6.", "5"),
    ("The answer is 5 (or 6).", "5"),
    ("I refuse to say that the answer is (C).", "(C)"),
    (r"<think>5</think> \boxed{}", "5"),
    (r"\boxed{5} no wait \boxed{4}", "5"),
    (r"\boxed{1} or \boxed{2}", "2"),
    ("\\boxed{[0,5)}\n\nIt might be [0, 6).", "[0,5)"),
    ("\\boxed{[0,5)}\n\nIt could also be (1, 5).", "[0,5)"),
    ("\\boxed{x>2}\n\nIt could also be x>3.", "x>2"),
    (r"\boxed{5", "5"),
    ("I think it might be five or six but I am not sure what", "5"),
    ("answer is 9 a.m. sharp", "9 a.m."),
    ("The answer is not 5", "5"),
    ("The answer is 5 or 6", "5"),
    (r"\boxed{ }", "5"),
    ("<think>a</think><think>b", "5"),
    ("the answer is e.g. 5", "5"),
    (r"\boxed{5\text{ (or } 6)}", "5"),
    ("I can't say that the answer is (C).", "(C)"),
    ("I don't think the answer is 5.", "5"),
    ("I cannot answer. The options are (A) 1, (B) 2, (C) 3.", "(C)"),
    ("I am not sure the answer is (C)", "(C)"),
    (r"\ln(x)+C", r"\ln|x|+C"),
    (r"\boxed{10^\circ F}", r"10^\circ C"),
    (r"\boxed{p=2}", "p=2, q=3"),
    (r"\boxed{\text{Yes, it is}}", "Yes"),
    (r"\boxed{\text{The function is even}}", r"\text{even}"),
    (r"\boxed{\text{even function}}", r"\text{even}"),
    (r"\boxed{6 \pi r}", r"6\pi"),
    (r"\boxed{y=\pm\sqrt{4-x^2}}", "x^2+y^2=4"),
    (r"\boxed{-3\leq y<5}", r"-3\le x<5"),
    (r"\boxed{x\in[-3,5]}", "[-3,5)"),
    (r"\boxed{\text{None}}", r"\emptyset"),
    (r"\boxed{250}", r"\$2.50"),
    (r"\boxed{a_n=2^{n+1}}", "2^n+1"),
    (r"\boxed{f(x) = x^2+1}", "P(x)=x^2+1"),
    (r"\boxed{n = 5 \text{ and } m = 6}", "5"),
    (r"\boxed{\frac{1}{\sqrt{3}}}", r"\frac{1}{3}"),
    (r"\boxed{0}", "10^{-20}"),
    (r"\boxed{1.0000000001}", "1"),
    (r"\boxed{3.1415926}", r"\pi"),
    (r"\boxed{\frac{355}{113}}", r"\pi"),
    (r"\boxed{|x|}", "x"),
    ("The answer is 4 2", "42"),
    (r"\boxed{\frac12} or \boxed{\frac13}", "0.5"),
]
verifier = MathVerifier()


@pytest.mark.parametrize(("completion", "gold"), RIGHT)
def test_right_completions(completion, gold):
    verdict = verifier(completion, Problem("", "", gold))
    assert (verdict.outcome, verdict.score) == (Outcome.CORRECT, 1.0), verdict


@pytest.mark.parametrize(("completion", "gold"), WRONG)
def test_wrong_completions(completion, gold):
    verdict = verifier(completion, Problem("", "", gold))
    assert verdict.outcome in (Outcome.INCORRECT, Outcome.NO_ANSWER), verdict
    assert verdict.score == 0.0
