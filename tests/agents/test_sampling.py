"""Sampling against SplitMix64's published numbers, integer arithmetic and observed frequencies."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from agents import CausalLMPolicy, Episode, PolicyConfig, make_batch, rollout
from agents.policies.transformers.sampling import kept_tokens, sample, scaled_logprobs
from agents.seeding import mix, uniforms
from tests.agents.rounding import FLOAT64, assert_equal, assert_equal_stored
from tests.agents.test_adapter import third_party
from tests.agents.trajectories import tiny_policy
from verifiers import InvalidArgumentError

WORD = 2**64
GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
WORDS = st.integers(0, WORD - 1)
LARGEST_BELOW_1 = 1 - 2.0**-53


def splitmix(word: int) -> int:
    """SplitMix64's output for the state `word`, in plain integers."""
    z = (word + GOLDEN) % WORD
    z = (z ^ (z >> 30)) * FIRST % WORD
    z = (z ^ (z >> 27)) * SECOND % WORD
    return z ^ (z >> 31)


def u64(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


# The generator


def test_splitmix64_gives_its_known_sequence() -> None:
    states = [(1234567 + step * GOLDEN) % WORD for step in range(3)]
    assert mix(u64(*states)).tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert mix(u64(0)).tolist() == [0xE220A8397B1DCDAF]


@settings(max_examples=200)
@given(WORDS, st.integers(0, 2**40))
def test_uniforms_equal_integer_arithmetic(seed: int, position: int) -> None:
    word = splitmix((splitmix(seed) + position * GOLDEN) % WORD)
    results = uniforms(u64(seed), np.array([position]))
    assert results.tolist() == [(word >> 11) / 2**53]
    assert 0 <= results[0] < 1


# Inverting the cumulative distribution


def chosen(probabilities: list[float], *u: float) -> list[int]:
    logprobs = torch.tensor([probabilities] * len(u), dtype=torch.float64).log()
    tokens: list[int] = sample(logprobs, torch.tensor(u, dtype=torch.float64)).tolist()
    return tokens


def test_sample_by_hand() -> None:
    """The cumulative sums are 0.25, 0.25, 0.75 and 1, but for the rounding of logarithms and exponentials."""
    below, above = 0.25 - 1e-12, 0.25 + 1e-12
    draws = (0, 0.1, below, above, 0.74, 0.75 + 1e-12, LARGEST_BELOW_1)
    assert chosen([0.25, 0, 0.5, 0.25], *draws) == [0, 0, 0, 2, 2, 3, 3]
    assert chosen([0.5, 0, 0.5, 0, 0], 1.0) == [2]  # a number that was rounded up to 1
    underflowing = torch.tensor([[-1000.0, 0.0, -1000.0]] * 2)
    assert sample(underflowing, torch.tensor([0.0, LARGEST_BELOW_1], dtype=torch.float64)).tolist() == [1, 1]
    logprobs = torch.tensor([[0.9, 1e-9, 0.1]]).log()  # float32 sums near 0.9 are 6e-8 apart
    shares = logprobs[0].double().exp()
    assert sample(logprobs, ((shares[0] + shares[1] / 2) / shares.sum())[None]).tolist() == [1]


def test_tokens_of_probability_0_are_never_chosen() -> None:
    extremes = (0.0, 5e-324, 2.0**-53, 0.5, LARGEST_BELOW_1)
    for support in itertools.product([0, 1], repeat=5):
        if not any(support):
            continue
        probabilities = [kept / sum(support) for kept in support]
        tokens = chosen(probabilities, *extremes)
        assert all(support[token] for token in tokens)
        assert tokens[0] == support.index(1)
        assert tokens[-1] == 4 - support[::-1].index(1)


@pytest.mark.parametrize(("vocab_size", "dtype"), [(37, torch.float64), (37, torch.float32), (2049, torch.float32)])
def test_sample_equals_bisection_of_the_cumulative_sums(vocab_size: int, dtype: torch.dtype) -> None:
    """More than 2048 tokens are searched by blocks."""
    generator = np.random.default_rng(1)
    logits = generator.normal(0, 4, size=(300, vocab_size))
    logits[generator.random(logits.shape) < 0.3] = -np.inf
    logits[:20, 256 : vocab_size - 1] = -np.inf  # whole blocks without a chance
    logprobs = torch.from_numpy(logits).to(dtype).log_softmax(-1)
    u = generator.random(300)
    u[:4] = 0, LARGEST_BELOW_1, 1e-9, 0.999999
    results = sample(logprobs, torch.from_numpy(u)).tolist()
    for row in range(300):
        shares = np.exp(logprobs[row].numpy()).astype(np.float64)
        assert shares[results[row]] > 0
        below, above = (shares[: results[row] + more].sum() / shares.sum() for more in (0, 1))
        assert below - 1e-12 <= u[row] <= above + 1e-12


@pytest.mark.parametrize("vocab_size", [2, 1000, 150_000])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_last_token_with_a_chance_is_reached_and_not_passed(vocab_size: int, seed: int) -> None:
    logits = torch.randn(8, vocab_size, generator=torch.Generator().manual_seed(seed))
    legal = torch.zeros(8, vocab_size, dtype=torch.bool)
    legal[:, : vocab_size - vocab_size // 3] = True  # float32 probabilities, whose sum is not quite 1
    logprobs = scaled_logprobs(logits, 1.0, legal)
    u = torch.full((8,), LARGEST_BELOW_1, dtype=torch.float64)
    assert sample(logprobs, u).tolist() == [vocab_size - vocab_size // 3 - 1] * 8


# Temperature and legal tokens


@pytest.mark.parametrize("temperature", [0.1, 0.7, 1.0, 3.0])
def test_scaled_logprobs_equal_a_numpy_softmax(temperature: float) -> None:
    generator = np.random.default_rng(0)
    logits = generator.normal(0, 4, size=(3, 5, 11)).astype(np.float32)
    legal = generator.random((3, 5, 11)) < 0.6
    legal[..., 2] = True
    results = scaled_logprobs(torch.from_numpy(logits), temperature, torch.from_numpy(legal)).numpy()
    powers = np.where(legal, np.exp(logits.astype(np.float64) / temperature), 0)
    with np.errstate(divide="ignore"):
        expected = np.log(powers / powers.sum(-1, keepdims=True))
    # Of up to 150: a quotient, the largest taken away, exponentials, their sum, its logarithm.
    assert_equal(results[legal], expected[legal], size=150, precision=np.float32, operations=16)
    assert (results[~legal] == -np.inf).all()
    assert results.dtype == np.float32
    half = scaled_logprobs(torch.from_numpy(logits).bfloat16(), temperature)  # is normalised in float32
    assert_equal(half.double().exp().sum(-1), np.ones((3, 5)), size=12, precision=np.float32, operations=16)
    only = scaled_logprobs(torch.tensor([[9.0, -50.0, 3.0]]), temperature, torch.tensor([[False, True, False]]))
    assert only.tolist() == [[-torch.inf, 0.0, -torch.inf]]


def test_illegal_tokens_get_no_gradient_and_make_none_infinite() -> None:
    logits = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    logprobs = scaled_logprobs(logits, 1.0, torch.tensor([[True, False, True]]))
    (gradient,) = torch.autograd.grad(logprobs[0, 0], logits)
    share = 1 / (1 + np.exp(2.0))  # of token 0 among tokens 0 and 2
    assert_equal(gradient, [[1 - share, 0, share - 1]], precision=np.float32, operations=16)


# Leaving tokens out


def kept(logits: list[float], **settings: Any) -> list[int]:
    logprobs = torch.tensor([logits]).log_softmax(-1)
    return kept_tokens(logprobs, **settings)[0].nonzero()[:, 0].tolist()


def test_top_k_top_p_and_min_p_by_hand() -> None:
    """Probabilities 0.5, 0.25, 0.125, 0.125 in the order 2, 0, 1, 3."""
    logits = torch.tensor([0.25, 0.125, 0.5, 0.125]).log().tolist()
    assert kept(logits) == [0, 1, 2, 3]
    assert kept(logits, top_k=1) == [2]
    assert kept_tokens(torch.tensor([[-1.4, -2.1, -0.7, -2.1]]), top_k=3).all()  # the fourth is as likely as the third
    assert kept(logits, top_p=0.49) == [2]
    assert kept(logits, top_p=0.51) == [0, 2]
    assert kept(logits, top_p=1e-9) == [2]
    assert kept(logits, min_p=0.49) == [0, 2]
    assert kept(logits, min_p=0.26) == [0, 2]
    assert kept(logits, min_p=1.0) == [2]
    assert kept(logits, top_k=2, top_p=0.7) == [0, 2]  # 0.5 / 0.75 is below 0.7
    assert kept(logits, top_k=2, top_p=0.66) == [2]
    assert kept([0.0, -math.inf, 1.0, -math.inf], top_p=0.999999) == [0, 2]


@FLOAT64
@pytest.mark.parametrize("options", [{"top_k": 3}, {"top_p": 0.6}, {"min_p": 0.2}, {"top_k": 5, "top_p": 0.8}])
def test_what_is_sampled_is_what_is_stored_and_learned(options: dict[str, Any]) -> None:
    """The stored log-probabilities are those of the renormalised distribution, and the learner's at the same weights."""
    acting = CausalLMPolicy(tiny_policy().model, PolicyConfig(temperature=0.8, **options))
    played = rollout(third_party(5), acting, [Episode(-1, group, seed=group) for group in range(24)])
    for one in played:
        assert one.action_masks is not None
        choices = np.unpackbits(one.action_masks, axis=1, count=16).astype(bool)
        for t in np.flatnonzero(one.policy_mask).tolist():
            with torch.no_grad():
                logits = acting.model(input_ids=torch.from_numpy(one.tokens[None, :t].astype(np.int64))).logits[0, -1]
            plain = (logits.float() / 0.8).log_softmax(-1)
            expected = kept_tokens(plain[None], **options)[0]
            assert choices[t].tolist() == expected.tolist()
            assert choices[t][one.tokens[t]]
            left = plain.masked_fill(~expected, -torch.inf).log_softmax(-1)
            assert float(left[one.tokens[t]]) == pytest.approx(float(one.logprobs[t]), abs=10 * 2**-24)
    batch = make_batch(played)
    mask = batch.loss_mask[:, batch.first :]
    learned = acting.read(batch).logprobs[mask].detach()
    assert_equal_stored(learned, batch.logprobs[:, batch.first :][mask])
    assert {len(set(one.tokens[1:].tolist())) for one in played} != {1}


@pytest.mark.parametrize("temperature", [-1.0, -1e-300, 1e-300, math.inf, math.nan])
def test_a_temperature_that_nothing_can_be_divided_by_is_refused(temperature: float) -> None:
    with pytest.raises(InvalidArgumentError, match="temperature must be 0, for the likeliest token, or at least 1e-06"):
        tiny_policy().at_temperature(temperature)
