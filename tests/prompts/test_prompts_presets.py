"""The named prompts: their examples are right, worked out here a second time, and their stop strings fit them."""

from __future__ import annotations

import itertools
import math
import os
import re
from fractions import Fraction

import pytest

from rlvr_envs import tasks
from rlvr_envs.prompts import PRESETS, ChatPrompt, Prompt, TextPrompt, benchmarks
from verifiers import Problem

PROBLEM = Problem("p", "What is {6} * 7?", "42")
ALL = pytest.mark.parametrize("prompt", PRESETS.values(), ids=list(PRESETS))


def text_preset(name: str) -> TextPrompt:
    prompt = PRESETS[name]
    assert isinstance(prompt, TextPrompt)
    return prompt


@ALL
def test_a_preset_conforms_and_says_where_its_format_comes_from(prompt: TextPrompt | ChatPrompt) -> None:
    assert isinstance(prompt, Prompt)
    assert PRESETS[prompt.name] is prompt
    assert prompt.source.endswith(".")
    assert re.fullmatch("[0-9a-f]{64}", prompt.fingerprint)


def test_fingerprints_tell_presets_apart() -> None:
    assert len({prompt.fingerprint for prompt in PRESETS.values()}) == len(PRESETS)


@ALL
def test_a_preset_shows_the_problem_once_after_its_examples(prompt: TextPrompt | ChatPrompt) -> None:
    text = prompt.render(PROBLEM)
    assert text.count("What is {6} * 7?") == 1
    assert all(text.index(exemplar.problem) < text.index("What is {6} * 7?") for exemplar in prompt.exemplars)


@pytest.mark.parametrize("name", ["gsm8k_cot_8shot", "minerva_math_4shot", "mbpp_3shot"])
def test_an_example_s_answer_ends_where_the_next_example_begins(name: str) -> None:
    """A policy that imitates the examples and goes on with another one is stopped right after its answer."""
    prompt = text_preset(name)
    for exemplar, following in itertools.pairwise(prompt.exemplars):
        shown = prompt.template.replace("{problem}", following.problem)
        continuation = exemplar.answer + prompt.separator + shown
        cut = min(continuation.find(stop) for stop in prompt.stop if stop in continuation)
        assert continuation[:cut].strip() == exemplar.answer.removesuffix("[DONE]").strip()


def test_plain_is_the_problem_alone() -> None:
    assert PRESETS["plain"].render(PROBLEM) == "What is {6} * 7?"
    assert PRESETS["plain"].stop == ()


def test_boxed_chat_is_a_chat_that_asks_for_a_box() -> None:
    prompt = PRESETS["boxed_chat"]
    assert isinstance(prompt, ChatPrompt)
    (message,) = prompt.messages(PROBLEM)
    assert message.role == "user"
    assert message.content.startswith("What is {6} * 7?\n\n")
    assert "step by step" in message.content
    assert message.content.endswith(r"\boxed{}.")


def test_code_chat_asks_for_one_fenced_python_block() -> None:
    prompt = PRESETS["code_chat"]
    assert isinstance(prompt, ChatPrompt)
    assert "one fenced block that begins with ```python" in prompt.messages(PROBLEM)[0].content


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("gsm8k_cot_8shot", "Question: What is {6} * 7?\nAnswer:"),
        ("minerva_math_4shot", "Problem:\nWhat is {6} * 7?\n\nSolution:"),
        ("mbpp_3shot", "What is {6} * 7?\n[BEGIN]\n"),
        ("answer_only", "\nAnswer:"),
        ("humaneval_completion", "What is {6} * 7?"),
    ],
)
def test_a_text_preset_ends_where_the_answer_begins(name: str, end: str) -> None:
    assert PRESETS[name].render(PROBLEM).endswith(end)


# gsm8k_cot_8shot

GSM8K_ANSWERS = [
    48 - 31 - 9,
    3 * (5 * 15 + 2 * 30),
    80 * Fraction(3, 4) + 14,
    900 * Fraction(2, 3) / 25,
    2 * 9 + 4 + 5,
    Fraction(7 * 24, 6),
    3 * (14 + 18),
    Fraction(150 - 3 * 12 - 2 * 19, 2),
]
EQUATION = re.compile(r"(\d+(?: [-+*/] \d+)+) = (\d+)")


def chain_value(chain: str) -> Fraction:
    """Work out `"80 * 25 / 100"` step by step: products within each term, then the sum of the terms."""
    first, *rest = chain.split()
    terms = [Fraction(first)]
    for operator, number in zip(rest[::2], rest[1::2], strict=True):
        if operator == "*":
            terms[-1] *= Fraction(number)
        elif operator == "/":
            terms[-1] /= Fraction(number)
        else:
            terms.append(Fraction(operator + number))
    return sum(terms, Fraction())


