"""Every row of the policy table that an option changes, before and after; rules that need the prompt or the metadata."""

from fractions import Fraction

import pytest

from verifiers import InvalidArgumentError, Message, Outcome, Problem, UnknownNameError, make, verify
from verifiers.math import MathVerifier, Tier


def correct(gold, answer, *, prompt="", metadata=None, **options):
    finding = MathVerifier(**options).compare(answer, gold, Problem("", prompt, gold, metadata or {}))
    assert finding.outcome in (Outcome.CORRECT, Outcome.INCORRECT), finding
    return finding.outcome is Outcome.CORRECT


@pytest.mark.parametrize(
    ("gold", "answer", "by_default", "options"),
    [
        ("25", r"25\%", True, {"percent": "value"}),
        (r"25\%", "0.25", True, {"percent": "require"}),
        (r"\frac12", r"\frac24", True, {"reduced": True}),
        ("5", "4+1", True, {"evaluated": True}),
        ("5", "4+1", True, {"literals_only": True}),
        (r"5\sqrt5", r"\sqrt{125}", True, {"literals_only": True}),
        ("1,2", "2,1", True, {"ordered": True}),
        ("1,3", r"\text{Maximum}=3, \text{Minimum}=1", True, {"ordered": True}),
        (r"5\text{ cm}", "5", True, {"units": "require"}),
        ("5", r"5\text{ cm}", True, {"units": "require"}),
        ("52_8", "52", True, {"base": "require"}),
        (r"\begin{pmatrix}1\\2\end{pmatrix}", "(1,2)", True, {"vectors": "strict"}),
        (r"\frac13", "0.33333333333", True, {"rounding_digits": None}),
        (r"5\sqrt5", "11.18", False, {"rel_tol": 1e-3}),
        (r"\frac13", "0.333", False, {"rounding_digits": 3}),
        ("(1,2)", "[1,2]", False, {"brackets": "lenient"}),
        ("(1,2)", "1,2", False, {"brackets": "lenient"}),
        ("5 m", "500 cm", False, {"units": "convert"}),
        (r"90^\circ", r"\frac{\pi}{2}", False, {"degrees": "convert"}),
        ("3.14", "3,14", False, {"decimal_comma": True}),
    ],
)
def test_each_option_changes_its_row(gold, answer, by_default, options):
    assert correct(gold, answer) is by_default
    assert correct(gold, answer, **options) is not by_default


@pytest.mark.parametrize(
    ("gold", "answer", "options"),
    [
        ("1,2", "1,2", {"ordered": True}),
        (r"\frac12", "0.5", {"reduced": True}),
        (r"5\sqrt5", r"5\sqrt5", {"evaluated": True}),
        (r"2\sqrt5", r"\sqrt{20}", {"evaluated": True}),
        (r"\frac12", "-1/-2", {"evaluated": True}),
        (r"5\text{ cm}", "5 cm", {"units": "require"}),
        ("5 students", "5", {"units": "require"}),  # a counted noun is no unit
        (r"90^\circ", "90", {"degrees": "convert"}),
    ],
)
def test_what_a_strict_option_still_accepts(gold, answer, options):
    assert correct(gold, answer, **options)


@pytest.mark.parametrize(
    ("gold", "answer", "options"),
    [
        ("5 m", "5 cm", {"units": "convert"}),
        ("5 m", "5 kg", {"units": "convert"}),
        ("(1,2)", "(2,1)", {"brackets": "lenient"}),
        ("10000", "10001", {"rel_tol": 1e-6}),
        ("1,2", "2,1,3", {"ordered": True}),
    ],
)
def test_what_a_lenient_option_still_rejects(gold, answer, options):
    assert not correct(gold, answer, **options)


