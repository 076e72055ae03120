"""Code that the environments of tic-tac-toe and connect four share: openings, prompts and opponents."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rlvr_envs.games.in_a_row import MAX_SOLVED_CELLS, InARow
from rlvr_envs.games.two_sided import OPPONENTS, Start, TwoSidedInteraction, prompt_of, question_of, told
from rlvr_envs.procedural.base import DIGITS, GeneratedProblem, ProblemShape, ProceduralDataset, require_whole
from verifiers import InvalidArgumentError, Problem, unknown_name

_SEEDS = 2**62
"""Number of possible seeds. A seed determines the opponent's random choices and the opening."""


@dataclass(frozen=True)
class InARowDataset(ProceduralDataset[tuple[tuple[int, ...], int]]):
    """Games that begin after some random moves, with a seed for the opponent's random choices.

    Args:
        split: `"train"` or `"test"`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems, each different; for the default see `ProceduralDataset`.
        opponent: `"random"`, `"greedy"` or `"optimal"`.
        opening: Maximum number of random moves before the policy's first move.
    """

    verifier: ClassVar[tuple[str, Mapping[str, object]]] = ("rlvr_envs.games:TwoSidedVerifier", {})

    hidden: ClassVar[bool] = True

    opponent: str = "random"
    opening: int = 1

    @property
    @abc.abstractmethod
    def board(self) -> InARow:
        """The board."""

    def _describe(self) -> ProblemShape:
        board = self.board
        longest = prompt_of(board, [board.moves] * self.opening or [])
        return ProblemShape(
            difficulty=f"{board.columns}x{board.rows}-{board.connect}-{self.opponent}-after-{self.opening}",
            max_prompt_bytes=max(len(longest), len(prompt_of(board, ()))),
            max_answer_bytes=len(str(board.moves)),
            prompt_alphabet=longest + DIGITS + "none\n",
            answer_alphabet=DIGITS,
        )

    def _check_difficulty(self) -> None:
        board = self.board
        if self.opponent not in list(OPPONENTS):  # a list, since the argument may not be hashable
            raise unknown_name("opponent", self.opponent, list(OPPONENTS))
        cells = board.columns * board.rows
        if self.opponent == "optimal" and cells > MAX_SOLVED_CELLS:
            raise InvalidArgumentError(
                f"opponent='optimal' has to solve the board, which may have at most {MAX_SOLVED_CELLS} cells; got "
                f"{board.columns} x {board.rows}. Use opponent='greedy', or a smaller board"
            )
        if board.connect > max(board.columns, board.rows):
            raise InvalidArgumentError(
                f"nobody can have {board.connect} in a row on a board of {board.columns} x {board.rows}: lower connect"
            )
        # The upper limit is so small that nobody can have won.
        require_whole("opening", self.opening, 0, min(2 * board.connect - 2, cells - 1))

    @property
    def _space(self) -> int:
        return _SEEDS

    def _at(self, code: int) -> tuple[tuple[int, ...], int]:
        rng = np.random.Generator(np.random.PCG64(code))
        moves: tuple[int, ...] = ()
        for _ in range(rng.integers(self.opening, endpoint=True)):
            moves = (*moves, int(rng.choice(self.board.legal(moves))))
        return moves, code

    def in_words(self, problem: Problem) -> str:
        """The rules of the game, and its first moves, in words."""
        opening: Any = problem.reference
        return question_of(*opening[:2])

    def _task(self, content: tuple[tuple[int, ...], int]) -> GeneratedProblem:
        opening, seed = content
        return GeneratedProblem(prompt_of(self.board, opening), Start(self.board, opening, seed), None)


def in_a_row_rules(dataset: Any, tokenizer: object) -> Mapping[str, Any]:
    """The rules of an environment of such games: the opponent, and token limits with room for the longest game."""
    board = dataset.board
    turns = (board.columns * board.rows + 1) // 2
    return {
        "interaction": TwoSidedInteraction(OPPONENTS[dataset.opponent]),
        "max_new_tokens": turns * (dataset.max_answer_bytes + 1),
        "max_inserted_tokens": turns * len(told("9" * dataset.max_answer_bytes)),
    }
