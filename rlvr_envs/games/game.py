"""One-player games. A game is a function of the player's turns, from which an interaction, a verifier and rules are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rlvr_envs.contexts import without_summaries
from rlvr_envs.types import Reply, Turn
from verifiers import Message, Outcome, Problem, Verdict, dialogue_of
from verifiers.completion import move_in


@dataclass(frozen=True, slots=True)
class Move:
    """The result of the player's last move."""

    text: str
    """The reply to the player."""
    over: bool = False
    score: float = 0.0
    """The final score, from 0 (lost) to 1 (won), once the game is over; games of other libraries may exceed this range."""
    reward: float = 0.0
    """The immediate reward of the move if the game goes on."""
    won: bool | None = None
    """Whether the game is won; if None, a score of 1 means a win."""


class Game(Protocol):
    """The rules of a game, as a pure and picklable function."""

    def __call__(self, reference: Any, moves: Sequence[str]) -> Move:
        """Return the result of the last of the player's moves.

        Args:
            reference: The reference of the problem, such as a secret.
            moves: The text of each of the player's turns, at least one.
        """
        ...


@dataclass(frozen=True)
class GameInteraction:
    """Answers the player's moves until the game is over."""

    game: Game
    whole: bool = False
    """Whether the game receives the whole text of a turn, in which it finds the move by itself."""

    @property
    def fingerprint(self) -> str:
        """A text that identifies the game and is the same in every process."""
        return f"{self.game.__module__}:{getattr(self.game, '__qualname__', type(self.game).__qualname__)}"

    def __call__(self, turns: Sequence[Turn], problem: Problem) -> Reply:
        """Answer the last move."""
        said = [turn.text if self.whole else move_in(turn.text) for turn in turns]
        move = self.game(problem.reference, said)
        return Reply((Message("user", f"\n{move.text}\n"),), 0.0 if move.over else move.reward, ends=move.over)


@dataclass(frozen=True)
class GameVerifier:
    """Scores a game by replaying it.

    A won game is correct, and a lost or unfinished game is incorrect; any other result gets its score.
    """

    game: Game

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge the dialogue that ends with the completion."""
        dialogue = without_summaries(dialogue_of(completion))
        moves = [move_in(message.content) for message in dialogue if message.role == "assistant"]
        return verdict_of(self.game(problem.reference, moves), moves)


def verdict_of(move: Move, moves: Sequence[str]) -> Verdict:
    """Judge a game by the result of the player's last move."""
    detail = {"moves": len(moves), "over": move.over}
    score = move.score if move.over else 0.0
    won = move.over and (score == 1 if move.won is None else move.won)
    outcome = Outcome.CORRECT if won else Outcome.SCORED if score else Outcome.INCORRECT
    return Verdict(score, outcome, moves[-1], detail)


def game_rules(game: Game, room: Callable[[Any], tuple[int, int]]) -> Callable[[Any, object], Mapping[str, Any]]:
    """Make a function that returns the rules of a game's environments.

    Args:
        game: The game.
        room: Returns two numbers of bytes for a data set: how many a player needs for a game, and how many the replies take at
            most.
    """

    def rules(dataset: Any, tokenizer: object) -> Mapping[str, Any]:
        said, told = room(dataset)
        return {"interaction": GameInteraction(game), "max_new_tokens": said, "max_inserted_tokens": told}

    return rules
