"""Where each verifier finds the answer: the page's rules, one by one, and what it costs."""

from __future__ import annotations

import time

import pytest

from tests.completion.completions import cases, judged, rewrapped
from verifiers import Problem, make, verify
from verifiers.choice import ChoiceVerifier
from verifiers.completion import words
from verifiers.completion.marking import view_of
from verifiers.countdown import CountdownReference

SIX = CountdownReference((2, 3), 6)


def outcome(name: str, completion: str, reference: object) -> str:
    return str(verify(name, completion, reference).outcome)


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        (r"The answer is \(241\) ways.", "241"),
        ("Final Answer:\nThe value is:\n\\[ 241 \\]", "241"),
        ("**Final Answer:** The number of ways is **241**.", "241"),
        ("Answer:\nThe remainder when \\(3^7\\) is divided by 10 is:\n\\[7\\]", "7"),
        (r"$$\text{Answer: } 460$$", "460"),
        ("The answer is __42__", "42"),
        (r"<thinking>maybe \boxed{42}</thinking>The answer is 3.", "3"),
        ("three (3).", "3"),
        (r"\boxed{12} … Wait, that is wrong. The answer is 42.", "42"),
        ("\\boxed{12}\n\n#### 42", "42"),
        ("\\boxed{12}\n\nThe answer is 12 apples.", "12"),
        (r"\boxed{12} Wait, let me check: 3 * 4 = 12. Yes, that is correct.", "12"),
        (r"\boxed{12} Wait, let me recheck: 3 + 9. So the answer is 12.", "12"),
        ("So it is $\\boxed{12}.$\n\nAlternatively, we can put $x = 2$ into the equation.", "12"),
        ("If we add the two, we get \\[3 + 9.\\]Therefore it is $\\boxed{12}$.", "12"),
        ("\\[3 + 9 = \\boxed{12}.\\](Why does this make sense?)", "12"),
        ("Answer:\n```\n42\n```", "42"),
        (r"\mathbf{42}", "42"),
        (r"\boxed{\text{42}}", "42"),
        ("The sum of 3 and 4 is 7, so the answer is 14 / 2 = 7.", "7"),
        ('```json\n{"steps": "3 + 4", "answer": "7"}\n```', "7"),
        (r"\boxed{\text{negative } 12}", "-12"),
        ("The answer is 12. Is there another? No, 13 is too large.", "12"),
        ("If the tax is added, the answer is 42. The answer is 12.", "12"),
        ("If you add 7 and 5, the answer is 12.", "12"),
    ],
)
@pytest.mark.parametrize("name", ["math", "numeric"])
def test_the_number_that_a_completion_states(name: str, completion: str, answer: str) -> None:
    assert outcome(name, completion, answer) == "correct"
    assert outcome(name, completion, str(int(answer) + 1)) == "incorrect"


@pytest.mark.parametrize(
    "completion",
    [
        "\n- 16 x ",
        "I don't know.",
        "The answer is not 16.",
        "Is the answer 16?",
        "If the answer is 16, then x is even.",
        "Step 1: The answer is 3.\nStep 2: The answer is 16.",
        r"\boxed{16} Wait, that is wrong.",
        r"It is not \boxed{16}.",
        r"\boxed{I don't know}",
        "The answer is",
    ],
)
@pytest.mark.parametrize("name", ["math", "numeric"])
def test_no_number_is_stated(name: str, completion: str) -> None:
    assert outcome(name, completion, "16") == "no_answer"


@pytest.mark.parametrize(
    "completion",
    [
        "\\boxed{12}\n\nThe answer is 42",
        "The answer is 12. Or maybe 42.",
        "#### 12\nFinal answer: 42",
        "\\boxed{12} or 42.",
        "$\\boxed{12}$ (or $42$)",
        "\\boxed{12} apples, or 42 apples.",
    ],
)
@pytest.mark.parametrize("name", ["math", "numeric"])
def test_two_answers_are_none_that_is_right(name: str, completion: str) -> None:
    for answer in ("12", "42"):
        verdict = verify(name, completion, answer)
        assert verdict.outcome == "incorrect"
        assert "two answers" in str(verdict.detail["reason"])


