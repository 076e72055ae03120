"""Games in words for two players, without the library: what is recorded, what is shown, and what an opponent's faults cost."""

from __future__ import annotations

import math
import pickle
import random
import re
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

import rlvr_envs
from rlvr_envs import TokenEnv, TokenVectorEnv
from rlvr_envs.text_games import GameMessage, RandomMoves, TextGameInteraction, TextGameVerifier, TextSeat, moves
from tests.envs.helpers import streams
from tests.games.playing import played
from tests.games.stones import Stones, game, install
from verifiers import (
    Completion,
    InvalidArgumentError,
    Message,
    Outcome,
    Problem,
    UnknownNameError,
    VerifierFailureError,
)

TEXT = "You are player {}, 5 stones:"


@pytest.fixture
def stones(monkeypatch: pytest.MonkeyPatch) -> Stones:
    """The game, in the place of the sandbox."""
    return install(monkeypatch)


class Says:
    """An opponent that takes its turns from a list, and counts how often it is asked."""

    def __init__(self, *turns: str) -> None:
        self.turns = turns
        self.seats: list[TextSeat] = []

    def __call__(self, seat: TextSeat) -> str:
        self.seats.append(seat)
        return self.turns[sum(not said.own for said in seat.turns)]


def env_of(
    opponent: Callable[[TextSeat], str],
    *,
    seat: int = 0,
    opening: tuple[str, ...] = (),
    rows: int | None = None,
    **options: Any,
) -> Any:
    made = streams(
        rows or 1,
        [Problem("p", TEXT.format(seat), game(seat, opening))],
        max_prompt_tokens=40,
        max_new_tokens=20,
        max_inserted_tokens=200,
        verifier=TextGameVerifier(),
        interaction=TextGameInteraction(opponent, **options),
    )
    return TokenEnv(made) if rows is None else TokenVectorEnv(made)


def say(env: Any, text: str) -> Any:
    return env.step_many([*env.tokenizer.encode(text), env.tokenizer.eos_token])


def shown(env: Any, observation: Any) -> str:
    return rlvr_envs.decode(env.tokenizer, observation["tokens"][: int(observation["length"][0])])


def test_what_the_game_tells_is_shown_and_what_the_opponent_said_is_recorded(stones: Stones) -> None:
    opponent = Says("2")
    env = env_of(opponent)
    env.reset(options={"problem": 0})
    observation, *_ = say(env, "1")
    assert shown(env, observation).endswith("\n 2 taken, 2 left\n")
    (turn,) = env.streams._turns[0]
    assert turn.reply == (GameMessage("user", "\n 2 taken, 2 left\n", ("2",)),)
    (seat,) = opponent.seats
    assert (seat.prompt, seat.dialogue) == ("You are player 1, 5 stones: 1 taken, 4 left", ())
    *_, reward, terminated, _, info = say(env, "2")
    assert (reward, terminated, info["verdict"].outcome) == (1.0, True, Outcome.CORRECT)


def test_the_opponent_is_warned_of_a_wrong_move_and_moves_again(stones: Stones) -> None:
    opponent = Says("three", "2")
    env = env_of(opponent)
    env.reset(options={"problem": 0})
    say(env, "1")
    first, second = opponent.seats
    assert first.prompt == second.prompt
    assert second.dialogue == (Message("assistant", "three"), Message("user", "\n1 or 2\n"))
    assert env.streams._turns[0][0].reply[0].turns == ("three", "2")
    assert say(env, "2")[1] == 1.0


@pytest.mark.parametrize(("seat", "others"), [(0, ("2", "2")), (1, ("1", "1", "2"))])
def test_either_seat_is_paid_what_the_game_gives_it(stones: Stones, seat: int, others: tuple[str, ...]) -> None:
    lost = env_of(Says(*others), seat=seat, opening=("1",) * seat)
    earned, terminated, verdict = played(lost, 0, lambda history: "1")
    assert (earned, terminated, verdict.outcome) == (-1.0, True, Outcome.INCORRECT)


