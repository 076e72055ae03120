"""The learners: policies, rollout, advantages, losses, agents from REINFORCE to GRPO, training and evaluation.

Names are imported when they are first used, so importing this package loads neither torch nor transformers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import rlvr_envs  # noqa: F401 - registers the ids, and checks whose `verifiers` and `agents` these are
import verifiers
from verifiers import missing_dependency

if TYPE_CHECKING:
    from agents.a2c import A2C, A2CConfig
    from agents.actor_critic import ActorCritic, ActorCriticConfig
    from agents.agent import Agent
    from agents.batch import Batch, make_batch
    from agents.cispo import CISPO, CISPOConfig
    from agents.config import AgentConfig
    from agents.critic import Critic, CriticConfig
    from agents.dapo import DAPO, DAPOConfig
    from agents.dr_grpo import DrGRPO, DrGRPOConfig
    from agents.evaluation import Evaluation, evaluate
    from agents.evaluation_record import EvaluationRecord
    from agents.gdpo import GDPO, GDPOConfig
    from agents.grpo import GRPO, GRPOConfig
    from agents.gspo import GSPO, GSPOConfig
    from agents.importance import Correction
    from agents.kl import KLEstimator
    from agents.learner import Learner, LearnerConfig
    from agents.lora import add_lora
    from agents.losses import Aggregation
    from agents.maxrl import MaxRL, MaxRLConfig
    from agents.models import load_model, load_policy, save_model, tiny_model
    from agents.npg import NPG, NPGConfig
    from agents.opo import OPO, OPOConfig
    from agents.pass_at_k import PassAtK, PassAtKConfig
    from agents.policies.check import check_policy
    from agents.policies.torch_policy import TorchPolicy
    from agents.policies.trainable import TrainablePolicy
    from agents.policies.vllm import VLLMConfig, VLLMPolicy
    from agents.policy import CausalLMPolicy, TokenOutputs
    from agents.ppo import PPO, PPOConfig
    from agents.reference import ReferencePolicy
    from agents.registry import AGENTS, agent_classes
    from agents.reinforce import Reinforce, ReinforceConfig
    from agents.reinforce_plus_plus import ReinforcePlusPlus, ReinforcePlusPlusConfig
    from agents.remax import ReMax, ReMaxConfig
    from agents.rloo import RLOO, RLOOConfig
    from agents.rollouts import Episode, rollout
    from agents.run import Run
    from agents.schedules import Schedule
    from agents.supervised import SupervisedConfig, train_supervised
    from agents.trpo import TRPO, TRPOConfig
    from agents.truncation import Truncation
    from agents.types import Action, Policy, Sampler, Trajectory

__distribution__ = "rlvr-envs"
__version__ = verifiers.__version__

_HOMES = {
    "A2C": "a2c",
    "A2CConfig": "a2c",
    "Action": "types",
    "ActorCritic": "actor_critic",
    "ActorCriticConfig": "actor_critic",
    "Agent": "agent",
    "AgentConfig": "config",
    "Aggregation": "losses",
    "Batch": "batch",
    "CISPO": "cispo",
    "CISPOConfig": "cispo",
    "CausalLMPolicy": "policy",
    "Correction": "importance",
    "Critic": "critic",
    "CriticConfig": "critic",
    "DAPO": "dapo",
    "DAPOConfig": "dapo",
    "DrGRPO": "dr_grpo",
    "DrGRPOConfig": "dr_grpo",
    "Episode": "rollouts",
    "Evaluation": "evaluation",
    "EvaluationRecord": "evaluation_record",
    "GDPO": "gdpo",
    "GDPOConfig": "gdpo",
    "GRPO": "grpo",
    "GRPOConfig": "grpo",
    "GSPO": "gspo",
    "GSPOConfig": "gspo",
    "KLEstimator": "kl",
    "Learner": "learner",
    "LearnerConfig": "learner",
    "MaxRL": "maxrl",
    "MaxRLConfig": "maxrl",
    "NPG": "npg",
    "NPGConfig": "npg",
    "OPO": "opo",
    "OPOConfig": "opo",
    "PPO": "ppo",
    "PPOConfig": "ppo",
    "PassAtK": "pass_at_k",
    "PassAtKConfig": "pass_at_k",
    "Policy": "types",
    "RLOO": "rloo",
    "RLOOConfig": "rloo",
    "ReMax": "remax",
    "ReMaxConfig": "remax",
    "ReferencePolicy": "reference",
    "Reinforce": "reinforce",
    "ReinforceConfig": "reinforce",
    "ReinforcePlusPlus": "reinforce_plus_plus",
    "ReinforcePlusPlusConfig": "reinforce_plus_plus",
    "Run": "run",
    "Sampler": "types",
    "Schedule": "schedules",
    "SupervisedConfig": "supervised",
    "TRPO": "trpo",
    "TRPOConfig": "trpo",
    "TokenOutputs": "policy",
    "TorchPolicy": "policies.torch_policy",
    "TrainablePolicy": "policies.trainable",
    "Trajectory": "types",
    "Truncation": "truncation",
    "VLLMConfig": "policies.vllm",
    "VLLMPolicy": "policies.vllm",
    "AGENTS": "registry",
    "add_lora": "lora",
    "agent_classes": "registry",
    "check_policy": "policies.check",
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
    "A2C",
    "AGENTS",
    "CISPO",
    "DAPO",
    "GDPO",
    "GRPO",
    "GSPO",
    "NPG",
    "OPO",
    "PPO",
    "RLOO",
    "TRPO",
    "A2CConfig",
    "Action",
    "ActorCritic",
    "ActorCriticConfig",
    "Agent",
    "AgentConfig",
    "Aggregation",
    "Batch",
    "CISPOConfig",
    "CausalLMPolicy",
    "Correction",
    "Critic",
    "CriticConfig",
    "DAPOConfig",
    "DrGRPO",
    "DrGRPOConfig",
    "Episode",
    "Evaluation",
    "EvaluationRecord",
    "GDPOConfig",
    "GRPOConfig",
    "GSPOConfig",
    "KLEstimator",
    "Learner",
    "LearnerConfig",
    "MaxRL",
    "MaxRLConfig",
    "NPGConfig",
    "OPOConfig",
    "PPOConfig",
    "PassAtK",
    "PassAtKConfig",
    "Policy",
    "RLOOConfig",
    "ReMax",
    "ReMaxConfig",
    "ReferencePolicy",
    "Reinforce",
    "ReinforceConfig",
    "ReinforcePlusPlus",
    "ReinforcePlusPlusConfig",
    "Run",
    "Sampler",
    "Schedule",
    "SupervisedConfig",
    "TRPOConfig",
    "TokenOutputs",
    "TorchPolicy",
    "TrainablePolicy",
    "Trajectory",
    "Truncation",
    "VLLMConfig",
    "VLLMPolicy",
    "add_lora",
    "agent_classes",
    "check_policy",
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
