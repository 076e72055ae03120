"""The page of the environment shows what there is, and its examples run."""

from __future__ import annotations

import pprint
import re

from rlvr_envs.tasks import ReasoningGym
from tests.docs import DOCS
from verifiers.reasoning_gym.jailed import CONDITIONS

PAGE = (DOCS / "environments" / "reasoninggym.md").read_text(encoding="utf-8")


def test_the_examples_run() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(code, {})


def test_the_first_problem_is_the_one_that_is_shown() -> None:
    problem = ReasoningGym()[0]
    shown = re.findall(r"````text\n(.*?)\n````", PAGE, re.DOTALL)
    assert shown == [problem.prompt, problem.metadata["gold_completion"], pprint.pformat(problem.reference, width=100)]


def test_every_condition_is_named() -> None:
    table = PAGE.partition("| task |")[2].partition("\n\n")[0]
    assert set(CONDITIONS) <= set(re.findall(r"`(\w+)`", table))
