"""`ReferencePolicy`: the policy that a KL term holds the learner to."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import torch

from agents.policies.trainable import TrainablePolicy
from agents.policies.transformers.lora import has_adapter


class ReferencePolicy:
    """The policy as it was: a frozen copy of its model, or the model itself with its adapter switched off.

    Args:
        policy: Copied as it is now; a model with an adapter (`peft`) is not copied, and its reference is what it was
            before the adapter.
    """

    def __init__(self, policy: TrainablePolicy) -> None:
        self._adapted = has_adapter(policy.model)
        model = policy.model if self._adapted else copy.deepcopy(policy.model).requires_grad_(False)
        self.policy = policy.with_model(model)

    def switched_on(self) -> contextlib.AbstractContextManager[Any]:
        """Inside, `policy` is the reference; outside, a model with an adapter is the learner again."""
        if not self._adapted:
            return contextlib.nullcontext()
        context: contextlib.AbstractContextManager[Any] = self.policy.model.disable_adapter()
        return context

    @torch.no_grad()
    def sync(self, policy: TrainablePolicy, mix: float) -> None:
        """Move towards the learner: reference <- mix * learner + (1 - mix) * reference (TR-DPO, arXiv:2404.09656).

        A reference that is the model without its adapter stays where it is.
        """
        if self._adapted:
            return
        for mine, theirs in zip(self.policy.model.parameters(), policy.model.parameters(), strict=True):
            mine.lerp_(theirs.to(mine.dtype), mix)

    def state_dict(self) -> dict[str, Any] | None:
        """The weights, None where they are the learner's own without its adapter."""
        return None if self._adapted else self.policy.model.state_dict()

    def load_state_dict(self, state: dict[str, Any] | None) -> None:
        """Go on from a state of `state_dict`."""
        if state is not None:
            self.policy.model.load_state_dict(state)
