"""A world as a token environment: the tokens of moves, the rewards of moves, and the end of a walk.

The return of an episode equals the return in the world. The function `step_reward` gives the reward of every move, and the
verdict gives the reward of the goal or the trap at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlvr_envs.tokenizers import Tokenizer
from rlvr_envs.types import FixedActions
from rlvr_envs.worlds.world import MOVES, Cell, World, moves_of
from verifiers import InvalidArgumentError, Outcome, Problem, Verdict


def world_of(problem: Problem) -> World:
    """Return the world of a problem, which is the problem's reference.

    Raises:
        InvalidArgumentError: If the reference is not a world.
    """
    if not isinstance(problem.reference, World):
        raise InvalidArgumentError(
            f"the reference of problem {problem.id!r} is {type(problem.reference).__name__}; expected a World, as in "
            "rlvr/GridWorld-v0 and rlvr/Maze-v0"
        )
    return problem.reference


@dataclass(frozen=True)
class Walk:
    """An `EndCondition` for walks.

    The policy's tokens spell a walk, and the episode is over once the walk is at a goal or a trap.

    Args:
        tokenizer: Any tokenizer. The moves of a token are its characters that are in `MOVES`.
    """

    tokenizer: Tokenizer
    _moves: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        pieces = (self.tokenizer.token_bytes(token) for token in range(self.tokenizer.vocab_size))
        # Bytes can be read as Latin-1, since in UTF-8 the bytes of the moves occur only as the characters of the moves.
        object.__setattr__(self, "_moves", tuple(tuple(moves_of(piece.decode("latin-1"))) for piece in pieces))

    def __call__(self, tokens: NDArray[np.int32], prompt_length: int, problem: Problem) -> bool:
        """Return whether the walk is over after tokens i32[l], which begin with the prompt of `prompt_length` tokens."""
        return world_of(problem).ends_at(self.cell(tokens, prompt_length, problem))

    def cell(self, tokens: NDArray[np.int32], prompt_length: int, problem: Problem) -> Cell:
        """The cell that the walk has reached after tokens i32[l]."""
        moves = self._moves
        spelled = (move for token in tokens[prompt_length:].tolist() for move in moves[token])
        return world_of(problem).walk(spelled)[-1]


def move_tokens(tokenizer: Tokenizer) -> NDArray[np.int32]:
    """The tokens i32[4] of the four `MOVES`; see `action_tokens`."""
    return action_tokens(tokenizer, MOVES)


def action_tokens(tokenizer: Tokenizer, actions: str) -> NDArray[np.int32]:
    """The tokens i32[a] of actions that are given as characters.

    Raises:
        InvalidArgumentError: If an action is not a single token.
    """
    token_of: dict[bytes, int] = {}
    for token in range(tokenizer.vocab_size):
        token_of.setdefault(tokenizer.token_bytes(token), token)
    missing = [action for action in actions if action.encode() not in token_of]
    if missing:
        raise InvalidArgumentError(
            f"every move of {actions!r} must be a token of its own, but this tokenizer has none for {missing}: use "
            "tokenizer='char' or 'byte'"
        )
    return np.array([token_of[action.encode()] for action in actions], dtype=np.int32)


def step_reward(tokens: NDArray[np.int32], prompt_length: int, problem: Problem) -> float:
    """A `ProcessScorer` with the same reward for every token."""
    return float(world_of(problem).step_reward)


class WalkVerifier:
    """Judges a completion by the last cell of its walk.

    At a goal, the outcome is `CORRECT`, with the score `goal_reward`; at a trap, `INCORRECT`, with the score `trap_reward`;
    elsewhere, `INCORRECT`, with the score 0; and without a move, `NO_ANSWER`. The answer is the walk up to its end, and
    `detail["cell"]` is the last cell. As in the environment, characters that are not moves have no effect, nor do moves after
    the end.
    """

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge one completion."""
        world, moves = world_of(problem), moves_of(completion)
        if not moves:
            return Verdict.of(Outcome.NO_ANSWER)
        _, *entered = world.walk(moves)
        cell = entered[-1]
        answer = "".join(MOVES[move] for move in moves[: len(entered)])
        outcome = Outcome.CORRECT if cell in world.goals else Outcome.INCORRECT
        return Verdict(float(world.end_reward(cell)), outcome, answer, {"cell": list(cell)})


def world_rules(dataset: Any, tokenizer: Tokenizer) -> Mapping[str, Any]:
    """The fields of `Rules` that turn a data set of worlds into an environment. The data set gives the budget."""
    legal = np.zeros(tokenizer.vocab_size, dtype=np.int8)
    legal[move_tokens(tokenizer)] = 1
    return {
        "legal_actions": FixedActions(legal),
        "process_scorer": step_reward,
        "end_condition": Walk(tokenizer),
        "max_new_tokens": dataset.max_new_tokens,
    }


def alphabet(side: int) -> str:
    """All characters of worlds with up to `side` rows and columns. The moves are first, so that they are the tokens 1 to 4."""
    return MOVES + "0123456789"[:side] + ">:"


MOVES_IN_WORDS = (
    "L moves one cell to the left, D down, R right and U up. A move against a wall or the border changes nothing."
)
"""The moves of a walk in words, for a chat."""


def coordinates(cell: Cell) -> str:
    """The text of a cell in a prompt: the digit of the row, and then the digit of the column."""
    return f"{cell[0]}{cell[1]}"
