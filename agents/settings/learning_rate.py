"""The default learning rate of AdamW, chosen from the number of the model's parameters.

For reinforcement learning, the rate is interpolated by power laws between these points, and is constant below and above:

* 3.5e5 parameters: 2e-4. With a rate of 6e-4 and a model of 7e4 parameters on Sort, the score of ReMax fell in 13 steps from
  0.57 to 0.54 (greedy 0.82 to 0.66), while REINFORCE and RLOO rose.
* 1.08e6 parameters: 9.5e-5, about the rate in the demonstration (`rlvr demo`), whose model 40 steps of GRPO and RLOO improve.
* 1.35e8 parameters: 1.5e-5, measured with SmolLM2-135M-Instruct (docs/real-model.md).
* 1e9 parameters: 1e-6, the default of TRL's GRPO and the rate of DAPO (arXiv:2503.14476) at 32e9; not measured here.

Supervised learning uses ten times these rates (such as 1e-3 for a million parameters and 1e-5 for a billion), since its
gradient has far less noise. In reinforcement learning and in supervised learning, adapters use ten times the rate of full
fine-tuning (Schulman et al. 2025, "LoRA Without Regret").
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_PARAMETERS = (3.5e5, 1.08e6, 1.345e8, 1e9)
_RATES = (2e-4, 9.5e-5, 1.5e-5, 1e-6)
_SUPERVISED = 10
_ADAPTER = 10


def default_learning_rate(parameters: int, *, supervised: bool = False, adapter: bool = False) -> float:
    """The learning rate for a model, rounded to two digits.

    Args:
        parameters: Number of all weights of the model, at least 1.
        supervised: Whether the model is trained on the likelihood of given completions.
        adapter: Whether only a LoRA adapter learns.
    """
    rate = math.exp(np.interp(math.log(parameters), np.log(_PARAMETERS), np.log(_RATES)))
    return float(f"{rate * (_SUPERVISED if supervised else 1) * (_ADAPTER if adapter else 1):.1e}")


def learning_rate_for(model: Any, *, supervised: bool = False) -> float:
    """The `default_learning_rate` for a torch model, with or without an adapter."""
    return default_learning_rate(count_parameters(model), supervised=supervised, adapter=has_adapter(model))


def count_parameters(model: Any) -> int:
    """The number of weights of a torch model; frozen weights are included, and shared weights count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def describe_choice(rate: float, model: Any) -> str:
    """Text for the console with the chosen learning rate and the number of parameters."""
    adapter = " and its adapter" if has_adapter(model) else ""
    return f"learning rate {rate:.1e}, chosen for {count_parameters(model) / 1e6:.3g} M parameters{adapter}"


def has_adapter(model: Any) -> bool:
    """Whether a model has an adapter."""
    return hasattr(model, "disable_adapter")