@pytest.mark.parametrize(
    ("gold", "answer", "equal", "options"),
    [
        ("100", "101", True, {"rel_tol": 0.01}),  # Minerva's one per cent, of the gold, and no more
        ("100", "102", False, {"rel_tol": 0.01}),
        ("99.99", "101", False, {"rel_tol": 0.01}),
        ("100", "101.0001", False, {"abs_tol": 1}),
        ("0.3", "0.4", True, {"abs_tol": 0.1}),  # the decimal 0.1, although the double is smaller than 0.4 - 0.3
        ("0.3", "0.4", True, {"abs_tol": 0.001, "rel_tol": 0.5}),  # the wider of both
        ("(1,2)", "(1.01,2)", True, {"abs_tol": 0.01}),
        ("x+1", "x+1.001", False, {"abs_tol": 0.01}),  # constants only
        ("0.25", "25", True, {"percent": "factor"}),
        (r"25\%", "25", True, {"percent": "factor"}),
        ("25", "0.025", False, {"percent": "factor"}),
        ("25", "-25", False, {"percent": "factor"}),
        ("x", "100x", False, {"percent": "factor"}),
        (r"\sqrt2", r"100\sqrt2", False, {"percent": "factor"}),  # of numbers that are written out only
        ("52_8", "4200", False, {"percent": "factor"}),
        ("1234567.5", "1.234.567,5", True, {"decimal_comma": True}),
        ("3140", "3.140", True, {"decimal_comma": True}),
        ("314/100", "3.140", False, {"decimal_comma": True}),
        ("1234.5", "1,234.5", False, {"decimal_comma": True}),  # neither notation
        ("1.5,2", "1,5; 2", True, {"decimal_comma": True}),
    ],
)
def test_tolerances_and_factors(gold, answer, equal, options):
    assert correct(gold, answer, **options) is equal
    if equal and answer not in ("25", "0.25", gold, ".5", "3.14", "52"):
        assert not correct(gold, answer)  # off by default


# Of several errors the smallest counts.
@pytest.mark.parametrize(
    ("error", "furthest"), [("1e-1", 0.1), (0.1, 0.1), ("1e-1,1e-3", 0.001), ("", 1e-8), (None, 1e-8)]
)
def test_the_tolerance_that_a_problem_gives(error, furthest):
    metadata = {} if error is None else {"error": error}
    for answer, distance in (("2.50000001", 1e-8), ("2.501", 0.001), ("2.4", 0.1), ("2.6", 0.1), ("2.61", 0.11)):
        assert correct("2.5", answer, metadata=metadata, abs_tol="problem") is (distance <= furthest), answer
        assert not correct("2.5", answer, metadata=metadata)  # off by default


@pytest.mark.parametrize(
    ("preset", "accepted", "refused"),
    [
        # what each original accepts of these, and refuses, it does by its rule and not for want of reading
        ("olympiadbench", [("25", "2500"), ("25", "0.25"), ("2.5", "2.500000001")], [("2.5", "2.6"), ("5", "6")]),
        ("minerva", [("5", "x=5"), ("(x+1)^2", "x^2+2x+1")], [(r"\frac13", "0.3333333333333"), ("25", "2500")]),
        (
            "math_verify",
            [(r"\frac13", "0.3333333"), ("1,-2", "-2,1")],
            [(r"\frac13", "0.333"), ("2", "2.0000000000002")],
        ),
    ],
)
def test_presets_reproduce_the_rules_of_other_graders(preset, accepted, refused):
    for gold, answer in accepted:
        assert correct(gold, answer, preset=preset), (gold, answer)
    for gold, answer in refused:
        assert not correct(gold, answer, preset=preset), (gold, answer)


def test_presets_give_defaults_that_arguments_change():
    assert not correct("100", "100.5", preset="minerva")
    assert correct("100", "100.5", preset="minerva", rel_tol=0.01)
    assert correct(r"25\%", "25", preset="minerva", percent="either")
    assert correct("2.5", "2.6", preset="olympiadbench", metadata={"error": "1e-1"})
    phrase = "Final Answer: The final answer is $5$. I hope it is correct."
    assert make("math", preset="minerva")(phrase + r" \boxed{7}", Problem("", "", "5")).outcome is Outcome.CORRECT
    boxed = make("math", preset="minerva", extraction="boxed")
    assert boxed(r"\boxed{7}", Problem("", "", "7")).outcome is Outcome.CORRECT


