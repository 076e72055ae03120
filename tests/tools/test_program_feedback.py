"""Feedback on programs: what it says, that it follows from the public tests alone, and that all tests score."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest

import rlvr_envs
from rlvr_envs import Turn
from rlvr_envs.program_feedback import ProgramFeedback
from verifiers import InvalidArgumentError, Outcome, Problem, VerifierFailureError
from verifiers.unit_tests import AssertTests, CallCase, CallTests, CheckTests, FunctionTests, StdioCase, StdioTests

SECRET = 8675309


@pytest.fixture(scope="module")
def feedback() -> Iterator[ProgramFeedback]:
    made = ProgramFeedback(timeout_s=1.0)
    yield made
    made.close()


def turn(program: str) -> Turn:
    return Turn(np.zeros(1, dtype=np.int32), f"```python\n{program}\n```" if program else "")


def said(feedback: ProgramFeedback, tests: Any, program: str) -> str | None:
    reply = feedback([turn(program)], Problem("p", "?", tests))
    return None if reply is None else reply.messages[0].content.strip("\n")


ASSERTS = AssertTests(("assert f(1) == 2", f"assert f({SECRET}) == {SECRET + 1}"))
CALLS = CallTests("f", (CallCase((1,), 2), CallCase((SECRET,), SECRET + 1)))
INPUTS = StdioTests((StdioCase("1\n", "2\n"), StdioCase(f"{SECRET}\n", f"{SECRET + 1}\n")))
CHECK = CheckTests(
    "f",
    f"def check(candidate):\n    assert candidate({SECRET}) == {SECRET + 1}\n",
    'def f(x):\n    """The next number.\n\n    >>> f(1)\n    2\n    >>> print(f(2))\n    3\n    """\n',
)

FAILS = "This test fails:\nassert f(1) == 2"


@pytest.mark.parametrize(
    ("tests", "program", "text"),
    [
        (ASSERTS, "def f(x): return x + 1", None),
        (ASSERTS, "def f(x): return 2", None),  # the other test is hidden
        (ASSERTS, "def f(x): return 3", FAILS),
        (ASSERTS, "def f(x): return 1 / 0", f"{FAILS}\nZeroDivisionError: division by zero (line 1)"),
        (ASSERTS, "def f(x): return (", "SyntaxError: '(' was never closed (solution.py, line 1)"),
        (ASSERTS, "", "There is no program in the answer: write it in a block that begins with ```python."),
        (ASSERTS, "def f(x):\n    print('so far')\n    return 0", f"{FAILS}\nThe program wrote:\nso far"),
        (ASSERTS, "def f(x):\n    while True: pass", f"{FAILS}\nThe program was ended: it took too much time."),
        (CALLS, "def f(x): return 3", "This test fails:\nf(1) == 2\nAssertionError: got 3, expected 2"),
        (INPUTS, "print(3)", "This test fails:\ninput:\n1\n\nexpected output:\n2\nThe program wrote:\n3"),
        (CHECK, "def f(x): return 3", "This test fails:\nassert (f(1)) == (2)"),
        (CHECK, "def f(x): return 2", None),
    ],
)  # fmt: skip
def test_a_program_is_answered_with_the_first_public_test_that_it_fails(
    feedback: ProgramFeedback, tests: Any, program: str, text: str | None
) -> None:
    assert said(feedback, tests, program) == text


SNOOPING = [
    """
def f(x):
    import gc
    print([each for each in gc.get_objects() if isinstance(each, (str, tuple, list, dict))])
    return 0
""",
    """
import sys
def f(x):
    frame = sys._getframe()
    while frame:
        print(frame.f_globals, frame.f_locals)
        frame = frame.f_back
""",
    "import sys\nprint(sys.stdin.read())\nprint(sys.argv)\ndef f(x): return 0",
    "import os\nprint(os.environ)\nprint(open('/proc/self/environ').read())\ndef f(x): return 0",
    "calls = []\ndef f(x):\n    calls.append(x)\n    print(calls)\n    return x + 2",
    "def f(x): raise ValueError(repr(x))",
    """
