"""Every agent, small and ready to learn from batches made by hand, and what its update makes of one."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from agents import Agent, AgentConfig, Batch, CausalLMPolicy, CriticConfig, LearnerConfig, Trajectory, tiny_model
from agents.distributed.parts import whole
from agents.learn.batch_passes import critic_reader, read_columns, values_and_last
from agents.learn.learner import Loss
from agents.registry import AGENTS, agent_classes
from tests.agents.trajectories import VOCAB, on_policy_logprobs, tiny_policy, trajectory
from verifiers import Outcome, Problem, Verdict

GROUP = 3
MAX_TOKENS = 20
UNCLIPPED = 1e9
"""A gradient norm that is never reached, so that gradients stay as they are."""

NATURAL = ("trpo", "npg")
"""Agents whose steps have a length of their own in place of a learning rate."""

NEEDED: dict[str, dict[str, Any]] = {
    "dr-grpo": {"max_tokens": MAX_TOKENS},
    "pass-at-k": {"k": 2},
    "remax": {"group_size": 1},
    "actor-critic": {"trace_decay": 0.0},
    "ppo": {"epochs": 1, "minibatches": 1},
    "vineppo": {"minibatches": 1, "max_step_tokens": 2, "episodes_per_state": 2},
    "trpo": {"value_steps": 3, "cg_iterations": 4},
    "npg": {"value_steps": 3, "cg_iterations": 4},
}
"""What an agent has to be told, or is told to be quick."""

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "reinforce/none": ("reinforce", {"baseline": "none", "gamma": 0.9}),
    "reinforce/moving-average": ("reinforce", {"baseline": "moving-average"}),
    "reinforce/value": ("reinforce", {"baseline": "value", "truncation": "bootstrap"}),
    "a2c/n-step": ("a2c", {"steps_ahead": 2, "truncation": "bootstrap", "gamma": 0.9}),
    "ppo/separate": (
        "ppo",
        {
            "critic": CriticConfig("separate", value_clip=0.2),
            "kl_coefficient": 0.1,
            "kl_target": 0.01,
            "kl_horizon": 90,
        },
    ),
    "rloo/kl": ("rloo", {"kl_coefficient": 0.1}),
    "grpo/kl": ("grpo", {"kl_coefficient": 0.1, "kl_estimator": "k3-ratio", "entropy_coefficient": 0.01}),
    "grpo/masked": ("grpo", {"truncation": "mask", "scale": "batch-std"}),
    "grpo/carried": ("grpo", {"carried_groups": 2, "segment_tokens": 1}),
    "reinforce++/baseline": ("reinforce++", {"group_baseline": True, "group_size": GROUP}),
    "dapo/overlong": ("dapo", {"truncation": "soft-overlong", "max_tokens": 10, "overlong_margin": 6}),
    "cispo/corrected": ("cispo", {"importance_correction": "token-truncate"}),
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {**{name: (name, {}) for name in AGENTS}, **VARIANTS}
"""Every agent as it is by default, and choices that take other paths."""


def make_agent(case: str, policy: CausalLMPolicy | None = None, **settings: Any) -> Agent:
    """An agent of a case on a tiny policy; `learner` may be a mapping of settings of the learner."""
    name, chosen = CASES[case]
    cls, config_cls = agent_classes(name)
    merged = {**NEEDED.get(name, {}), **chosen, **settings}
    if config_cls.group_size > 1:
        merged.setdefault("group_size", GROUP)
    rate = {} if name in NATURAL else {"learning_rate": 1e-2}
    learner = {"max_grad_norm": UNCLIPPED, "micro_batch_size": 4, **rate, **merged.pop("learner", {})}
    merged.setdefault("problems_per_step", 4)
    config: AgentConfig = config_cls(learner=LearnerConfig(**learner), **merged)
    return cls(policy or tiny_policy(), config)


def scored_verdict(score: float, first_part: float) -> Verdict:
    """A verdict of two parts, `score` being their sum; NaN means the verifier broke."""
    parts = {
        "one": {"weight": 1.0, "score": first_part},
        "two": {"weight": 0.5, "score": 2 * (score - first_part)},
    }
    outcome = Outcome.VERIFIER_ERROR if math.isnan(score) else Outcome.SCORED
    return Verdict(score, outcome, detail={} if math.isnan(score) else {"parts": parts})


def some_trajectory(generator: np.random.Generator, *, score: float, group: int, **fields: Any) -> Trajectory:
    """Random tokens behind a prompt of their group, with tokens of the environment in between; the score comes last."""
    length = int(generator.integers(6, 13))
    prompt = np.random.default_rng(group).integers(0, VOCAB, 3)
    tokens = np.concatenate([prompt, generator.integers(0, VOCAB, length - 3)])
    mask = generator.random(length) < 0.8
    mask[:3], mask[3] = False, True
    rewards = np.zeros(length)
    rewards[-1] = score
    step_values = np.where(mask & (np.arange(length) % 3 == 0), 0.1 * np.arange(length), np.nan)
    return trajectory(
        mask.tolist(),
        tokens=tokens.tolist(),
        rewards=rewards.tolist(),
        verdict=scored_verdict(score, float(generator.integers(0, 2))),
        group=group,
        **{"baseline": 0.25, "step_values": step_values, "truncated": bool(generator.random() < 0.3), **fields},
    )


def some_batch(policy: CausalLMPolicy, seed: int = 0, groups: int = 4) -> list[Trajectory]:
    """Groups of `GROUP` completions that the policy itself could have sampled, with scores from 0 to 1."""
    generator = np.random.default_rng(seed)
    made = [
        some_trajectory(generator, score=float(generator.integers(0, 5)) / 4, group=index // GROUP)
        for index in range(GROUP * groups)
    ]
    return on_policy(policy, made)


def errored_rows(seed: int, groups: Sequence[int]) -> list[Trajectory]:
    """Completions on which the verifier broke, one of each group named."""
    generator = np.random.default_rng(seed)
    made = [some_trajectory(generator, score=math.nan, group=group, truncated=True) for group in groups]
    return [
        dataclasses.replace(one, logprobs=np.where(one.policy_mask, -generator.random(len(one.tokens)), 0).astype("f4"))
        for one in made
    ]


def on_policy(policy: CausalLMPolicy, trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """The same with the policy's own log-probabilities."""
    return [dataclasses.replace(one, logprobs=on_policy_logprobs(policy, one)) for one in trajectories]