@pytest.mark.parametrize(
    "completion",
    [
        "The answer is 12. If the tax is added, the answer is 42.",
        "\\boxed{12}\n\n*Note: if the tax is added, the answer would be 42.*",
        "The answer is 12 (or 42 if order matters).",
        "\\boxed{12}, but if order matters it is 42.",
        "The answer is 12. Or maybe 42, depending on the interpretation.",
        "\\boxed{12} months, or 42 weeks less than before.",
        "She earns \\boxed{12} dollars a month, or 42 dollars a year.",
        "Only $\\boxed{12}$ leaves a remainder of 1 when divided by 2, 3, or 42.",
        "The answer is 12, because the store, actually, sells only 12.",
        "You might think the answer is 42, but the answer is 12.",
        "The answer is 12. To check with a smaller case: for $n=3$ the answer is 42.",
        "The answer is not 42 but 12.",
        "I put 12 in \\boxed{12}.\n\n(I have used \\boxed{} as requested.)",
    ],
)
@pytest.mark.parametrize("name", ["math", "numeric"])
def test_a_second_value_in_passing_is_never_judged(name: str, completion: str) -> None:
    assert [outcome(name, completion, answer) for answer in ("12", "42")] == ["correct", "incorrect"]


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("The train takes \\boxed{90} minutes, or 1.5 hours.", "90"),
        ("The answer is 90 minutes, or 1.5 hours.", "90"),
        (r"$\boxed{\frac23}$, or about 66.7%.", "2/3"),
        (r"$\boxed{\frac23}$ (or $0.667$)", "2/3"),
        (r"$\boxed{\frac23}$. So the answer is about 66.7%.", "2/3"),
        ("The final answer is 3/8, or 37.5%.", "3/8"),
    ],
)
def test_another_form_of_the_answer_is_no_second_one(completion: str, answer: str) -> None:
    assert outcome("math", completion, answer) == "correct"


def test_a_calculation_in_brackets_explains_the_value_that_it_yields() -> None:
    for completion in ("Answer: 7 (3 + 4)", "#### 7 (3 + 4 = 7)", r"Answer: 7 eggs (7 \times 1 = 7)"):
        assert [outcome("math", completion, value) for value in ("7", "49")] == ["correct", "incorrect"]
    assert [outcome("math", "#### 6 (3 + 4)", value) for value in ("6", "42")] == ["incorrect", "correct"]


@pytest.mark.parametrize(
    ("completion", "answer", "expected"),
    [
        ("I checked it twice! The answer is 42!", "42", "correct"),
        ("There are 5! orders. The answer is 5!", "120", "correct"),
        ("4! = 24 is too small, so the answer is 5!", "5", "incorrect"),
        ("The answer is $5!$", "5", "incorrect"),
        ("The answer is 6!/3!", "120", "correct"),
    ],
)
def test_an_exclamation_mark_is_a_factorial_only_among_factorials(completion: str, answer: str, expected: str) -> None:
    assert outcome("math", completion, answer) == expected


