"""Games of TextArena for two players, the policy and an opponent.

The opponent's turns are part of the replies, in `GameMessage.turns`. So the game can be replayed from the dialogue alone, and
no opponent is asked twice. The policy does not see this field: a game shows the policy only the public part of the other
player's turns, such as a card that was played, but not a card that was chosen in secret.
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
"""Number of moves to try in search of a legal move: first the smaller number, and the larger number if no move was legal."""
_IN_A_ROW = 100
"""Maximum number of the opponent's turns between two turns of the policy."""


@dataclass(frozen=True)
class TextSeat:
    """A game as seen by the player to move, in the form in which a policy sees its episode."""

    game: TextGame
    turns: tuple[Said, ...]
    """The turns of both players, after the opening."""
    view: tuple[str, ...]
    """The game's messages to this player and the player's turns, alternating; the first and the last are messages."""

    @property
    def prompt(self) -> str:
        """The game's first message to this player."""
        return self.view[0]

    @property
    def question(self) -> str:
        """The prompt, which is in words already."""
        return self.prompt

    @property
    def dialogue(self) -> tuple[Message, ...]:
        """The player's turns after the first message and the game's answers, alternating."""
        return tuple(
            Message("assistant", text) if at % 2 == 0 else Message("user", told(text))
            for at, text in enumerate(self.view[1:])
        )

    @property
    def chance(self) -> object:
        """The data that seed an opponent's random choices."""
        return self.game.seed, self.game.opening, self.turns


class TextOpponent(Protocol):
    """Plays the other side of a game in words. An opponent is a pure function that several threads may call at once."""

    def __call__(self, seat: TextSeat) -> str:
        """Return the other player's next turn."""
        ...


@dataclass(frozen=True)
class RandomMoves:
    """Makes a random move. Many moves are drawn from the moves that the game shows, and the first legal move is made.

    The game decides which moves are legal, since the moves are tried on copies of the game. All draws follow from the problem's
    seed and the turns.
    """

    def __call__(self, seat: TextSeat) -> str:
        """Choose a move.

        Raises:
            InvalidArgumentError: If none of the tried moves is legal.
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
    """Answers each turn of the policy with the game's messages to the policy after the opponent's turns.

    Args:
        opponent: Plays the other side.
        forfeits: What happens if the opponent loses by a wrong move after a warning. `"excluded"` ends the episode as if the
            verifier had failed, so that the policy gets no credit. `"scored"` gives the policy the game's reward, usually 1.

    Raises:
        UnknownNameError: If `forfeits` has any other value.
    """

    opponent: TextOpponent
    forfeits: Forfeits = "excluded"

    def __post_init__(self) -> None:
        if self.forfeits not in get_args(Forfeits):
            raise unknown_name("forfeits", self.forfeits, get_args(Forfeits))

    @property
    def fingerprint(self) -> str:
        """A text that identifies the opponent and is the same in every process."""
        named = self.opponent if hasattr(self.opponent, "__qualname__") else type(self.opponent)
        scored = "" if self.forfeits == "excluded" else ":forfeits scored"
        return f"{named.__module__}:{named.__qualname__}{scored}"

    def check_problem(self, problem: Problem) -> None:
        """Check that a problem is a game in words.

        Raises:
            InvalidArgumentError: If the problem is not such a game.
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
    """Let the opponent take its turns until the policy is to move or the game is over.

    Returns:
        The result, and the opponent's new turns.

    Raises:
        VerifierFailureError: If the opponent loses by a wrong move and `forfeits` is `"excluded"`, or if the opponent takes
            turns without end.
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
