"""`TrainablePolicy`: all that agents need of a policy whose weights they train.

`CausalLMPolicy` (a `transformers` model) and `TorchPolicy` (any causal torch module) have it. `check_policy` says whether
another class does, and where it does not.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from agents.batch import Batch
from agents.types import Sampler
from verifiers import InvalidArgumentError

_LOWEST_TEMPERATURE = 1e-6
"""Below it logits may overflow when they are divided by it."""


@dataclass(frozen=True)
class TokenOutputs:
    """What a policy's forward pass says of t tokens in each of b rows."""

    logprobs: Float[Tensor, "b t"]
    """f32, of the tokens that are there."""
    entropy: Float[Tensor, "b t"]
    """f32, of the distributions they came from, in nats."""
    states: Float[Tensor, "b t+1 d"] | None = None
    """What the output layer reads: the state before each token, and the one after the last."""
    shared: bool = False
    """Whether rows that begin alike were read together; nothing is then said of tokens before a row's first on the loss mask,
    nor of rows that have none: log-probabilities, entropy and states are 0."""


class TrainablePolicy(Sampler, Protocol):
    """A policy on a torch model, of which agents read log-probabilities with gradients.

    What it says of a token depends on the tokens before it alone: not on those after, on padding, or on other rows. What it
    says when it acts and when it is read is the same distribution, up to rounding.
    """

    model: Any
    """The `torch.nn.Module` that holds all weights: saved in checkpoints, and copied as the reference of a KL term."""
    temperature: float
    """Divides the logits when acting and when reading alike; agents train at one above 0."""
    vocab_size: int
    """The number of tokens v."""
    version: int
    """Counts the updates of the weights; set when a checkpoint is loaded."""
    fast: bool
    """Whether the optimiser may use fused kernels, which torch does not count as changes of the weights."""

    @property
    def device(self) -> torch.device:
        """Where the weights are, and where batches are moved before they are read."""
        ...

    @property
    def state_size(self) -> int:
        """The size d of the states in `read(..., with_states=True)`, which a critic's head is put on."""
        ...

    @property
    def is_half(self) -> bool:
        """Whether it computes in half precision, so that log-probabilities are read again before an update."""
        ...

    def parameters(self) -> Sequence[torch.nn.Parameter]:
        """The weights that learn."""
        ...

    def read(self, micro_batch: Batch, *, with_states: bool = False) -> TokenOutputs:
        """Log-probabilities and entropies f32[b t] of a batch's tokens from `part.first` on, with gradients.

        Only tokens on the loss mask count. Tokens that the batch says were not legal have probability 0 there
        (`part.legal_tokens(part.first, vocab_size)`).
        """
        ...

    def read_states(self, micro_batch: Batch) -> Float[Tensor, "b t+1 d"]:
        """What the output layer reads before each of those tokens, and after the last of each row; with gradients."""
        ...

    def distributions(
        self, tokens: Int[Tensor, "b l"], first: int, legal: Tensor | None = None
    ) -> Float[Tensor, "b t v"]:
        """Log-probabilities of every token at positions `first` to l - 1; NPG and TRPO alone need it."""
        ...

    def with_model(self, model: Any) -> TrainablePolicy:
        """Give a policy with the same settings on another model, such as a frozen copy of this one's."""
        ...

    def weights_changed(self) -> None:
        """Called after each update: count a version, and drop what was kept of the old weights."""
        ...

    def release_cache(self) -> None:
        """Called before learning: let go of what takes memory."""
        ...


def check_members(policy: object) -> None:
    """Look whether an object has every member of `TrainablePolicy`.

    Raises:
        InvalidArgumentError: If it lacks some; the message names them.
    """
    members = dict(inspect.getmembers(TrainablePolicy, lambda member: callable(member) or isinstance(member, property)))
    named = [name for name in members if not name.startswith("_")]
    missing = [name for name in sorted({*named, *TrainablePolicy.__annotations__}) if not hasattr(policy, name)]
    if missing:
        raise InvalidArgumentError(
            "agents can't train this policy. Expected: every member of agents.TrainablePolicy; got a "
            f"{type(policy).__name__} without {', '.join(missing)}. For a torch module that makes logits of tokens, "
            "agents.TorchPolicy(body, head) has them all"
        )


def require_temperature(temperature: float) -> None:
    """Check that logits can be divided by a temperature, or that it is 0, the likeliest token.

    Raises:
        InvalidArgumentError: If they can't.
    """
    if temperature != 0 and not _LOWEST_TEMPERATURE <= temperature < math.inf:
        raise InvalidArgumentError(
            f"a temperature is 0, for the likeliest token, or at least {_LOWEST_TEMPERATURE:g} and finite, got {temperature}"
        )
