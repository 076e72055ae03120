"""`Batch`: trajectories as padded tensors."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.deferred import torch
from agents.types import Trajectory, TrajectoryElsewhere
from verifiers import InvalidArgumentError
from verifiers.devices import float64_device

if TYPE_CHECKING:
    from torch import Tensor


_PER_TOKEN: dict[str, Any] = {"per": "token"}
_PER_BATCH: dict[str, Any] = {"per": "batch"}


@dataclass(frozen=True)
class Batch:
    """b trajectories of up to l tokens, right-padded with 0; `lengths` determines which positions are padding.

    Index t of every per-token tensor refers to token t itself, counting the prompt; values are those of the state before
    it. `make_batch` fills the first block of fields; an agent fills the fields of the second block that it needs.
    """

    tokens: Tensor = field(metadata=_PER_TOKEN)
    """i64[b l], the tokens."""
    lengths: Tensor
    """i64[b], the number of tokens of each trajectory."""
    loss_mask: Tensor = field(metadata=_PER_TOKEN)
    """bool[b l], the padded policy mask; False throughout for trajectories whose verifier broke."""
    logprobs: Tensor = field(metadata=_PER_TOKEN)
    """f32[b l], log-probabilities under the policy that sampled."""
    rewards: Tensor = field(metadata=_PER_TOKEN)
    """f64[b l]; 0 throughout for trajectories whose verifier broke."""
    scores: Tensor
    """f64[b], returns; NaN where the verifier broke."""
    valid: Tensor
    """bool[b], False where the verifier broke."""
    groups: Tensor
    """i64[b], the number of each trajectory's group."""
    truncated: Tensor
    """bool[b], True where the token budget ran out."""
    baselines: Tensor | None
    """f64[b], baseline of each score, such as the greedy completion's score; NaN where the baseline is unknown, None if
    there are no baselines."""
    step_values: Tensor | None = field(default=None, metadata=_PER_TOKEN)
    """f64[b l], estimates of the value of the state before each token that begins a step; NaN for all other tokens."""
    legal: Tensor | None = field(default=None, metadata=_PER_TOKEN)
    """u8[b l ceil(v/8)], packed masks of the legal tokens."""
    observations: Tensor | None = field(default=None, metadata=_PER_TOKEN)
    """f32[b l d], the observation after each token, if the environment shows vectors."""
    contexts: Tensor | None = field(default=None, metadata=_PER_TOKEN)
    """i64[b l], number of the context that each token belongs to, from 0. The policy saw no tokens of earlier contexts. None
    if each episode has one context; see `agents.learn.contexts`."""
    components: Tensor | None = None
    """f64[b k], components of a composed score; NaN where the verifier broke."""
    component_names: tuple[str, ...] = field(default=(), metadata=_PER_BATCH)
    component_weights: Tensor | None = field(default=None, metadata=_PER_BATCH)
    """f64[k], weight of each component in the score."""

    here: Tensor | None = None
    """bool[b], False for trajectories whose tokens only another rank has; None if this rank has all tokens."""
    old_logprobs: Tensor | None = field(default=None, metadata=_PER_TOKEN)
    """f32[b l], log-probabilities under the weights before this batch's update, if the sampler had other weights; see `old`."""
    importance: Tensor | None = field(default=None, metadata=_PER_TOKEN)
    """f64[b l], importance weight of each token."""
    reference_logprobs: Tensor | None = field(default=None, metadata=_PER_TOKEN)
    """f32[b l], log-probabilities under the reference policy."""
    values: Tensor | None = field(default=None, metadata=_PER_TOKEN)
    """f64[b l], the critic's values before this batch's update."""
    bootstrap: Tensor | None = None
    """f64[b], value of the state after the last token; 0 where nothing follows the episode's end."""
    value_targets: Tensor | None = field(default=None, metadata=_PER_TOKEN)
    """f64[b l], targets of the critic's values."""

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def old(self) -> Tensor:
        """f32[b l], the log-probabilities before the update, to which probability ratios are relative."""
        return self.logprobs if self.old_logprobs is None else self.old_logprobs

    def rows(self, indices: Tensor) -> Batch:
        """Select some trajectories, cut to the longest of them."""
        width = int(self.lengths[indices].max())
        return self.map(lambda value: value[indices][:, :width], lambda value: value[indices])

    def positions_from(self, first: int) -> Batch:
        """Cut per-token tensors to positions `first` and later."""
        return self.map(lambda value: value[:, first:], lambda value: value)

    def to(self, device: torch.device) -> Batch:
        """Move all tensors to a device; tensors in float64 move to a device that supports float64."""
        wide = float64_device(device)

        def moved(value: Tensor) -> Tensor:
            return value.to(wide if value.dtype is torch.float64 else device)

        return self.map(moved, moved)

    def map(self, per_token: Callable[[Tensor], Tensor], per_row: Callable[[Tensor], Tensor]) -> Batch:
        """Apply one function to the per-token tensors, and another to the per-trajectory tensors."""
        values: dict[str, Any] = {}
        for attribute in dataclasses.fields(self):
            value = getattr(self, attribute.name)
            if isinstance(value, torch.Tensor) and attribute.metadata.get("per") != "batch":
                value = per_token(value) if attribute.metadata.get("per") == "token" else per_row(value)
            values[attribute.name] = value
        return Batch(**values)

    @property
    def first(self) -> int:
        """The first position on the loss mask of any trajectory, at least 1."""
        positions = self.loss_mask.any(dim=0).nonzero()
        return max(1, int(positions[0])) if len(positions) else 1

    def legal_tokens(self, first: int, vocab_size: int) -> Tensor | None:
        """Unpack the legal tokens from position `first` on as bool[b t v]; all tokens are legal outside the loss mask."""
        if self.legal is None:
            return None
        bits = np.unpackbits(self.legal[:, first:].cpu().numpy(), axis=-1, count=vocab_size).astype(bool)
        return torch.from_numpy(bits).to(self.tokens.device) | ~self.loss_mask[:, first:, None]

    @property
    def mask_here(self) -> Tensor:
        """The loss mask bool[b l], False in rows whose tokens only another rank has."""
        return self.loss_mask if self.here is None else self.loss_mask & self.here[:, None]

    def without(self, rows: Tensor) -> Batch:
        """Exclude the trajectories in bool[b] from training and from every mean and sum, as if their verifiers had broken."""
        kept = ~rows
        masked = dataclasses.replace(self, valid=self.valid & kept, loss_mask=self.loss_mask & kept[:, None])
        return masked.with_rewards(torch.where(kept[:, None], self.rewards, 0.0))

    def with_rewards(self, rewards: Tensor) -> Batch:
        """Replace the rewards by new rewards f64[b l], and the scores by the sums of the new rewards."""
        scores = torch.where(self.valid, rewards.sum(dim=1), torch.nan)
        return dataclasses.replace(self, rewards=rewards, scores=scores)


