"""The policies of commands that train; apart from `common`, since this needs torch."""

from __future__ import annotations

from typing import Any

from agents.commands.common import make_vec
from agents.models import load_policy, tiny_model
from agents.policy import CausalLMPolicy
from rlvr_envs import TokenVectorEnv


def policy_for(
    model: str, name: str, *, num_envs: int, arguments: dict[str, Any], temperature: float
) -> tuple[CausalLMPolicy, TokenVectorEnv]:
    """A policy to be trained, and an environment of the same tokens.

    Args:
        model: A folder, a Hugging Face name, or "tiny" for random weights of a size for the environment.
        name: The environment's id.
        num_envs: Episodes that are played at once.
        arguments: Of the environment.
        temperature: Of the policy.
    """
    if model != "tiny":
        policy, tokenizer = load_policy(model, temperature=temperature, dtype="float32")
        return policy, make_vec(name, num_envs, {"tokenizer": tokenizer, **arguments})
    env = make_vec(name, num_envs, arguments)
    made = tiny_model(env.streams.vocab_size, max_tokens=env.streams.buffer_tokens)
    return CausalLMPolicy(made, temperature=temperature), env
