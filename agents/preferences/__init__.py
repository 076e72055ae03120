"""Preferences between completions: pairs, and reward models that are fitted to pairs.

The objects that this package exports are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verifiers import lazy_face

if TYPE_CHECKING:
    from agents.preferences.reward_model import (
        evaluate_reward_model as evaluate_reward_model,
        new_reward_model as new_reward_model,
        num_steps as num_steps,
        train_reward_model as train_reward_model,
    )

__getattr__, __dir__, __all__ = lazy_face(__name__)
