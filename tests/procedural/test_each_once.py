"""Each split of a family holds each problem once, and any of its problems is found at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from rlvr_envs.procedural import base
from rlvr_envs.procedural.base import SPLITS, ProceduralDataset
from rlvr_envs.procedural.order import DividedOrder, ScannedOrder, permuted
from rlvr_envs.tasks import (
    Addition,
    Arithmetic,
    Countdown,
    Function,
    Instructions,
    LinearEquation,
    Polynomial,
    Reverse,
    Sort,
    blackjack,
    connect_four,
    guess_number,
    hangman,
    mastermind,
    tic_tac_toe,
    twenty_questions,
    wordle,
)
from verifiers import InvalidArgumentError, Problem

Family = type[ProceduralDataset[Any]]

DIFFICULTIES: dict[Family, st.SearchStrategy[dict[str, Any]]] = {
    Addition: st.builds(dict, digits=st.integers(1, 40)),
    Arithmetic: st.builds(dict, depth=st.integers(1, 3), digits=st.integers(1, 4)),
    Countdown: st.builds(dict, count=st.integers(2, 6), max_number=st.integers(9, 50), max_target=st.integers(50, 200)),
    Function: st.builds(dict, level=st.integers(1, 3)),
    Instructions: st.builds(
        dict,
        instructions=st.integers(1, 3),
        kinds=st.sampled_from(["basic", "keywords", "punctuation:no_comma", "detectable_format:constrained_response"]),
        max_words=st.integers(40, 1_000),
    ),
    LinearEquation: st.builds(
        dict, max_coefficient=st.integers(3, 10**4), solution=st.sampled_from(["integer", "rational"])
    ),
    Polynomial: st.builds(
        dict,
        degree=st.integers(2, 5),
        max_leading=st.integers(1, 9),
        max_constant=st.integers(6, 40),
        task=st.sampled_from(["expand", "factor", "mixed"]),
    ),
    Reverse: st.builds(dict, length=st.integers(2, 40)),
    Sort: st.builds(dict, length=st.integers(2, 12), max_number=st.integers(9, 10**6)),
    guess_number.GuessNumber: st.builds(dict, high=st.integers(50, 10**9)),
    mastermind.Mastermind: st.builds(dict, length=st.integers(3, 9), colours=st.integers(4, 9)),
    wordle.Wordle: st.builds(dict, length=st.integers(4, 6)),
    hangman.Hangman: st.builds(dict, length=st.integers(4, 6)),
    twenty_questions.TwentyQuestions: st.just({}),
    blackjack.Blackjack: st.just({}),
    tic_tac_toe.TicTacToe: st.builds(dict, opening=st.integers(0, 2)),
    connect_four.ConnectFour: st.builds(dict, opening=st.integers(0, 3)),
}
CASES = st.sampled_from(list(DIFFICULTIES)).flatmap(lambda family: st.tuples(st.just(family), DIFFICULTIES[family]))
LOOKED_AT = 20


def asked(problem: Problem) -> str:
    """What tells a problem from others: its prompt, and its reference where the prompt does not show all of it."""
    return repr((problem.prompt, problem.reference if problem.metadata.get("hidden") else None))


@given(case=CASES, seed=st.integers(0, 2**70))
@settings(max_examples=40, deadline=None, derandomize=True, database=None)
def test_each_problem_stands_in_one_split_once_and_is_the_same_in_any_order(
    case: tuple[Family, dict[str, Any]], seed: int
) -> None:
    family, difficulty = case
    seen: dict[str, set[str]] = {}
    for split in SPLITS:
        data = family(split, seed, **difficulty)
        indices = range(min(LOOKED_AT, len(data)))
        forwards = {index: data[index] for index in indices}
        seen[split] = {asked(problem) for problem in forwards.values()}
        assert len(seen[split]) == len(indices)
        base._shared_order.cache_clear()
        again = family(split, seed, **difficulty)
        assert {index: repr(again[index]) for index in reversed(indices)} == {
            index: repr(problem) for index, problem in forwards.items()
        }
    assert not seen["train"] & seen["test"]


@pytest.mark.parametrize(
    ("family", "difficulty", "everything"),
    [
        (Addition, {"digits": 1}, 100),
        (guess_number.GuessNumber, {"high": 60}, 60),
        (LinearEquation, {"max_coefficient": 3}, 6 * 6 * 7),
        (Reverse, {"length": 2}, 26**2),
        # (x+a)(x+b) for a and b of -6 to 6 but 0: 144 products to expand, and 78 polynomials to factor.
        (Polynomial, {"max_leading": 1, "max_constant": 6}, 144 + 78),
        # Of two numbers of one digit: 3 signs and 100 pairs.
        (Arithmetic, {"depth": 1, "digits": 1}, 300),
    ],
)
def test_the_splits_of_a_small_difficulty_hold_all_of_it(
    family: Family, difficulty: dict[str, Any], everything: int
) -> None:
    splits = [{asked(problem) for problem in family(split, seed, **difficulty)} for seed, split in enumerate(SPLITS)]
    assert sum(map(len, splits)) == len(splits[0] | splits[1]) == everything


def test_a_size_beyond_the_different_problems_is_refused_with_their_number() -> None:
    assert len(Addition("test", digits=1, size=9)) == len(Addition("test", digits=1)) == 9
    with pytest.raises(InvalidArgumentError, match="has 9 different problems in 'test', got size 10: choose a size of"):
        Addition("test", digits=1, size=10)
    with pytest.raises(InvalidArgumentError, match=r"has 594068 different problems in 'train', got size 2000000"):
        Reverse("train", length=5, size=2_000_000)


@pytest.mark.parametrize("family", [Sort, Reverse, blackjack.Blackjack])
def test_the_last_of_many_problems_takes_no_others(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    at = family._at
    monkeypatch.setattr(family, "_at", lambda self, code: made.append(code) or at(self, code))  # type: ignore[func-returns-value]
    data = family(seed=9)
    made.clear()
    assert data[99_999]
    assert len(made) <= 20


@given(space=st.integers(1, 3_000), key=st.binary(min_size=16, max_size=16))
@settings(max_examples=15, deadline=None, derandomize=True, database=None)
def test_a_permutation_takes_each_number_once(space: int, key: bytes) -> None:
    assert sorted(permuted(number, space, key) for number in range(space)) == list(range(space))


def test_a_permutation_of_large_spaces_is_one_to_one_and_spread() -> None:
    space = 10**30
    numbers = [permuted(number, space, b"key") for number in range(400)]
    assert len(set(numbers)) == 400
    assert all(0 <= number < space for number in numbers)
    low = sum(number < space // 2 for number in numbers)
    assert abs(low - 200) < 80  # eight standard deviations


def test_orders_take_codes_of_the_split_alone_and_end_where_there_are_no_more() -> None:
    scanned = ScannedOrder(100, lambda code: code // 2 if code % 5 else None, bytes(16), repeats=True, assured=0)
    codes = [scanned.code(index) for index in range(40)]
    assert scanned.count(1_000) == len({code // 2 for code in range(100) if code % 5})
    assert len({code // 2 for code in codes if code is not None}) == 40
    assert scanned.code(60) is None
    divided = DividedOrder(10**6, lambda code: code % 10 == 0, bytes(16), places=2_000)
    assert divided.count(10**6) == 500
    found = [divided.code(index) for index in np.random.default_rng(0).permutation(500).tolist()]
    assert len(set(found)) == 500
    assert all(code is not None and code % 10 == 0 for code in found)
    assert divided.code(500) is None
