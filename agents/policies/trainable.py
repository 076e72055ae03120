"""`TrainablePolicy`: the interface of a policy that agents can train.

`CausalLMPolicy` (a `transformers` model) and `TorchPolicy` (any causal torch module) implement it. `check_policy` checks
whether another class does.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from agents.batch import Batch
from agents.deferred import torch
from agents.types import Sampler
from verifiers import InvalidArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from agents.distributed.ranks import Sharding
    from agents.distributed.sharding import ShardedModule


_LOWEST_TEMPERATURE = 1e-6
"""Smallest positive temperature; dividing logits by less may overflow."""


@dataclass(frozen=True)
class TokenOutputs:
    """Outputs of a policy's forward pass at t tokens in each of b rows."""

    logprobs: Float[Tensor, "b t"]
    """f32, log-probabilities of the tokens."""
    entropy: Float[Tensor, "b t"]
    """f32, entropies of the tokens' distributions, in nats."""
    states: Float[Tensor, "b t+1 d"] | None = None
    """Inputs of the output layer: the states before each token and after the last token."""
    shared: bool = False
    """Whether common prefixes of rows were computed once; all outputs are then 0 before a row's first token on the loss mask,
    and in rows without such tokens."""


class TrainablePolicy(Sampler, Protocol):
    """A policy on a torch model that computes log-probabilities with gradients.

    The distribution of a token depends only on the tokens before it: not on later tokens, padding, or other rows. It is the
    same in `act` and in `read`, up to rounding.
    """

    model: Any
    """The `torch.nn.Module` that holds all weights; it is saved in checkpoints, and copied as the reference of a KL term."""
    temperature: float
    """Temperature that divides the logits in `act` and `read`; training needs a temperature above 0."""
    vocab_size: int
    """Number of tokens v."""
    version: int
    """Number of weight updates so far; set when a checkpoint is loaded."""
    fast: bool
    """Whether the optimiser may use fused kernels, which torch does not count as changes of the weights."""

    @property
    def device(self) -> torch.device:
        """The device of the weights, to which batches are moved."""

    @property
    def state_size(self) -> int:
        """The size d of the states in `read(..., with_states=True)`, the input of a critic's head."""

    @property
    def is_half(self) -> bool:
        """Whether the policy computes in half precision, so that log-probabilities are recomputed before an update."""

    def parameters(self) -> Sequence[torch.nn.Parameter]:
        """The trainable weights."""

    def read(self, micro_batch: Batch, *, with_states: bool = False) -> TokenOutputs:
        """Log-probabilities and entropies f32[b t] of the tokens from `micro_batch.first` on, with gradients.

        Only tokens on the loss mask count. At their positions, tokens that are not in
        `micro_batch.legal_tokens(micro_batch.first, vocab_size)` have probability 0.
        """

    def read_states(self, micro_batch: Batch) -> Float[Tensor, "b t+1 d"]:
        """The inputs of the output layer before each token of `read`, and after each row's last token, with gradients."""

    def distributions(
        self, tokens: Int[Tensor, "b l"], first: int, legal: Tensor | None = None
    ) -> Float[Tensor, "b t v"]:
        """Log-probabilities of every token at positions `first` to l - 1; needed only by NPG and TRPO."""

    def with_model(self, model: Any) -> TrainablePolicy:
        """Return a policy with the same settings on another model, such as a frozen copy of this policy's model."""

    def weights_changed(self) -> None:
        """Increment `version`, and drop caches computed with the old weights; called after each update."""

    def release_cache(self) -> None:
        """Free the memory of caches; called before training."""


@runtime_checkable
class Shardable(Protocol):
    """A policy on a published model, whose weights can be divided among ranks and are saved in their original type."""

    @property
    def sharded(self) -> ShardedModule | None:
        """The model with its weights divided among the ranks; None if each rank has all weights."""

    @property
    def saved_dtype(self) -> torch.dtype | None:
        """Type of the weights in the model folders of checkpoints; None for the model's own type."""

    def shard(self, sharding: Sharding) -> None:
        """Divide the weights among the ranks."""


def check_members(policy: object) -> None:
    """Check that an object has every member of `TrainablePolicy`."""
    members = dict(inspect.getmembers(TrainablePolicy, lambda member: callable(member) or isinstance(member, property)))
    named = [name for name in members if not name.startswith("_")]
    missing = [name for name in sorted({*named, *TrainablePolicy.__annotations__}) if not hasattr(policy, name)]
    if missing:
        raise InvalidArgumentError(
            "agents can't train this policy. Expected: every member of agents.TrainablePolicy; got a "
            f"{type(policy).__name__} without {', '.join(missing)}. For a torch module that maps tokens to logits, "
            "agents.TorchPolicy(body, head) has all of them"
        )


def require_temperature(temperature: float) -> None:
    """Check that a temperature is 0, which chooses the likeliest token, or large enough to divide logits."""
    if temperature != 0 and not _LOWEST_TEMPERATURE <= temperature < math.inf:
        raise InvalidArgumentError(
            f"temperature must be 0, for the likeliest token, or at least {_LOWEST_TEMPERATURE:g} and finite, got {temperature}"
        )
