"""Answers that are no answers: what they evaluate, what they write to, what they break, and what careless scorers let pass."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import verifiers
from rlvr_envs.tasks import ReasoningGym
from verifiers import Outcome, Problem, Verdict
from verifiers.reasoning_gym import ReasoningGymVerifier, jailed

VERIFIER = ReasoningGymVerifier(timeout_s=10)
EVALUATED = (
    "binary_matrix", "countdown", "intermediate_integration", "n_queens", "polynomial_multiplication", "puzzle24",
    "simple_integration", "spiral_matrix", "string_insertion",
)  # fmt: skip
"""The tasks whose scorers evaluate the answer as Python, or by sympy's parser, which does."""


@functools.cache
def problem_of(task: str, index: int = 0) -> Problem:
    return ReasoningGym(task=task, seed=11)[index]


def answered(answer: str, problem: Problem, verifier: ReasoningGymVerifier = VERIFIER) -> Verdict:
    return verifiers.verify_batch(verifier, [f"<answer>{answer}</answer>"], [problem])[0]


def gold(problem: Problem) -> str:
    return str(problem.metadata["gold_completion"]).removeprefix("<answer>").removesuffix("</answer>")


PROGRAMS = (
    "[*map(open('{file}', 'w').write, ['x'])]",
    "__import__('os').system('touch {file}')",
    "[frame for frame in [__import__('sys')._getframe(1)] if frame.f_locals['entry'].update(answer='0')]",
    "[x for x in (1).__class__.__base__.__subclasses__()]",
    "(lambda: __import__('builtins').setattr(__import__('math'), 'exp', lambda x: 1.0))()",
    "exec('import sys; sys.stdout.write(chr(10))')",
    "print('{{\"score\": 1.0}}')",
    "().__class__.__bases__[0]",
    "breakpoint()",
    "__import__('os')._exit(0)",
    "__import__('os').kill(__import__('os').getppid(), 9)",
)


@pytest.mark.parametrize("task", EVALUATED)
def test_a_program_in_place_of_an_answer_is_never_run(task: str, tmp_path: Path) -> None:
    file = tmp_path / "written"
    for program in PROGRAMS:
        verdict = answered(program.format(file=file), problem_of(task))
        assert verdict.outcome in (Outcome.INCORRECT, Outcome.SCORED), program
        assert verdict.score < 0.1, program
        # A program that ran and ended the process, or printed, would leave no reply or another one.
        assert "score" in verdict.detail, program
    assert not file.exists()


@pytest.mark.parametrize(
    ("task", "cheat"),
    [
        # What the question asks for, left to the scorer.
        ("simple_integration", lambda problem: "Integral({}, {})".format(*integrand(problem))),
        ("simple_integration", lambda problem: "integrate({}, {})".format(*integrand(problem))),
        ("polynomial_multiplication", lambda problem: f"expand({product(problem)})"),
        ("polynomial_multiplication", lambda problem: f"({product(problem)}).expand()"),
        ("polynomial_multiplication", lambda problem: f"sympify('expand({product(problem)})')"),
        # Any four numbers, and numbers that are not used.
        ("puzzle24", lambda problem: "9 + 9 + 6*1" if 8 in numbers(problem) else "8*3*1*1"),
        ("puzzle24", lambda problem: "6*4 # 1 1"),
        ("puzzle24", lambda problem: "24 or (1, 1, 1)"),
        ("countdown", lambda problem: f"{target(problem)} # " + " ".join(map(str, numbers(problem)))),
        ("countdown", lambda problem: f"{target(problem)} + 0*({'+'.join(map(str, numbers(problem)))})"),
        ("countdown", lambda problem: "(" + ", ".join(map(str, numbers(problem))) + ")"),
        # A beginning of the right digits, no number, numbers near the right ones, more than asked for.
        ("coin_flip", lambda problem: "0"),
        ("complex_arithmetic", lambda problem: "nan"),
        ("complex_arithmetic", lambda problem: "nani"),
        ("number_sorting", lambda problem: re.sub(r"'-?[\d.]+'", "NaN", gold(problem))),
        ("number_sorting", lambda problem: re.sub(r"'(-?[\d.]+)'", lambda number: str(float(number[1]) + 0.5), gold(problem))),
        ("game_of_life_halting", lambda problem: "False" if gold(problem) == "True" else "True"),
        ("game_of_life_halting", lambda problem: "both"),
        ("word_sorting", lambda problem: gold(problem) + ", zebra"),
        ("propositional_logic", lambda problem: premise(problem)),
        ("propositional_logic", lambda problem: f"({premise(problem)})"),
        ("gsm_symbolic", lambda problem: f"-{gold(problem)}"),
    ],
)  # fmt: skip
def test_what_careless_scorers_let_pass_is_wrong(task: str, cheat: Callable[[Problem], str]) -> None:
    for index in range(3):
        problem = problem_of(task, index)
        answer = cheat(problem)
        assert answer != gold(problem) if "gold_completion" in problem.metadata else answer
        verdict = answered(answer, problem)
        assert verdict.outcome in (Outcome.INCORRECT, Outcome.SCORED), (answer, problem.prompt)


