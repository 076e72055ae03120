"""`ReplayBuffer`: the last transitions of an agent, from which batches are drawn at random.

A transition is a row of a `Batch` whose only token on the loss mask is the action: everything up to the action is the state
before it, and everything up to the row's end is the state in which the policy acts next, including what the environment
inserted in between. If the environment began a new context, this context alone is the next state. If an environment shows
vectors, each of which is the whole state, a row begins with the vector before the action.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from agents.batch import Batch
from agents.types import Trajectory
from verifiers import InvalidArgumentError


class ReplayBuffer:
    """The last `capacity` transitions.

    Args:
        capacity: Number of transitions kept.
        vocab_size: Number of actions.
    """

    def __init__(self, capacity: int, vocab_size: int) -> None:
        self.capacity = capacity
        self.vocab_size = vocab_size
        self.added = 0
        """Number of transitions added so far, including those that were dropped since."""
        self._arrays: dict[str, NDArray[Any]] = {}

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def add(self, trajectories: Sequence[Trajectory], *, bootstraps: bool) -> None:
        """Add every transition of some episodes, in order.

        Args:
            trajectories: The episodes; those whose verifier broke are left out.
            bootstraps: Whether a truncated episode is treated as continuing after its last state.
        """
        for trajectory in trajectories:
            if not trajectory.errored:
                self._add(trajectory, ends=trajectory.terminated or not bootstraps)

    def _add(self, trajectory: Trajectory, *, ends: bool) -> None:
        if any(trajectory.policy_mask[start + 1] for start in trajectory.contexts):
            raise InvalidArgumentError(
                f"the episode of problem {trajectory.problem_id!r} has a context of one token, whose state an agent that "
                "learns from transitions can't read: a new context needs at least two tokens"
            )
        actions = np.flatnonzero(trajectory.policy_mask)
        follows = [*actions[1:], len(trajectory.tokens)]
        for action, end in zip(actions.tolist(), follows, strict=True):
            last = end == len(trajectory.tokens)
            seen = trajectory.context_before(action)
            first = seen if trajectory.observations is None else action - 1
            row: dict[str, Any] = {
                "tokens": trajectory.tokens[first:end],
                "action": action - first,
                "length": end - first,
                "cut": max(trajectory.context_before(end - 1), first) - first,
                "reward": trajectory.rewards[action:end].sum(),
                "ended": last and ends,
            }
            if trajectory.observations is not None:
                row["observations"] = trajectory.observations[first:end]
            if trajectory.action_masks is not None:
                # The actions that are legal after the last action are unknown: take those that were legal before it.
                row["legal"] = trajectory.action_masks[action if last else end]
            self._put(row)

    def _put(self, row: Mapping[str, Any]) -> None:
        at = self.added % self.capacity
        for name, value in row.items():
            array = self._room(name, np.asarray(value))
            if name in ("tokens", "observations"):
                array[at, : len(value)] = value
                array[at, len(value) :] = 0
            else:
                array[at] = value
        self.added += 1

    def _room(self, name: str, value: NDArray[Any]) -> NDArray[Any]:
        """The array of a field, widened if it is narrower than a value."""
        array = self._arrays.get(name)
        if array is None:
            array = np.zeros((self.capacity, *value.shape), dtype=value.dtype)
        elif name in ("tokens", "observations") and array.shape[1] < len(value):
            wider = [(0, 0)] * array.ndim
            wider[1] = (0, len(value) - array.shape[1])
            array = np.pad(array, wider)
        self._arrays[name] = array
        return array

    def sample(self, rows: NDArray[np.int64]) -> tuple[Batch, torch.Tensor]:
        """Some transitions as a batch, and the legal next actions bool[b v].

        `rewards` has the reward of each transition at its action; `truncated` is True if the episode goes on after the
        transition.
        """
        fields = {name: torch.from_numpy(array[rows]) for name, array in self._arrays.items()}
        lengths = fields["length"]
        tokens = fields["tokens"][:, : int(lengths.max())].long()
        mask = torch.arange(tokens.shape[1]) == fields["action"][:, None]
        rewards = torch.where(mask, fields["reward"][:, None], 0.0)
        observations = fields.get("observations")
        cuts = fields["cut"]
        batch = Batch(
            tokens=tokens,
            lengths=lengths,
            loss_mask=mask,
            logprobs=torch.zeros(tokens.shape),
            rewards=rewards,
            scores=fields["reward"],
            valid=torch.ones(len(rows), dtype=torch.bool),
            groups=torch.arange(len(rows)),
            truncated=~fields["ended"],
            baselines=None,
            observations=None if observations is None else observations[:, : tokens.shape[1]],
            contexts=(torch.arange(tokens.shape[1]) >= cuts[:, None]).long() if cuts.any() else None,
        )
        return batch, self._legal(rows)

    def _legal(self, rows: NDArray[np.int64]) -> torch.Tensor:
        packed = self._arrays.get("legal")
        if packed is None:
            return torch.ones(len(rows), self.vocab_size, dtype=torch.bool)
        return torch.from_numpy(np.unpackbits(packed[rows], axis=1, count=self.vocab_size).astype(bool))

    def state_dict(self) -> dict[str, Any]:
        """The transitions that are kept, as tensors."""
        arrays = {name: torch.from_numpy(array[: len(self)].copy()) for name, array in self._arrays.items()}
        return {"added": self.added, "arrays": arrays}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state that `state_dict` returned."""
        self.added = state["added"]
        self._arrays = {}
        for name, values in state["arrays"].items():
            array = np.zeros((self.capacity, *values.shape[1:]), dtype=values.numpy().dtype)
            array[: len(values)] = values.numpy()
            self._arrays[name] = array
