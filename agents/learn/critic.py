"""Critics: estimates of the value of a state, the expected return of the policy from that state on.

The state is everything before a token: V_t is the value of the prefix of token t. One more value, of the state after the last
token, continues the return of a truncated episode.
"""

from __future__ import annotations

import abc
import copy
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from agents.batch import Batch
from agents.policies.torch_policy import TorchPolicy
from agents.policies.trainable import TrainablePolicy
from agents.policies.transformers.lora import merged
from agents.policies.transformers.memory import checkpointed, layers_of
from agents.policies.transformers.policy import CausalLMPolicy
from agents.settings.learner import CriticConfig
from verifiers import InvalidArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float

    from agents.distributed.ranks import Sharding
    from agents.distributed.sharding import ShardedModule


class Critic(torch.nn.Module, abc.ABC):
    """Base class of critics. The value layer starts at 0, so that first values are 0 and first advantages are returns."""

    reads_policy: bool
    """Whether the critic needs the policy's states."""

    def __init__(self, hidden_size: int, device: torch.device) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(hidden_size, 1, device=device, dtype=torch.float32)
        torch.nn.init.zeros_(self.layer.weight)
        torch.nn.init.zeros_(self.layer.bias)

    @abc.abstractmethod
    def values(self, micro_batch: Batch, states: Float[Tensor, "b t+1 d"] | None) -> Float[Tensor, "b t+1"]:
        """The values f32 of the state before each token from position `micro_batch.first` on, and after the last token.

        Args:
            micro_batch: Episodes; values of padding are meaningless.
            states: The policy's states, if `reads_policy`.
        """

    def shard(self, sharding: Sharding) -> None:
        """Divide the weights among the ranks, which all call this; by default nothing is divided, since a head is small."""

    def _read(self, states: Tensor) -> Tensor:
        values: Tensor = self.layer(states.float()).squeeze(-1)
        return values


class ValueHead(Critic):
    """A linear layer on the policy's own states."""

    reads_policy = True

    def values(self, micro_batch: Batch, states: Tensor | None) -> Tensor:
        """See `Critic.values`."""
        if states is None:
            raise InvalidArgumentError("a value head needs the policy's states: call the policy with with_states=True")
        return self._read(states)


class ValueModel(Critic):
    """A separate model, initialised with a copy of the policy's model without its output layer."""

    reads_policy = False

    def __init__(self, policy: CausalLMPolicy) -> None:
        super().__init__(policy.state_size, policy.device)
        self.body = copy.deepcopy(merged(policy.model).base_model).requires_grad_(True)
        # The body uses the policy's precision and its choice of activation checkpointing.
        self._half, self._precision = policy.precision == "bfloat16", policy.autocast
        self._recomputes = policy.recomputes
        self._sharded: ShardedModule | None = None

    def shard(self, sharding: Sharding) -> None:
        """See `Critic.shard`."""
        from agents.distributed.sharding import Division, ShardedModule

        division = Division(layers_of(self.body), self.layer.weight.device, half=self._half, precise=[self.layer])
        self._sharded = ShardedModule(self, division, sharding)

    def values(self, micro_batch: Batch, states: Tensor | None) -> Tensor:
        """See `Critic.values`."""
        if self._sharded is None:
            return self._values(micro_batch)
        return self._sharded.run(lambda: self._values(micro_batch))

    def _values(self, micro_batch: Batch) -> Tensor:
        again = torch.is_grad_enabled() and self._recomputes(micro_batch.tokens)
        with self._precision(), checkpointed(self.body, again):
            states = self.body(input_ids=micro_batch.tokens, use_cache=False).last_hidden_state
        return self._read(states[:, micro_batch.first - 1 :])


class ValueBody(Critic):
    """A copy of the body of a `TorchPolicy`, such as an `MLPPolicy`, with a value layer of its own."""

    reads_policy = False

    def __init__(self, policy: TorchPolicy) -> None:
        super().__init__(policy.state_size, policy.device)
        self.body = copy.deepcopy(policy.model["body"])
        self._inputs = policy.inputs

    def values(self, micro_batch: Batch, states: Tensor | None) -> Tensor:
        """See `Critic.values`."""
        return self._read(self.body(self._inputs(micro_batch))[:, micro_batch.first - 1 :])


def make_critic(policy: TrainablePolicy, config: CriticConfig) -> Critic:
    """Build the kind of critic that a config names.

    Raises:
        InvalidArgumentError: If `"separate"` is set for a policy that is neither a `CausalLMPolicy` nor a `TorchPolicy`.
    """
    if config.critic == "head":
        return ValueHead(policy.state_size, policy.device)
    if isinstance(policy, CausalLMPolicy):
        return ValueModel(policy)
    if isinstance(policy, TorchPolicy):
        return ValueBody(policy)
    raise InvalidArgumentError(
        "critic='separate' needs a CausalLMPolicy or a TorchPolicy, whose model it copies, but the policy is a "
        f"{type(policy).__name__}: set critic='head'"
    )
