"""Games of two sides.

The policy plays one side, and an opponent (a script, another policy or a person) plays the other side.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np

from rlvr_envs.contexts import without_summaries
from rlvr_envs.games.game import Move, verdict_of
from rlvr_envs.games.in_a_row import InARow, greedy_move, optimal_move, random_move
from rlvr_envs.types import Reply, Turn
from verifiers import InvalidArgumentError, Message, Problem, Verdict, dialogue_of
from verifiers.completion import move_in

_NUMBER = re.compile(r"\d+")
_NO_MOVE = "no move"


class Start(NamedTuple):
    """The position in which the policy begins to play its side."""

    board: InARow
    opening: tuple[int, ...]
    """The moves of both sides, in turn, before the policy's first move."""
    seed: int
    """The seed of an opponent's random choices."""


@dataclass(frozen=True)
class Seat:
    """A game as seen by the side to move, in the form in which a policy sees its episode."""

    start: Start
    """The position in which this side began."""
    moves: tuple[int, ...] = ()
    """The moves of this side and the other side, in turn, since the start."""

    @property
    def prompt(self) -> str:
        """This side's prompt."""
        return prompt_of(self.start.board, self.start.opening)

    @property
    def question(self) -> str:
        """This side's prompt in the words of a chat."""
        return question_of(self.start.board, self.start.opening)

    @property
    def played(self) -> tuple[int, ...]:
        """All moves of the game."""
        return (*self.start.opening, *self.moves)

    @property
    def dialogue(self) -> tuple[Message, ...]:
        """The messages of this side and the other side, in turn, since the start."""
        return tuple(
            Message("assistant", str(move)) if at % 2 == 0 else Message("user", told(str(move)))
            for at, move in enumerate(self.moves)
        )

    @property
    def chance(self) -> object:
        """The data that seed the sampling of a policy in this seat."""
        return self.start.seed, self.played


class Opponent(Protocol):
    """Plays the other side of a game. An opponent is a pure function that several threads may call at once."""

    def __call__(self, seat: Seat) -> str:
        """Return a text whose last number is the next move. An illegal move, or no move, loses the game."""
        ...


@dataclass(frozen=True)
class ScriptedOpponent:
    """Moves by a rule. The problem's seed and the number of moves seed the rule's random choices."""

    rule: Callable[[InARow, Sequence[int], np.random.Generator], int]

    def __call__(self, seat: Seat) -> str:
        """Choose a move."""
        seeds = np.random.SeedSequence([seat.start.seed, len(seat.played)])
        return str(self.rule(seat.start.board, seat.played, np.random.Generator(np.random.PCG64(seeds))))


OPPONENTS: Mapping[str, ScriptedOpponent] = MappingProxyType(
    {
        "random": ScriptedOpponent(random_move),
        "greedy": ScriptedOpponent(greedy_move),
        "optimal": ScriptedOpponent(optimal_move),
    }
)
"""The scripted opponents. `random` makes any legal move. `greedy` wins at once if possible, or else prevents the other side's
win by its next move, or else makes any legal move. `optimal` makes one of the best moves."""


def prompt_of(board: InARow, opening: Sequence[int]) -> str:
    """The prompt of a side before its first move."""
    return f"{board.name} 1-{board.moves}, played {' '.join(map(str, opening)) or 'none'}, you:"


def question_of(board: InARow, opening: Sequence[int]) -> str:
    """The rules of the game in words, and the moves before a side's first move."""
    where = (
        f"A move is the number of a column, from 1 to {board.moves}, in which your mark drops to the lowest free cell"
        if board.drops
        else f"A move is the number of a free cell, from 1 to {board.moves}, counted row by row"
    )
    return (
        f"Play {board.name} against me on a board of {board.columns} columns and {board.rows} rows. {where}. Whoever first has "
        f"{board.connect} marks in a row, column or diagonal wins. We move in turn, and a move that is not possible loses. "
        "Each of your turns is one move: write its number alone, and I answer with mine. Moves so far: "
        f"{' '.join(map(str, opening)) or 'none'}. What is your move?"
    )


