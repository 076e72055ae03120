"""One optimiser step on the same completions and weights, by our agent and by TRL's trainer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

from agents import Agent, CausalLMPolicy, LearnerConfig, PolicyConfig, Trajectory, load_model, make_batch
from agents.registry import agent_classes
from tests.agents.trajectories import gradients, largest_difference
from tests.trl import oracle
from tests.trl.batches import completions, mixed_scores, sampled_by

ROUNDING = 5e-6
"""Of float32, relative to the largest gradient: TRL pads on the left and sums in another order."""

silenced = pytest.mark.filterwarnings(
    "ignore:`is_gradient_checkpointing` is deprecated:FutureWarning",  # of transformers, when TRL asks
    "ignore:You are using 'rollout_func'",  # TRL calls it experimental
)


@dataclass(frozen=True)
class Pairing:
    """An agent of ours, and what TRL calls the same."""

    agent: str
    theirs: Mapping[str, Any] = field(default_factory=dict)
    ours: Mapping[str, Any] = field(default_factory=dict)
    trainer: Literal["grpo", "rloo"] = "grpo"


@dataclass(frozen=True)
class Step:
    """What one side makes of a batch."""

    loss: float
    gradients: list[Tensor]
    advantages: Tensor
    """f[b]."""
    metrics: dict[str, float]

    def scaled(self, factor: float) -> Step:
        """The step of a loss that is so much larger."""
        return Step(
            factor * self.loss, [factor * gradient for gradient in self.gradients], self.advantages, self.metrics
        )


def moved(model: torch.nn.Module) -> None:
    """Change weights in place, always in the same way, so that a policy differs from its reference."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn(parameter.shape, generator=generator))


def our_agent(folder: Path, pairing: Pairing, *, group_size: int = 4, **learner: Any) -> Agent:
    """The agent on the model of a folder, which is its reference, and from which its policy has moved."""
    cls, config_cls = agent_classes(pairing.agent)
    settings = dict(pairing.ours)
    temperature = settings.pop("temperature", 1.0)
    unclipped = LearnerConfig(**({"max_grad_norm": 1e9, "micro_batch_size": 5} | learner))
    config = config_cls(group_size=group_size, learner=unclipped, **settings)
    agent = cls(CausalLMPolicy(load_model(folder), PolicyConfig(temperature=temperature)), config)
    moved(agent.policy.model)
    return agent


def our_step(agent: Agent, trajectories: Sequence[Trajectory]) -> Step:
    """Ours, by the agent's own update."""
    batch = agent.prepare(make_batch(trajectories))
    advantages = agent.advantages(batch)[:, 0]
    metrics = agent.update(trajectories)
    return Step(metrics["loss"], gradients(agent.policy), advantages, metrics)


def their_trainer(folder: Path, pairing: Pairing, trajectories: Sequence[Trajectory], **settings: Any) -> Any:
    """TRL's trainer, with the policy moved from the reference like ours."""
    make = {"grpo": oracle.grpo_trainer, "rloo": oracle.rloo_trainer}[pairing.trainer]
    trainer = make(folder, trajectories, **(dict(pairing.theirs) | settings))
    moved(trainer.model)
    return trainer


def their_step(trainer: Any, trajectories: Sequence[Trajectory], *, sampled_elsewhere: bool = False) -> Step:
    """TRL's, by its own scoring and loss; ratios are taken to the trajectories' log-probabilities if asked, else to its own."""
    inputs = oracle.inputs_of(trainer, trajectories)
    if sampled_elsewhere:
        inputs = oracle.sampled_elsewhere(inputs, trajectories)
    loss, gradients = oracle.backward(trainer, inputs)
    return Step(loss, gradients, inputs["advantages"], oracle.last_metrics(trainer))


def both(folder: Path, pairing: Pairing, *, noise: float = 0.0, **batch: Any) -> tuple[Step, Step]:
    """Ours and theirs, on completions that the policy sampled, or with noise another one."""
    group_size = batch.get("group_size", 4)
    agent = our_agent(folder, pairing, group_size=group_size)
    trajectories = sampled_by(agent.policy, completions(batch.pop("scores", mixed_scores()), **batch), noise)
    trainer = their_trainer(folder, pairing, trajectories)
    return our_step(agent, trajectories), their_step(trainer, trajectories, sampled_elsewhere=noise > 0)


def gap(left: Step, right: Step) -> float:
    """The largest difference of any gradient, relative to the largest gradient."""
    largest = max(float(gradient.abs().max()) for gradient in right.gradients)
    assert largest > 0.01, "gradients that are 0 agree with anything"
    return largest_difference(left.gradients, right.gradients) / largest
