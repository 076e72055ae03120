"""Games of one player: their answers, what they are worth, and players who play them as well as can be."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest

from rlvr_envs.games import WORDS, SecretWord
from rlvr_envs.tasks import blackjack, guess_number, hangman, mastermind, twenty_questions, wordle
from rlvr_envs.tasks.twenty_questions import PROPERTIES, THINGS, SecretThing
from tests.games.playing import played
from verifiers import Outcome

GAMES: dict[str, tuple[Any, Any]] = {
    "guess": (guess_number.play, guess_number.SecretNumber(77, 3)),
    "dog": (twenty_questions.play, SecretThing("dog", 2)),
    "wordle": (wordle.play, SecretWord("apple", 2)),
    "hangman": (hangman.play, SecretWord("apple", 2)),
}


@pytest.mark.parametrize(
    ("game", "moves", "told", "over", "score"),
    [
        ("guess", ["50"], "higher", False, 0.0),
        ("guess", ["not 10 but 77"], "right", True, 1.0),
        ("guess", ["who knows"], "no number", False, 0.0),
        ("guess", ["9" * 10_000], "lower", False, 0.0),
        ("guess", ["50", "75", "76"], "lost", True, 0.0),
        ("dog", ["Is it not an ANIMAL?"], "animal yes", False, 0.0),
        ("dog", ["Is it big?"], "big no", False, 0.0),
        ("dog", ["a wolf?"], "wolf no", False, 0.0),
        ("dog", ["Is it a dog?"], "right", True, 1.0),
        ("dog", ["dog wolf cat bear"], "ask one thing", False, 0.0),
        ("dog", ["Is a dog an animal?"], "ask one thing", False, 0.0),
        ("dog", ["big", "bear"], "lost", True, 0.0),
        ("dog", ["big", "dog"], "right", True, 1.0),
        ("wordle", ["Is it STONE?"], "----g", False, 0.0),
        ("wordle", ["Maybe: APPLE!"], "right", True, 1.0),
        ("wordle", ["pie"], "no word of 5 letters", False, 0.0),
        ("wordle", ["äpple"], "no word of 5 letters", False, 0.0),
        ("wordle", ["stone", "stone"], "lost", True, 0.0),
        ("hangman", ["p"], "-pp-- 2 misses", False, 0.0),
        ("hangman", ["p", "p"], "-pp-- 1 misses", False, 0.0),
        ("hangman", ["z"], "----- 1 misses", False, 0.0),
        ("hangman", ["pp"], "----- 1 misses", False, 0.0),
        ("hangman", ["grape", "a"], "a---- 1 misses", False, 0.0),
        ("hangman", ["z", "q"], "lost", True, 0.0),
        ("hangman", ["z", "apple"], "right", True, 1.0),
        ("hangman", ["a", "p", "l", "e"], "right", True, 1.0),
        ("97T8", ["I stand."], "dealer T 8", True, 0.0),
        ("T9T8", ["stand"], "dealer T 8", True, 1.0),
        ("T8T8", ["stand"], "dealer T 8", True, 0.5),
        ("97T85", ["hit"], "you 9 7 5", False, 0.0),
        ("97T86", ["hit"], "bust", True, 0.0),
        ("97T65T", ["hit", "stand"], "dealer T 6 T", True, 1.0),  # the dealer is bust
        ("97T65", ["stand"], "dealer T 6 5", True, 0.0),
        ("AKT92", ["stand"], "dealer T 9", True, 1.0),
        ("997TA", ["Should I hit? No: stand"], "dealer 7 T", True, 1.0),
        ("997T", ["what?"], "dealer 7 T", True, 1.0),
        ("A6A6", ["stand"], "dealer A 6", True, 0.5),  # a soft 17 stands
    ],
)
def test_a_move_is_answered(game: str, moves: list[str], told: str, over: bool, score: float) -> None:
    """Of blackjack the cards are named, in the order in which they are dealt."""
    play, secret = GAMES.get(game, (blackjack.play, blackjack.Deck(game)))
    move = play(secret, moves)
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
    assert mastermind.play(mastermind.Code(code, 10), [move]).text == told


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
    assert wordle.marks(secret, move) == told


@pytest.mark.parametrize(
    ("cards", "points"), [("AK", 21), ("A6", 17), ("A6T", 17), ("AA", 12), ("AAAT", 13), ("98A", 18)]
)
def test_an_ace_counts_eleven_where_that_is_no_bust(cards: str, points: int) -> None:
    assert blackjack.total(cards)[0] == points


@pytest.mark.parametrize("high", [8, 100, 1000])
def test_halving_always_finds_the_number(high: int) -> None:
    def halving(history: list[tuple[str, str]]) -> str:
        low, top = 1, high
        for move, told in history:
            low, top = (int(move) + 1, top) if told == "higher" else (low, int(move) - 1)
        return str((low + top) // 2)

    env: Any = gymnasium.make("rlvr/GuessNumber-v0", high=high).unwrapped
    problems = range(min(60, len(env.streams.dataset)))
    assert {played(env, problem, halving)[0] for problem in problems} == {1.0}


def test_halving_finds_every_thing_in_fourteen_questions() -> None:
    def question(left: list[str]) -> str:
        if len(left) == 1:
            return left[0]
        return min(PROPERTIES, key=lambda word: abs(2 * sum(word in THINGS[thing] for thing in left) - len(left)))

    for secret in THINGS:
        left, moves = sorted(THINGS), []
        while not (after := twenty_questions.play(SecretThing(secret, 14), [*moves, question(left)])).over:
            moves.append(question(left))
            word, told = after.text.split()
            left = [thing for thing in left if (word in THINGS[thing] or word == thing) == (told == "yes")]
        assert after.score == 1.0, secret


def test_no_two_things_have_the_same_properties() -> None:
    assert len(set(THINGS.values())) == len(THINGS)
    assert not set(THINGS) & set(PROPERTIES)


def test_words_are_of_small_letters_and_occur_once() -> None:
    assert list(WORDS) == [4, 5, 6, 7]
    for length, words in WORDS.items():
        assert list(words) == sorted(set(words))
        assert all(len(word) == length and word.isascii() and word.isalpha() and word.islower() for word in words)


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
def test_there_is_room_for_every_game(name: str, wrong: str, turns: int, tokenizer: str) -> None:
    env: Any = gymnasium.make(f"rlvr/{name}-v0", tokenizer=tokenizer).unwrapped
    dataset = env.streams.dataset
    problem = next(index for index in range(100) if dataset[index].metadata["gold_completion"] not in wrong)
    earned, terminated, verdict = played(env, problem, lambda history: wrong)
    assert (earned, terminated, verdict.detail["moves"]) == (0.0, True, turns)


@pytest.mark.parametrize("tokenizer", ["byte", "char"])
def test_there_is_room_for_every_hand(tokenizer: str) -> None:
    env: Any = gymnasium.make("rlvr/Blackjack-v0", tokenizer=tokenizer, size=50).unwrapped
    assert all(played(env, problem, lambda history: "hit")[1] for problem in range(50))
    aces, rules = blackjack.Deck("A" * 40), env.streams.rules
    told = [blackjack.play(aces, ["hit"] * hits) for hits in range(1, 21)]
    assert [move.over for move in told] == [False] * 19 + [True]
    assert blackjack.play(aces, [*["hit"] * 19, "stand"]).over  # the dealer has cards enough
    assert rules.max_new_tokens >= 19 * len("hit.") + len("stand.")
    assert rules.max_inserted_tokens >= sum(len(f"\n{move.text}\n") for move in told[:-1])


def test_a_game_that_is_not_finished_is_not_won() -> None:
    env: Any = gymnasium.make("rlvr/GuessNumber-v0", max_new_tokens=3).unwrapped
    _, terminated, verdict = played(env, 0, lambda history: "0")
    assert (terminated, verdict.outcome, verdict.detail["over"]) == (False, Outcome.INCORRECT, False)
