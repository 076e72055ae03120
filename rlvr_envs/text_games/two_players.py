"""Games of TextArena for two players: the policy is one, and an opponent answers for the other.

What the opponent said is part of the replies, as `GameMessage.turns`, which the policy does not see: a game tells it what it
may know of the other player's turns, such as a card that was played, and not one that was chosen in secret. So the game is
played again from the dialogue alone, and no opponent is asked twice.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Protocol, get_args

from rlvr_envs.games import told
from rlvr_envs.text_games.library import LIBRARIES, Played, Said, TextGame, first_legal, replay
from rlvr_envs.text_games.moves import draw_moves
from rlvr_envs.text_games.play import GameMessage, game_of, turns_of
from rlvr_envs.types import Reply, Turn
from verifiers import InvalidArgumentError, Message, Problem, VerifierFailureError, unknown_name

_MOVES = (300, 6000)
"""Number of moves that are tried for one that is legal, and where none of them is."""
_IN_A_ROW = 100
"""The most turns of an opponent between two of the policy."""


@dataclass(frozen=True)
class TextSeat:
    """A game as the player sees it that is to move, the same way as a policy sees its episode."""

    game: TextGame
    turns: tuple[Said, ...]
    """The turns of both players, after the opening."""
    view: tuple[str, ...]
    """What this player has been told and has said in turn, the first and the last of which it was told."""

    @property
    def prompt(self) -> str:
        """What this player was told first."""
        return self.view[0]

    @property
    def question(self) -> str:
        """The same, which is in words."""
        return self.prompt

    @property
    def dialogue(self) -> tuple[Message, ...]:
        """What it said since, and what it was told then, in turn."""
        return tuple(
            Message("assistant", text) if at % 2 == 0 else Message("user", told(text))
            for at, text in enumerate(self.view[1:])
        )

    @property
    def chance(self) -> object:
        """What an opponent's chance follows from."""
        return self.game.seed, self.game.opening, self.turns


class TextOpponent(Protocol):
    """Takes the other side of a game in words; a pure function, which may be called from several threads at once."""

    def __call__(self, seat: TextSeat) -> str:
        """Say what the other player says next."""
        ...


@dataclass(frozen=True)
class RandomMoves:
    """Says the first move that is legal of many that are drawn at random, from what the game shows of moves.

    Which are legal, the game says: they are tried on copies of it. All chance follows from the problem's seed and the turns.
    """

    def __call__(self, seat: TextSeat) -> str:
        """Choose a move.

        Raises:
            InvalidArgumentError: If none is legal of those that are tried.
        """
        for count in _MOVES:
            drawn = draw_moves(seat.view, random.Random(repr((seat.chance, count))), count)
            if (move := first_legal(seat.game, seat.turns, drawn)) is not None:
                return move
        raise InvalidArgumentError(
            f"opponent='random' finds no legal move in {_name(seat.game)}, of {_MOVES[-1]} that it tries: give another one, "
            "with interaction=TextGameInteraction(...), and where that one would have to begin, seat=0"
        )


OPPONENTS: Mapping[str, TextOpponent] = MappingProxyType({"random": RandomMoves()})
"""The scripted opponents."""

Forfeits = Literal["excluded", "scored"]


@dataclass(frozen=True)
class TextGameInteraction:
    """Answers each turn of the policy with what the game tells it after the opponent's turns.

    Args:
        opponent: Who takes the other side.
        forfeits: What becomes of a game that the opponent loses by a wrong move, after the game has warned it of one:
            `"excluded"` ends the episode like one whose verifier broke, so that it is no merit of the policy's, and
            `"scored"` gives the policy what the game does, mostly 1.

    Raises:
        UnknownNameError: If `forfeits` is neither.
    """

    opponent: TextOpponent
    forfeits: Forfeits = "excluded"

    def __post_init__(self) -> None:
        if self.forfeits not in get_args(Forfeits):
            raise unknown_name("forfeits", self.forfeits, get_args(Forfeits))

    @property
    def fingerprint(self) -> str:
        """Which opponent it is, the same in every process."""
        named = self.opponent if hasattr(self.opponent, "__qualname__") else type(self.opponent)
        scored = "" if self.forfeits == "excluded" else ":forfeits scored"
        return f"{named.__module__}:{named.__qualname__}{scored}"

    def check_problem(self, problem: Problem) -> None:
        """Check that a problem is a game in words.

        Raises:
            InvalidArgumentError: If it is not.
        """
        reference = problem.reference
        if not isinstance(reference, tuple | list) or not reference or reference[0] not in LIBRARIES:
            raise InvalidArgumentError(
                f"this opponent's turns are for games in words (TextArena), but the reference of problem {problem.id!r} is a "
                f"{type(reference).__name__}"
            )

    def __call__(self, turns: Sequence[Turn], problem: Problem) -> Reply:
        """Answer the last turn."""
        game = game_of(problem)
        said = [part for turn in turns for part in (Message("assistant", turn.text), *turn.reply)]
        played, made = let_play(game, turns_of(said), self.opponent, forfeits=self.forfeits)
        return Reply((GameMessage("user", told(played.text), made),), ends=played.over)


def let_play(
    game: TextGame, turns: tuple[Said, ...], opponent: TextOpponent, *, forfeits: Forfeits = "excluded"
) -> tuple[Played, tuple[str, ...]]:
    """Let an opponent take its turns until the policy is to move, or the game is over.

    Returns:
        What that led to, and the opponent's turns.

    Raises:
        VerifierFailureError: If the opponent loses by a wrong move, which is excluded, or takes turns without end.
    """
    made: tuple[str, ...] = ()
    while True:
        so_far = (*turns, *(Said(text, own=False) for text in made))
        played = replay(game, so_far)
        if made and played.forfeit and forfeits == "excluded":
            raise VerifierFailureError(
                f"the opponent lost {_name(game)} by a wrong move, {made[-1][:100]!r}, which says nothing of the policy; "
                "TextGameInteraction(opponent, forfeits='scored') scores such games"
            )
        if played.view is None:
            return played, made
        if len(made) == _IN_A_ROW:
            raise VerifierFailureError(
                f"the opponent took {_IN_A_ROW} turns in a row in {_name(game)}, the last {made[-1][:100]!r}"
            )
        made = (*made, opponent(TextSeat(game, so_far, played.view)))


def _name(game: TextGame) -> str:
    return f"{LIBRARIES[game.library].name}'s game {game.game!r}"
