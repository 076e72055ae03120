"""Every agent of this package before the court, with every aggregation and option of credit, correction and divergence.

DPO and DQN estimate no policy gradient. NPG and TRPO are tried before their gradient is preconditioned, DAPO without sampling
further groups.
"""

from __future__ import annotations

from typing import Any

from agents.experiments.court import Estimator, of_agent

_SUM = {"aggregation": "sequence-mean-token-sum"}
_ROWS: list[tuple[str, dict[str, Any]]] = [
    ("reinforce", {}),
    ("reinforce", {"baseline": "none"}),
    ("reinforce", {"baseline": "none", "credit": "whole"}),
    ("reinforce", {"baseline": "constant", "constant": 0.5}),
    ("reinforce", {"baseline": "moving-average"}),
    ("reinforce", {"baseline": "value"}),
    ("rloo", {}),
    ("rloo", {"credit": "turn"}),
    ("rloo", {"importance_correction": "sequence-truncate", "importance_cap": 100.0}),
    ("rloo", {"importance_correction": "token-truncate"}),
    ("remax", {}),
    ("actor-critic", {**_SUM}),
    ("a2c", {}),
    ("a2c", {**_SUM, "gae_lambda": 1.0}),
    ("npg", {}),
    ("trpo", {}),
    ("ppo", {}),
    ("ppo", {**_SUM, "gae_lambda": 1.0, "whiten": False}),
    ("vineppo", {}),
    ("vineppo", {**_SUM, "whiten": False}),
    ("grpo", {}),
    ("grpo", {"credit": "turn"}),
    ("grpo", {"scale": "batch-std"}),
    ("grpo", {"scale": "none"}),
    ("grpo", {"scale": "none", "credit": "turn", **_SUM}),
    ("grpo", {"scale": "none", **_SUM, "kl_estimator": "k2"}),
    ("grpo", {"scale": "none", "aggregation": "sequence-mean-token-mean", "kl_estimator": "k3-ratio"}),
    (
        "grpo",
        {
            "scale": "none",
            "aggregation": "sequence-mean-token-sum-norm",
            "kl_placement": "reward",
            "kl_estimator": "k1",
        },
    ),
    ("dr-grpo", {}),
    ("dapo", {}),
    ("reinforce++", {}),
    ("reinforce++", {"group_baseline": True, "group_size": 2}),
    ("opo", {}),
    ("gspo", {}),
    ("cispo", {}),
    ("gdpo", {}),
    ("maxrl", {"objective": "log-likelihood", "binary": True, **_SUM}),
    ("pass-at-k", {"objective": "best of 2", "first_group_size": 3, "k": 2}),
    ("rft", {}),
]


def _title(agent: str, settings: dict[str, Any]) -> str:
    chosen = {key: value for key, value in settings.items() if key not in ("objective", "binary", "first_group_size")}
    return ", ".join([f"`{agent}`", *(f"{key}={value}" for key, value in chosen.items())])


ESTIMATORS: list[Estimator] = [of_agent(agent, _title(agent, settings), **settings) for agent, settings in _ROWS]