def state_values(policy: Any, critic: Any, batch: Batch, size: int) -> tuple[Tensor, Tensor]:
    """A critic's values f64[b l], and f64[b] of the states after the last tokens, read `size` rows at a time."""
    return values_and_last(
        batch, read_columns(policy, batch, size, {"values": critic_reader(policy, critic)})["values"]
    )


def prepared(agent: Agent, batch: Batch) -> tuple[Batch, Tensor]:
    """What `update` makes of a batch before the optimiser steps: the batch with all it needs, and the advantages."""
    batch = agent.prepare(batch)
    advantages = agent.advantages(batch)
    return dataclasses.replace(batch, value_targets=agent.value_targets(batch)), advantages


def gradient(agent: Agent, batch: Batch) -> Tensor:
    """The gradient f32[p] of an agent's loss on a batch at its first optimiser step, that of its critic included."""
    ready, advantages = prepared(agent, batch)
    agent.learner.backward(
        ready,
        advantages,
        Loss(agent.updating.terms, aggregation=agent.config.aggregation, max_tokens=agent.config.max_tokens),
    )
    critic = [] if agent.models.critic is None else list(agent.models.critic.parameters())
    gradients = [
        torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        for parameter in agent.policy.parameters()
    ]
    gradients += [parameter.grad for parameter in critic if parameter.grad is not None]
    return flat(gradients)


def all_weights(agent: Agent) -> Tensor:
    """Every weight of the policy and the critic, as one vector."""
    critic = [] if agent.models.critic is None else list(agent.models.critic.parameters())
    return flat([*agent.policy.parameters(), *critic])


def flat(tensors: Sequence[Tensor]) -> Tensor:
    """A copy of tensors as one vector, put together where ranks hold parts of them."""
    return torch.cat([torch.as_tensor(whole(tensor)).reshape(-1) for tensor in tensors])


def timeless(metrics: Mapping[str, float]) -> dict[str, float]:
    """Metrics without what is timed."""
    return {name: value for name, value in metrics.items() if not name.endswith("_s")}


def digits(completion: str, problem: Problem) -> float:
    """The share of a completion that is digits."""
    return sum(map(str.isdigit, completion)) / 4


def varied(completion: str, problem: Problem) -> float:
    """How many different characters are there."""
    return len(set(completion)) / 4


def sort_env(name: str) -> Any:
    """Sorting, with scores of which a policy with random weights gets some."""
    verifier: Any = ("weighted_sum", {"parts": {"digits": digits, "varied": varied}}) if name == "gdpo" else digits
    return env_with(verifier)


def env_with(verifier: Any) -> Any:
    """As `sort_env`, with another verifier."""
    return gymnasium.make_vec(
        "rlvr/Sort-v0", num_envs=6, tokenizer="char", max_new_tokens=4, copy=False, verifier=verifier
    )


def playing_policy(env: Any, seed: int = 0, layers: int = 1) -> CausalLMPolicy:
    """A tiny policy with random weights for the tokens of an environment."""
    torch.manual_seed(seed)
    model = tiny_model(int(env.single_action_space.n), layers=layers, hidden_size=16, heads=2, intermediate_size=16)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return CausalLMPolicy(model)
