"""The named prompts: their examples are right, worked out here a second time, and their stop strings fit them."""

from __future__ import annotations

import itertools
import os
import re
from typing import Any

import pytest

from rlvr_envs import tasks
from rlvr_envs.prompts import PRESETS, ChatPrompt, Prompt, TextPrompt
from verifiers import Problem

PROBLEM = Problem("p", "What is {6} * 7?", "42")
ALL = pytest.mark.parametrize("prompt", PRESETS.values(), ids=list(PRESETS))


@ALL
def test_a_preset_conforms_and_says_where_its_format_comes_from(prompt: TextPrompt | ChatPrompt) -> None:
    assert isinstance(prompt, Prompt)
    assert PRESETS[prompt.name] is prompt
    assert prompt.source.endswith(".")
    assert re.fullmatch("[0-9a-f]{64}", prompt.fingerprint)


@ALL
def test_a_preset_shows_the_problem_once_after_its_examples(prompt: TextPrompt | ChatPrompt) -> None:
    text = prompt.render(PROBLEM)
    assert text.count("What is {6} * 7?") == 1
    assert all(text.index(exemplar.problem) < text.index("What is {6} * 7?") for exemplar in prompt.exemplars)


@pytest.mark.parametrize("name", ["gsm8k_cot_8shot", "minerva_math_4shot", "mbpp_3shot"])
def test_an_example_s_answer_ends_where_the_next_example_begins(name: str) -> None:
    """A policy that imitates the examples and goes on with another one is stopped right after its answer."""
    prompt: Any = PRESETS[name]
    for exemplar, following in itertools.pairwise(prompt.exemplars):
        shown = prompt.template.replace("{problem}", following.problem)
        continuation = exemplar.answer + prompt.separator + shown
        cut = min(continuation.find(stop) for stop in prompt.stop if stop in continuation)
        assert continuation[:cut].strip() == exemplar.answer.removesuffix("[DONE]").strip()


EQUATION = re.compile(r"(\d+(?: [-+*/] \d+)+) = (\d+)")


def test_every_equation_of_the_gsm8k_examples_holds() -> None:
    for exemplar in PRESETS["gsm8k_cot_8shot"].exemplars:
        equations = EQUATION.findall(exemplar.answer)
        assert len(equations) == exemplar.answer.count("=") >= 2
        for chain, result in equations:
            assert eval(chain) == int(result), (chain, result)
        assert exemplar.answer.endswith(f"#### {equations[-1][1]}")


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