def integrand(problem: Problem) -> tuple[str, str]:
    """The function, and the variable by which it is to be integrated."""
    found = re.search(r"∫ (.+) d(\w)$", problem.prompt, re.MULTILINE)
    assert found is not None, problem.prompt
    return found[1], found[2]


def product(problem: Problem) -> str:
    return problem.prompt.partition("\n")[0].partition(": ")[2]


def numbers(problem: Problem) -> list[int]:
    found = re.search(r"(\d+(?:, \d+)+)", problem.prompt)
    assert found is not None, problem.prompt
    return [int(number) for number in found[1].split(", ")]


def target(problem: Problem) -> str:
    others = re.findall(r"\d+", problem.prompt.partition("Final answer")[0])
    for number in numbers(problem):
        others.remove(str(number))
    return others[0]


def premise(problem: Problem) -> str:
    found = re.search(r"1\. (.+)", problem.prompt)
    assert found is not None, problem.prompt
    return found[1]


@pytest.mark.parametrize(
    "answer", ["9**9**9**9", "[" * 5000, "1" + "0" * 200_000, "(" * 100 + "1" + ")" * 100, "\ud800", "\0"]
)
@pytest.mark.parametrize(
    "task", ["countdown", "simple_integration", "spiral_matrix", "chain_sum", "prime_factorization"]
)
def test_an_answer_can_not_choose_to_leave_training(task: str, answer: str) -> None:
    verdict = answered(answer, problem_of(task), ReasoningGymVerifier(timeout_s=3))
    assert verdict.outcome in (Outcome.INCORRECT, Outcome.SCORED, Outcome.TIMEOUT)
    assert verdict.score < 0.1


def test_an_exception_of_the_scorer_is_the_answers_doing() -> None:
    verdict = answered("seven", problem_of("prime_factorization"))
    assert verdict.outcome is Outcome.INCORRECT
    assert verdict.detail["exception"] == "ValueError"


def test_partial_credit_is_paid_if_asked_for() -> None:
    problem = problem_of("prime_factorization")
    assert answered("1", problem) == Verdict(0.01, Outcome.SCORED, "1", {"score": 0.01})
    without = ReasoningGymVerifier(partial_credit=False)
    assert answered("1", problem, without).outcome is Outcome.INCORRECT
    assert answered(gold(problem), problem, without).outcome is Outcome.CORRECT


def test_right_answers_of_other_forms_pass() -> None:
    problem = problem_of("simple_integration")
    assert answered(f"1 + {gold(problem)} + 7", problem).outcome is Outcome.CORRECT
    coin = problem_of("coin_flip")
    assert answered(f" {float(gold(coin)):.6f} ", coin).outcome is Outcome.CORRECT
    words = problem_of("word_sorting")
    assert answered(gold(words).replace(", ", " ,  "), words).outcome is Outcome.CORRECT


@pytest.mark.parametrize(
    ("text", "value"),
    [("[[1, 0], [0, 1]]", [[1, 0], [0, 1]]), ("('a', None)", ("a", None)), ("3*(4 - 1)/2", 4.5), ("-0x1F ^ 3", -30)],
)
def test_literals_and_arithmetic_are_evaluated(text: str, value: object) -> None:
    assert jailed.restricted_eval(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "open('x')", "a.b", "[1][0]", "[x for x in 'ab']", "lambda: 1", "1 if 2 else 3", "1 or 2", "1 < 2", "f'{1}'", "x := 1",
        "(x := 1)", "1 # 2", "Symbol(print('x'))", "Float('1', precision=exec)", "sin(1, f=print)", "sin(*[1])", "sin(**{})",
        "await x", "(yield)", "import os", "", "Integral(1)", b"1", compile("1", "", "eval"),
    ],
)  # fmt: skip
def test_nothing_else_is(text: Any) -> None:
    with pytest.raises((ValueError, SyntaxError)):
        jailed.restricted_eval(text, {"Symbol": print, "Float": print, "sin": print, "print": print})


def test_eval_is_python_s_own_again_after_a_score() -> None:
    import reasoning_gym
    from sympy.parsing import sympy_parser

    with jailed.restricted():
        assert vars(sympy_parser)["eval"] is jailed.restricted_eval
        assert vars(reasoning_gym.games.n_queens)["eval"] is jailed.restricted_eval
    assert "eval" not in vars(sympy_parser)
    assert "eval" not in vars(reasoning_gym.games.n_queens)
    assert os.path.exists(str(jailed.__file__))
