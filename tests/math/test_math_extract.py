import re

import pytest

from verifiers import InvalidArgumentError, Outcome, Problem, UnknownNameError, verify
from verifiers.math import PRESETS, Extraction, MathVerifier

default = PRESETS["default"]


@pytest.mark.parametrize(
    ("completion", "answer", "method"),
    [
        # (2) boxes
        (r"so \boxed{5}", "5", "box"),
        (r"\boxed{4} no, \boxed{5}", "5", "box"),
        (r"\boxed{\frac{1}{2}} and the answer is 7", r"\frac{1}{2}", "box"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}", "box"),
        (r"$\boxed{1}$, $\boxed{2}$", "1, 2", "box"),
        (r"\boxed{1} \text{ or } \boxed{2}", "1 or 2", "box"),
        ("\\boxed{1}\n\n\\boxed{2}", "2", "box"),
        (r"\boxed{\boxed{5}}", "5", "box"),
        # (3) hashes
        ("thinking\n#### 1,234\nmore", "1,234", "hashes"),
        ("#### 4\n#### 5", "5", "hashes"),
        ("#### Final Answer\nThe final answer is 5.", "5", "phrase"),
        ("#### **Answer**\n5", "5", "phrase"),
        ("#### 2. Compute the total\nIt is 3+4.\nThe answer is 7", "7", "phrase"),
        ("The correct choice is **C**.", "C", "phrase"),
        # (4) tags
        ("<answer>5</answer>", "5", "tag"),
        ("<answer>5", "5", "tag"),
        # (5) phrases
        ("**Final Answer:** $x = 5$", "$x = 5$", "phrase"),
        ("The answer is 12, because 12 is even", "12", "phrase"),
        ("The answer is\n\\[ \\frac12 \\]", r"\frac12", "phrase"),
        ("Answer: 4:30 p.m.", "4:30 p.m", "phrase"),
        ("the answer is 3, wait: the answer is 4", "4", "phrase"),
        # (6) nothing but an expression
        ("$x = 5$", "x = 5", "whole"),
        ("(C)", "(C)", "whole"),
        ("no solution", "no solution", "whole"),
    ],
)
def test_where_an_answer_is_found(completion, answer, method):
    extracted = default(completion)
    assert (extracted.method, (extracted.answer or "").strip(" .*")) == (method, answer)


@pytest.mark.parametrize(
    "completion",
    [
        "",
        r"\boxed{}",
        r"\boxed{5} and then \boxed{ }",
        r"the answer is 5, \boxed{5",
        r"<think>\boxed{5}",
        r"<think>\boxed{5}</think>",
        "<think>a</think> \\boxed{5}\n<think> hm",
        "The correct option is not A",
        "####",
        "I am not sure whether five or six would be right here",
        "We compute 2 + 3 and then go on for a while.",
    ],
)
def test_completions_without_an_answer(completion):
    assert default(completion).answer is None
    verdict = verify("math", completion, "5")
    assert (verdict.outcome, verdict.score) == (Outcome.NO_ANSWER, 0.0)


def test_thought_is_cut_off_before_anything_is_searched():
    assert default(r"<think>\boxed{4}</think> The answer is 5").answer == "5"
    assert Extraction(thinking="ignore")(r"<think>\boxed{5}").answer == "5"


def test_the_last_number_counts_only_where_a_preset_asks_for_it():
    text = "We get 3 apples, then 1,234 more"
    assert default(text).answer is None
    assert PRESETS["flexible"](text).answer == "1,234"


def test_a_stop_string_ends_the_completion_and_a_worked_solution_as_gold_is_its_final_answer():
    assert verify("math", "#### 5", "2+3=5\n#### 5").outcome is Outcome.CORRECT
    assert verify("math", "#### 5", r"hence $\boxed{5}$").outcome is Outcome.CORRECT
    assert Extraction(stop=("Question:",))("The answer is 5\nQuestion: what? The answer is 6").answer == "5"


GOLD = "She has 617*2=<<617*2=1234>>1234.\n#### 1,234"


@pytest.mark.parametrize(
    ("preset", "completion", "correct"),
    [
        ("gsm8k_strict", "#### 1234", True),
        ("gsm8k_strict", "#### 1,234.", True),
        ("gsm8k_strict", "#### 1234\n#### 5", True),  # the first match counts
        ("gsm8k_strict", "#### 5\n#### 1234", False),
        ("gsm8k_strict", "####1234", False),
        ("gsm8k_strict", "#### 1234.00", False),  # strings are compared, not numbers
        ("gsm8k_strict", "Question: #### 1234", False),
        ("gsm8k_flexible", "it is $1,234.", True),
        ("gsm8k_flexible", "1234 of 7", False),
        ("gsm8k_flexible", "1234<|im_end|> 7", True),
        ("gsm8k_flexible", "none", False),
        ("minerva", "Final Answer: The final answer is $1234$. I hope it is correct.", True),
        ("minerva", "Final Answer: The final answer is 1234. I hope it is correct.\n\nProblem: x", True),
        ("minerva", "The answer is 1234.", False),
    ],
)
def test_presets(preset, completion, correct):
    verdict = MathVerifier(extraction=preset)(completion, Problem("", "", GOLD))
    assert (verdict.outcome is Outcome.CORRECT) == correct, verdict


def test_wrong_extractions_are_refused_by_name():
    with pytest.raises(UnknownNameError, match="'gsm8k_strict'"):
        MathVerifier(extraction="gsm8k_strictt")
    with pytest.raises(UnknownNameError, match="extraction method 'boxes'"):
        Extraction(methods=("boxes",))
    with pytest.raises(InvalidArgumentError, match="no group"):
        Extraction(pattern=re.compile("x"))
    with pytest.raises(InvalidArgumentError, match="'closed' or 'ignore'"):
        Extraction(thinking="open")
    with pytest.raises(InvalidArgumentError, match="text or an Extraction"):
        MathVerifier(extraction=5)
