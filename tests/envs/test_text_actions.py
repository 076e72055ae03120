"""`TextActions`: whole texts as actions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from rlvr_envs import Reply, TextActions, TokenEnv, Turn
from tests.envs.helpers import says, streams
from verifiers import InvalidArgumentError, Problem


def text_env(**rules: Any) -> TextActions:
    return TextActions(TokenEnv(streams(1, **rules)))


def test_a_text_is_one_step_and_scored_as_its_tokens_are() -> None:
    env = TextActions(gymnasium.make("rlvr/Addition-v0"))
    prompt, info = env.reset(seed=3)
    left, _, right = prompt.rstrip("=").partition("+")
    answer = str(int(left) + int(right))
    text, reward, terminated, truncated, info = env.step(answer)
    assert (text, reward, terminated, truncated) == (prompt + answer, 1.0, True, False)
    assert info["completion"] == answer
    assert info["consumed"] == len(answer) + 1  # and the end
    assert len(info["rewards"]) == info["consumed"]
    assert info["rewards"].sum() == reward
    with pytest.raises(ResetNeeded):
        env.step("1")


def test_gymnasiums_own_checker_passes_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*different from the unwrapped version")  # it is a wrapper
        check_env(TextActions(gymnasium.make("rlvr/Addition-v0", render_mode="ansi")), skip_render_check=True)


@pytest.mark.parametrize(
    ("text", "completion", "ended", "consumed"),
    [
        ("aaa", "aaa", (True, False), 4),
        ("aaaaa", "aaaaa", (True, False), 6),  # the end is the last token of the budget
        ("aaaaaa", "aaaaaa", (False, True), 6),
        ("aaaaaaaaa", "aaaaaa", (False, True), 6),
        ("a##aa", "a", (True, False), 3),
        ("##", "", (True, False), 2),
        ("", "", (True, False), 1),
    ],
)
@pytest.mark.parametrize("verification", ["sync", "deferred"])
def test_stop_strings_and_the_budget_end_a_text(
    text: str, completion: str, ended: tuple[bool, bool], consumed: int, verification: str
) -> None:
    env = text_env(stop=["##"], verification=verification)
    env.reset(options={"problem": 0})
    _, reward, terminated, truncated, info = env.step(text)
    assert (terminated, truncated) == ended
    assert info["completion"] == completion
    assert info["consumed"] == consumed
    assert reward == completion.count("a") == info["rewards"].sum()
    assert "pending" not in info


def test_a_dialogue_goes_on_with_the_next_text() -> None:
    def echo(turns: Sequence[Turn], problem: Problem) -> Reply | None:
        return says(f"[{turns[-1].text}]") if len(turns) < 3 else None

    env = text_env(interaction=echo, max_inserted_tokens=20, max_new_tokens=12)
    prompt, _ = env.reset(options={"problem": 0})
    text, reward, terminated, truncated, info = env.step("b")
    assert (text, reward, terminated, truncated, info["inserted"]) == (prompt + "b[b]", 0.0, False, False, 3)
    text, *_ = env.step("cc")
    text, reward, terminated, _, info = env.step("aa")
    assert text == prompt + "b[b]cc[cc]aa"
    assert (reward, terminated, info["completion"]) == (2.0, True, "aa")


def test_what_is_no_text_and_what_is_no_token_environment_are_named() -> None:
    env = text_env()
    env.reset(seed=0)
    with pytest.raises(InvalidArgumentError, match="an action must be a string, got int64"):
        env.step(np.int64(3))  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"got OrderEnforcing: put other wrappers around TextActions"):
        TextActions(gymnasium.wrappers.OrderEnforcing(gymnasium.make("rlvr/Addition-v0")))