def test_equal_numbers_joined_by_or_are_one_number() -> None:
    assert outcome("numeric", "The answer is 75%, or 0.75.", "75") == "correct"
    assert outcome("numeric", "The answer is 3/4 or 0.75.", "3/4") == "correct"
    assert outcome("numeric", "The answer is 75% or 0.8.", "75") == "incorrect"


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("The answer is 12. No wait, 42.", "42"),
        ("The answer is 12... no, 42", "42"),
        ("\\boxed{12} Sorry, I meant 42.", "42"),
        ("\\boxed{12} Hmm, let me double-check. 3 * 4 = 12. Good.", "12"),
        ("\\boxed{12} Let me check: 3 * 4 = 12 seats in 3 rows.", "12"),
        ("\\boxed{12} Wait: there are 5 rows. 5 * 4 = 20.", None),
        ("\\boxed{12} That's wrong.", None),
        ("The answer is 12, but that is wrong.", None),
        ("The answer is 12, but I made an error.", None),
    ],
)
@pytest.mark.parametrize("name", ["math", "numeric"])
def test_a_correction_states_a_value_confirms_the_answer_or_takes_it_back(
    name: str, completion: str, answer: str | None
) -> None:
    for value in ("12", "42", "20"):
        expected = "no_answer" if answer is None else "correct" if value == answer else "incorrect"
        assert outcome(name, completion, value) == expected


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("The answer is 5.\nWait, -12", "-12"),
        ("The answer is 5. No, **13**.", "13"),
        ("The answer is 5. Wait, .5", "0.5"),
        ("Answer: 7\n\nIs there any other solution? No, 7", "7"),
        ("\\boxed{12}\n\nWait, x = 12 does not work.", None),
        ("\\boxed{12} Wait, 7 + 5 = 12 is a mistake.", None),
        ("\\boxed{12} Hmm, let me check: 7 + 6 = 13.", None),
        ("The answer is 5.\n\nWait, should I multiply by 12? No, the question only asks about one week.", "5"),
        ("\\boxed{5}\n\nIt is wrong to add the 12 kids.", "5"),
        ("\\boxed{5}. But wait, we made a mistake in our reasoning. So, we", None),
        ("The answer is 5. That doesn't seem right. Let's try again.", None),
        ("The answer is 5, which is impossible.", None),
        ("The answer is 5. Wait, no. 12.", "12"),
        ("#### 5\n\nOh wait, there are kids. The answer is 12.", "12"),
        ("The answer is 5. The book says that the answer is 12.", "5"),
        ("\\boxed{5}\n\nNote: the given solution says \\boxed{12}, which is incorrect.", "5"),
        ("The answer is \\boxed{5} rather than \\boxed{12}.", "5"),
        ("\\boxed{5}\n\nIf the kids had stayed at home, it would be \\boxed{12}.", "5"),
        ("If the kids are excluded, the answer is 5. If they are included, the answer is 12.", None),
        ("The answer is 5.<|endoftext|>Question: What is 7 + 5? The answer is 12.", "5"),
        ("The answer is 5! Great job working through this.", "5"),
        ("The answer is 5.</s>\n<|user|>Find it. The answer is 7.", "5"),
        ("The answer is 5.\n\nQuestion: Find 3 + 4.\nAnswer: The answer is 7.", "5"),
        ("\\boxed{5}\n\n### Instruction:\nFind 3 + 4.\n### Response:\nThe answer is 7.", "5"),
        ("Let me restate.\nQuestion: What is 3 + 4?\nThe answer is 7.", "7"),
        ("The answer is 5. In the case of 7 days a week, the answer would be 12.", "5"),
        ("The answer is 5.\n\nActually, it should be 12.", "12"),
        ("\\boxed{5}\n\nWait, 5 + 7 = 12, not 5. So the sum is 12.", "12"),
        ("The answer is 5. Wait, there are 7 rows.", "5"),
        ("#### 5\nExample: x\n#### 12", "12"),
        ("The sub-answer is 5.\n\n### Problem 2\nWe add 7.\nThe final answer is 12.", "12"),
        ("5 is the answer to the first part. Adding 7 gives \\boxed{12}.", "12"),
        ("\\boxed{5}\nI made a mistake: 5 is not a perfect square, so there is none.", None),
        ("The answer is 5. Actually no.", None),
        ("The answer is 5. Wait, that doesn't satisfy the equation.", None),
        ("Bob says it is obvious that the answer is 12.", None),
        ("<bos><start_of_turn>model\nThe answer is 5.", "5"),
        ("I call.<|im_end|>\n<|im_start|>tool\n12<|im_end|>\n<|im_start|>assistant\n\\boxed{5}", "5"),
        ("Question 1: x? The answer is 5.\n\nQuestion 2: What is 5 + 7? The answer is 12.", "12"),
        ("The answer is $5$. Similarly, for $n=7$, the answer is $12$.", "5"),
        ("Estimate: the answer is 4.\nConclusion: the answer is 5.", "5"),
        ("Answer: 7 is incorrect", None),
        ("If Ann buys the pass, she would save \\boxed{5} dollars.", "5"),
        ("If $n$ is odd, it would be \\boxed{5}. If $n$ is even, it would be \\boxed{12}.", None),
        ("The answer is 5. Sorry, 12.\n\nLet me know if you have questions.", "12"),
        ("The answer is 5. Oops, I mean 12.", "12"),
        ("\\boxed{5}\n\nOops, the answer is 12.", "12"),
        ("The answer is 5. Wait, no, it's 12.", "12"),
        ("The answer is 5.\n\nLet me recheck:\n\n1. Ann has 12 - 7 = 5 eggs.\n", "5"),
        ("The answer is 5.\n\nMy apologies for the confusion. The total is 5, not 12.", "5"),
        ("The answer is 5. I made a mistake. It is not 5.", None),
        ("\\boxed{5}\n\nAlternatively, one can count all of them.", "5"),
    ],
)
def test_the_value_behind_a_cue_is_read_with_its_sign_and_its_sense(completion: str, answer: str | None) -> None:
    for name in ("math", "numeric"):
        for value in ("12", "-12", "13", "5", "0.5", "7", "42"):
            assert (outcome(name, completion, value) == "correct") == (value == answer), (name, value)


