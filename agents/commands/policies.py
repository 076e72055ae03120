"""The policies of training commands; separate from `common`, since this module needs torch."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from gymnasium.vector import VectorEnv
from rich.console import Console

import rlvr_envs
from agents import policies
from agents.commands.common import check_engine, make_any_vec, named_arguments
from agents.deferred import torch
from agents.policies.transformers.config import PolicyConfig
from agents.rollouts.vector_adapter import with_token_info
from agents.types import Sampler
from verifiers import InvalidArgumentError
from verifiers.devices import describe_device


def policy_for(
    model: str,
    name: str,
    *,
    num_envs: int,
    arguments: dict[str, Any],
    task_arguments: Mapping[str, Any],
    config: PolicyConfig,
) -> tuple[policies.CausalLMPolicy, VectorEnv[Any, Any, Any]]:
    """Build a policy to train, and an environment with the same tokenizer.

    Args:
        model: A folder, a Hugging Face name, or "tiny" for a small model with random weights.
        name: The environment's id, or a custom environment; see `make_any_vec`.
        num_envs: Number of episodes played at once.
        arguments: Arguments of the environment.
        task_arguments: Further arguments, passed only if the environment is a `TaskEnv`.
        config: Settings of the policy.
    """
    if model != "tiny":
        policy, tokenizer = policies.load_policy(model, config, tokenizer=arguments.get("tokenizer"), dtype="float32")
        others = {key: value for key, value in arguments.items() if key != "tokenizer"}
        return policy, make_any_vec(name, num_envs, others, {**task_arguments, "tokenizer": tokenizer})
    env = with_token_info(make_any_vec(name, num_envs, arguments, task_arguments))
    (buffer_tokens,) = env.single_observation_space["tokens"].shape  # type: ignore[index] # a Dict space
    made = policies.tiny_model(env.single_action_space.n, max_tokens=buffer_tokens)  # type: ignore[attr-defined] # Discrete
    return policies.CausalLMPolicy(made.to(policies.policy_device()), config), env


def say_device(console: Console, device: torch.device) -> None:
    """Print where a model is, unless it is on the CPU."""
    if device.type != "cpu":
        console.print(f"computing on {describe_device(device)}; set --device to change it")


def sampler_for(
    policy: policies.CausalLMPolicy,
    env: VectorEnv[Any, Any, Any],
    engine: Literal["torch", "vllm"],
    pairs: Sequence[str],
) -> contextlib.AbstractContextManager[Sampler]:
    """The sampler for rollouts, as a context manager that closes it."""
    check_engine(engine, pairs)
    if engine == "torch":
        return contextlib.nullcontext(policy)
    from agents.policies.vllm.config import VLLMConfig
    from agents.policies.vllm.policy import VLLMPolicy

    if not isinstance(env, rlvr_envs.TokenVectorEnv):
        raise InvalidArgumentError(
            f"vLLM needs the stop tokens and the token budget of a TokenVectorEnv, but this is a "
            f"{type(env.unwrapped).__name__}: set engine to 'torch', or make the environment a subclass of rlvr_envs.TaskEnv"
        )
    arguments = named_arguments(pairs, "an engine")
    names = {setting.name for setting in dataclasses.fields(VLLMConfig)}
    own = {name: value for name, value in arguments.items() if name in names}
    others = {name: value for name, value in arguments.items() if name not in names}
    return VLLMPolicy.for_env(policy, env, VLLMConfig(**own, engine_args=others))