def make_batch(trajectories: Sequence[Trajectory]) -> Batch:
    """Pad trajectories to a batch.

    Raises:
        InvalidArgumentError: If there are no trajectories.
    """
    if not trajectories:
        raise InvalidArgumentError("a batch needs at least one trajectory")
    valid = [not trajectory.errored for trajectory in trajectories]
    masks = [trajectory.policy_mask & kept for trajectory, kept in zip(trajectories, valid, strict=True)]
    rewards = [
        trajectory.rewards if kept else np.zeros_like(trajectory.rewards)
        for trajectory, kept in zip(trajectories, valid, strict=True)
    ]
    return Batch(
        tokens=torch.from_numpy(_pad([trajectory.tokens for trajectory in trajectories]).astype(np.int64)),
        lengths=torch.tensor([len(trajectory.tokens) for trajectory in trajectories]),
        loss_mask=torch.from_numpy(_pad(masks)),
        logprobs=torch.from_numpy(_pad([trajectory.logprobs for trajectory in trajectories])),
        rewards=torch.from_numpy(_pad(rewards)),
        scores=torch.tensor([trajectory.score for trajectory in trajectories], dtype=torch.float64),
        valid=torch.tensor(valid),
        groups=torch.tensor([trajectory.group for trajectory in trajectories]),
        truncated=torch.tensor([trajectory.truncated for trajectory in trajectories]),
        baselines=_baselines(trajectories),
        step_values=_step_values(trajectories),
        legal=_legal_masks(trajectories),
        observations=_observations(trajectories),
        contexts=_contexts(trajectories),
        here=_here(trajectories),
        **_components(trajectories),
    )


