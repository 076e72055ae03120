"""Importance weights by hand; test_numpy_reference.py compares them with NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from agents import make_batch
from agents.importance import Correction, effective_share, importance_weights
from tests.agents.agent_cases import make_agent, some_batch
from tests.agents.rounding import ROUNDING
from verifiers import InvalidArgumentError, UnknownNameError

MASK = torch.tensor([[False, True, True, True], [True, False, True, False], [False] * 4])
RATIOS = torch.tensor([[9, 4, 0.5, 0.25], [1.5, 9, 1.2, 9], [9, 9, 9, 9]], dtype=torch.float64)
OLD = torch.full((3, 4), -2.0, dtype=torch.float64)
BEHAVIOUR = OLD - RATIOS.log()


@pytest.mark.parametrize(
    ("correction", "first", "second"),
    [
        ("token-mask", [0, 0, 0.5, 0], [1.5, 0, 1.2, 0]),
        ("sequence-truncate", [0, 0.5, 0.5, 0.5], [1.8, 0, 1.8, 0]),  # the products are 4 / 8 and 1.5 * 1.2
        ("geometric-mask", [0, 2, 0.5, 0.4], [1.5, 0, 1.2, 0]),  # of the means 0.5 ** (1 / 3) and 1.8 ** 0.5
    ],
)
def test_weights_by_hand(correction: str, first: list[float], second: list[float]) -> None:
    weights = importance_weights(OLD, BEHAVIOUR, MASK, correction, cap=2.0, floor=0.4)
    expected = torch.tensor([first, second, [0.0] * 4], dtype=torch.float64)
    torch.testing.assert_close(weights, expected, rtol=ROUNDING, atol=0)


@pytest.mark.parametrize(("correction", "light"), [("token-mask", 0.0), ("token-truncate", 0.5)])
def test_an_agents_floor_cuts_weights_from_below(correction: str, light: float) -> None:
    """Half of the tokens were four times as likely where they were sampled: weight 1/4 is dropped, or lifted to the floor."""
    agent = make_agent("grpo", importance_correction=correction, importance_floor=0.5)
    rows = some_batch(agent.policy)
    for one in rows[1::2]:
        one.logprobs[one.policy_mask] += np.float32(math.log(4))
    batch = agent.prepare(make_batch(rows))
    assert batch.importance is not None
    for start, weight in ((0, 1.0), (1, light)):
        weights = batch.importance[start::2][batch.loss_mask[start::2]]
        np.testing.assert_allclose(weights, weight, atol=1e-5)


@pytest.mark.parametrize("correction", list(Correction))
def test_samples_of_the_policy_itself_weigh_exactly_1(correction: Correction) -> None:
    logprobs = -5 * torch.rand(3, 4, generator=torch.Generator().manual_seed(0))
    weights = importance_weights(logprobs, logprobs, MASK, correction, cap=1.0, floor=1.0)
    assert torch.equal(weights, MASK.float())


@pytest.mark.parametrize(("cap", "floor"), [(0.9, 0.0), (2.0, 1.1), (2.0, -0.1), (math.nan, 0.0)])
def test_bounds_that_leave_out_1_and_unknown_corrections_are_named(cap: float, floor: float) -> None:
    with pytest.raises(InvalidArgumentError, match="0 <= floor <= 1 <= cap; got floor ="):
        importance_weights(OLD, BEHAVIOUR, MASK, "token-mask", cap=cap, floor=floor)
    with pytest.raises(UnknownNameError, match=r"unknown correction 'token-clip'\..*Known: geometric-mask, none"):
        importance_weights(OLD, BEHAVIOUR, MASK, "token-clip")


def test_the_effective_share_by_hand() -> None:
    assert effective_share(6 / 3, 14 / 3) == pytest.approx(36 / (3 * 14))  # of 1, 2 and 3
    assert effective_share(0.0, 0.0) == 0.0
