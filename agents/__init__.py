"""The learners: policies, rollout, advantages, losses, agents from REINFORCE to GRPO, training and evaluation.

Names are imported when they are first used, so importing this package loads neither torch nor transformers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import rlvr_envs  # noqa: F401 - registers the ids, and checks whose `verifiers` and `agents` these are
import verifiers
from agents.registry import AGENTS, TABULAR_AGENTS, VALUE_AGENTS, agent_classes, tabular_classes
from verifiers import lazy_face

if TYPE_CHECKING:
    from agents.algorithms.a2c import A2C as A2C, A2CConfig as A2CConfig
    from agents.algorithms.actor_critic import ActorCritic as ActorCritic, ActorCriticConfig as ActorCriticConfig
    from agents.algorithms.cispo import CISPO as CISPO, CISPOConfig as CISPOConfig
    from agents.algorithms.dapo import DAPO as DAPO, DAPOConfig as DAPOConfig
    from agents.algorithms.dpo import DPO as DPO, DPOConfig as DPOConfig
    from agents.algorithms.dqn import DQN as DQN, DQNConfig as DQNConfig
    from agents.algorithms.dr_grpo import DrGRPO as DrGRPO, DrGRPOConfig as DrGRPOConfig
    from agents.algorithms.gdpo import GDPO as GDPO, GDPOConfig as GDPOConfig
    from agents.algorithms.grpo import GRPO as GRPO, GRPOConfig as GRPOConfig
    from agents.algorithms.gspo import GSPO as GSPO, GSPOConfig as GSPOConfig
    from agents.algorithms.maxrl import MaxRL as MaxRL, MaxRLConfig as MaxRLConfig
    from agents.algorithms.npg import NPG as NPG, NPGConfig as NPGConfig
    from agents.algorithms.opo import OPO as OPO, OPOConfig as OPOConfig
    from agents.algorithms.pass_at_k import PassAtK as PassAtK, PassAtKConfig as PassAtKConfig
    from agents.algorithms.ppo import PPO as PPO, PPOConfig as PPOConfig
    from agents.algorithms.reinforce import Reinforce as Reinforce, ReinforceConfig as ReinforceConfig
    from agents.algorithms.reinforce_plus_plus import (
        ReinforcePlusPlus as ReinforcePlusPlus,
        ReinforcePlusPlusConfig as ReinforcePlusPlusConfig,
    )
    from agents.algorithms.remax import ReMax as ReMax, ReMaxConfig as ReMaxConfig
    from agents.algorithms.rft import RFT as RFT, RFTConfig as RFTConfig
    from agents.algorithms.rloo import RLOO as RLOO, RLOOConfig as RLOOConfig
    from agents.algorithms.trpo import TRPO as TRPO, TRPOConfig as TRPOConfig
    from agents.algorithms.vineppo import VinePPO as VinePPO, VinePPOConfig as VinePPOConfig
    from agents.batch import Batch as Batch, make_batch as make_batch
    from agents.experiments.supervised import SupervisedConfig as SupervisedConfig, train_supervised as train_supervised
    from agents.importance import Correction as Correction
    from agents.kl import KLEstimator as KLEstimator
    from agents.learn.agent import Agent as Agent
    from agents.learn.critic import Critic as Critic
    from agents.learn.held_out import HeldOut as HeldOut
    from agents.learn.learner import Learner as Learner
    from agents.learn.noise import RewardNoise as RewardNoise
    from agents.learn.reference import ReferencePolicy as ReferencePolicy
    from agents.losses import Aggregation as Aggregation
    from agents.policies.check import check_policy as check_policy
    from agents.policies.mlp import MLPPolicy as MLPPolicy
    from agents.policies.torch_policy import TorchPolicy as TorchPolicy
    from agents.policies.trainable import TokenOutputs as TokenOutputs, TrainablePolicy as TrainablePolicy
    from agents.policies.transformers.config import PolicyConfig as PolicyConfig
    from agents.policies.transformers.loading import (
        load_model as load_model,
        load_policy as load_policy,
        save_model as save_model,
        tiny_model as tiny_model,
    )
    from agents.policies.transformers.lora import add_lora as add_lora
    from agents.policies.transformers.policy import CausalLMPolicy as CausalLMPolicy
    from agents.policies.vllm.config import VLLMConfig as VLLMConfig
    from agents.policies.vllm.policy import VLLMPolicy as VLLMPolicy
    from agents.preferences.pairs import PreferencePair as PreferencePair, read_pairs as read_pairs
    from agents.preferences.report import PreferenceReport as PreferenceReport
    from agents.preferences.reward_model import (
        RewardModel as RewardModel,
        RewardModelConfig as RewardModelConfig,
        evaluate_reward_model as evaluate_reward_model,
        new_reward_model as new_reward_model,
        train_reward_model as train_reward_model,
    )
    from agents.rollouts.endpoint.client import Endpoint as Endpoint, EndpointConfig as EndpointConfig
    from agents.rollouts.evaluation import evaluate as evaluate
    from agents.rollouts.loop import Episode as Episode, rollout as rollout
    from agents.runs.evaluation import Evaluation as Evaluation
    from agents.runs.evaluation_record import EvaluationRecord as EvaluationRecord
    from agents.runs.held_out import StopWhen as StopWhen
    from agents.runs.loggers import MetricLogger as MetricLogger
    from agents.runs.run import Run as Run
    from agents.settings.agent import AgentConfig as AgentConfig
    from agents.settings.learner import CriticConfig as CriticConfig, LearnerConfig as LearnerConfig
    from agents.settings.schedules import Schedule as Schedule
    from agents.tables.agent import (
        TabularAgent as TabularAgent,
        TabularConfig as TabularConfig,
        Transition as Transition,
    )
    from agents.tables.double_q_learning import (
        DoubleQLearning as DoubleQLearning,
        DoubleQLearningConfig as DoubleQLearningConfig,
    )
    from agents.tables.epsilon_greedy import (
        EpsilonGreedy as EpsilonGreedy,
        EpsilonGreedyConfig as EpsilonGreedyConfig,
    )
    from agents.tables.expected_sarsa import (
        ExpectedSARSA as ExpectedSARSA,
        ExpectedSARSAConfig as ExpectedSARSAConfig,
    )
    from agents.tables.gradient_bandit import (
        GradientBandit as GradientBandit,
        GradientBanditConfig as GradientBanditConfig,
    )
    from agents.tables.linucb import LinUCB as LinUCB, LinUCBConfig as LinUCBConfig
    from agents.tables.monte_carlo import MonteCarlo as MonteCarlo, MonteCarloConfig as MonteCarloConfig
    from agents.tables.q_learning import QLearning as QLearning, QLearningConfig as QLearningConfig
    from agents.tables.sarsa import SARSA as SARSA, SARSAConfig as SARSAConfig
    from agents.tables.thompson import Thompson as Thompson, ThompsonConfig as ThompsonConfig
    from agents.tables.ucb1 import UCB1 as UCB1, UCB1Config as UCB1Config
    from agents.testing import check_agent as check_agent
    from agents.truncation import Truncation as Truncation
    from agents.types import Action as Action, Policy as Policy, Sampler as Sampler, Trajectory as Trajectory

__distribution__ = "rlvr-envs"
__version__ = verifiers.__version__

_FOR_TRAINING = dict.fromkeys(("torch", "transformers"), "train")

__getattr__, __dir__, _LAZY = lazy_face(__name__, _FOR_TRAINING)
__all__ = ["AGENTS", "TABULAR_AGENTS", "VALUE_AGENTS", "agent_classes", "tabular_classes", *_LAZY]