@pytest.mark.parametrize("error", ["about 0.1", "-1", "nan", [0.1]])
def test_an_error_of_a_problem_that_is_none(error):
    assert MathVerifier(abs_tol="problem").compare("2.501", "2.5").outcome is Outcome.INCORRECT  # without a problem
    verdict = MathVerifier(abs_tol="problem")(r"\boxed{2.6}", Problem("", "", "2.5", {"error": error}))
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    assert "metadata['error'] must be a positive number" in verdict.detail["reason"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rel_tol": 2.0}, "less than 1"),
        ({"abs_tol": 0}, "abs_tol must be greater than 0, or None, got 0"),
        ({"abs_tol": "olympiad"}, "abs_tol must be a number or one of 'problem' or None"),
        ({"echo": "no"}, "unknown echo 'no'. Known: allow, reject."),
        ({"preset": "olympiad"}, "unknown preset of the math verifier 'olympiad'. Did you mean 'olympiadbench'?"),
        ({"percnt": "value"}, "the math verifier got an unexpected keyword argument 'percnt'. Did you mean 'percent'?"),
        ({"literals_only": "yes"}, "True or False"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises((InvalidArgumentError, UnknownNameError), match=message):
        MathVerifier(**options)


@pytest.mark.parametrize(("prompt", "outcome"), [("", "correct"), (r" in terms of $k$", "incorrect")])
def test_the_integer_of_an_angle_is_arbitrary_unless_the_prompt_names_it(prompt, outcome):
    problem = Problem("", rf"Solve $\cos x=1${prompt}.", r"x=2\pi k")
    assert MathVerifier().compare(r"x=2\pi n", r"x=2\pi k", problem).outcome == outcome


# Restating the question.

RADICAL = "Simplify $\\sqrt{242}$."


@pytest.mark.parametrize(
    ("prompt", "gold", "answer"),
    [
        (RADICAL, r"11\sqrt2", r"\sqrt{242}"),
        (RADICAL, r"11\sqrt2", r"\sqrt{242}=\sqrt{242}"),
        (RADICAL, r"11\sqrt2", r"x=\sqrt{242}"),
        ("Compute $\\dbinom{31}{28}$.", "4495", r"\binom{31}{28}"),
        ("Compute $\\dbinom{31}{28}$.", "4495", r"{31 \choose 28}"),
        ("What is $513^2 - 487^2$?", "26000", "513^2-487^2"),
        ("What is 17 * 23 + 4?", "395", r"4 + 17 \times 23"),
        ("What is 17 × 23?", "391", r"17\cdot23"),
        ("Simplify sqrt(242) please.", r"11\sqrt2", r"\sqrt{242}"),
        ("Factor x^2 - 5x + 6 into two.", "(x-2)(x-3)", "x^2-5x+6"),
        ("Expand $(x+2)(x+3)$.", "x^2+5x+6", "(x+3)(x+2)"),
        ("Write $0.\\overline{3}+1$ as a fraction.", r"\frac43", r"0.\overline{3}+1"),
        ("Write $0.\\overline{3}$ as a fraction.", r"\frac13", r"0.\overline{3}"),
        ("Write $\\frac{3}{20}$ as a decimal.", "0.15", r"\frac{3}{20}"),
        ("Write $15\\%$ as a decimal.", "0.15", r"15\%"),
        # What changes nothing is no new expression.
        ("Compute 2^{10}.", "1024", r"2^{10}\cdot 1"),
        ("Compute $2^{10}$.", "1024", "2^{10}+0"),
        ("Expand (x+2)(x+3).", "x^2+5x+6", r"1\cdot(x+2)(x+3)"),
        ("Expand $(x+2)(x+3)$.", "x^2+5x+6", "((x+3)(x+2))"),
        ("Expand $(x+2)(x+3)$.", "x^2+5x+6", r"\frac{(x+2)(x+3)}{1}"),
        ("Compute $2+3+5$.", "10", "(2+3)+5"),
        (r"Compute $\int_0^1 x^4\,dx$.", r"\frac15", r"\int_0^1 t^4\,dt"),
    ],
)
def test_copying_an_expression_of_the_prompt_is_no_answer(prompt, gold, answer):
    finding = MathVerifier().compare(answer, gold, Problem("", prompt, gold))
    assert (finding.outcome, finding.reason) == (Outcome.INCORRECT, "restates the question")
    assert MathVerifier().compare(answer, gold).same
    assert correct(gold, answer, prompt=prompt, echo="allow")


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("3x^2", r"\frac{d}{dx}x^3"),
        ("2", r"\lim_{x\to0}\frac{\sin 2x}{x}"),
        (r"\frac13", r"\int_0^1 x^2\,dx"),
        ("4", r"3^{100}\bmod 7"),
        ("12", r"\operatorname{lcm}(4,6)"),
        ("-2", r"\det\begin{pmatrix}1&2\\3&4\end{pmatrix}"),
        ("5", "|3+4i|"),
        ("5050", r"\sum_{k=1}^{100}k"),
        ("120", r"\prod_{k=1}^5k"),
        ("3", r"\lfloor\pi\rfloor"),
    ],
)
def test_an_operation_that_is_left_to_the_reader_is_no_answer(gold, answer):
    finding = MathVerifier().compare(answer, gold)
    assert (finding.outcome, finding.reason) == (Outcome.INCORRECT, "an operation that is not carried out")
    assert finding.same
    assert correct(gold, answer, echo="allow")
    assert correct(answer, answer)
    assert correct(gold, f"{answer}={gold}")


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        (r"\binom{20}{3}", r"\binom{20}{17}"),
        ("2^{100}", "2^{99}\\cdot2"),
        (r"\sqrt2+\sqrt3", r"\sqrt3+\sqrt2"),
        (r"\ln|x|+C", r"\ln|2x|+C"),
    ],
)
def test_usual_unevaluated_forms_are_answers(gold, answer):
    assert correct(gold, answer)


