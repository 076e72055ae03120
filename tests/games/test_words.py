"""Wordle and hangman: answers by hand, and players who know the words and find every one."""

from __future__ import annotations

import pytest

from rlvr_envs.games import WORDS, SecretWord
from rlvr_envs.tasks.hangman import play as hang
from rlvr_envs.tasks.wordle import marks, play as guess


def test_words_are_of_small_letters_and_occur_once() -> None:
    assert list(WORDS) == [4, 5, 6, 7]
    for length, words in WORDS.items():
        assert list(words) == sorted(set(words))
        assert all(len(word) == length and word.isascii() and word.isalpha() and word.islower() for word in words)


@pytest.mark.parametrize(
    ("secret", "move", "told"),
    [
        ("apple", "apple", "ggggg"),
        ("apple", "paper", "yygy-"),
        ("geese", "eerie", "yg--g"),
        ("abbey", "babes", "yygg-"),
        ("abbey", "kebab", "-ygyy"),
    ],
)
def test_letters_are_marked_as_often_as_they_are_there(secret: str, move: str, told: str) -> None:
    assert marks(secret, move) == told


@pytest.mark.parametrize(
    ("moves", "told", "over", "score"),
    [
        (["Is it STONE?"], "----g", False, 0.0),
        (["Maybe: APPLE!"], "right", True, 1.0),
        (["pie"], "no word of 5 letters", False, 0.0),
        (["äpple"], "no word of 5 letters", False, 0.0),
        (["stone", "stone"], "lost", True, 0.0),
    ],
)
def test_a_guessed_word_is_answered(moves: list[str], told: str, over: bool, score: float) -> None:
    move = guess(SecretWord("apple", 2), moves)
    assert (move.text, move.over, move.score) == (told, over, score)


@pytest.mark.parametrize(
    ("moves", "told", "over", "score"),
    [
        (["p"], "-pp-- 2 misses", False, 0.0),
        (["p", "p"], "-pp-- 1 misses", False, 0.0),
        (["z"], "----- 1 misses", False, 0.0),
        (["pp"], "----- 1 misses", False, 0.0),
        (["grape", "a"], "a---- 1 misses", False, 0.0),
        (["z", "q"], "lost", True, 0.0),
        (["z", "apple"], "right", True, 1.0),
        (["a", "p", "l", "e"], "right", True, 1.0),
    ],
)
def test_a_guessed_letter_is_answered(moves: list[str], told: str, over: bool, score: float) -> None:
    move = hang(SecretWord("apple", 2), moves)
    assert (move.text, move.over, move.score) == (told, over, score)
