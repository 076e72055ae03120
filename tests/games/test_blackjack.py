"""Blackjack: hands by hand, and the best play, whose value dynamic programming gives."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest

from rlvr_envs.tasks.blackjack import Deck, play, total
from tests.games.playing import played


@pytest.mark.parametrize(
    ("cards", "moves", "told", "over", "score"),
    [
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
def test_a_hand_is_played(cards: str, moves: list[str], told: str, over: bool, score: float) -> None:
    move = play(Deck(cards), moves)
    assert (move.text, move.over, move.score) == (told, over, score)


@pytest.mark.parametrize(
    ("cards", "points"), [("AK", 21), ("A6", 17), ("A6T", 17), ("AA", 12), ("AAAT", 13), ("98A", 18)]
)
def test_an_ace_counts_eleven_where_that_is_no_bust(cards: str, points: int) -> None:
    assert total(cards)[0] == points


@pytest.mark.parametrize("tokenizer", ["byte", "char"])
def test_there_is_room_for_every_hand(tokenizer: str) -> None:
    env: Any = gymnasium.make("rlvr/Blackjack-v0", tokenizer=tokenizer, size=50).unwrapped
    assert all(played(env, problem, lambda history: "hit")[1] for problem in range(50))
    aces = Deck("A" * 40)
    hits = 1
    while not play(aces, ["hit"] * hits).over:
        hits += 1
    assert hits == 20
    assert play(aces, [*["hit"] * (hits - 1), "stand"]).over  # the dealer has cards enough
    said = (hits - 1) * len("hit.") + len("stand.")
    told = sum(len("\n" + play(aces, ["hit"] * turn).text + "\n") for turn in range(1, hits))
    rules = env.streams.rules
    assert (rules.max_new_tokens >= said, rules.max_inserted_tokens >= told) == (True, True)