@pytest.mark.parametrize(
    ("prompt", "gold", "answer"),
    [
        (RADICAL, r"11\sqrt2", r"\sqrt2\cdot11"),
        (RADICAL, r"11\sqrt2", r"\sqrt{242}=11\sqrt2"),
        ("Is $0.75$ larger than 0.5?", r"\frac34", "0.75"),
        ("Which of 3, 5 is prime and odd and larger?", "5", "5"),
        ("Let $x+1$ be even.", "1+x", "x+1"),
        ("Is $\\sqrt{53}$ rational? Write it.", r"\sqrt{53}", r"\sqrt{53}"),
        ("Find $x+y$ if $x=2$, $y=3$.", "5", "x+y=5"),
        ("Choose $(1,2)$ or $(2,1)$.", "(1,2)", "(1, 2)"),
        ("Let $f(x)=x^2+1$. Find $f(x)$.", "x^2+1", "f(x)=x^2+1"),
        (r"Compute $\int_0^1 x^4\,dx$.", r"\frac15", "0.2"),
    ],
)
def test_what_is_no_restatement(prompt, gold, answer):
    assert correct(gold, answer, prompt=prompt)


TO_SOLVE, LOWEST = "Solve $2x-3=7$ for $x$.", "The answer is m/n in lowest terms; find $m+n$."
CONSTANT = "Find all functions of $x$ with f'(x)=0."


