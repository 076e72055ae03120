"""Importance weights by hand, and what they are for: expectations under the policy from samples of another."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from agents import make_batch
from agents.importance import Correction, effective_share, importance_weights
from tests.agents.agent_cases import make_agent, some_batch
from tests.agents.rounding import ROUNDING, assert_equal
from verifiers import InvalidArgumentError, UnknownNameError

MASK = torch.tensor([[False, True, True, True], [True, False, True, False], [False] * 4])
RATIOS = torch.tensor([[9, 4, 0.5, 0.25], [1.5, 9, 1.2, 9], [9, 9, 9, 9]], dtype=torch.float64)
OLD = torch.full((3, 4), -2.0, dtype=torch.float64)
BEHAVIOUR = OLD - RATIOS.log()


@pytest.mark.parametrize(
    ("correction", "first", "second"),
    [
        ("none", [0, 1, 1, 1], [1, 0, 1, 0]),
        ("token-truncate", [0, 2, 0.5, 0.4], [1.5, 0, 1.2, 0]),
        ("token-mask", [0, 0, 0.5, 0], [1.5, 0, 1.2, 0]),
        # The products are 4 / 8 and 1.5 * 1.2.
        ("sequence-truncate", [0, 0.5, 0.5, 0.5], [1.8, 0, 1.8, 0]),
        ("sequence-mask", [0, 0.5, 0.5, 0.5], [1.8, 0, 1.8, 0]),
        # The geometric means are 0.5 ** (1 / 3) = 0.79 and 1.8 ** 0.5 = 1.34: both completions stay.
        ("geometric-mask", [0, 2, 0.5, 0.4], [1.5, 0, 1.2, 0]),
    ],
)
def test_weights_by_hand(correction: str, first: list[float], second: list[float]) -> None:
    weights = importance_weights(OLD, BEHAVIOUR, MASK, correction, cap=2.0, floor=0.4)
    expected = torch.tensor([first, second, [0.0] * 4], dtype=torch.float64)
    torch.testing.assert_close(weights, expected, rtol=ROUNDING, atol=0)


@pytest.mark.parametrize(
    ("correction", "first", "second"),
    [
        ("sequence-truncate", 0.6, 1.3),
        ("sequence-mask", 0.0, 0.0),
    ],
)
def test_completions_outside_the_bounds(correction: str, first: float, second: float) -> None:
    weights = importance_weights(OLD, BEHAVIOUR, MASK, correction, cap=1.3, floor=0.6)
    assert weights[MASK].tolist() == pytest.approx([first] * 3 + [second] * 2)


def test_the_geometric_filter_drops_a_completion_and_truncates_the_tokens_of_others() -> None:
    weights = importance_weights(OLD, BEHAVIOUR, MASK, "geometric-mask", cap=1.3, floor=0.6)
    assert weights[0][MASK[0]].tolist() == pytest.approx([1.3, 0.6, 0.6])
    assert weights[1].tolist() == [0.0] * 4  # its mean ratio is 1.34


def test_the_geometric_filter_does_not_depend_on_the_length_and_the_sequence_mask_does() -> None:
    for length in (1, 10, 1000):
        old = torch.full((1, length), -1.0, dtype=torch.float64)
        mask = torch.ones(1, length, dtype=torch.bool)
        drifted = old - math.log(1.01)
        assert importance_weights(old, drifted, mask, "geometric-mask").sum() == pytest.approx(1.01 * length)
        kept = importance_weights(old, drifted, mask, "sequence-mask").any()
        assert bool(kept) == (1.01**length <= 2)


@pytest.mark.parametrize(("correction", "light"), [("token-mask", 0.0), ("token-truncate", 0.5)])
def test_an_agents_floor_cuts_weights_from_below(correction: str, light: float) -> None:
    """Half of the tokens were four times as likely where they were sampled: weight 1/4 is dropped, or lifted to the floor."""
    agent = make_agent("grpo", importance_correction=correction, importance_floor=0.5)
    rows = some_batch(agent.policy)
    for number, one in enumerate(rows):
        one.logprobs[one.policy_mask] += np.float32(math.log(4)) * (number % 2)
    batch = agent.prepare(make_batch(rows))
    assert batch.importance is not None
    assert batch.importance[1::2][batch.loss_mask[1::2]].tolist() == pytest.approx(
        [light] * int(batch.loss_mask[1::2].sum())
    )
    torch.testing.assert_close(
        batch.importance[::2][batch.loss_mask[::2]].float(),
        torch.ones(int(batch.loss_mask[::2].sum())),
        atol=1e-5,
        rtol=0,
    )


@pytest.mark.parametrize("correction", list(Correction))
def test_samples_of_the_policy_itself_weigh_exactly_1(correction: Correction) -> None:
    logprobs = -5 * torch.rand(3, 4, generator=torch.Generator().manual_seed(0))
    weights = importance_weights(logprobs, logprobs, MASK, correction, cap=1.0, floor=1.0)
    assert torch.equal(weights, MASK.float())


@pytest.mark.parametrize("correction", list(Correction))
def test_unknown_behaviour_weighs_1(correction: Correction) -> None:
    weights = importance_weights(OLD, torch.full_like(OLD, math.nan), MASK, correction)
    assert torch.equal(weights, MASK.double())


def test_an_unknown_token_adds_nothing_to_its_completion() -> None:
    behaviour = BEHAVIOUR.clone()
    behaviour[1, 2] = math.nan
    weights = {name: importance_weights(OLD, behaviour, MASK, name, cap=1.3) for name in Correction}
    assert weights[Correction.TOKEN_TRUNCATE][1].tolist() == pytest.approx([1.3, 0, 1, 0])
    assert weights[Correction.TOKEN_MASK][1].tolist() == pytest.approx([0, 0, 1, 0])
    assert weights[Correction.SEQUENCE_TRUNCATE][1].tolist() == pytest.approx([1.3, 0, 1.3, 0])
    assert weights[Correction.SEQUENCE_MASK][1].tolist() == [0.0] * 4
    # sqrt(1.5 * 1) = 1.22 is within the bounds.
    assert weights[Correction.GEOMETRIC_MASK][1].tolist() == pytest.approx([1.3, 0, 1, 0])


@pytest.mark.parametrize("correction", list(Correction))
def test_weights_are_constants_in_the_precision_of_the_logprobs(correction: Correction) -> None:
    old = OLD.float().requires_grad_()
    weights = importance_weights(old, BEHAVIOUR.float(), MASK, correction)
    assert not weights.requires_grad
    assert weights.dtype == torch.float32


@pytest.mark.parametrize("correction", list(Correction))
def test_weights_do_not_depend_on_padding_or_order(correction: Correction) -> None:
    weights = importance_weights(OLD, BEHAVIOUR, MASK, correction)
    old, behaviour, mask = (torch.nn.functional.pad(tensor, (1, 3)) for tensor in (OLD, BEHAVIOUR, MASK))
    padded = importance_weights(old, behaviour, mask, correction)[:, 1:5]
    assert_equal(padded, weights, precision=np.float32, operations=8)
    turned = importance_weights(OLD.flip(0), BEHAVIOUR.flip(0), MASK.flip(0), correction)
    assert_equal(turned.flip(0), weights, precision=np.float32, operations=8)


@settings(max_examples=60)
@given(
    st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=8),
    st.sampled_from(list(Correction)),
    st.floats(1, 10, width=32),
    st.floats(0, 1, width=32),
)
def test_weights_stay_within_the_bounds_or_are_0(
    differences: list[float], correction: Correction, cap: float, floor: float
) -> None:
    behaviour = torch.tensor([differences])
    mask = torch.ones_like(behaviour, dtype=torch.bool)
    weights = importance_weights(torch.zeros_like(behaviour), behaviour, mask, correction, cap=cap, floor=floor)
    assert ((weights == 0) | ((weights >= floor) & (weights <= cap))).all()


# What they are for


def tables() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """All completions of two of three tokens: log-probabilities of a policy and of what sampled f64[9 2], rewards f64[9]."""
    generator = torch.Generator().manual_seed(0)
    pairs = torch.tensor(list(itertools.product(range(3), repeat=2)))

    def logprobs() -> Tensor:
        first = torch.randn(3, generator=generator, dtype=torch.float64).log_softmax(-1)
        second = torch.randn(3, 3, generator=generator, dtype=torch.float64).log_softmax(-1)
        return torch.stack([first[pairs[:, 0]], second[pairs[:, 0], pairs[:, 1]]], dim=1)

    return logprobs(), logprobs(), torch.randn(9, generator=generator, dtype=torch.float64), torch.ones(9, 2).bool()


def test_unbounded_sequence_weights_correct_the_mean_of_another_policys_samples() -> None:
    old, behaviour, rewards, mask = tables()
    exact = (old.sum(1).exp() * rewards).sum()
    assert abs((behaviour.sum(1).exp() * rewards).sum() - exact) > 0.1
    weights = importance_weights(old, behaviour, mask, "sequence-truncate", cap=1e6)
    corrected = (behaviour.sum(1).exp() * weights[:, 0] * rewards).sum()
    torch.testing.assert_close(corrected, exact, rtol=ROUNDING, atol=0)


def test_the_product_of_unbounded_token_weights_is_the_weight_of_the_completion() -> None:
    old, behaviour, _, mask = tables()
    tokens = importance_weights(old, behaviour, mask, "token-truncate", cap=1e6)
    sequences = importance_weights(old, behaviour, mask, "sequence-truncate", cap=1e6)
    torch.testing.assert_close(tokens.prod(1), sequences[:, 0], rtol=ROUNDING, atol=0)


@pytest.mark.parametrize(("cap", "floor"), [(0.9, 0.0), (2.0, 1.1), (2.0, -0.1), (math.nan, 0.0)])
def test_bounds_that_leave_out_1_are_named(cap: float, floor: float) -> None:
    with pytest.raises(InvalidArgumentError, match="0 <= floor <= 1 <= cap; got floor ="):
        importance_weights(OLD, BEHAVIOUR, MASK, "token-mask", cap=cap, floor=floor)


def test_a_correction_that_does_not_exist_is_named() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown correction 'token-clip'\..*Known: geometric-mask, none"):
        importance_weights(OLD, BEHAVIOUR, MASK, "token-clip")


# The effective sample size


def test_the_effective_share_by_hand() -> None:
    assert effective_share(6 / 3, 14 / 3) == pytest.approx(36 / (3 * 14))  # of 1, 2 and 3
    assert effective_share(0.3, 0.3**2) == pytest.approx(1)
    assert effective_share(4 / 3, 16 / 3) == pytest.approx(1 / 3)  # of 0, 0 and 4
    assert effective_share(0.0, 0.0) == 0.0
