"""`TokenRecord`: the data of each token that a rollout plays, by position in the episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from agents.types import Action, Trajectory
from verifiers import InvalidArgumentError

_ALL_LEGAL = 255
"""A byte of a packed mask that marks eight tokens as legal."""
_ROUNDING = 1e-6
"""Relative rounding error of a reward that a wrapper returns in float32."""


class TokenRecord:
    """The tokens of b rows, and the data of each token.

    Args:
        rows: Number b of rows.
        space: Space of one row's observation, with `tokens`, and `observation` if the environment shows vectors.
    """

    def __init__(self, rows: int, space: spaces.Dict) -> None:
        self.width = width = space["tokens"].shape[0]  # type: ignore[index] # of an array
        """Largest number of tokens that a row has in view."""
        self.prompt_length = np.zeros(rows, dtype=np.int64)
        self.length = np.zeros(rows, dtype=np.int64)
        """i64[b], the number of tokens in view."""
        self.contexts: list[tuple[int, ...]] = [()] * rows
        """The positions in the episode's tokens at which contexts begin, without the first context."""
        self.offset = np.zeros(rows, dtype=np.int64)
        """i64[b], the position at which the context in view begins."""
        self.tokens = np.zeros((rows, width), dtype=np.int32)
        self.policy_mask = np.zeros((rows, width), dtype=bool)
        self.logprobs = np.zeros((rows, width), dtype=np.float32)
        self.rewards = np.zeros((rows, width))
        self.reward_scale = np.ones(rows)  # of the last reward: what `step` returned, relative to the tokens' sum
        self.versions = np.zeros((rows, width), dtype=np.int32)
        self.action_masks: NDArray[np.uint8] | None = None
        vectors = space.spaces.get("observation")
        self.observations = (
            None if vectors is None else np.zeros((rows, width, *(vectors.shape or ())), dtype=np.float32)
        )

    def begin(self, rows: NDArray[np.int64], observation: Any) -> None:
        """Begin episodes in some rows, whose prompts are in the observation."""
        self.length = observation["length"].reshape(-1).astype(np.int64)
        self.prompt_length[rows] = self.length[rows]
        self.offset[rows] = 0
        self.reward_scale[rows] = 1.0
        for row in rows.tolist():
            self.contexts[row] = ()
        for buffer in (self.policy_mask, self.logprobs, self.rewards, self.versions):
            buffer[rows] = 0
        self.tokens[rows, : self.width] = observation["tokens"][rows]
        if self.action_masks is not None:
            self.action_masks[rows] = _ALL_LEGAL

    def restore(self, row: int, played: Trajectory) -> None:
        """Record the part of an episode that was played before an interruption; the row shows the episode's last context."""
        length = len(played.tokens)
        self.contexts[row] = played.contexts
        self.offset[row] = played.contexts[-1] if played.contexts else 0
        self.prompt_length[row] = played.prompt_length
        self._make_room(int(self.offset[row]) + self.width)
        self.tokens[row, :length] = played.tokens
        self.policy_mask[row, :length] = played.policy_mask
        self.logprobs[row, :length] = played.logprobs
        self.rewards[row, :length] = played.rewards
        self.versions[row, :length] = played.policy_version
        if played.action_masks is not None:
            self._masks(played.action_masks.shape[1])[row, :length] = played.action_masks

    def record_masks(self, mask: NDArray[np.int8] | None, action: Action, acting: NDArray[np.bool_]) -> None:
        """Record the candidates of each choice: the tokens the policy kept, or else the legal ones."""
        if mask is None and action.kept is None:
            return
        rows = np.flatnonzero(acting & (action.counts > 0))
        if action.kept is not None:
            packed = action.kept[rows]
        else:
            assert mask is not None
            self._check_width(mask, action, rows)
            packed = np.packbits(mask[rows].astype(bool), axis=1)[:, None]
        masks = self._masks(packed.shape[-1])
        width = masks.shape[1]
        for column in range(packed.shape[1]):
            at = self.offset[rows] + self.length[rows] + column
            fits = (at < width) & (column < action.counts[rows])  # tokens beyond the buffer are never consumed
            masks[rows[fits], at[fits]] = packed[fits, column]

    def _masks(self, size: int) -> NDArray[np.uint8]:
        """The recorded candidates of each token, `size` bytes per token."""
        if self.action_masks is None:
            self.action_masks = np.full((*self.rewards.shape, size), _ALL_LEGAL, dtype=np.uint8)
        return self.action_masks

    def _check_width(self, mask: NDArray[np.int8], action: Action, rows: NDArray[np.int64]) -> None:
        """Check that a policy returns one token at a time if tokens are limited, since the mask covers only the next token."""
        width = action.tokens.shape[1]
        if width > 1 and not mask[rows].all():
            raise InvalidArgumentError(
                f"the policy returns {width} tokens at once, but the environment's action mask is that of the next token only: "
                "return one token at a time, or set `Action.kept` to the tokens that each was chosen from"
            )

    def record(self, action: Action, info: Mapping[str, Any], playing: NDArray[np.bool_], version: int) -> None:
        """Record the tokens of an action that the environment consumed, in the rows bool[b] that are played."""
        consumed = info["consumed"]
        for column in range(action.tokens.shape[1]):
            rows = np.flatnonzero((consumed > column) & playing)
            at = self.offset[rows] + self.length[rows] + column
            self.tokens[rows, at] = action.tokens[rows, column]
            self.policy_mask[rows, at] = True
            self.logprobs[rows, at] = action.logprobs[rows, column]
            self.rewards[rows, at] += info["rewards"][rows, column]
            self.versions[rows, at] = version

    def correct_rewards(
        self,
        reward: NDArray[np.float64],
        ended: NDArray[np.bool_],
        info: Mapping[str, Any],
        playing: NDArray[np.bool_],
    ) -> None:
        """Add the difference between the reward of `step` and the sum of the tokens' rewards to the last token."""
        paid = info["rewards"].sum(axis=1)
        if (reward == paid).all():
            return
        consumed = info["consumed"]
        differs = ~np.isclose(reward, paid, rtol=_ROUNDING, atol=0, equal_nan=True)
        # NaN stays as it is, so that the trajectory reports it; a row that waits has no token to add the difference to.
        differs &= np.isfinite(paid) & ((consumed > 0) | ended | (paid != 0))
        rows = np.flatnonzero(differs & playing)
        self.rewards[rows, self.offset[rows] + self.length[rows] + consumed[rows] - 1] += (reward - paid)[rows]
        whole = rows[paid[rows] != 0]
        self.reward_scale[whole] = reward[whole] / paid[whole]

    def record_inserted(
        self, observation: Any, info: Mapping[str, Any], playing: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Record the tokens that the environment appended, and return the rows in which they begin a new context."""
        before, self.length = self.length + info["consumed"], observation["length"].reshape(-1).astype(np.int64)
        if "inserted" not in info:
            return np.zeros(0, dtype=np.int64)
        begins = np.flatnonzero(info.get("new_context", np.zeros(len(playing), dtype=bool)) & playing)
        if len(begins):
            self._begin_contexts(begins, before)
        for row in np.flatnonzero(info["inserted"] * playing).tolist():
            start, end = self.length[row] - info["inserted"][row], self.length[row]
            said = observation["tokens"][row, start:end]
            self.tokens[row, self.offset[row] + start : self.offset[row] + end] = said
        return begins

    def _begin_contexts(self, rows: NDArray[np.int64], before: NDArray[np.int64]) -> None:
        """Begin a new context in some rows; `before` i64[b] is the number of tokens in each row's last context."""
        self.offset[rows] += before[rows]
        self._make_room(int(self.offset[rows].max()) + self.width)
        for row in rows.tolist():
            self.contexts[row] += (int(self.offset[row]),)

    def _make_room(self, width: int) -> None:
        """Widen the buffers to episodes of `width` tokens."""
        missing = width - self.tokens.shape[1]
        if missing <= 0:
            return
        for name in ("tokens", "policy_mask", "logprobs", "rewards", "versions", "action_masks", "observations"):
            values = getattr(self, name)
            if values is not None:
                filling = _ALL_LEGAL if name == "action_masks" else 0
                wider = [(0, 0), (0, missing), *[(0, 0)] * (values.ndim - 2)]
                setattr(self, name, np.pad(values, wider, constant_values=filling))

    def record_rewards(self, info: Mapping[str, Any], playing: NDArray[np.bool_]) -> None:
        """Add a reward from a deferred verdict or reply, which arrives without a token, to the policy's last token."""
        rows = np.flatnonzero((info["consumed"] == 0) & (info["rewards"][:, 0] != 0) & playing)
        inserted = info["inserted"][rows] if "inserted" in info else 0
        self.rewards[rows, self.offset[rows] + self.length[rows] - inserted - 1] += info["rewards"][rows, 0]

    def record_observations(self, observation: Any, shown: NDArray[np.bool_]) -> None:
        """Record the vectors of the rows bool[b] that were reset or stepped, after their last token."""
        if self.observations is not None:
            self.observations[shown, self.offset[shown] + self.length[shown] - 1] = observation["observation"][shown]

    def credit(self, row: int, info: Mapping[str, Any]) -> None:
        """Move parts of the last reward to the earlier tokens that they belong to; the return does not change."""
        length = int(self.offset[row] + self.length[row])
        if "token_scores" in info and info["_token_scores"][row]:
            for position, amount in info["token_scores"][row]:
                moved = amount * self.reward_scale[row]  # a wrapper that scales a reward scales its parts
                self.rewards[row, self.offset[row] + position] += moved
                self.rewards[row, length - 1] -= moved
        self.reward_scale[row] = 1.0

    def trajectory(self, row: int, observation: Any, **said: Any) -> Trajectory:
        """The trajectory of a row; keywords set further fields of the episode."""
        length = int(self.offset[row] + self.length[row])
        self.tokens[row, self.offset[row] : length] = observation["tokens"][row, : self.length[row]]
        return Trajectory(
            prompt_length=int(self.prompt_length[row]),
            tokens=self.tokens[row, :length].copy(),
            policy_mask=self.policy_mask[row, :length].copy(),
            logprobs=self.logprobs[row, :length].copy(),
            rewards=self.rewards[row, :length].copy(),
            policy_version=self.versions[row, :length].copy(),
            action_masks=None if self.action_masks is None else self.action_masks[row, :length].copy(),
            observations=None if self.observations is None else self.observations[row, :length].copy(),
            contexts=self.contexts[row],
            **said,
        )
