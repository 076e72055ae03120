"""Functions given to an environment: refused when it is made if they can't be called as they will be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from rlvr_envs import TokenVectorEnv
from tests.envs.helpers import streams
from verifiers import InvalidArgumentError, UnknownNameError

ID = "rlvr/Addition-v0"
ONE: Any = lambda only: None  # noqa: E731 - a function of one argument
MODULE = """
from functools import lru_cache, partial
from rlvr_envs.types import Reply, Turn

def ends(turns, problem):
    return None

def of_turns(turns):
    return None

class Answers:
    def __call__(self, turns, problem):
        return None

class Named(Answers):
    def __init__(self, name):
        self.name = name
"""


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_other_side.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return "own_other_side"


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("end_condition", "tokens, prompt_length, problem"),
        ("process_scorer", "tokens, prompt_length, problem"),
        ("legal_actions", "tokens, prompt_length"),
        ("interaction", "turns, problem"),
    ],
)
@pytest.mark.parametrize("value", [ONE, 3])
def test_a_function_that_takes_something_else_is_refused(name: str, parameters: str, value: Any) -> None:
    message = rf"^{name} must be a function \({parameters}\)( or text)? or None, got (<function|3)"
    with pytest.raises(InvalidArgumentError, match=message):
        gymnasium.make(ID, **{name: value})
    with pytest.raises(InvalidArgumentError, match=message):
        gymnasium.make_vec(ID, num_envs=2, **{name: value})
    with pytest.raises(InvalidArgumentError, match=message):  # as the rules of an environment of one's own
        TokenVectorEnv(streams(**{name: value}))


def test_a_named_interaction_is_checked_too(own_module: str) -> None:
    for name in ("ends", "Answers"):
        gymnasium.make(ID, interaction=f"{own_module}:{name}")
    for tools in ((), (calculate,)):
        with pytest.raises(InvalidArgumentError, match=r"^interaction must be a function \(turns, problem\)"):
            gymnasium.make(ID, interaction=f"{own_module}:of_turns", tools=tools)
    with pytest.raises(InvalidArgumentError, match=r"Named' is a class that can't be made without arguments: .*'name'"):
        gymnasium.make(ID, interaction=f"{own_module}:Named")


def test_a_misspelt_interaction_is_told_what_its_module_defines(own_module: str) -> None:
    with pytest.raises(UnknownNameError, match=r"Did you mean 'Answers'\? Known: Answers, Named, ends, of_turns\.$"):
        gymnasium.make(ID, interaction=f"{own_module}:Answer")
    with pytest.raises(InvalidArgumentError, match=r"^expected an interaction as module:attribute"):
        gymnasium.make(ID, interaction="foo")


def calculate(expression: str) -> str:
    """Calculate.

    Args:
        expression: What to calculate.
    """
    return expression


@pytest.mark.parametrize(
    ("env_id", "given", "with_what"),
    [
        (ID, {"tools": "calculator"}, "tools="),
        (ID, {"interaction": lambda turns, problem: None}, "interaction="),
        (ID, {"tools": "calculator", "interaction": lambda turns, problem: None}, "tools= and interaction="),
        ("rlvr/TicTacToe-v0", {}, "the interaction of this environment"),
    ],
)
@pytest.mark.parametrize("room", [0, -1])
def test_without_room_for_replies_what_needs_it_is_named(
    env_id: str, given: Mapping[str, Any], with_what: str, room: int
) -> None:
    message = f"max_inserted_tokens must be at least 1 with {with_what}, whose replies are inserted; got {room}"
    with pytest.raises(InvalidArgumentError) as raised:
        gymnasium.make(env_id, max_inserted_tokens=room, **given)
    assert str(raised.value) == message
