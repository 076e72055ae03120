"""`Rows`: the state that sampling keeps for each row of a batch of episodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agents.seeding import mix
from agents.types import Action


class Rows:
    """For each row: the last processed tokens, the choice that followed, and the seed of the row's episode."""

    def __init__(self, seed: int, kept_bytes: int) -> None:
        self._seed = seed
        self._announcements_missed = 0
        self.tokens = np.zeros((0, 0), dtype=np.int32)
        self.length = np.zeros(0, dtype=np.int64)
        self.seeds = np.zeros(0, dtype=np.uint64)
        self._announced = np.zeros(0, dtype=bool)
        self.current = np.zeros(0, dtype=bool)
        """Whether each row's last choice was made with the current weights."""
        self._chosen = np.zeros(0, dtype=np.int64)
        self._logprobs = np.zeros(0, dtype=np.float32)
        self._kept = np.zeros((0, kept_bytes), dtype=np.uint8)

    def fit(self, num_rows: int, width: int) -> None:
        """Make room for more rows or longer observations."""
        rows, columns = max(num_rows, len(self.length)), max(width, self.tokens.shape[1])
        if (rows, columns) == self.tokens.shape:
            return
        missing = rows - len(self.length)
        self.tokens = np.pad(self.tokens, ((0, missing), (0, columns - self.tokens.shape[1])))
        for name in ("length", "seeds", "_announced", "current", "_chosen", "_logprobs"):
            setattr(self, name, np.pad(getattr(self, name), (0, missing)))
        self._kept = np.pad(self._kept, ((0, missing), (0, 0)))

    def begin(self, rows: NDArray[np.int64], seeds: NDArray[np.uint64]) -> None:
        """Announce that rows begin new episodes or continue earlier episodes, whose processed tokens are reused."""
        self.fit(int(rows.max(initial=-1)) + 1, 0)
        self.seeds[rows] = seeds
        self._announced[rows] = True
        self.current[rows] = False

    def seed_unannounced(self, beginning: NDArray[np.bool_]) -> None:
        """Seed the rows that start another episode, or return to an earlier token of their episode, without an announcement."""
        rows = np.flatnonzero(beginning)
        announced = self._announced[rows]
        self._announced[rows] = False
        rows = rows[~announced]
        if len(rows):
            self._announcements_missed += 1
            origin = np.array([self._seed % 2**64, self._announcements_missed], dtype=np.uint64)
            base = mix(mix(origin[:1]) ^ origin[1:])
            self.seeds[rows] = mix(base ^ mix(rows.astype(np.uint64)))

    def begins_with_what_was_read(self, tokens: NDArray[np.int32]) -> NDArray[np.bool_]:
        """For each of the first b rows, whether its processed tokens, if any, are a prefix of the observation i32[b l]."""
        rows, width = tokens.shape
        differs = tokens != self.tokens[:rows, :width]
        differs &= np.arange(width) < self.length[:rows, None]
        same: NDArray[np.bool_] = ~differs.any(axis=1) & (self.length[:rows] > 0)
        return same

    def recall(self, num_rows: int, unchanged: NDArray[np.bool_], *, with_kept: bool) -> Action:
        """An action with the last choices of unchanged rows, and no choices for other rows."""
        action = Action(
            np.zeros((num_rows, 1), dtype=np.int64),
            np.zeros(num_rows, dtype=np.int64),
            np.zeros((num_rows, 1), dtype=np.float32),
            np.zeros((num_rows, 1, self._kept.shape[1]), dtype=np.uint8) if with_kept else None,
        )
        rows = np.flatnonzero(unchanged)
        if action.kept is not None:
            action.kept[rows, 0] = self._kept[rows]
        action.tokens[rows, 0] = self._chosen[rows]
        action.logprobs[rows, 0] = self._logprobs[rows]
        action.counts[rows] = 1
        return action

    def remember(
        self, tokens: NDArray[np.int32], length: NDArray[np.int64], read: NDArray[np.bool_], action: Action
    ) -> None:
        """Store the processed tokens of some rows, and their choices."""
        rows = np.flatnonzero(read)
        self.tokens[rows, : tokens.shape[1]] = tokens[rows]
        self.length[rows] = length[rows]
        self.current[rows] = True
        self._announced[rows] = False
        self._chosen[rows] = action.tokens[rows, 0]
        self._logprobs[rows] = action.logprobs[rows, 0]
        if action.kept is not None:
            self._kept[rows] = action.kept[rows, 0]
