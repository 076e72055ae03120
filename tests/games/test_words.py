"""Wordle and hangman: answers by hand, and players who know the words and find every one."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import gymnasium
import pytest

from rlvr_envs.games import WORDS, SecretWord
from rlvr_envs.tasks.hangman import play as hang
from rlvr_envs.tasks.wordle import marks, play as guess
from tests.games.playing import played
from verifiers import InvalidArgumentError


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
        ("crane", "eeeee", "----g"),
        ("geese", "eerie", "yg--g"),
        ("abbey", "babes", "yygg-"),
        ("abbey", "kebab", "-ygyy"),
        ("robot", "floor", "--ygy"),
    ],
)
def test_letters_are_marked_as_often_as_they_are_there(secret: str, move: str, told: str) -> None:
    assert marks(secret, move) == told


@pytest.mark.parametrize(
    ("moves", "told", "over", "score"),
    [
        (["Is it STONE?"], "----g", False, 0.0),
        (["cheap"], "--yyy", False, 0.0),
        (["Maybe: APPLE!"], "right", True, 1.0),
        (["pie"], "no word of 5 letters", False, 0.0),
        (["äpple"], "no word of 5 letters", False, 0.0),
        ([""], "no word of 5 letters", False, 0.0),
        (["stone", "stone"], "lost", True, 0.0),
        (["stone", "apple"], "right", True, 1.0),
    ],
)
def test_a_guessed_word_is_answered(moves: list[str], told: str, over: bool, score: float) -> None:
    move = guess(SecretWord("apple", 2), moves)
    assert (move.text, move.over, move.score) == (told, over, score)


@pytest.mark.parametrize(
    ("moves", "told", "over", "score"),
    [
        (["p"], "-pp-- 2 misses", False, 0.0),
        (["the letter E"], "----e 2 misses", False, 0.0),
        (["p", "p"], "-pp-- 1 misses", False, 0.0),
        (["z"], "----- 1 misses", False, 0.0),
        (["pp"], "----- 1 misses", False, 0.0),
        ([""], "----- 1 misses", False, 0.0),
        (["grape", "a"], "a---- 1 misses", False, 0.0),
        (["z", "q"], "lost", True, 0.0),
        (["z", "apple"], "right", True, 1.0),
        (["a", "p", "l", "e"], "right", True, 1.0),
    ],
)
def test_a_guessed_letter_is_answered(moves: list[str], told: str, over: bool, score: float) -> None:
    move = hang(SecretWord("apple", 2), moves)
    assert (move.text, move.over, move.score) == (told, over, score)


@functools.cache
def splitting(history: tuple[tuple[str, str], ...]) -> str:
    """One of the words that may be the secret, whose marks leave fewest of them at the worst."""
    left = _left(history)
    few = left[:: len(left) // 10 + 1]
    return min(few, key=lambda word: max(Counter(marks(other, word) for other in left).values()))


@functools.cache
def _left(history: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    if not history:
        return WORDS[5]
    move, told = history[-1]
    return tuple(word for word in _left(history[:-1]) if marks(word, move) == told)


def test_a_player_who_knows_the_words_finds_each_in_six_guesses() -> None:
    for word in WORDS[5]:
        history: tuple[tuple[str, str], ...] = ()
        while not (after := guess(SecretWord(word, 6), [*(move for move, _ in history), splitting(history)])).over:
            history += ((splitting(history), after.text),)
        assert after.score == 1.0, word


def likeliest(history: list[tuple[str, str]], length: int) -> str:
    """The letter of most of the words that may be the secret, of those that were not guessed."""
    shown, missed = "-" * length, set()
    for move, told in history:
        before, shown = shown, told.split()[0]
        missed |= {move} if shown == before else set()
    counts = Counter(
        letter
        for word in WORDS[length]
        if not missed & set(word)
        and all(s == w if s != "-" else w not in shown for s, w in zip(shown, word, strict=True))
        for letter in set(word) - set(shown)
    )
    return min(counts, key=lambda letter: (-counts[letter], letter))


@pytest.mark.parametrize("length", [4, 5, 6, 7])
def test_a_player_who_knows_the_words_finds_each_letter_by_letter(length: int) -> None:
    env: Any = gymnasium.make("rlvr/Hangman-v0", length=length, size=40).unwrapped
    assert {played(env, at, lambda history: likeliest(history, length))[0] for at in range(40)} == {1.0}


@pytest.mark.parametrize("name", ["Wordle", "Hangman"])
def test_words_of_other_lengths_are_refused(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="length must be from 4 to 7, got 12"):
        gymnasium.make(f"rlvr/{name}-v0", length=12)
