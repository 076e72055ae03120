"""A chat model that somebody else published: what models made in a moment can't show, such as a template and 49 152 tokens."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import pytest

from rlvr_envs import HuggingFaceTokenizer, Tokenizer, TokenVectorEnv
from verifiers import Outcome, Problem, Verdict

VARIABLE = "RLVR_CHAT_MODEL"
"""The environment variable with the model's folder, which `make test-trl` and `make test-vllm` set."""
BUDGET = 24
"""Tokens of a completion: some answers end before, and some are cut."""


def chat_policy(temperature: float) -> tuple[Any, HuggingFaceTokenizer]:
    """The model and its tokenizer, in float32 throughout; skips the test where there is none."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        pytest.skip(f"{VARIABLE} names no chat model: make test-trl and make test-vllm set it")
    from agents import PolicyConfig, load_policy

    config = PolicyConfig(temperature=temperature, precision="float32")
    policy, tokenizer = load_policy(folder, config, dtype="float32", device="cpu")
    assert tokenizer.chat_template is not None
    return policy, tokenizer


def sums(tokenizer: Tokenizer, num_envs: int, **settings: Any) -> TokenVectorEnv:
    """Sums in words, under the chat template."""
    defaults = {"prompt": "chat", "max_new_tokens": BUDGET, "verifier": share_of_digits}
    return gym.make_vec("rlvr/Addition-v0", num_envs=num_envs, tokenizer=tokenizer, **(defaults | settings))


def share_of_digits(completion: str, problem: Problem) -> Verdict:
    """A score that differs between completions, which are hardly ever right."""
    return Verdict(sum(map(str.isdigit, completion)) / max(len(completion), 1), Outcome.SCORED)


def check_ends(trajectories: Sequence[Any], end: int) -> None:
    """A completion ends with the token that closes a turn, and nothing is behind it, or it is cut; there are some of both."""
    assert {trajectory.terminated for trajectory in trajectories} == {True, False}
    for trajectory in trajectories:
        own = trajectory.tokens[trajectory.prompt_length :]
        assert end not in own[:-1]
        assert trajectory.terminated == (own[-1] == end)
        assert trajectory.truncated == (not trajectory.terminated)
        assert trajectory.terminated or len(own) == BUDGET
