"""Partial rollouts with an engine: completions that are interrupted, and go on with the weights of a later update."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from agents import GRPO, GRPOConfig, LearnerConfig, Trajectory, VLLMPolicy, make_batch
from agents.learn.batch_passes import token_logprobs
from tests.vllm.doubles import DelayedEngine
from tests.vllm.worlds import PROMPTS, learner, world

SEGMENT = 2


class Recorded(GRPO):
    """GRPO that keeps what it learns from, and its weights before each step."""

    batches: list[list[Trajectory]]
    weights: list[dict[str, Any]]

    def update(self, trajectories: Sequence[Trajectory]) -> dict[str, float]:
        self.batches.append(list(trajectories))
        self.weights.append({name: weight.clone() for name, weight in self.policy.model.state_dict().items()})
        return super().update(trajectories)


def learned(engine: Callable[[Any], Any], steps: int, **settings: Any) -> Recorded:
    """An agent after some steps of partial rollouts with an engine for its model."""
    policy, env = learner(temperature=1.0), world(5, max_new_tokens=8, stop=("1", "2"))
    config = GRPOConfig(
        problems_per_step=3,
        group_size=2,
        carried_groups=2,
        segment_tokens=SEGMENT,
        learner=LearnerConfig(learning_rate=1e-2),
        **settings,
    )
    agent = Recorded(policy, config, sampler=VLLMPolicy.for_env(policy, env, engine=engine(policy.model)))
    agent.batches, agent.weights = [], []
    agent.learn(env, steps=steps)
    return agent


def check_versions(agent: Recorded, tolerance: float) -> None:
    """Check that every token was sampled with the weights of its version, and that some episodes have several."""
    mixed = 0
    for step, batch in enumerate(agent.batches):
        mixed += sum(len(np.unique(one.policy_version[one.policy_mask])) > 1 for one in batch)
        for version in range(step + 1):
            agent.policy.model.load_state_dict(agent.weights[version])
            with torch.no_grad():
                expected = token_logprobs(agent.policy, make_batch(batch), 8)
            for one, its in zip(batch, expected, strict=True):
                sampled = one.policy_mask & (one.policy_version == version)
                np.testing.assert_allclose(one.logprobs[sampled], its[: len(sampled)].numpy()[sampled], atol=tolerance)
    assert mixed >= 2


def test_an_engine_goes_on_with_interrupted_completions_in_any_order() -> None:
    engines: list[DelayedEngine] = []

    def delayed(seed: int) -> Callable[[Any], Any]:
        def start(model: Any) -> DelayedEngine:
            engines.append(DelayedEngine(model, seed))
            return engines[-1]

        return start

    agents = [learned(delayed(seed), 5) for seed in range(2)]
    check_versions(agents[0], 1e-5)
    trained = [request for request in engines[0].submitted if request.max_tokens <= SEGMENT]
    assert len(trained) >= len(engines[0].submitted) / 2  # the others compare log-probabilities after each update
    assert {len(request.prompt) for request in trained} > set(map(len, PROMPTS))
    for mine, other in zip(*(agent.batches for agent in agents), strict=True):
        for one, its in zip(mine, other, strict=True):
            np.testing.assert_array_equal(one.tokens, its.tokens)
            np.testing.assert_array_equal(one.policy_version, its.policy_version)


def test_so_it_does_beside_learning() -> None:
    agent = learned(DelayedEngine, 5, lag=1)
    newest = [max(int(one.policy_version.max()) for one in batch) for batch in agent.batches]
    assert newest == [0, 0, 1, 2, 3]
    check_versions(agent, 1e-5)
