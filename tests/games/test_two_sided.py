"""Games of two sides: rules, scripted opponents, the best play, and what the verifier makes of every ending."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Sequence
from typing import Any

import gymnasium
import pytest

from rlvr_envs import Turn
from rlvr_envs.contexts import SummaryRequest, without_summaries
from rlvr_envs.games import OPPONENTS, InARow, Seat, Start, TwoSidedInteraction, TwoSidedVerifier
from rlvr_envs.tasks.connect_four import ConnectFour
from rlvr_envs.tasks.tic_tac_toe import TicTacToe
from tests.games.playing import Player, played
from verifiers import Completion, InvalidArgumentError, Message, Outcome, Problem, UnknownNameError

SQUARE = TicTacToe().board
SMALL = InARow("connect four", 4, 4, 3, drops=True)


def moves_of(start: Start, history: list[tuple[str, str]]) -> tuple[int, ...]:
    return (*start.opening, *(int(text) for pair in history for text in pair))


def best_player(start: Start) -> Player:
    return lambda history: str(start.board.best(moves_of(start, history))[0])


@pytest.mark.parametrize(
    ("board", "played", "worth"),
    [
        (SQUARE, [], None),
        (SQUARE, [1, 4, 2, 5, 3], 1.0),
        (SQUARE, [1, 4, 2, 5, 9, 6], 0.0),
        (SQUARE, [1, 2, 5, 3, 9], 1.0),
        (SQUARE, [1, 2, 3, 5, 4, 6, 8, 7, 9], 0.5),
        (SQUARE, [3, 1, 4, 2], None),  # 3 and 4 are not beside each other
        (SMALL, [1, 2, 1, 2, 1], 1.0),
        (SMALL, [1, 2, 2, 3, 3, 1, 3], 1.0),  # a diagonal that goes up
        (SMALL, [1, 2, 4, 2, 4, 2], 0.0),
    ],
)
def test_a_game_ends_with_so_many_in_a_row(board: InARow, played: list[int], worth: float | None) -> None:
    assert board.outcome(played) == worth
    assert (board.legal(played) == []) == (worth is not None)


_ROWS = ((1, 2, 3), (4, 5, 6), (7, 8, 9), (1, 4, 7), (2, 5, 8), (3, 6, 9), (1, 5, 9), (3, 5, 7))


@functools.cache
def minimax(mine: frozenset[int], theirs: frozenset[int]) -> float:
    """What a position of tic-tac-toe is worth to the side to move, worked out by another program."""
    if any(set(row) <= theirs for row in _ROWS):
        return 0.0
    free = set(range(1, 10)) - mine - theirs
    return max((1 - minimax(theirs, mine | {cell}) for cell in free), default=0.5)


def test_the_best_moves_are_those_of_minimax_in_every_position() -> None:
    seen = set()
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        moves = waiting.pop()
        mine, theirs = frozenset(moves[len(moves) % 2 :: 2]), frozenset(moves[1 - len(moves) % 2 :: 2])
        if (mine, theirs) in seen or SQUARE.outcome(moves) is not None:
            continue
        seen.add((mine, theirs))
        worth = {move: 1 - minimax(theirs, mine | {move}) for move in SQUARE.legal(moves)}
        assert SQUARE.best(moves) == [move for move in worth if worth[move] == max(worth.values())]
        waiting += [(*moves, move) for move in worth]
    assert len(seen) == 4520  # the positions of tic-tac-toe that are not over


def test_the_best_play_draws_with_the_best_play() -> None:
    env: Any = gymnasium.make("rlvr/TicTacToe-v0", opponent="optimal", size=30).unwrapped
    assert {played(env, at, best_player(env.streams.dataset[at].reference))[0] for at in range(30)} == {0.5}


def test_greedy_opponents_win_where_they_can_and_else_prevent_it() -> None:
    greedy = OPPONENTS["greedy"]
    for seed in range(10):
        assert greedy(Seat(Start(SQUARE, (1, 4, 2, 5, 9), seed))) == "6"  # not 3, which would only prevent a loss
        assert greedy(Seat(Start(SQUARE, (1, 4, 2), seed))) == "3"
        assert greedy(Seat(Start(ConnectFour().board, (1, 2, 1, 2, 1), seed))) == "1"


PROBLEM = Problem("p", "", Start(SQUARE, (5,), 0))


@pytest.mark.parametrize(
    ("said", "score", "outcome", "over"),
    [
        (["1"], 0.0, Outcome.INCORRECT, False),
        (["I take 1, and then?", "\n2\n", "4"], 0.0, Outcome.INCORRECT, False),
        (["5"], 0.0, Outcome.INCORRECT, True),  # taken
        (["9" * 10_000], 0.0, Outcome.INCORRECT, True),
        ([""], 0.0, Outcome.INCORRECT, True),
        (["1", "2", "4", "8"], 0.0, Outcome.INCORRECT, True),  # 2, 5 and 8 are the opponent's
        (["1", "2", "4", "3", "7"], 1.0, Outcome.CORRECT, True),
        (["1", "\nno move\n"], 1.0, Outcome.CORRECT, True),
        (["1", "1"], 1.0, Outcome.CORRECT, True),
        (["1", "2", "8", "3", "7", "4", "6", "9"], 0.5, Outcome.SCORED, True),
    ],
)
def test_a_game_is_worth_how_it_ends(said: list[str], score: float, outcome: Outcome, over: bool) -> None:
    roles = itertools.cycle(["assistant", "user"])
    messages = tuple(Message(role, text) for role, text in zip(roles, said, strict=False))
    verdict = TwoSidedVerifier()(Completion(said[-1 - (len(said) + 1) % 2], messages), PROBLEM)
    assert (verdict.score, verdict.outcome, verdict.detail["over"]) == (score, outcome, over)


def test_the_move_with_which_the_opponent_wins_reaches_the_verifier() -> None:
    opponent = TwoSidedInteraction(lambda seat: str((1, 4, 7)[len(seat.moves) // 2]))
    env: Any = gymnasium.make("rlvr/TicTacToe-v0", interaction=opponent, opening=0).unwrapped
    earned, terminated, verdict = played(env, 0, lambda history: str((2, 3, 9)[len(history)]))
    assert (earned, terminated, verdict.detail["over"]) == (0.0, True, True)


@pytest.mark.parametrize("name", ["TicTacToe", "ConnectFour"])
@pytest.mark.parametrize("tokenizer", ["byte", "char"])
def test_there_is_room_for_every_game(name: str, tokenizer: str) -> None:
    env: Any = gymnasium.make(f"rlvr/{name}-v0", tokenizer=tokenizer, size=20).unwrapped

    def longest(start: Start) -> Player:
        def player(history: list[tuple[str, str]]) -> str:
            moves = moves_of(start, history)
            quiet = [move for move in start.board.legal(moves) if start.board.outcome((*moves, move)) is None]
            return str((quiet or start.board.legal(moves))[0])

        return player

    starts: Sequence[Start] = [env.streams.dataset[at].reference for at in range(20)]
    assert all(played(env, at, longest(start))[1] for at, start in enumerate(starts))
    assert {len(start.opening) for start in starts} == {0, 1}


@pytest.mark.parametrize(
    ("name", "arguments", "error", "message"),
    [
        ("TicTacToe", {"opponent": "perfect"}, UnknownNameError, "random"),
        ("TicTacToe", {"opening": 5}, InvalidArgumentError, "opening must be a whole number from 0 to 4, got 5"),
        ("ConnectFour", {"opponent": "optimal"}, InvalidArgumentError, "at most 16 cells; got 7 x 6"),
        ("ConnectFour", {"columns": 2}, InvalidArgumentError, "columns must be from 3 to 9, got 2"),
        ("ConnectFour", {"connect": 9}, InvalidArgumentError, "nobody can have 9 in a row on a board of 7 x 6"),
    ],
)
def test_what_is_no_game_is_refused(name: str, arguments: dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        gymnasium.make(f"rlvr/{name}-v0", **arguments)


def test_an_opponent_needs_a_game_of_two_sides() -> None:
    opponent = TwoSidedInteraction(lambda seat: "1")
    with pytest.raises(InvalidArgumentError, match=r"^an opponent's moves are for games of two sides .* is a"):
        gymnasium.make("rlvr/GuessNumber-v0", interaction=opponent)


@pytest.mark.parametrize("name", ["GuessNumber", "TicTacToe", "ConnectFour"])
def test_a_game_is_worth_what_it_is_without_summaries(name: str) -> None:
    env: Any = gymnasium.make(f"rlvr/{name}-v0").unwrapped
    rules = env.streams.rules
    outcomes = set()
    for index in range(40):
        problem, chance = env.streams.dataset[index], random.Random(index)
        turns: list[Turn] = []
        plain: list[Message] = []
        summed: list[Message] = []
        ends = False
        while not ends:
            text = str(chance.randrange(1, 10))
            plain.append(Message("assistant", text))
            summed.append(plain[-1])
            turns.append(Turn([], text))  # type: ignore[arg-type] # no interaction reads tokens
            reply = rules.interaction(turns, problem)
            turns[-1] = Turn([], text, reply=reply.messages)  # type: ignore[arg-type]
            ends = reply.ends
            plain += reply.messages
            summed += reply.messages
            if not ends:
                summed += [SummaryRequest("user", "Sum up."), Message("assistant", "3")]
        verdict = rules.verifier(Completion(text, tuple(plain)), problem)
        assert rules.verifier(Completion(text, tuple(summed)), problem) == verdict
        outcomes.add((verdict.outcome, verdict.score))
    assert len(outcomes) > 1


def test_requests_and_summaries_are_left_out() -> None:
    said = [Message("assistant", "1"), Message("user", "no"), SummaryRequest("user", "?"), Message("assistant", "so")]
    assert without_summaries([*said, Message("assistant", "2")]) == (*said[:2], Message("assistant", "2"))
    assert without_summaries(said[:3]) == tuple(said[:2])
    assert without_summaries(said[:2]) == tuple(said[:2])
