"""Rejection sampling: its expected gradient is the policy gradient, and which completions each member of the family keeps."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from agents import Trajectory, add_lora, make_batch
from tests.agents.agent_cases import all_weights, gradient, make_agent
from tests.agents.rounding import FLOAT64, assert_equal
from tests.agents.trajectories import VOCAB, scored, tiny_policy, trajectory
from verifiers import InvalidArgumentError, UnknownNameError


def completion_of(token: int) -> Trajectory:
    """A completion of one token, which is right if it is a multiple of 3."""
    return trajectory([0, 0, 0, 1], tokens=[1, 2, 3, token], rewards=[0, 0, 0, float(token % 3 == 0)], group=0)


def probabilities(model: Any) -> Tensor:
    result: Tensor = model(input_ids=torch.tensor([[1, 2, 3]])).logits[0, -1].softmax(-1)
    return result


@FLOAT64
def test_the_expected_gradient_is_the_policy_gradient_of_the_share_of_right_completions() -> None:
    """By enumeration of every completion, with its probability."""
    agent = make_agent("rft")
    model, parameters = agent.policy.model, list(agent.policy.parameters())
    weights = probabilities(model).detach()
    expected = sum(
        float(weights[token]) * gradient(agent, make_batch([completion_of(token)])) for token in range(VOCAB)
    )
    right = probabilities(model)[torch.arange(VOCAB) % 3 == 0].sum()
    exact = torch.cat([one.reshape(-1) for one in torch.autograd.grad(right, parameters)])
    assert float(exact.abs().max()) > 1e-4
    assert_equal(expected, -exact)


@FLOAT64
def test_a_mean_over_what_is_kept_is_longer_by_the_share_that_is() -> None:
    rows = [completion_of(token) for token in range(VOCAB)]
    over_all, over_kept = (make_agent("rft", mean_over=over) for over in ("sampled", "kept"))
    share = sum(one.score for one in rows) / len(rows)
    assert_equal(gradient(over_kept, make_batch(rows)) * share, gradient(over_all, make_batch(rows)))


def rows_of(*groups: tuple[float, ...]) -> list[Trajectory]:
    def row(score: float, group: int) -> Trajectory:
        tokens = [1, 2, 3, 4] if math.isnan(score) else [1, *[int(abs(score) * 4)] * 3]
        return scored(score, length=4, tokens=tokens, group=group)

    return [row(score, group) for group, scores in enumerate(groups) for score in scores]


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({}, [1, 2, 4, 5]),
        ({"threshold": 0.5}, [0, 1, 2, 4, 5]),
        ({"per_problem": 1}, [1, 4]),
        ({"unique": True}, [1, 4]),
        ({"unique": True, "threshold": 0.5}, [0, 1, 4]),
        ({"selection": "best"}, [1, 4, 6]),
    ],
    ids=str,
)
def test_which_completions_are_kept(settings: dict[str, Any], kept: list[int]) -> None:
    agent: Any = make_agent("rft", **settings)
    batch = make_batch(rows_of((0.5, 1.0, 1.0), (math.nan, 1.0, 1.0), (0.0, -1.0), (math.nan,)))
    assert agent.kept(batch).nonzero().flatten().tolist() == kept


def test_the_threshold_rises_over_the_run() -> None:
    agent: Any = make_agent("rft", threshold=0.0, threshold_end=1.0)
    agent.learner.run_steps = 4
    batch = make_batch(rows_of((0.0, 0.5, 1.0)))
    counts = []
    for step in range(5):
        agent.progress.steps = step
        counts.append(int(agent.kept(batch).sum()))
    assert counts == [3, 2, 2, 1, 1]


def test_from_the_start_each_batch_trains_the_first_weights() -> None:
    agent = make_agent("rft", from_start=True, epochs=2)
    other = make_agent("rft", epochs=2)
    agent.update(rows_of((1.0, 0.0, 0.5)))
    last = rows_of((0.25, 1.0), (1.0, 1.0))
    agent.update(last)
    other.update(last)
    assert torch.equal(all_weights(agent), all_weights(other))


def test_a_batch_without_a_right_completion_changes_nothing() -> None:
    agent = make_agent("rft")
    before = all_weights(agent)
    assert agent.update(rows_of((0.0, 0.5)))["kept"] == 0
    assert torch.equal(all_weights(agent), before)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mean_over": "all"}, "unknown mean_over 'all'. Known: kept, sampled"),
        ({"selection": "best", "unique": True}, "unique=True would have no effect here"),
        ({"from_start": True, "reference_sync_every": 3}, "leave reference_sync_every out"),
        ({"from_start": True}, "does not work with an adapter"),
    ],
    ids=str,
)
def test_settings_that_do_not_fit_are_named(settings: dict[str, Any], message: str) -> None:
    policy = tiny_policy()
    adapted = policy.with_model(add_lora(policy.model, rank=2, alpha=4))  # has no copy of the first weights
    with pytest.raises((InvalidArgumentError, UnknownNameError), match=message):
        make_agent("rft", adapted, **settings)