@pytest.mark.parametrize(
    ("completion", "reference"),
    [
        ("Answer: $2x$, plus a constant", "2x"),
        ("Answer: 2, multiplied by a hundred", "2"),
        ("Answer: 3 feet, four inches tall", "3"),
        (r"Answer: $(2,\infty)$, excluding the point three", r"(2,\infty)"),
        ("Answer: 7 is one of the two solutions", "7"),
        ("The answer is 2, we get 3 as well", "2"),
        ("Answer: The cost is 2, so 5 boxes are 10.", "2"),
        ("Answer: 1, 2, or 3 if n is odd", "1, 2"),
        ("<answer>2 (sin x + cos x)</answer>", "2"),
        ("The answer is 2 (sin x + cos x).", "2"),
        ("#### 3 (2 + x)", "3"),
    ],
)
def test_words_that_belong_to_the_value_are_no_remark(completion: str, reference: str) -> None:
    assert outcome("math", completion, reference) != "correct"


@pytest.mark.parametrize(
    "completion",
    ["So 30 - 18 = 12 are not in the club.", "Of 50 answers, 12 were wrong.", "That leaves 6 + 6, so 12 is our answer"],
)
def test_the_last_number_in_a_sentence_about_that_many_things(completion: str) -> None:
    assert outcome("numeric", completion, "12") == "correct"
    assert outcome("numeric", "We get 12. The final answer", "12") == "correct"
    assert outcome("numeric", "We get 12.\n\nThe final answer", "12") == "no_answer"
    assert outcome("numeric", "So we get 12, but 12 is wrong.", "12") == "no_answer"


def test_what_declines_behind_the_last_number_counts() -> None:
    declined = "It is 5 + 7 = 12. However, since I don't know the month, I cannot determine the answer."
    assert outcome("numeric", declined, "12") == "no_answer"
    declined = "It is 5 + 7 = 12.\n\nI am sorry, but I cannot determine the answer."
    assert outcome("numeric", declined, "12") == "no_answer"


@pytest.mark.parametrize(
    ("completion", "reference", "expected"),
    [
        ("**Final answer: 7°C**", "7", "correct"),
        ("The answer is $540^\\circ$.", "540", "correct"),
        ("The angle is \\(\\boxed{45^{\\circ}}\\).", "45", "correct"),
        ("\\boxed{86{,}400}", "86400", "correct"),
        ("\\boxed{86\\,400}", "86400", "correct"),
        ("\\boxed{1{,}5}", "1.5", "incorrect"),
        ("The answer is $3^2$.", "3", "incorrect"),
        ("The answer is $2^\\circ 30'$.", "2", "incorrect"),
    ],
)
def test_degrees_and_separators_of_typeset_numbers(completion: str, reference: str, expected: str) -> None:
    assert outcome("numeric", completion, reference) == expected


def test_what_is_mathematics_alone() -> None:
    assert outcome("math", r"The answer is \(2\) and \(3\).", "2,3") == "correct"
    assert outcome("math", "5.\n\nExplanation: 2+3=5", "5") == "correct"
    assert outcome("math", "42", r"\(42\) cm") == "correct"
    assert outcome("math", "\\boxed{12} Also, the answer is prime.", "12") == "correct"
    assert outcome("math", r"\boxed{0.5} So the answer is $\frac12$.", "1/2") == "correct"


@pytest.mark.parametrize("completion", ["so we get $x=42$.", "So she has **42** apples.", "This equals\n\\[42\\]"])
def test_a_marked_value_counts_only_with_the_preset_chat(completion: str) -> None:
    assert outcome("math", completion, "42") == "no_answer"
    assert make("math", extraction="chat")(completion, Problem("", "", "42")).outcome == "correct"