def told(text: str) -> str:
    """The other side's reply, in the form that is appended to the episode."""
    return f"\n{text}\n"


@dataclass(frozen=True)
class TwoSidedInteraction:
    """Answers each move of the policy with a move of the opponent.

    Args:
        opponent: Plays the other side.
    """

    opponent: Opponent

    @property
    def fingerprint(self) -> str:
        """A text that identifies the opponent and is the same in every process."""
        rule = getattr(self.opponent, "rule", self.opponent)
        named = rule if hasattr(rule, "__qualname__") else type(rule)
        return f"{named.__module__}:{named.__qualname__}"

    def check_problem(self, problem: Problem) -> None:
        """Check that a problem is a game of two sides.

        Raises:
            InvalidArgumentError: If the problem is not such a game.
        """
        reference = problem.reference
        if not isinstance(reference, tuple | list) or len(reference) != 3 or not isinstance(reference[0], InARow):
            raise InvalidArgumentError(
                f"an opponent's moves are for games of two sides (TicTacToe, ConnectFour), but the reference of problem "
                f"{problem.id!r} is a {type(reference).__name__}"
            )

    def __call__(self, turns: Sequence[Turn], problem: Problem) -> Reply:
        """Answer the last move."""
        start = _start(problem)
        said = [message for turn in turns for message in (Message("assistant", turn.text), *turn.reply)]
        after = _follow(start, said)
        if after.over:
            return Reply((Message("user", told(after.text)),), ends=True)
        mine, *rest = after.moves
        seat = Seat(start._replace(opening=(*start.opening, mine)), tuple(rest))
        text = self.opponent(seat)
        move = _legal_move(start.board, seat.played, move_in(text))
        reply = Message("user", told(_NO_MOVE if move is None else str(move)))
        return Reply((reply,), ends=_follow(start, [*said, reply]).over)


@dataclass(frozen=True)
class TwoSidedVerifier:
    """Scores a game by replaying both sides' moves: 1 for a win, 1/2 for a draw, 0 for a loss."""

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge the dialogue that ends with the completion."""
        said = without_summaries(dialogue_of(completion))
        after = _follow(_start(problem), said)
        return verdict_of(after, [message.content for message in said if message.role == "assistant"])


@dataclass(frozen=True, slots=True)
class _Followed(Move):
    """The result of the last move of either side."""

    moves: tuple[int, ...] = ()
    """The legal moves, from the policy's first move on."""


def _start(problem: Problem) -> Start:
    reference: Any = problem.reference
    return Start(*reference)


def _follow(start: Start, said: Sequence[Message]) -> _Followed:
    """Replay a game from the turns of both sides."""
    moves: list[int] = []
    for message in said:
        own = message.role == "assistant"
        text = move_in(message.content) if own else message.content
        move = _legal_move(start.board, (*start.opening, *moves), text)
        if move is None:
            return _Followed(_NO_MOVE, over=True, score=float(not own), moves=tuple(moves))
        moves.append(move)
        worth = start.board.outcome((*start.opening, *moves))
        if worth is not None:
            score = worth if len(start.opening) % 2 == 0 else 1 - worth
            return _Followed(_ENDINGS[score], over=True, score=score, moves=tuple(moves))
    return _Followed("", moves=tuple(moves))


_ENDINGS = {1.0: "won", 0.5: "draw", 0.0: "lost"}


def _legal_move(board: InARow, played: Sequence[int], text: str) -> int | None:
    """The move in a text; None if it contains no legal move."""
    numbers = _NUMBER.findall(text)
    # A number with more digits than any move is cut before it is converted.
    move = int(numbers[-1][:9]) if numbers else 0
    return move if move in board.legal(played) else None
