"""Tic-tac-toe: after a prompt such as `tic-tac-toe 1-9, played 5, you:`, the answer to a move is the opponent's cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rlvr_envs.envs import TaskEnv, TaskSpec, procedural_task
from rlvr_envs.games import InARow, InARowDataset, in_a_row_rules


@dataclass(frozen=True)
class TicTacToe(InARowDataset):
    """Games of tic-tac-toe.

    Args:
        split: `"train"` or `"test"`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems, each different; for the default see `ProceduralDataset`.
        opponent: `"random"`, `"greedy"` or `"optimal"`.
        opening: Maximum number of random moves before the policy's first move, at most 4.
    """

    name: ClassVar[str] = "tic_tac_toe"

    @property
    def board(self) -> InARow:
        """The board of 3 by 3 cells."""
        return InARow("tic-tac-toe", 3, 3, 3)


class TicTacToeEnv(TaskEnv):
    """Tic-tac-toe against an opponent.

    Spaces, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    The last number in each turn of the policy is its move: the number of a free cell, from 1 to 9, counted row by row. The
    answer is the cell that the opponent takes. Any other move loses the game. The opponent `"random"` moves at random. The
    opponent `"greedy"` wins if it can win at once, otherwise blocks the policy's next move if this would win, and otherwise
    moves at random. The opponent `"optimal"` plays optimally, so that a draw is the policy's best result. The opponent's random
    choices follow from the problem. Another policy or a person can play the other side, with `interaction=`. Problems are
    generated: nothing is downloaded.

    ## Starting State
    The moves so far: none, or the opponent's first move.

    ## Reward
    1 for a win, 1/2 for a draw, else 0.

    ## Episode End
    Terminates when the game is over; truncates if `max_new_tokens` are used up first.

    ## Arguments
    All of `rlvr_envs.Settings`, `seed` and `size` of the data set, and for the difficulty `opponent` ("random") and `opening`
    (1; the maximum number of moves before the policy's first). Defaults: `split="train"`, `max_new_tokens` and
    `max_inserted_tokens` as many as a game needs.
    """

    task: ClassVar[TaskSpec] = procedural_task(TicTacToe, max_new_tokens=10, rules=in_a_row_rules)