@pytest.mark.parametrize(
    ("gold", "answer", "prompt", "right"),
    [
        ("5", "x+1=5", "", False),
        ("5", "x+1=5", "Find $x+1$.", True),
        ("5", "x+2=5", "Find $x+1$.", False),
        ("0", "a+b+c+d=0", "If $a+b+c+d=0$, find $a+b+c+d$.", False),
        ("1", r"\omega^3 = 1", r"Let $\omega^3 = 1$. Find $\omega^3$.", False),
        ("1:30", "2:60", "", False),
        ("1:30", "2:60", "What is the ratio?", True),
        ("x=5", "2x=10", TO_SOLVE, False),
        ("x=5", "2x-10=0", TO_SOLVE, False),
        ("x=5", "x=5", TO_SOLVE, True),
        ("x=5", "x-5=0", "Which vertical line passes through (5,2)?", True),
        ("18", "m+n=18", "", True),
        ("18", "m+n=18", LOWEST, True),
        ("18", "a+b=18", "Find $m+n$.", False),
        ("18", "x+y=18", "", False),
        (r"\emptyset", r"A\cap B=\emptyset", r"Find $A \cap B$.", True),
        (r"A\cap B=\emptyset", r"\emptyset", r"Find $A \cap B$.", True),
        (r"\emptyset", r"A\cap B=\emptyset", "What do we know of $A$ and $B$?", False),
        (r"A\cap B=\emptyset", r"\emptyset", "What do we know of $A$ and $B$?", False),
        ("f(x)=c", r"x, x\in\mathbb{R}", CONSTANT, False),  # a variable of the problem is no arbitrary constant
        ("f(x)=c", r"f(x)=a, a\in\mathbb{R}", CONSTANT, True),
    ],
)
def test_what_an_equation_or_a_name_stands_for_is_what_the_prompt_asks_for(gold, answer, prompt, right):
    assert correct(gold, answer, prompt=prompt) is right


def test_a_chat_prompt_is_searched_like_text():
    prompt = (Message("system", "Answer."), Message("user", RADICAL))
    verdict = make("math")(r"\boxed{\sqrt{242}}", Problem("", prompt, r"11\sqrt2"))
    assert verdict.detail["reason"] == "restates the question"


# Choices.

CHOICES = {"choices": ["10", "12", r"\frac12", "14"]}


def test_the_content_of_a_choice_and_a_letter_for_it_count_only_where_the_choices_are_known():
    assert not correct("(B)", "12")
    assert correct("(B)", "12", metadata=CHOICES)
    assert correct("(C)", "0.5", metadata=CHOICES)
    assert not correct("(B)", "10", metadata=CHOICES)
    assert not correct("(B)", "13", metadata=CHOICES)
    assert correct("12", "(B)", metadata=CHOICES)
    assert not correct("12", "(A)", metadata=CHOICES)
    assert correct("12", "B", metadata={"choices": {"A": "11", "B": "12"}})


# The shape of a verdict.


def test_detail_is_plain_and_says_why():
    verdict = verify("math", r"\boxed{\sqrt{20}}", r"2\sqrt5")
    assert verdict.outcome is Outcome.CORRECT
    form = {"gold": r"2\sqrt5", "answer": r"\sqrt{20}", "extraction": "box"}
    assert verdict.detail == {"tier": "field", "reason": "equal", **form}
    assert verdict.answer == r"\sqrt{20}"
    assert verdict == verify("math", r"\boxed{\sqrt{20}}", r"2\sqrt5")
    assert verdict.cost["seconds"] > 0


@pytest.mark.parametrize(
    ("gold", "answer", "tier"),
    [
        (r"\frac{1}{2}", "0.5", Tier.EXACT),
        (r"\frac{1}{2}", r"\dfrac{1}{2}", Tier.TEXT),
        ("1234", "1,234", Tier.EXACT),
        (r"x^2-1", "(x-1)(x+1)", Tier.FIELD),
        (r"\sin 15^\circ", r"\frac{\sqrt6-\sqrt2}{4}", Tier.NUMERIC),
    ],
)
def test_the_cheapest_tier_that_can_decide_does(gold, answer, tier):
    finding = MathVerifier().compare(answer, gold)
    assert (finding.outcome, finding.tier) == (Outcome.CORRECT, tier)


