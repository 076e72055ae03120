"""Connect four: after a prompt such as `connect four 1-7, played 4, you:`, the answer to a move is the opponent's column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from rlvr_envs.envs import TaskEnv, TaskSpec, procedural_task
from rlvr_envs.games import InARow, InARowDataset, in_a_row_rules
from verifiers import Between


@dataclass(frozen=True)
class ConnectFour(InARowDataset):
    """Games of connect four.

    Args:
        split: `"train"` or `"test"`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems, each different; for the default see `ProceduralDataset`.
        opponent: `"random"`, `"greedy"`, or on small boards `"optimal"`.
        opening: Maximum number of random moves before the policy's first move.
        columns: Number of columns of the board, from 3 to 9.
        rows: Number of rows of the board, from 3 to 9.
        connect: Number of marks in a row that win, from 3 to 9.
    """

    name: ClassVar[str] = "connect_four"

    columns: Annotated[int, Between(3, 9)] = 7
    rows: Annotated[int, Between(3, 9)] = 6
    connect: Annotated[int, Between(3, 9)] = 4

    @property
    def board(self) -> InARow:
        """The board."""
        return InARow("connect four", self.columns, self.rows, self.connect, drops=True)


class ConnectFourEnv(TaskEnv):
    """Connect four against an opponent.

    Spaces, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    The last number in each turn of the policy is its move: the number of a column that is not full. The policy's mark drops to
    the lowest free cell of this column. The answer is the opponent's column. Any other move loses the game. The opponent
    `"random"` moves at random. The opponent `"greedy"` wins if it can win at once, otherwise blocks the policy's next move if
    this would win, and otherwise moves at random. The opponent `"optimal"`, for boards of at most 16 cells, plays optimally.
    The opponent's random choices follow from the problem. Another policy or a person can play the other side, with
    `interaction=`. Problems are generated: nothing is downloaded.

    ## Starting State
    The moves so far: none, or the opponent's first move.

    ## Reward
    1 for a win, 1/2 for a draw, else 0.

    ## Episode End
    Terminates when the game is over; truncates if `max_new_tokens` are used up first.

    ## Arguments
    All of `rlvr_envs.Settings`, `seed` and `size` of the data set, and for the difficulty `opponent` ("random"), `opening`
    (1; the maximum number of moves before the policy's first), `columns` (7), `rows` (6) and `connect` (4). Defaults:
    `split="train"`, `max_new_tokens` and `max_inserted_tokens` as many as a game needs.
    """

    task: ClassVar[TaskSpec] = procedural_task(ConnectFour, max_new_tokens=42, rules=in_a_row_rules)