@pytest.mark.parametrize("forfeits", ["excluded", "scored"])
def test_what_the_opponent_loses_by_a_wrong_move_is_no_merit_unless_asked_for(stones: Stones, forfeits: Any) -> None:
    env = env_of(Says("what?", "pass"), forfeits=forfeits)
    earned, terminated, verdict = played(env, 0, lambda history: "1")
    if forfeits == "scored":
        assert (earned, terminated, verdict.outcome) == (1.0, True, Outcome.CORRECT)
        assert verdict.detail["forfeit"] is True
    else:
        assert math.isnan(earned)
        assert (terminated, verdict.outcome) == (False, Outcome.VERIFIER_ERROR)
        assert "the opponent lost TextArena's game 'Stones-v0' by a wrong move, 'pass'" in str(verdict.detail)


def breaks(seat: TextSeat) -> str:
    raise ConnectionError("gone")


@pytest.mark.parametrize(
    ("opponent", "message"), [(breaks, "gone"), (Says("?", "?"), "the opponent took 1 turns in a row in TextArena's")]
)
def test_an_opponent_that_raises_or_never_ends_costs_the_episode(
    stones: Stones, monkeypatch: pytest.MonkeyPatch, opponent: Any, message: str
) -> None:
    monkeypatch.setattr("rlvr_envs.text_games.two_players._IN_A_ROW", 1)
    earned, _, verdict = played(env_of(opponent), 0, lambda history: "1")
    assert (math.isnan(earned), verdict.outcome) == (True, Outcome.VERIFIER_ERROR)
    assert message in str(verdict.detail)


def test_forks_restored_states_and_verdicts_ask_no_opponent_again(stones: Stones) -> None:
    opponent = Says("1", "1")
    env = env_of(opponent, rows=3)
    env.reset(options={"problems": np.zeros(3, dtype=np.int64)})
    one = np.array([[*env.tokenizer.encode("1"), env.tokenizer.eos_token]] * 3)
    env.step_many(one, np.array([2, 0, 0]))
    state = pickle.loads(pickle.dumps(env.get_state(0)))
    env.fork(0, np.array([1]))
    assert len(opponent.seats) == 1
    other = env_of(Says("no, I never said 1", "1"), rows=3)  # what it says now is not what was said
    other.reset(options={"problems": np.zeros(3, dtype=np.int64)})
    other.set_state(2, state)
    env.set_state(2, state)
    for _ in range(2):  # 1 and 1 have been taken, then 1 and 1, then the last
        observation, reward, terminated, *_ = env.step_many(one, np.array([2, 2, 2]))
        elsewhere, _, ended, *_ = other.step_many(one, np.array([0, 0, 2]))
        assert len({row.tobytes() for row in observation["tokens"]}) == 1
        assert observation["tokens"][0].tolist() == elsewhere["tokens"][2].tolist()
    assert (reward.tolist(), terminated.tolist(), ended[2]) == ([1.0] * 3, [True] * 3, True)
    assert len(opponent.seats) == 4


def test_a_dialogue_without_the_opponents_turns_is_not_scored(stones: Stones) -> None:
    problem = Problem("p", "", game())
    said = (Message("assistant", "1"), Message("user", "2 left"), Message("assistant", "2"))
    with pytest.raises(VerifierFailureError, match="a turn was that of the other player"):
        TextGameVerifier()(Completion("2", said), problem)
    recorded = (said[0], GameMessage("user", "2 left", ("2",)), said[2])
    assert TextGameVerifier()(Completion("2", recorded), problem).score == 1.0


