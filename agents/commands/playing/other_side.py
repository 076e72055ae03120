"""Lets a person or a model take the environment's side of an episode of several turns in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

import rlvr_envs
from agents.commands.playing.person import read_line
from rlvr_envs.games import Seat, TwoSidedInteraction
from rlvr_envs.text_games import TextGameInteraction, TextSeat
from verifiers import InvalidArgumentError, Message, Problem


@dataclass(frozen=True)
class TypedOpponent:
    """A person who takes the other side of a game and types each move on a line of standard input."""

    console: Console

    def __call__(self, seat: Seat) -> str:
        """Show the board and read a move; at the end of input there is no move, which loses the game."""
        board = seat.start.board
        self.console.print(board.draw(seat.played))
        self.console.print(f"your move as {'XO'[len(seat.played) % 2]}, one of {board.legal(seat.played)}:")
        return read_line() or ""


@dataclass(frozen=True)
class TypedTextOpponent:
    """A person who takes the other side of a game in words and types each turn on a line of standard input.

    A game that the person loses by a wrong move is scored, since the game gives a warning before such a loss.
    """

    console: Console

    def __call__(self, seat: TextSeat) -> str:
        """Show the game's messages to this player and read a turn; the end of input is an empty turn."""
        self.console.print(seat.view[-1])
        self.console.print("your turn, as the other player:")
        return read_line() or ""


@dataclass(frozen=True)
class TypedReply:
    """A person who answers each turn of the policy with a line of standard input; the end of input ends the episode."""

    console: Console

    def __call__(self, turns: Sequence[rlvr_envs.Turn], problem: Problem) -> rlvr_envs.Reply | None:
        """Show the policy's turn and read the person's answer."""
        self.console.print(f"the policy says: {turns[-1].text}")
        self.console.print("your answer, in the environment's place:")
        line = read_line()
        return None if line is None else rlvr_envs.Reply((Message("user", f"\n{line}\n"),))


def typed_side(interaction: rlvr_envs.Interaction | None, console: Console) -> rlvr_envs.Interaction:
    """Return an interaction in which a person types the environment's turns."""
    if interaction is None:
        raise InvalidArgumentError("--opponent is for episodes of several turns, and this environment has none")
    if isinstance(interaction, TextGameInteraction):
        return TextGameInteraction(TypedTextOpponent(console), forfeits="scored")
    return (
        TwoSidedInteraction(TypedOpponent(console))
        if isinstance(interaction, TwoSidedInteraction)
        else TypedReply(console)
    )


def require_two_sides(interaction: rlvr_envs.Interaction | None) -> None:
    """Check that an environment is a game of two sides, before a model is loaded for one of them."""
    if not isinstance(interaction, TwoSidedInteraction | TextGameInteraction):
        raise InvalidArgumentError(
            "a model as --opponent is for games of two sides, such as TicTacToe; --opponent me answers turns of any "
            "environment that has several"
        )