class E:
    def __eq__(self, other):
        print(repr(other))
        return False
def f(x): return E()
""",
]


@pytest.mark.parametrize("tests", [ASSERTS, CALLS, INPUTS, CHECK], ids=lambda tests: type(tests).__name__)
def test_nothing_of_hidden_tests_comes_back(feedback: ProgramFeedback, tests: Any) -> None:
    for program in SNOOPING:
        told = said(feedback, tests, program)
        assert told is not None
        assert str(SECRET) not in told
        assert str(SECRET + 1) not in told


def test_hidden_tests_have_no_influence(feedback: ProgramFeedback) -> None:
    other = AssertTests(("assert f(1) == 2", "assert f('other') == 1 / 0", "syntax error", "assert f(7)"))
    for program in ("def f(x): return 3", "def f(x): return 2", "def f(x): return 1 / 0", "x ="):
        assert said(feedback, ASSERTS, program) == said(feedback, other, program)


def test_where_no_test_can_stand_alone_the_first_turn_ends_the_episode(feedback: ProgramFeedback) -> None:
    assert (
        said(feedback, FunctionTests("from solution import f\n\ndef test_f():\n    assert f(1) == 2\n"), "x = 1")
        is None
    )
    assert said(feedback, CheckTests("f", "def check(candidate): pass"), "x = 1") is None


@pytest.mark.parametrize(
    "settings", [{}, {"tools": "calculator"}, {"summarize_after": 100, "max_new_tokens": 300}], ids=str
)
def test_problems_without_unit_tests_and_wrong_settings_are_refused(
    settings: dict[str, Any], feedback: ProgramFeedback
) -> None:
    message = r"^feedback is for problems with unit tests .* '{}.* is a"
    with pytest.raises(InvalidArgumentError, match=message.format("addition/")):
        gymnasium.make("rlvr/Addition-v0", interaction="rlvr_envs.program_feedback:ProgramFeedback", **settings)
    with pytest.raises(InvalidArgumentError, match=message.format("p")):
        feedback([turn("x = 1")], Problem("p", "?", "42"))
    with pytest.raises(InvalidArgumentError, match="public must be at least 1, got 0"):
        ProgramFeedback(0)


def test_tests_that_can_not_be_run_cost_the_episode(feedback: ProgramFeedback) -> None:
    with pytest.raises(VerifierFailureError, match="the public tests of 'p' can't be run"):
        said(feedback, AssertTests(("assert f(",)), "def f(x): return 1")


def test_an_episode_goes_on_until_the_public_tests_pass_and_all_tests_score() -> None:
    env: Any = gymnasium.make(
        "rlvr/Function-v0",
        interaction="rlvr_envs.program_feedback:ProgramFeedback",
        tokenizer="byte",
        max_new_tokens=500,
        max_turns=3,
    ).unwrapped
    observation, _ = env.reset(options={"problem": 0})
    problem = env.streams.problem(0)
    end = env.tokenizer.eos_token
    observation, reward, terminated, _, info = env.step_many([*env.tokenizer.encode("    return ["), end])
    told = observation["tokens"][observation["length"][0] - info["inserted"] : observation["length"][0]]
    assert rlvr_envs.decode(env.tokenizer, told).startswith("\nSyntaxError: ")
    assert (reward, terminated) == (0.0, False)
    _, reward, terminated, _, info = env.step_many([*env.tokenizer.encode(problem.metadata["gold_completion"]), end])
    assert (reward, terminated, info["verdict"].outcome) == (1.0, True, Outcome.CORRECT)
    env.close()


def test_deferred_tests_are_not_made_to_tell_that_they_are_tests() -> None:
    class Never:
        def load(self) -> Any:
            raise AssertionError

    ProgramFeedback().check_problem(Problem("p", "", Never()))
