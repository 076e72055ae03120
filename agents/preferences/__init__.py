"""Which of two completions is better: pairs, and reward models that are fitted to them.

Names load when they are first used.
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