def _baselines(trajectories: Sequence[Trajectory]) -> Tensor | None:
    given = [trajectory.baseline for trajectory in trajectories]
    if all(baseline is None for baseline in given):
        return None
    return torch.tensor([math.nan if baseline is None else baseline for baseline in given], dtype=torch.float64)


def _step_values(trajectories: Sequence[Trajectory]) -> Tensor | None:
    """Pad the values of the states before steps, if there are any; trajectories without such values get NaN."""
    if all(trajectory.step_values is None for trajectory in trajectories):
        return None
    given = [
        np.full(len(trajectory.tokens), math.nan) if trajectory.step_values is None else trajectory.step_values
        for trajectory in trajectories
    ]
    return torch.from_numpy(_pad(given))


def _here(trajectories: Sequence[Trajectory]) -> Tensor | None:
    here = torch.tensor([not isinstance(trajectory, TrajectoryElsewhere) for trajectory in trajectories])
    return None if bool(here.all()) else here


def _components(trajectories: Sequence[Trajectory]) -> dict[str, Any]:
    """The components of composed scores, if all valid trajectories have the same components."""
    valid = [trajectory.reward_parts for trajectory in trajectories if not trajectory.errored]
    names = tuple(valid[0]) if valid else ()
    if not names or any(tuple(parts) != names for parts in valid):
        return {}
    missing = dict.fromkeys(names, (math.nan, 0.0))
    parts = [missing if trajectory.errored else trajectory.reward_parts for trajectory in trajectories]
    return {
        "components": torch.tensor([[part[name][0] for name in names] for part in parts], dtype=torch.float64),
        "component_names": names,
        "component_weights": torch.tensor([valid[0][name][1] for name in names], dtype=torch.float64),
    }


def _legal_masks(trajectories: Sequence[Trajectory]) -> Tensor | None:
    """Pad the packed masks, if there are any; for trajectories without masks every token is legal."""
    width = max(
        (trajectory.action_masks.shape[1] for trajectory in trajectories if trajectory.action_masks is not None),
        default=None,
    )
    if width is None:
        return None
    defaults = [np.full((len(trajectory.tokens), width), 255, dtype=np.uint8) for trajectory in trajectories]
    masks = [
        default if trajectory.action_masks is None else trajectory.action_masks
        for trajectory, default in zip(trajectories, defaults, strict=True)
    ]
    return torch.from_numpy(_pad(masks))


def _observations(trajectories: Sequence[Trajectory]) -> Tensor | None:
    shown = [trajectory.observations for trajectory in trajectories if trajectory.observations is not None]
    if len(shown) not in (0, len(trajectories)):
        raise InvalidArgumentError(
            f"{len(shown)} of {len(trajectories)} trajectories have observations: a batch must come from one environment"
        )
    return torch.from_numpy(_pad(shown)) if shown else None


def _contexts(trajectories: Sequence[Trajectory]) -> Tensor | None:
    """Pad the numbers of the tokens' contexts, if any trajectory has more than one context."""
    if not any(trajectory.contexts for trajectory in trajectories):
        return None
    numbers = [
        np.searchsorted(trajectory.contexts, np.arange(len(trajectory.tokens)), side="right").astype(np.int64)
        for trajectory in trajectories
    ]
    return torch.from_numpy(_pad(numbers))


def _pad(arrays: Sequence[np.ndarray]) -> np.ndarray:
    padded = np.zeros((len(arrays), max(map(len, arrays)), *arrays[0].shape[1:]), dtype=arrays[0].dtype)
    for row, array in enumerate(arrays):
        padded[row, : len(array)] = array
    return padded


def require_equal_groups(groups: Iterable[int]) -> None:
    """Check that the completions of a batch fall into groups of equal size, at least 2.

    Args:
        groups: Group of each generated completion, including those whose verifier broke.

    Raises:
        InvalidArgumentError: If a group has one member, or groups differ in size.
    """
    sizes = Counter(groups)
    smallest, largest = min(sizes.values(), default=2), max(sizes.values(), default=2)
    if smallest < 2 or smallest != largest:
        short = min(sizes, key=lambda group: sizes[group])
        raise InvalidArgumentError(
            f"scores are compared in groups of equal size, at least 2, but the {sum(sizes.values())} trajectories fall into "
            f"{len(sizes)} groups of {smallest} to {largest}: group {short} has {sizes[short]}. Give the trajectories of one "
            "problem the same `group`, including those whose verifier broke"
        )