@pytest.mark.parametrize("gold", [r"\frac{1}{", "", r"\frac{1}{0}", "(" * 100, "x" * 5000, "5\x00", r"\oint_0^1 x dx"])
def test_a_broken_gold_is_never_scored(gold):
    for completion in (r"\boxed{5}", r"\boxed{x}"):
        verdict = verify("math", completion, gold)
        assert verdict.outcome is Outcome.VERIFIER_ERROR
        assert verdict.score != verdict.score


@pytest.mark.parametrize("reference", [None, ["5"], {"answer": 5}, True, float("nan"), 10**4200, Fraction(1, 10**4200)])
def test_a_gold_of_another_type_is_named(reference):
    verdict = verify("math", r"\boxed{5}", reference)
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    assert type(reference).__name__ in verdict.detail["reason"]


@pytest.mark.parametrize("reference", [5, 5.0, Fraction(5), "5", " 5 ", "5.0"])
def test_numbers_may_be_golds(reference):
    assert verify("math", r"\boxed{5}", reference).outcome is Outcome.CORRECT


def test_a_batch_is_its_single_verdicts():
    verifier = make("math")
    completions = [r"\boxed{1}", r"\boxed{2}", "none of that at all, sorry"]
    problems = [Problem(str(index), "", "1") for index in range(3)]
    assert verifier.verify_batch(completions, problems) == [
        verifier(*pair) for pair in zip(completions, problems, strict=True)
    ]
    with pytest.raises(InvalidArgumentError, match="2 completions came with 3 problems"):
        verifier.verify_batch(completions[:2], problems)


def test_a_letter_with_the_text_of_another_choice_is_wrong():
    problem = Problem("", "Which?", "(C)", {"choices": ["1", "5", "12", "7"]})
    for answer, right in (("(C) 12", True), ("C", True), ("12", True), ("(C) 5", False), ("5", False)):
        assert (MathVerifier().compare(answer, "(C)", problem).outcome is Outcome.CORRECT) is right, answer
        assert (MathVerifier().compare(answer, "C", problem).outcome is Outcome.CORRECT) is right, answer


def test_words_behind_a_letter_are_those_of_an_option():
    prompt = "Which planet is it? (A) Mars (B) Venus (C) the third one"
    for gold in ("C", "(C)"):
        assert correct(gold, "(C) the third one", prompt=prompt)
        assert correct(gold, "(C) Saturn", metadata={"choices": ["Mars", "Venus", "Saturn"]})
        assert not correct(gold, "(C) the third one")
        assert not correct(gold, "(C) is a trap", prompt=prompt)
    assert not correct("(C)", "(C) Venus", prompt=prompt)
    assert correct("(C) Saturn", "(C) Saturn")
    assert not correct("(C) Saturn", "(C) Mars")


@pytest.mark.parametrize(
    "prompt",
    [
        r"What is $t$? $\textbf{(A)}\ 14\qquad\textbf{(B)}\ 26\qquad\textbf{(C)}\ \frac{7}{2}\qquad\textbf{(D)}\ x^2+3$",
        "What is t? (A) 14 (B) 26 (C) 7/2 (D) x^2+3. Answer with (A), (B), (C) or (D).",
        "What is t?\nA. 14\nB. 26\nC. 3.5\nD. x^2+3\nThink step by step.",
        "With P(A) = P(B), what is $t$?\n- **(A)** $14$\n- **(B)** $26$\n- **(C)** $7/2$\n- **(D)** $x^2+3$",
    ],
)
def test_what_stands_behind_a_letter_is_the_option_of_that_letter(prompt):
    for gold, right, wrong in (
        ("(B)", ("B", r"\textbf{(B) }26"), ("(B) 14", "B. 14", r"(B) \frac72", "(B) 27", r"(B) \text{Paris}")),
        ("C", ("(C) 3.5", r"\text{(C)}\ \frac72"), ("(C) 26", "C. 7")),
        ("(D)", ("(D) x^2+3", "(D) 3+x^2"), ("(D) x^2-3", "(D) 26")),
    ):
        for answer in right:
            assert correct(gold, answer, prompt=prompt), answer
        for answer in wrong:
            assert not correct(gold, answer, prompt=prompt), answer


