"""Games of TextArena and GEM as episodes: what they pay, what follows from the turns alone, seats, secrets, and the sandbox."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest

import rlvr_envs
from rlvr_envs.tasks import GEMGames, TextArena
from rlvr_envs.text_games import TextGameInteraction, TextSeat, library, play
from rlvr_envs.text_games.library import Said, first_legal, replay
from tests.docs import DOCS
from tests.games.playing import Player, played
from verifiers import InvalidArgumentError, Outcome, UnknownNameError, VerifierFailureError

IDS = ("rlvr/TextArena-v0", "rlvr/GEM-v0")


def halving(low: int, high: int, written: str) -> Player:
    """Guesses the middle of what is left."""

    def player(history: list[tuple[str, str]]) -> str:
        least, most = low, high
        for move, told in history:
            guess = int(re.findall(r"\d+", move)[0])
            least, most = (guess + 1, most) if "higher" in told else (least, guess - 1)
        return written.format((least + most) // 2)

    return player


def hanoi(disks: int, written: str, pegs: str = "ABC") -> list[str]:
    """The shortest way to move a tower from the first peg to the last."""

    def moved(count: int, source: str, target: str, other: str) -> list[str]:
        if not count:
            return []
        return [
            *moved(count - 1, source, other, target),
            written.format(source, target),
            *moved(count - 1, other, target, source),
        ]

    return moved(disks, pegs[0], pegs[2], pegs[1])


@pytest.mark.parametrize(
    ("env_id", "arguments", "player"),
    [
        (IDS[0], {"game": "GuessTheNumber-v0"}, halving(1, 20, "I say [{}].")),
        (IDS[1], {"game": "game:GuessTheNumber-v0-easy"}, halving(1, 10, r"I say \boxed{{{}}}.")),
        (IDS[0], {"game": "TowerOfHanoi-v0"}, lambda history: hanoi(3, "[{} {}]")[len(history)]),
        (IDS[1], {"game": "game:TowerofHanoi-v0-easy"}, lambda history: hanoi(3, r"\boxed{{{} {}}}")[len(history)]),
    ],
)
def test_who_plays_as_well_as_can_be_wins(env_id: str, arguments: dict[str, Any], player: Player) -> None:
    env: Any = gymnasium.make(env_id, max_new_tokens=400, **arguments).unwrapped
    for problem in range(5):
        earned, terminated, verdict = played(env, problem, player)
        assert (earned, terminated, verdict.outcome) == (pytest.approx(1.0), True, Outcome.CORRECT)


def test_turns_are_paid_as_they_are_played_and_the_last_by_the_verdict() -> None:
    env: Any = gymnasium.make(IDS[1], game="game:TowerofHanoi-v0-easy", max_new_tokens=400).unwrapped
    env.reset(options={"problem": 0})
    paid = []
    for move in hanoi(3, r"\boxed{{{} {}}}"):
        _, reward, terminated, _, info = env.step_many([*env.tokenizer.encode(move), env.tokenizer.eos_token])
        paid.append(reward)
    assert terminated
    assert paid[-1] == info["verdict"].score
    assert sum(paid) == pytest.approx(1.0)
    env.reset(options={"problem": 0})
    *_, reward, terminated, truncated, info = env.step_many([*env.tokenizer.encode("no move"), env.tokenizer.eos_token])
    assert (reward, terminated, truncated, info["verdict"].outcome) == (-0.1, True, False, Outcome.SCORED)


def test_the_same_seed_makes_the_same_game_in_every_process() -> None:
    code = (
        "from rlvr_envs.tasks import TextArena, GEMGames\n"
        "for game in ('Minesweeper-v0', '2048-v0'): print(repr(TextArena(game=game, seed=5)[3]))\n"
        "print(repr(GEMGames(game='game:Sudoku-v0-easy', seed=5)[3]))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = [TextArena(game=game, seed=5)[3] for game in ("Minesweeper-v0", "2048-v0")]
    assert run.stdout.splitlines() == [
        *map(repr, here),
        repr(GEMGames(game="game:Sudoku-v0-easy", seed=5)[3]),
    ]
    assert here[1].prompt != TextArena(game="2048-v0", seed=6)[3].prompt
    assert here[1].prompt != TextArena("test", game="2048-v0", seed=5)[3].prompt


def test_random_numbers_of_the_caller_are_left_alone() -> None:
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index,union-attr]
    replay.cache_clear()
    problem = TextArena(game="2048-v0", seed=9)[0]
    play(problem.reference, ["[left]", "[up]"])  # type: ignore[arg-type]
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # type: ignore[index,union-attr]
    assert "textarena" not in {name for name in sys.modules if name == "textarena.envs.Game2048.env"}


@pytest.mark.parametrize(
    ("cls", "arguments", "error", "message"),
    [
        (TextArena, {"game": "ThreePlayerTicTacToe-v0"}, InvalidArgumentError, "three players.*Only games of one player or"),
        (TextArena, {"game": "TicTacToe-v0", "seat": 2}, InvalidArgumentError, "seat must be from 0 to 1, or None, got 2"),
        (TextArena, {"game": "2048-v0", "seat": 0}, InvalidArgumentError, "'2048-v0' is for one player: leave seat out, got 0"),
        (TextArena, {"game": "TicTacToe-v0", "opponent": "greedy"}, UnknownNameError, "unknown opponent 'greedy'"),
        (TextArena, {"game": "ColonelBlotto-v0-extreme"}, InvalidArgumentError, "'random' finds no legal move in .*seat=0"),
        (TextArena, {"game": "Mastermynd-v0"}, UnknownNameError, "unknown game of TextArena .*Did you mean 'Mastermind-v0'"),
        (TextArena, {"game": "SecretMafia-v0"}, InvalidArgumentError, "between 5 and 15.*Only games of one player or two"),
        (TextArena, {"game": "TwentyQuestions-v0"}, InvalidArgumentError, "can't be played: .*no network"),
        (TextArena, {"game": "Hangman-v0"}, InvalidArgumentError, r"NLTK's corpus 'words', .*python -m nltk.downloader -d"),
        (TextArena, {"arguments": {"max_turn": 3}}, InvalidArgumentError, "unexpected keyword argument 'max_turn'"),
        (TextArena, {"arguments": {"max_turns": object()}}, InvalidArgumentError, "arguments must map names to numbers"),
        (TextArena, {"split": "dev"}, UnknownNameError, "unknown split 'dev'"),
        (TextArena, {"max_prompt_bytes": 5}, InvalidArgumentError, "begins with more than 5 bytes for each of 50 seeds"),
        (TextArena, {"isolation": "some"}, UnknownNameError, "isolation"),
        (GEMGames, {"game": "math:GSM8K"}, UnknownNameError, "unknown game of GEM 'math:GSM8K'"),
    ],
)  # fmt: skip
def test_what_is_refused(cls: Any, arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        cls(**arguments)


class TestBrokenGames:
    """What a game breaks costs its own episode alone."""

    @pytest.mark.parametrize("problem", ["raises", "hangs"])
    def test_the_episode_is_masked(self, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
        body = {"raises": "raise KeyError('board')", "hangs": "while True: pass"}[problem]
        monkeypatch.setattr(library, "_TURN_S", 1.0)
        program = library._program().replace("self._over, _ = self._env.step(action=text)", body)
        monkeypatch.setattr(library, "_program", lambda: program)
        replay.cache_clear()
        env: Any = gymnasium.make_vec(IDS[0], num_envs=2)
        env.reset(options={"problems": np.array([0, 1])})
        tokens = np.array([*env.unwrapped.tokenizer.encode("[1]"), env.unwrapped.tokenizer.eos_token])
        _, reward, terminated, truncated, info = env.unwrapped.step_many(
            np.tile(tokens, (2, 1)), np.array([len(tokens), 2])
        )
        assert np.isnan(reward[0])
        assert reward[1] == 0.0
        assert (terminated.tolist(), truncated.tolist()) == ([False, False], [True, False])
        assert info["verdict"][0].outcome is Outcome.VERIFIER_ERROR
        assert "TextArena's game 'GuessTheNumber-v0' broke" in str(info["verdict"][0].detail)
        replay.cache_clear()

    def test_a_game_that_went_on_without_being_asked_is_an_error(self) -> None:
        game = TextArena(arguments={"min_number": 5, "max_number": 5})[0].reference
        with pytest.raises(VerifierFailureError, match="the game was over before the last turn"):
            replay(game, (Said("[5]"), Said("[5]")))


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
    tried = first_legal(game, (), ["[fly]", "[roll]", "[hold]"])
    assert tried == "[roll]"
    assert first_legal(game, (), ["[fly]", "[swim]"]) is None
    assert replay(game, (Said("[roll]"),)) == replay(game, (Said("[roll]"),))


@pytest.mark.parametrize("page", ["textarena.md", "gem.md"])
def test_the_examples_run(page: str) -> None:
    code, *_ = re.findall(r"```python\n(.*?)```", (DOCS / "environments" / page).read_text(encoding="utf-8"), re.DOTALL)
    exec(code, {})
