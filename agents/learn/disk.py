"""The size of a run's checkpoints on disk, before they are written."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from agents.policies.transformers.lora import base_of, has_adapter
from agents.policies.transformers.policy import CausalLMPolicy
from agents.runs.files.sizes import in_words

if TYPE_CHECKING:
    from agents.learn.agent import Agent
    from agents.learn.learner import Learner

_MOMENTS = 2
"""Number of values that AdamW keeps for each trained weight."""


@dataclass(frozen=True)
class CheckpointSize:
    """The bytes of a checkpoint's tensors, which make up nearly the whole checkpoint."""

    model: int
    """Bytes of the tensors in `model/`."""
    optimizer: int
    """Bytes of the optimiser's tensors in the state."""
    other: int
    """Bytes of the rest of the state: the bits of the weights that `model/` drops, a critic, and the copy of a reference
    policy."""
    dtype: str
    """The type of the weights in `model/`."""

    @property
    def total(self) -> int:
        """Bytes of the whole checkpoint."""
        return self.model + self.optimizer + self.other

    def __str__(self) -> str:
        rest = f", {in_words(self.other)} the rest" if self.other else ""
        return (
            f"{in_words(self.total)} ({in_words(self.model)} the model in {self.dtype}, {in_words(self.optimizer)} the "
            f"optimiser's {_MOMENTS} numbers for each trained weight{rest})"
        )


def checkpoint_size(policy: CausalLMPolicy, learner: Learner) -> CheckpointSize:
    """The size of a checkpoint of a policy and its learner."""
    weights = dict(policy.model.named_parameters())
    adapter = [weight for name, weight in weights.items() if has_adapter(policy.model) and "lora_" in name]
    trained = itertools.chain.from_iterable(group["params"] for group in learner.optimizer.param_groups)
    optimizer = _MOMENTS * _size(trained)
    critic = 0 if learner.critic is None else _size(learner.critic.state_dict().values())
    if base_of(policy.model) is not None:
        return CheckpointSize(_size(adapter), optimizer, critic, _name(adapter[0].dtype))
    own = [weight for weight in weights.values() if not any(weight is one for one in adapter)]
    dtype = policy.saved_dtype or own[0].dtype
    saved = sum(weight.numel() for weight in own) * dtype.itemsize
    dropped = 0 if adapter else max(0, _size(own) - saved)
    return CheckpointSize(saved, optimizer, critic + dropped + _size(adapter), _name(dtype))


def agent_size(agent: Agent) -> CheckpointSize | None:
    """The size of an agent's checkpoint; None if its policy is not a language model."""
    if not isinstance(agent.policy, CausalLMPolicy):
        return None
    size = checkpoint_size(agent.policy, agent.learner)
    if agent.models.reference is None or agent.models.reference.state_dict() is None:
        return size
    return replace(size, other=size.other + _size(agent.models.reference.policy.model.parameters()))


def _size(tensors: Iterable[Any]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