SYSTEM = r"\mathbf{x}=c_1\begin{pmatrix}1\\1\end{pmatrix}e^{t}+c_2\begin{pmatrix}1\\-1\end{pmatrix}e^{-t}"
SAME_SYSTEM = r"\mathbf{x}=c_1\begin{pmatrix}2\\2\end{pmatrix}e^{t}+c_2\begin{pmatrix}-1\\1\end{pmatrix}e^{-t}"


@pytest.mark.parametrize(
    ("gold", "answer", "asking", "others"),
    [
        ("2x+C", "2x+3+C", "Find the antiderivative of $2$.", ["Add the heat capacity $C$ to $2x$.", "A charge of C."]),
        ("2x+c", "2x+3+c", r"Find $\int2\,dx$.", ["", "A price is 2x and rises.", "It has y-intercept c. Integrate."]),
        ("y=c_1e^x+c_2", "y=C_1e^x+C_1+C_2", "Solve $y''=y'$.", ["", "Let $c_1$ and $c_2$ be the roots of $y''=y'$."]),
        (
            "c_1t+c_2",
            "c_2t+c_1",
            "Give the general solution.",
            [f"For speeds {c}, solve $y''=0$." for c in ("c1", "c_i")],
        ),
        (r"x=c_1\cos t, y=c_1\sin t", r"x=A\cos t, y=A\sin t", "Solve $x'=-y$, $y'=x$.", [""]),
        (SYSTEM, SAME_SYSTEM, "Solve the system of differential equations.", ["", "Give the position."]),
        ("(t,2t,3t)", "(2s,4s,6s)", "Find the equation of the line.", ["", "Find a line. It is there at time t."]),
        ("x=2t,y=3t", "x=4t,y=6t", "Parametrise the line.", ["Parametrise the line of a particle's way."]),
        (r"\mathbf{r}(t)=(1+t,2,t)", "(t,2,t-1)", "Solve the linear system.", ["It moves with velocity (1,0,1)."]),
    ],
)
def test_constants_and_parameters_are_arbitrary_where_the_prompt_says_so(gold, answer, asking, others):
    assert correct(gold, answer, prompt=asking)
    for prompt in others:
        assert not correct(gold, answer, prompt=prompt), prompt
        assert correct(gold, gold, prompt=prompt)


def test_letters_of_several_options_may_stand_side_by_side():
    prompt = "Which hold? (A) $x>0$ (B) $x>1$ (C) $x<2$ (D) $x<1$"
    for gold, right, wrong in (
        ("ACD", ("A, C, D", r"\text{D, C and A}", "DCA"), ("A, C", "A, B, C, D", "AAD", "A or C or D", "A, C, E")),
        ("B,D", ("BD", "D, B"), ("B", "BC", "BDA")),
    ):
        assert all(correct(gold, answer, prompt=prompt) for answer in right), gold
        assert not any(correct(gold, answer, prompt=prompt) for answer in wrong), gold
        assert not correct(gold, right[0], prompt="Which points are on the circle?")


def test_a_degree_of_fields_is_a_name_where_the_prompt_has_it():
    degree = r"[\mathbb{Q}(\sqrt[3]{2},i):\mathbb{Q}]"
    assert correct("6", f"{degree}=6", prompt=f"Find ${degree}$.")
    assert not correct("6", f"{degree}=7", prompt=f"Find ${degree}$.")
    assert not correct("6", f"{degree}=6", prompt=r"Find $[\mathbb{Q}(\sqrt[3]{2}):\mathbb{Q}]$.")