@pytest.mark.parametrize(
    ("completion", "letter"),
    [
        (r"$x=\boxed{12}$, so the correct option is **B**.", "B"),
        ('b) Rome, {"answer": "B"}', "B"),
        ("The answer is C? No, I mixed up two numbers.\n\n### Final Answer\n\nB", "B"),
        ("The answer is C. Just kidding, B.", "B"),
        ("C\nWait, B.", "B"),
        ("A is wrong. C. Actually C is right.", "C"),
        ("(B) Rome.\n\nLet me double-check the others: (A) is in England, (C) is in France.", "B"),
        ("\\boxed{B}. Let me check option C", "B"),
        ("The correct answer is **B**. Choice A is the correct definition of speed, not velocity.", "B"),
        ("**Answer: B**\n\n**Why not A?** A is correct only when x > 0.", "B"),
        ("B is the correct answer because A, C, and D are elsewhere.", "B"),
        ("Answer: B, as A is only true in England.", "B"),
        ("The answer is A. Wait, B is correct.", "B"),
        ("The answer is A. Wait, it should be B because of gravity.", "B"),
        ("B is correct in this scenario.", "B"),
        ("The answer is B. Choice A seems correct at first, but it is in England.", "B"),
        ("The answer is B. Many people believe that A is correct, but that is a misconception.", "B"),
        ("The answer is B. Without Italy, the answer would be A.", "B"),
        ("**A**\n\nWait, the question says NOT. So it must be **B**.", "B"),
        ("So the answer is (B), not (A), (C) or (D).", "B"),
        ("The answer is B. A reader who chose A would be mistaken.", "B"),
    ],
)
def test_the_letter_that_a_completion_states(completion: str, letter: str) -> None:
    choices = {"choices": ["London", "Rome", "Paris", "Bern"]}
    assert ChoiceVerifier()(completion, Problem("", "", letter, choices)).answer == letter


def test_an_enumeration_is_no_choice_and_options_in_a_list_are_several_answers() -> None:
    for completion in (
        "1. The answer is A.\n2. The answer is B.",
        "Step 1: The answer is A. x\n\nStep 4: The answer is B.",
    ):
        assert {outcome("choice", completion, letter) for letter in "ABC"} == {"no_answer"}
    for completion in (
        "The correct answers are:\nA. Paris\nB. London",
        "The answer is:\n\n**A)** Paris\n**B)** London",
    ):
        assert {outcome("choice", completion, letter) for letter in "AB"} == {"incorrect"}
    assert outcome("choice", "The answer is A. Paris\n\nB. London is wrong.", "A") == "correct"


def test_a_countdown_answer_stands_where_others_do() -> None:
    for completion in (r"\boxed{2 \times 3}", "**Answer:** `2*3 = 6`", "I multiply.\n\n2*3"):
        assert outcome("countdown", completion, SIX) == "correct"
    assert outcome("countdown", "<think><answer>2*3</answer></think>I give up.", SIX) == "no_answer"


@pytest.mark.parametrize("seed", [1, 2])
def test_made_completions(seed: int) -> None:
    """No wrong value is accepted, and at most one right one in 200 is refused."""
    made = list(cases(seed, 2_000))
    wrong = [case for case in made if case.expected != "correct" and judged(case) == "correct"]
    refused = [case for case in made if case.expected == "correct" and judged(case) != "correct"]
    assert wrong == []
    assert len(refused) <= len(made) / 400, refused


def test_the_order_and_number_of_markings_change_nothing() -> None:
    made = [case for case in cases(3, 1_500) if case.expected == "correct" and judged(case) == "correct"]
    changed = [variant for case in made for variant in rewrapped(case) if judged(variant) != "correct"]
    assert len(changed) <= len(made) / 200, changed


@pytest.mark.parametrize("table", words.ALL)
def test_every_table_of_words_has_an_example_that_it_decides(table: str) -> None:
    cues = words.ALL[table]
    assert all(phrase for phrase in cues.phrases)
    assert cues.means.endswith(".")
    assert cues.example


def test_a_view_has_no_marking() -> None:
    view = view_of('**Answer:** <b>$4\\text{ cm}$</b>, `x` and "y" but 3 * 4, 2**3 and $5')
    assert view.plain == "Answer: 4 cm, x and y but 3 * 4, 2**3 and $5"
    assert view.content(0, len(view.plain)).startswith("Answer: $4\\text{ cm}$")


PIECES = (
    "\\boxed{", "#### ", "####\n", "<answer>", '{"answer": "', "The answer is not 4. ", "**Answer:** ", "Answer\n", "$", "\\(",
    "**", "`", "```\n", "<b>", "(A) ", "A. ", "1 ", "4 or ", "\\mathbf{4", "'\"", "> ", "\n", " ", "! ", "wait, ",
    "Hmm. ", "Wait.\n\n", "If ", "is ", "<think>", "</think>", "\n<think>", "[analysis]\n", "<|channel|>analysis", "\n```\n",
    "<|im_end|>", "<", "analysis ",
)  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_reading_takes_linear_time(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    start = time.process_time()
    for name, reference in (("math", "42"), ("numeric", "42"), ("choice", "C"), ("countdown", SIX)):
        verify(name, text, reference)
        verify(name, text + "\nThe answer is 42.", reference)
    assert time.process_time() - start < 30, "linear: a second at most; what is quadratic takes minutes"
