"""Policies that sample somewhere else than in the model that learns.

Names load when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verifiers import lazy_face

if TYPE_CHECKING:
    from agents.policies.torch_policy import TorchPolicy as TorchPolicy
    from agents.policies.transformers.policy import CausalLMPolicy as CausalLMPolicy

__getattr__, __all__ = lazy_face(__name__)