def test_gsm8k_has_eight_examples_with_the_right_answers() -> None:
    exemplars = PRESETS["gsm8k_cot_8shot"].exemplars
    answers = [int(exemplar.answer.rpartition("\n#### ")[2]) for exemplar in exemplars]
    assert answers == GSM8K_ANSWERS
    assert len(answers) == 8


def test_every_equation_of_the_gsm8k_examples_holds() -> None:
    for exemplar in PRESETS["gsm8k_cot_8shot"].exemplars:
        equations = EQUATION.findall(exemplar.answer)
        assert len(equations) == exemplar.answer.count("=") >= 2
        for chain, result in equations:
            assert chain_value(chain) == int(result), (chain, result)
        assert exemplar.answer.endswith(f"#### {equations[-1][1]}")


def test_the_numbers_of_the_gsm8k_examples_come_from_the_question_or_an_earlier_step() -> None:
    """Each number that a step starts from was given, was worked out before, or is a fact such as days in a week."""
    facts = {"2", "5", "3", "100"}  # weekend days and "twice" and "half", working days, "a third", per cent
    for exemplar in PRESETS["gsm8k_cot_8shot"].exemplars:
        known = facts | set(re.findall(r"\d+", exemplar.problem))
        for chain, result in EQUATION.findall(exemplar.answer):
            assert set(re.findall(r"\d+", chain)) <= known, chain
            known.add(result)


# minerva_math_4shot


def minerva_answers() -> list[str]:
    prompt = text_preset("minerva_math_4shot")
    matches = [re.search(r"\nFinal Answer: The final answer is \$(.*)\$\.$", item.answer) for item in prompt.exemplars]
    assert len(matches) == 4
    return [match[1] for match in matches if match]


def test_minerva_example_1_sum_of_squared_roots() -> None:
    roots = [Fraction(-3, 2), Fraction(4)]
    assert all(2 * x**2 - 5 * x - 12 == 0 for x in roots)
    assert sum(x**2 for x in roots) == Fraction(73, 4)
    assert minerva_answers()[0] == r"\frac{73}{4}"


def test_minerva_example_2_arrangements_of_level() -> None:
    assert minerva_answers()[1] == str(len(set(itertools.permutations("LEVEL"))))


def test_minerva_example_3_inscribed_circle() -> None:
    # The point (r, r) is at distance r from the line through (8, 0) and (0, 15), and inside the triangle.
    r = 3
    assert abs(15 * r + 8 * r - 120) == r * math.isqrt(15**2 + 8**2) == r * 17
    assert 15 * r + 8 * r < 120
    assert minerva_answers()[2] == rf"{r**2}\pi"


def test_minerva_example_4_domain() -> None:
    def defined(x: Fraction) -> bool:
        return 9 - x**2 >= 0 and x - 1 != 0

    grid = [Fraction(n, 8) for n in range(-40, 41)]
    assert all(defined(x) == (-3 <= x < 1 or 1 < x <= 3) for x in grid)
    assert minerva_answers()[3] == r"[-3, 1) \cup (1, 3]"


# mbpp_3shot


def test_mbpp_has_three_examples_that_pass_their_tests() -> None:
    exemplars = PRESETS["mbpp_3shot"].exemplars
    assert len(exemplars) == 3
    for exemplar in exemplars:
        program, done = exemplar.answer.split("\n[DONE]")
        asserts = exemplar.problem.partition("tests:\n\n")[2].splitlines()
        assert done == ""
        assert len(asserts) == 3
        scope: dict[str, object] = {}
        exec(program, scope)
        for line in asserts:
            exec(line, scope)


def test_mbpp_examples_have_the_form_of_the_data_set() -> None:
    for exemplar in PRESETS["mbpp_3shot"].exemplars:
        text, _, asserts = exemplar.problem.partition("\nYour code should pass these tests:\n\n")
        assert exemplar.problem == benchmarks.mbpp_text(text, asserts.splitlines())


# On the published rows

FOLDER = os.environ.get("RLVR_DATA_DIR")


@pytest.mark.skipif(not FOLDER, reason="needs RLVR_DATA_DIR, a folder with the published rows")
@pytest.mark.parametrize(
    ("preset", "name"),
    [
        ("gsm8k_cot_8shot", "gsm8k"),
        ("minerva_math_4shot", "math"),
        ("boxed_chat", "math"),
        ("humaneval_completion", "humaneval"),
        ("mbpp_3shot", "mbpp"),
        ("code_chat", "mbpp"),
    ],
)
def test_stop_strings_cut_no_gold_completion_and_examples_are_our_own(preset: str, name: str) -> None:
    prompt = PRESETS[preset]
    own = {exemplar.problem for exemplar in prompt.exemplars}
    for problem in tasks.load(name, "test", data_dir=FOLDER):
        gold = str(problem.metadata["gold_completion"])
        assert not any(stop in gold for stop in prompt.stop), problem.id
        assert problem.prompt not in own
        assert str(problem.prompt) in prompt.render(problem)
