"""`ReferencePolicy`: the policy from which a KL term measures the divergence."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

from agents.deferred import torch
from agents.distributed.parts import load_weights
from agents.policies.trainable import TrainablePolicy
from agents.settings.learning_rate import has_adapter


class ReferencePolicy:
    """A frozen copy of the policy's model, or the model itself with its adapter disabled.

    Args:
        policy: The policy to copy; a model with an adapter (`peft`) is not copied, and its reference is the model without the
            adapter.
    """

    def __init__(self, policy: TrainablePolicy) -> None:
        self._adapted = has_adapter(policy.model)
        model = policy.model if self._adapted else copy.deepcopy(policy.model).requires_grad_(False)
        self.policy = policy.with_model(model)

    def switched_on(self) -> contextlib.AbstractContextManager[Any]:
        """A context in which `policy` is the reference; outside it, a model with an adapter is the learner."""
        if not self._adapted:
            return contextlib.nullcontext()
        context: contextlib.AbstractContextManager[Any] = self.policy.model.disable_adapter()
        return context

    def sync(self, policy: TrainablePolicy, mix: float) -> None:
        """Move towards the learner: reference <- mix * learner + (1 - mix) * reference (TR-DPO, arXiv:2404.09656).

        A reference that is the model without its adapter does not change.
        """
        if self._adapted:
            return
        with torch.no_grad():
            for mine, theirs in zip(self.policy.model.parameters(), policy.model.parameters(), strict=True):
                mine.lerp_(theirs.to(mine.dtype), mix)

    def state_dict(self) -> dict[str, Any] | None:
        """The weights; None if the reference is the learner's model without its adapter."""
        return None if self._adapted else self.policy.model.state_dict()

    def load_state_dict(self, state: dict[str, Any] | None) -> None:
        """Restore a state that `state_dict` returned."""
        if state is not None:
            load_weights(self.policy.model, state)
