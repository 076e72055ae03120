"""A game of another library by the rules of `rlvr_envs.games`: a function of what the player has said."""

from __future__ import annotations

from collections.abc import Sequence

from rlvr_envs.games import GameVerifier, Move
from rlvr_envs.text_games.library import TextGame, replay


def play(reference: TextGame, moves: Sequence[str]) -> Move:
    """Say what the last of the player's turns leads to.

    Raises:
        VerifierFailureError: If the game raises, or goes past a limit of time and memory.
    """
    played = replay(TextGame(*reference), tuple(moves))
    if played.over:
        return Move(played.text, over=True, score=played.reward, won=played.won)
    return Move(played.text, reward=played.reward)


class TextGameVerifier(GameVerifier):
    """Pays what the game gives the turn that ends it: `CORRECT` where it is won, `SCORED` or `INCORRECT` otherwise."""

    def __init__(self) -> None:
        super().__init__(play)
