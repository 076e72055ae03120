"""A game of another library in the form of `rlvr_envs.games`, which is a function of the dialogue."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from rlvr_envs.contexts import without_summaries
from rlvr_envs.games import Move
from rlvr_envs.games.game import verdict_of
from rlvr_envs.text_games.library import Played, Said, TextGame, replay
from verifiers import Message, Outcome, Problem, Verdict, dialogue_of


@dataclass(frozen=True, slots=True)
class GameMessage(Message):
    """The message with which a two-player game answers the policy's turn."""

    turns: tuple[str, ...] = ()
    """The opponent's turns after the policy's turn, including turns that the game did not show to the policy."""


def turns_of(dialogue: Sequence[Message]) -> tuple[Said, ...]:
    """Return the turns of all players in a dialogue.

    A summary by the policy, which begins a new context, is not a turn of the game.
    """
    turns: list[Said] = []
    for message in without_summaries(dialogue):
        if isinstance(message, GameMessage):
            turns += (Said(text, own=False) for text in message.turns)
        elif message.role == "assistant":
            turns.append(Said(message.content))
    return tuple(turns)


def play(reference: TextGame, moves: Sequence[str]) -> Move:
    """Return the result of the last turn of a game's only player.

    Raises:
        VerifierFailureError: If the game raises, or exceeds a limit on time or memory.
    """
    return _move(replay(TextGame(*reference), tuple(map(Said, moves))))


class TextGameVerifier:
    """Scores a completion by the game's final reward for the policy.

    A game that is won is `CORRECT`. Any other game of one player is `INCORRECT` if the reward is 0, and otherwise `SCORED`. Any
    other game of two players is `INCORRECT` if the reward is negative or the game has not ended, and otherwise `SCORED`.
    """

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge the dialogue that ends with the completion.

        Raises:
            VerifierFailureError: If the game raises or exceeds a limit on time or memory, or the turns of another player are
                not in the dialogue.
        """
        dialogue = dialogue_of(completion)
        played = replay(game_of(problem), turns_of(dialogue))
        own = [message.content for message in dialogue if message.role == "assistant"]
        verdict = verdict_of(_move(played), own)
        if played.players == 1 or not played.over:
            return verdict
        outcome = verdict.outcome if played.won else Outcome.INCORRECT if played.reward < 0 else Outcome.SCORED
        forfeit = {"forfeit": True} if played.forfeit else {}
        return dataclasses.replace(verdict, outcome=outcome, detail={**verdict.detail, **forfeit})


def game_of(problem: Problem) -> TextGame:
    """The game of a problem."""
    reference: object = problem.reference
    return TextGame(*reference)  # type: ignore[misc]


def _move(played: Played) -> Move:
    if played.over:
        return Move(played.text, over=True, score=played.reward, won=played.won)
    return Move(played.text, reward=played.reward)
