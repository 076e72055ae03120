"""`Models`: the policy that learns, and the models that are kept along with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents import learn
from agents.learn.reference import ReferencePolicy
from agents.policies.trainable import Shardable, TrainablePolicy

if TYPE_CHECKING:
    import torch

    from agents.distributed.ranks import Sharding
    from agents.distributed.sharding import ShardedModule
    from agents.learn.critic import Critic
    from agents.settings.agent import AgentConfig


@dataclass(frozen=True)
class Models:
    """A policy, with the critic and the reference that its agent's settings ask for."""

    policy: TrainablePolicy
    critic: Critic | None
    reference: ReferencePolicy | None

    @classmethod
    def beside(cls, policy: TrainablePolicy, config: AgentConfig) -> Models:
        """Make the critic and the reference of a policy, both from the policy's weights.

        Raises:
            InvalidArgumentError: If the policy can't have the critic that the config names.
        """
        return cls(
            policy,
            None if config.critic is None else learn.make_critic(policy, config.critic),
            ReferencePolicy(policy) if config.needs_reference else None,
        )

    def shard(self, sharding: Sharding) -> None:
        """Divide all weights among the ranks; call this after the models are copied, and before an optimiser is made."""
        assert isinstance(self.policy, Shardable), "check_sharding refuses other policies"
        self.policy.shard(sharding)
        if self.critic is not None:
            self.critic.shard(sharding)
        if self.reference is not None and self.reference.policy.model is not self.policy.model:
            assert isinstance(self.reference.policy, Shardable), "a copy of the policy"
            self.reference.policy.shard(sharding)

    @property
    def sharded(self) -> ShardedModule | None:
        """The policy's model with its weights divided among the ranks; None if each rank has all weights."""
        return self.policy.sharded if isinstance(self.policy, Shardable) else None

    @property
    def saved_dtype(self) -> torch.dtype | None:
        """Type of the weights in the model folders of checkpoints; None for the model's own type."""
        return self.policy.saved_dtype if isinstance(self.policy, Shardable) else None

    def components(self) -> dict[str, list[str] | None]:
        """Names of the weights of critic and reference; None for a model that is not kept."""
        return {
            "critic": None if self.critic is None else list(self.critic.state_dict()),
            "reference": None if self.reference is None else list(self.reference.state_dict() or ()),
        }

    def whole_model(self, *, everywhere: bool = False) -> Any:
        """The policy's model with all weights; if they are divided, a copy on rank 0, or on all ranks with `everywhere`."""
        return self.policy.model if self.sharded is None else self.sharded.whole_module(everywhere=everywhere)
