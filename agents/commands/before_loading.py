"""What commands check before torch, transformers or a model load, so that a mistake is answered in a second.

Nothing here builds a verifier that the user named, since that may load a model, or leaves anything behind. What can't be told
this early, such as whether the weights of a model are whole, is told where it is used.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import verifiers
from agents.commands.common import make_one, make_vec, with_options
from agents.policies.transformers.model_files import (
    check_context,
    check_model,
    check_tokenizer,
    model_context,
    model_folder,
    saved_tokenizer,
)
from rlvr_envs import ByteTokenizer, Dataset, Prompt, TaskEnv, environment_class, find_environment
from rlvr_envs.envs.build import PromptRenderer, longest_problem, read_options
from rlvr_envs.envs.fitting import reads_references
from rlvr_envs.tokenizers import check_hugging_face
from verifiers import missing_dependency
from verifiers.registry import check_spec

UNTRAINED = "tiny"
"""Names the small model with random weights that `rlvr train` and `rlvr sft` make."""


class Checked(NamedTuple):
    """What is known of an environment before anything loads."""

    tokens: int
    """The number of tokens that an episode may have, the prompt included; with a tokenizer that `transformers` has to load,
    fewer than that."""
    problems: int | None
    """The number of problems; None where that is not known."""


_BUILT_IN = (None, "byte", "char")
_FAST = "tokenizer.json"
"""File of a tokenizer that is read without transformers."""


def check_policy(
    model: str,
    environment: str,
    arguments: Mapping[str, Any],
    task_arguments: Mapping[str, Any],
    *,
    acts: bool = True,
) -> Checked:
    """Check a language model, its environment, and that the two fit.

    Args:
        model: As for `load_policy`, or "tiny".
        environment: As for `rlvr_envs.find_environment`.
        arguments: Those of the environment.
        task_arguments: Further arguments, of a `TaskEnv` alone.
        acts: Whether the model plays whole episodes, which then have to fit into its context.

    Raises:
        RLVRError: As loading the policy and building the environment would.
    """
    tokenizer, context = arguments.get("tokenizer"), None
    if model != UNTRAINED:
        folder = model_folder(model)
        check_model(folder)
        context = model_context(folder)
        own = saved_tokenizer(folder)
        if own is not None:
            tokenizer = own
        elif tokenizer is None:
            check_tokenizer(folder)
            tokenizer = str(folder)
    others = {key: value for key, value in arguments.items() if key != "tokenizer"}
    checked = check_environment(environment, others, {**task_arguments, "tokenizer": tokenizer})
    if acts:
        check_context(checked.tokens, context)
    return checked


def check_reward_model(model: str | None, arguments: Mapping[str, Any]) -> None:
    """Check that there is a model that judges; None for none.

    Args:
        model: Its folder, or its name on the hub.
        arguments: Those of the verifier; with a server, the model is there.

    Raises:
        InvalidArgumentError: If there is none.
    """
    if model is not None and arguments.get("server") is None:
        check_model(model, "sequence classifier")


def check_lora(rank: int | None) -> None:
    """Check that LoRA is installed where it is used.

    Raises:
        MissingDependencyError: If it is not.
    """
    if rank is not None and importlib.util.find_spec("peft") is None:
        raise missing_dependency("peft", "lora", "LoRA")


def check_environment(name: str, arguments: Mapping[str, Any], task_arguments: Mapping[str, Any]) -> Checked:
    """Check an environment with its data set and its verifier.

    Args:
        name: As for `rlvr_envs.find_environment`.
        arguments: Its arguments.
        task_arguments: Further arguments, of a `TaskEnv` alone, the tokenizer among them.

    Raises:
        RLVRError: As building the environment would.
    """
    found: Any = find_environment(name)
    if not (isinstance(found, type) and issubclass(found, TaskEnv)):
        make_one(name, found, arguments).close()
        return Checked(0, None)
    others = with_options(task_arguments, arguments)
    tokenizer, verifier = others.pop("tokenizer"), others.get("verifier")
    if verifier is not None:
        check_spec(*(verifier if isinstance(verifier, tuple) else (verifier, {})))
        if not reads_references(verifier):
            del others["verifier"]
    if isinstance(tokenizer, str) and tokenizer not in _BUILT_IN:
        check_hugging_face(tokenizer)
        return _without_tokenizer(name, others, Path(tokenizer) / _FAST)
    env = make_vec(name, 1, others if tokenizer is None else {**others, "tokenizer": tokenizer})
    try:
        return Checked(env.streams.rules.buffer_tokens, env.num_problems)
    finally:
        env.close()


def _without_tokenizer(name: str, arguments: Mapping[str, Any], tokenizer: Path) -> Checked:
    """Check an environment as far as that needs no tokenizer: `transformers` has to load it for its chat template.

    Args:
        name: The environment.
        arguments: Its arguments.
        tokenizer: File of the tokenizer; it need not exist.
    """
    task = environment_class(name).task
    settings, dataset, prompt = read_options(task, arguments)
    if settings.verifier is None:
        verifier, its_arguments = task.verifier_of(dataset)
        verifiers.make(verifier, **its_arguments)
    budget = task.max_new_tokens if task.rules is None else 0
    if settings.max_new_tokens is not None:
        budget = settings.max_new_tokens
    longest = settings.max_prompt_tokens
    if longest is None:
        longest = _fewest_prompt_tokens(dataset, prompt, tokenizer)
    total = longest + budget + (settings.max_inserted_tokens or 0)
    if settings.max_context_tokens is not None:
        total = min(total, settings.max_context_tokens)
    return Checked(total, len(dataset))


def _fewest_prompt_tokens(dataset: Dataset, prompt: Prompt, tokenizer: Path) -> int:
    """The tokens of what the longest prompt's messages say, without those of a chat template."""
    renderer = PromptRenderer(prompt, ByteTokenizer())
    longest = longest_problem(dataset)
    if longest is not None:
        return sum(len(message.content.encode()) for message in renderer.messages(longest))
    if not tokenizer.is_file():
        return 0
    from tokenizers import Tokenizer

    said = max(
        ([message.content for message in renderer.messages(dataset[index])] for index in range(len(dataset))),
        key=lambda contents: sum(map(len, contents)),
    )
    encode = Tokenizer.from_file(str(tokenizer)).encode
    return sum(len(encode(text, add_special_tokens=False).ids) for text in said)
