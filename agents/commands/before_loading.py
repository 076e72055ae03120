"""Checks of commands before torch, transformers or a model load, so that a mistake is reported within a second.

These checks leave no files behind, and do not build a verifier that the user named, since that may load a model. A fault that
can't be found this early, such as a damaged file of weights, is reported where the file is used.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import rlvr_envs
from agents.commands.common import PROMPT, at_hardest, check_reserved, make_one, with_options
from agents.policies.transformers.model_files import (
    check_context,
    check_model,
    check_tokenizer,
    model_context,
    model_folder,
    saved_tokenizer,
)
from rlvr_envs.gguf_files import gguf_file
from verifiers import InvalidArgumentError, missing_dependency

UNTRAINED = "tiny"
"""Name of the small model with random weights that `rlvr train` and `rlvr sft` make."""


def check_policy(
    model: str,
    environment: str,
    arguments: Mapping[str, Any],
    task_arguments: Mapping[str, Any],
    *,
    acts: bool = True,
) -> rlvr_envs.CheckedTask | None:
    """Check a language model, its environment, and that the two fit together.

    Args:
        model: As for `load_policy`, or "tiny".
        environment: As for `rlvr_envs.find_environment`.
        arguments: Arguments of the environment.
        task_arguments: Further arguments, only for a `TaskEnv`.
        acts: Whether the model plays whole episodes, which must then fit into its context.
    """
    tokenizer, context = arguments.get("tokenizer"), None
    if model == UNTRAINED and Path(model).exists():
        raise InvalidArgumentError(
            f"--model {UNTRAINED} makes a model with random weights, but there is a folder of this name, too: write "
            f"./{UNTRAINED} for the folder, or rename it"
        )
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
    others = {key: value for key, value in at_hardest(arguments).items() if key != "tokenizer"}
    checked = check_environment(environment, others, {**task_arguments, "tokenizer": tokenizer})
    if acts and checked is not None:
        check_context(checked.tokens, context)
    return checked


def check_reward_model(model: str | None, arguments: Mapping[str, Any]) -> None:
    """Check that a verifier's model exists, if the verifier has a model.

    Args:
        model: The model's folder, or its name on the hub; None for no model.
        arguments: Arguments of the verifier; if they name a server, the model is on that server.
    """
    if model is not None and arguments.get("server") is None:
        if gguf_file(model) is not None:
            raise InvalidArgumentError(
                f"{model} is a GGUF file, which holds a causal language model, and a reward model is a sequence classifier: "
                "expected its folder, as rlvr train-rm writes it, or a name on the Hugging Face hub"
            )
        check_model(model, "sequence classifier")


def check_lora(rank: int | None) -> None:
    """Check that LoRA is installed if it is used."""
    if rank is not None and importlib.util.find_spec("peft") is None:
        raise missing_dependency("peft", "lora", "LoRA")


def check_environment(
    name: str, arguments: Mapping[str, Any], task_arguments: Mapping[str, Any]
) -> rlvr_envs.CheckedTask | None:
    """Check an environment with its data set and its verifier.

    Returns:
        The checked facts about the environment's task; None if the environment has no task, or has its own constructor.
    """
    found: Any = rlvr_envs.find_environment(name)
    if not (isinstance(found, type) and issubclass(found, rlvr_envs.TaskEnv)):
        make_one(name, found, arguments).close()
        return None
    check_reserved(arguments)
    options = {**PROMPT, **with_options(task_arguments, arguments)}
    cls = rlvr_envs.environment_class(name)
    if not issubclass(cls, rlvr_envs.MixtureEnv):
        return _checked(cls, options)
    known = [part for part in cls.each_part(options, _checked).values() if part is not None]
    return rlvr_envs.CheckedTask(max((part.tokens for part in known), default=0), sum(part.problems for part in known))


def _checked(cls: type[rlvr_envs.TaskEnv], options: Mapping[str, Any]) -> rlvr_envs.CheckedTask | None:
    if cls.__init__ is not rlvr_envs.TaskEnv.__init__:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # building the environment gives the same warnings
        return rlvr_envs.check_task(cls.task, options)
