"""The default learning rate of AdamW, chosen from the number of the model's parameters.

A power law, `1e-4 (n / 1e6)^(-2/3)` for reinforcement learning, clamped to 1e-6 and 2e-4. It is anchored at:

* About 1e6 parameters: 1e-4, the rate of the demonstration (`rlvr demo`), which 40 steps of GRPO and RLOO improve.
* Below 4e5 parameters at most 2e-4: at 6e-4, the value of the law for 7e4, ReMax fell from 0.57 to 0.54 (greedy 0.82 to 0.66)
  in 13 steps on Sort, while REINFORCE and RLOO rose.
* From 1e9 parameters on: 1e-6, the default of TRL's GRPO and the rate of DAPO (arXiv:2503.14476) at 32e9.

Supervised learning takes ten times as much, 1e-3 and 1e-5: its gradient has far less noise. Adapters take ten times as much as
full fine-tuning, in reinforcement and in supervised learning alike (Schulman et al. 2025, "LoRA Without Regret").
"""

from __future__ import annotations

from typing import Any

from agents.policies.transformers.lora import has_adapter

_MEASURED_PARAMETERS = 1e6
_MEASURED_RATE = 1e-4
_EXPONENT = -2 / 3
_LEAST_RATE, _MOST_RATE = 1e-6, 2e-4
_SUPERVISED = 10
_ADAPTER = 10


def default_learning_rate(parameters: int, *, supervised: bool = False, adapter: bool = False) -> float:
    """The learning rate for a model, rounded to two digits.

    Args:
        parameters: Number of all weights of the model, at least 1.
        supervised: Whether the gradient is that of the likelihood of given completions.
        adapter: Whether only a LoRA adapter learns.
    """
    rate = _MEASURED_RATE * (parameters / _MEASURED_PARAMETERS) ** _EXPONENT
    rate = min(max(rate, _LEAST_RATE), _MOST_RATE)
    return float(f"{rate * (_SUPERVISED if supervised else 1) * (_ADAPTER if adapter else 1):.1e}")


def learning_rate_for(model: Any, *, supervised: bool = False) -> float:
    """`default_learning_rate` of a torch model, with an adapter or without."""
    return default_learning_rate(count_parameters(model), supervised=supervised, adapter=has_adapter(model))


def count_parameters(model: Any) -> int:
    """The number of weights of a torch model, frozen ones included and shared ones once."""
    return sum(parameter.numel() for parameter in model.parameters())


def describe_choice(rate: float, model: Any) -> str:
    """Text for the console with the chosen learning rate and the number of parameters."""
    adapter = " and its adapter" if has_adapter(model) else ""
    return f"learning rate {rate:.1e}, chosen for {count_parameters(model) / 1e6:.3g} M parameters{adapter}"
