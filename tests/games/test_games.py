"""Games: their answers, what they are worth, and players who play them as well as can be."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest

from rlvr_envs.tasks.guess_number import SecretNumber, play as guess
from rlvr_envs.tasks.mastermind import Code, play as break_code
from tests.games.playing import Player, played
from verifiers import Outcome


def halving(high: int) -> Player:
    def player(history: list[tuple[str, str]]) -> str:
        low, top = 1, high
        for move, told in history:
            low, top = (int(move) + 1, top) if told == "higher" else (low, int(move) - 1)
        return str((low + top) // 2)

    return player


@pytest.mark.parametrize("high", [8, 100, 1000])
def test_halving_always_finds_the_number(high: int) -> None:
    env: Any = gymnasium.make("rlvr/GuessNumber-v0", high=high).unwrapped
    problems = range(min(60, len(env.streams.dataset)))
    assert {played(env, problem, halving(high))[0] for problem in problems} == {1.0}


@pytest.mark.parametrize(
    ("moves", "told", "over", "score"),
    [
        (["50"], "higher", False, 0.0),
        (["not 10 but 77"], "right", True, 1.0),
        (["who knows"], "no number", False, 0.0),
        (["9" * 10_000], "lower", False, 0.0),
        (["50", "75", "76"], "lost", True, 0.0),
    ],
)
def test_a_guess_is_answered(moves: list[str], told: str, over: bool, score: float) -> None:
    move = guess(SecretNumber(77, 3), moves)
    assert (move.text, move.over, move.score) == (told, over, score)


@pytest.mark.parametrize(
    ("code", "move", "told"),
    [
        ("1122", "2211", "0 right 4 near"),
        ("1123", "1111", "2 right 0 near"),
        ("1234", "4325", "0 right 3 near"),
        ("1234", "123", "no guess"),
        ("1234", "1234", "right"),
    ],
)
def test_a_code_is_answered(code: str, move: str, told: str) -> None:
    assert break_code(Code(code, 10), [move]).text == told


@pytest.mark.parametrize(
    ("name", "wrong", "turns"),
    [
        ("GuessNumber", "111", 7),
        ("Mastermind", "1111", 10),
        ("Wordle", "xxxxx", 6),
        ("Hangman", "xxxxx", 8),
        ("TwentyQuestions", "is it a butterfly?", 20),
    ],
)
@pytest.mark.parametrize("tokenizer", ["byte", "char"])
def test_games_are_environments_with_room_for_every_game(name: str, wrong: str, turns: int, tokenizer: str) -> None:
    env: Any = gymnasium.make(f"rlvr/{name}-v0", tokenizer=tokenizer)
    dataset = env.unwrapped.streams.dataset
    problem = next(index for index in range(100) if dataset[index].metadata["gold_completion"] not in wrong)
    earned, terminated, verdict = played(env.unwrapped, problem, lambda history: wrong)
    assert (earned, terminated) == (0.0, True)
    assert verdict.detail["moves"] == turns


def test_a_game_that_is_not_finished_is_not_won() -> None:
    env: Any = gymnasium.make("rlvr/GuessNumber-v0", max_new_tokens=3).unwrapped
    _, terminated, verdict = played(env, 0, lambda history: "0")
    assert (terminated, verdict.outcome, verdict.detail["over"]) == (False, Outcome.INCORRECT, False)
