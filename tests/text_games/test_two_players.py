"""TextArena's games for two players in the real library: seats, pay, secrets, wrong moves of either side, and replaying."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest

import rlvr_envs
from rlvr_envs.tasks import TextArena
from rlvr_envs.text_games import TextGame, TextGameInteraction, TextSeat
from rlvr_envs.text_games.library import Said, first_legal, replay
from tests.games.playing import played
from verifiers import InvalidArgumentError, Outcome, UnknownNameError

ENV = "rlvr/TextArena-v0"


def made(game: str, **arguments: Any) -> Any:
    return gymnasium.make(ENV, game=game, **{"max_new_tokens": 1000, **arguments}).unwrapped


def against(*turns: str, **options: Any) -> TextGameInteraction:
    """An opponent that takes these turns."""
    return TextGameInteraction(lambda seat: turns[sum(not said.own for said in seat.turns)], **options)


def saying(*turns: str) -> Any:
    return lambda history: turns[len(history)]


@pytest.mark.parametrize(
    ("own", "others", "score", "outcome"),
    [
        (["[0]", "[1]", "[2]"], ["[3]", "[4]"], 1.0, Outcome.CORRECT),
        (["[0]", "[1]", "[8]"], ["[3]", "[4]", "[5]"], -1.0, Outcome.INCORRECT),
        (["[0]", "[2]", "[3]", "[7]", "[8]"], ["[1]", "[4]", "[5]", "[6]"], 0.0, Outcome.SCORED),
        (["[0]", "[0]", "[0]"], ["[3]"], -1.0, Outcome.INCORRECT),  # taken, and taken again
    ],
)
def test_the_policy_is_paid_what_its_player_is(
    own: list[str], others: list[str], score: float, outcome: Outcome
) -> None:
    env = made("TicTacToe-v0", seat=0, interaction=against(*others))
    earned, terminated, verdict = played(env, 0, saying(*own))
    assert (earned, terminated, verdict.outcome, verdict.score) == (score, True, outcome, score)
    assert "forfeit" not in verdict.detail


def test_what_a_player_does_in_secret_is_recorded_and_not_shown() -> None:
    env = made("IteratedRockPaperScissors-v0", seat=0, interaction=against(*["[scissors] it is"] * 30))
    env.reset(options={"problem": 0})
    assert "scissors] it" not in env.streams.problem(0).prompt
    observation, *_ = env.step_many([*env.tokenizer.encode("[rock]"), env.tokenizer.eos_token])
    shown = rlvr_envs.decode(env.tokenizer, observation["tokens"][: int(observation["length"][0])])
    assert "scissors] it" not in shown
    (turn,) = env.streams._turns[0]
    assert turn.reply[0].turns == ("[scissors] it is",)
    seats: list[TextSeat] = []

    def opponent(seat: TextSeat) -> str:
        seats.append(seat)
        return "[rock]"

    second = made("IteratedRockPaperScissors-v0", seat=0, interaction=TextGameInteraction(opponent))
    second.reset(options={"problem": 0})
    second.step_many([*second.tokenizer.encode("[paper] is my secret"), second.tokenizer.eos_token])
    assert "secret" not in "".join(seats[0].view)


def test_trying_moves_changes_no_random_number_of_the_game() -> None:
    game = TextArena(game="PigDice-v0", seat=0)[0].reference
    assert isinstance(game, TextGame)
    tried = first_legal(game, (), ["[fly]", "[roll]", "[hold]"])
    assert tried == "[roll]"
    assert first_legal(game, (), ["[fly]", "[swim]"]) is None
    assert replay(game, (Said("[roll]"),)) == replay(game, (Said("[roll]"),))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"game": "ThreePlayerTicTacToe-v0"},
            InvalidArgumentError,
            "exactly three players.*Only games of one player or two",
        ),
        ({"game": "TicTacToe-v0", "seat": 2}, InvalidArgumentError, "seat must be from 0 to 1, or None, got 2"),
        ({"game": "2048-v0", "seat": 0}, InvalidArgumentError, "'2048-v0' is for one player: leave seat out, got 0"),
        ({"game": "TicTacToe-v0", "opponent": "greedy"}, UnknownNameError, "unknown opponent 'greedy'"),
        ({"game": "NewRecruit-v0", "opponent": ["random"]}, UnknownNameError, "unknown opponent"),
        ({"game": "ColonelBlotto-v0-extreme"}, InvalidArgumentError, "'random' finds no legal move in .*seat=0"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        TextArena(**arguments)
