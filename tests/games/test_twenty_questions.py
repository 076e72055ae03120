"""Twenty questions: the table, its answers, and a player who halves what is left."""

from __future__ import annotations

import pytest

from rlvr_envs.tasks.twenty_questions import PROPERTIES, THINGS, SecretThing, play


def halving(history: list[tuple[str, str]]) -> str:
    """Asks for the property that halves what is left best, then names what is left."""
    left = [
        thing
        for thing in sorted(THINGS)
        if all(
            (word in THINGS[thing] or word == thing) == (told == "yes")
            for word, told in (t.split() for _, t in history)
        )
    ]
    if len(left) == 1:
        return left[0]
    return min(PROPERTIES, key=lambda word: abs(2 * sum(word in THINGS[thing] for thing in left) - len(left)))


def test_no_two_things_have_the_same_properties() -> None:
    assert len(set(THINGS.values())) == len(THINGS)
    assert not set(THINGS) & set(PROPERTIES)


def test_halving_finds_every_thing_in_fourteen_questions() -> None:
    for thing in THINGS:
        history: list[tuple[str, str]] = []
        while not (after := play(SecretThing(thing, 14), [*(move for move, _ in history), halving(history)])).over:
            history.append((halving(history), after.text))
        assert after.score == 1.0, thing


@pytest.mark.parametrize(
    ("moves", "told", "over", "score"),
    [
        (["Is it not an ANIMAL?"], "animal yes", False, 0.0),
        (["Is it big?"], "big no", False, 0.0),
        (["a wolf?"], "wolf no", False, 0.0),
        (["Is it a dog?"], "right", True, 1.0),
        (["dog wolf cat bear"], "ask one thing", False, 0.0),
        (["Is a dog an animal?"], "ask one thing", False, 0.0),
        (["big", "bear"], "lost", True, 0.0),
        (["big", "dog"], "right", True, 1.0),
    ],
)
def test_a_question_is_answered(moves: list[str], told: str, over: bool, score: float) -> None:
    move = play(SecretThing("dog", 2), moves)
    assert (move.text, move.over, move.score) == (told, over, score)