def test_a_summary_is_no_turn_of_the_game(stones: Stones) -> None:
    env: Any = gymnasium.make(
        "rlvr/TextArena-v0",
        game="Stones-v0",
        seat=0,
        interaction=TextGameInteraction(Says("1", "1")),
        summarize_after=60,
        max_prompt_bytes=200,
        max_context_tokens=800,
        max_new_tokens=100,
    ).unwrapped
    observation, _ = env.reset(options={"problem": 0})
    written = []
    terminated = False
    while not terminated:
        written.append("2" if "Write a summary" in shown(env, observation) else "1")
        observation, reward, terminated, _, info = say(env, written[-1])
    assert written.count("1") == 3
    assert len(written) > 3
    assert (reward, info["verdict"].outcome) == (1.0, Outcome.CORRECT)


def test_a_game_that_is_cut_off_earns_nothing(stones: Stones) -> None:
    problem = Problem("p", "", game())
    verdict = TextGameVerifier()(Completion("1", (Message("assistant", "1"),)), problem)
    assert (verdict.score, verdict.outcome, verdict.detail["over"]) == (0.0, Outcome.INCORRECT, False)


def test_the_manifest_names_the_opponent() -> None:
    assert TextGameInteraction(Says()).fingerprint.endswith(":Says")
    scored = TextGameInteraction(Says(), forfeits="scored")
    assert scored.fingerprint.endswith(":Says:forfeits scored")
    with pytest.raises(UnknownNameError, match="unknown forfeits 'lost'"):
        TextGameInteraction(Says(), forfeits="lost")  # type: ignore[arg-type]


def test_an_environment_of_an_id_draws_the_seat_and_lets_the_other_player_begin(stones: Stones) -> None:
    env: Any = gymnasium.make("rlvr/TextArena-v0", game="Stones-v0").unwrapped
    problems = [env.streams.dataset[index] for index in range(10)]
    assert {problem.metadata["seat"] for problem in problems} == {0, 1}
    for problem in problems:
        seat = problem.metadata["seat"]
        assert problem.reference.opening == ("[1]",) * seat
        assert problem.prompt == TEXT.format(seat) + " 1 taken, 4 left" * seat
    assert env.manifest["turns"]["interaction"] == "rlvr_envs.text_games.two_players:RandomMoves"
    second = next(index for index in range(10) if problems[index].metadata["seat"])
    assert played(env, second, lambda history: "1")[0] == -1.0
    assert played(env, second, lambda history: "1" if history else "2")[0] == 1.0


class TestRandomMoves:
    """What is tried, in the order in which it is."""

    VIEW = ("Say [row col], [a2a3] or [play X]. [Player 1] spoke.", "[0 1]", "Free: [3], [Propose] $1.50 and [b10]")

    def test_moves_are_what_stands_in_brackets_and_the_same_with_other_numbers_and_squares(self) -> None:
        drawn = moves.draw_moves(self.VIEW, random.Random(0), 3000)
        assert {"[row col]", "[a2a3]", "[play X]", "[3]", "[Propose]", "[Propose] $1.50"} <= set(drawn)
        assert {"[0]", "[play 0]", "[0 0]", "[0, 0]"} <= {re.sub(r"\d+", "0", move) for move in drawn}
        assert len([move for move in drawn if re.fullmatch(r"\[[a-j]\d[a-j]\d\]", move)]) > 20
        assert "[Player 1]" not in drawn
        assert len(set(drawn)) == len(drawn) <= 3000

    def test_a_player_whose_moves_are_all_refused_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        tried: list[Any] = []
        monkeypatch.setattr(
            "rlvr_envs.text_games.two_players.first_legal", lambda game, turns, moves: tried.append(moves)
        )
        seat = TextSeat(game(), (), self.VIEW)
        for _ in range(2):
            with pytest.raises(InvalidArgumentError, match="finds no legal move in TextArena's game 'Stones-v0'"):
                RandomMoves()(seat)
        assert tried[:2] == tried[2:]
        assert len(tried[0]) == 300 < len(tried[1])


def test_an_opponent_in_words_needs_a_game_in_words() -> None:
    with pytest.raises(InvalidArgumentError, match=r"^this opponent's turns are for games in words .* is a str$"):
        gymnasium.make("rlvr/Addition-v0", interaction=TextGameInteraction(Says("1")))
