"""The learners: policies, rollout, advantages, losses, agents from REINFORCE to GRPO, training and evaluation.

Names are imported when they are first used, so importing this package loads neither torch nor transformers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import rlvr_envs  # noqa: F401 - registers the ids, and checks whose `verifiers` and `agents` these are
from verifiers import missing_dependency

if TYPE_CHECKING:
    from agents.agent import Agent, AgentConfig
    from agents.batch import Batch, make_batch
    from agents.evaluation import Evaluation, evaluate
    from agents.grpo import GRPO, GRPOConfig
    from agents.learner import Learner, LearnerConfig
    from agents.models import load_model, load_policy, save_model, tiny_model
    from agents.policy import CausalLMPolicy
    from agents.reinforce import Reinforce, ReinforceConfig
    from agents.rollouts import Episode, rollout
    from agents.run import Run
    from agents.supervised import SupervisedConfig, train_supervised
    from agents.types import Action, Policy, Trajectory

__distribution__ = "rlvr-envs"

_HOMES = {
    "GRPO": "grpo",
    "Action": "types",
    "Agent": "agent",
    "AgentConfig": "agent",
    "Batch": "batch",
    "CausalLMPolicy": "policy",
    "Episode": "rollouts",
    "Evaluation": "evaluation",
    "GRPOConfig": "grpo",
    "Learner": "learner",
    "LearnerConfig": "learner",
    "Policy": "types",
    "Reinforce": "reinforce",
    "ReinforceConfig": "reinforce",
    "Run": "run",
    "SupervisedConfig": "supervised",
    "Trajectory": "types",
    "evaluate": "evaluation",
    "load_model": "models",
    "load_policy": "models",
    "make_batch": "batch",
    "rollout": "rollouts",
    "save_model": "models",
    "tiny_model": "models",
    "train_supervised": "supervised",
}

__all__ = [
    "GRPO",
    "Action",
    "Agent",
    "AgentConfig",
    "Batch",
    "CausalLMPolicy",
    "Episode",
    "Evaluation",
    "GRPOConfig",
    "Learner",
    "LearnerConfig",
    "Policy",
    "Reinforce",
    "ReinforceConfig",
    "Run",
    "SupervisedConfig",
    "Trajectory",
    "evaluate",
    "load_model",
    "load_policy",
    "make_batch",
    "rollout",
    "save_model",
    "tiny_model",
    "train_supervised",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'agents' has no attribute {name!r}")
    try:
        module = importlib.import_module(f"agents.{_HOMES[name]}")
    except ModuleNotFoundError as error:
        if error.name in ("torch", "transformers", "jaxtyping"):
            raise missing_dependency(error.name, "train", f"agents.{name}") from error
        raise
    return getattr(module, name)


def __dir__() -> list[str]:
    return __all__
