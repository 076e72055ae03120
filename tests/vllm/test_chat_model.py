"""vLLM samples from a published chat model: the learner's log-probabilities, the ends of its template, its new weights."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from agents import CausalLMPolicy, Episode, Trajectory, VLLMConfig, VLLMPolicy, rollout
from rlvr_envs import HuggingFaceTokenizer
from tests.published_model import chat_policy, check_ends, sums
from tests.vllm.conftest import ENVIRONMENT
from tests.vllm.test_policy import learner_logprobs, shift

if importlib.util.find_spec("vllm") is None:
    pytest.skip("vllm is not installed here: `make test-vllm` runs these tests", allow_module_level=True)

TOLERANCE = 3e-4
"""In nats: float32 in thirty layers, by other kernels; measured: 5e-5."""
ENGINE_ARGS = {"enforce_eager": True, "max_model_len": 256, "max_num_batched_tokens": 512, "max_num_seqs": 8}
EPISODES = [Episode(problem=index // 4, group=index // 4, seed=index) for index in range(8)]

Chat = tuple[CausalLMPolicy, HuggingFaceTokenizer, VLLMPolicy]


@pytest.fixture(scope="module")
def chat() -> Iterator[Chat]:
    """The learner, its tokenizer, and an engine with its weights."""
    policy, tokenizer = chat_policy(temperature=0.5)
    config = VLLMConfig(engine_args=ENGINE_ARGS, environment=ENVIRONMENT)
    with VLLMPolicy.for_env(policy, sums(tokenizer, 8), config) as sampler:
        sampler.sync()
        yield policy, tokenizer, sampler


def logprob_gap(policy: CausalLMPolicy, trajectory: Trajectory) -> float:
    """The largest difference between what the engine says of a completion's tokens and the learner."""
    own = trajectory.logprobs[trajectory.prompt_length :]
    return float(np.abs(own - learner_logprobs(policy, trajectory)).max())


def test_completions_have_the_learners_log_probabilities_and_end_as_the_template_says(chat: Chat) -> None:
    policy, tokenizer, sampler = chat
    trajectories = rollout(sums(tokenizer, 8), sampler, EPISODES)
    check_ends(trajectories, tokenizer.turn_end)
    assert max(logprob_gap(policy, trajectory) for trajectory in trajectories) < TOLERANCE


def test_greedy_completions_are_the_learners_while_the_likeliest_token_is_clear(chat: Chat) -> None:
    policy, tokenizer, sampler = chat
    env = sums(tokenizer, 4)
    asked = [Episode(problem=index, group=index, seed=0) for index in range(4)]
    ours = rollout(env, policy.at_temperature(0.0), asked)
    theirs = rollout(env, sampler.at_temperature(0.0), asked)
    for mine, other in zip(ours, theirs, strict=True):
        clear = clear_tokens(policy, mine)
        assert clear > mine.prompt_length
        np.testing.assert_array_equal(mine.tokens[:clear], other.tokens[:clear])


def clear_tokens(policy: CausalLMPolicy, played: Trajectory) -> int:
    """The number of tokens up to the first that is likelier than any other by no more than rounding."""
    tokens = torch.from_numpy(played.tokens.astype(np.int64))[None]
    with torch.no_grad():
        best = policy.distributions(tokens, played.prompt_length)[0].topk(2).values
    close = (best[:, 0] - best[:, 1] < 2 * TOLERANCE).nonzero()
    return played.prompt_length + int(close[0]) if len(close) else len(played.tokens)


def test_new_weights_arrive(chat: Chat) -> None:
    """Last, since it changes them."""
    policy, tokenizer, sampler = chat
    env = sums(tokenizer, 8)
    shift(policy, 1e-3)
    stale = rollout(env, sampler, EPISODES[:2])
    assert min(logprob_gap(policy, trajectory) for trajectory in stale) > 10 * TOLERANCE
    assert sampler.sync()["sampling/probe_difference"] < TOLERANCE
    trajectories = rollout(env, sampler, EPISODES[:2])
    assert max(logprob_gap(policy, trajectory) for trajectory in trajectories) < TOLERANCE
