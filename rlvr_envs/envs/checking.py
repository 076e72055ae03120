"""Check an environment's arguments without `transformers`, and without verifiers that may load a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import verifiers
from rlvr_envs.envs.build import (
    PromptRenderer,
    Settings,
    build,
    choose_prompt,
    chosen_verifier,
    fewest_new_tokens,
    read_options,
)
from rlvr_envs.envs.fitting import reads_references
from rlvr_envs.envs.questions import longest_problem, question_in
from rlvr_envs.envs.spec import TaskSpec
from rlvr_envs.prompts import Prompt
from rlvr_envs.tokenizers import ByteTokenizer, check_hugging_face
from rlvr_envs.types import Dataset
from verifiers import InvalidArgumentError, Problem

_BUILT_IN = ("byte", "char")
_FAST = "tokenizer.json"
"""Name of the file from which a tokenizer can be read without `transformers`."""


class CheckedTask(NamedTuple):
    """Facts about an environment that are known before it is built."""

    tokens: int
    """The number of tokens that an episode may have, including the prompt. If only `transformers` can load the tokenizer, this
    is a lower bound."""
    problems: int
    """The number of problems."""


def check_task(task: TaskSpec, options: Mapping[str, Any]) -> CheckedTask:
    """Check the arguments of an environment, its data set and its verifier.

    Raises:
        RLVRError: As for `build`.
    """
    others = dict(options)
    verifier = others.get("verifier")
    match (verifier, {}) if isinstance(verifier, str) else verifier:
        case (str(name), dict(arguments)):
            verifiers.check_spec(name, arguments)
            if not reads_references(verifier):
                others["verifier"] = _unjudged
    tokenizer = others.get("tokenizer")
    if isinstance(tokenizer, str) and tokenizer not in _BUILT_IN:
        check_hugging_face(tokenizer)
        return _without_tokenizer(task, others, Path(tokenizer) / _FAST)
    streams, _ = build(task, 1, others)
    try:
        return CheckedTask(streams.rules.buffer_tokens, len(streams.dataset))
    finally:
        streams.close()


def _unjudged(completion: str, problem: Problem) -> bool:
    """Placeholder for a verifier that is not built, since it may load a model."""
    return False


def _without_tokenizer(task: TaskSpec, options: Mapping[str, Any], tokenizer: Path) -> CheckedTask:
    """Check the arguments that need no tokenizer, and count tokens as far as possible without a chat template.

    An error is raised only if every prompt that may be selected leads to an error.
    """
    settings, dataset = read_options(task, options)
    counted, errors = [], []
    for prompt in _prompts(task, dataset, settings):
        try:
            chosen_verifier(task, settings, dataset, prompt)
        except InvalidArgumentError as error:
            errors.append(error)
        else:
            counted.append(_fewest_tokens(task, dataset, settings, prompt, tokenizer))
    if not counted:
        raise errors[0]
    return CheckedTask(min(counted), len(dataset))


def _prompts(task: TaskSpec, dataset: Dataset, settings: Settings) -> list[Prompt]:
    """The prompts that the settings may select. `"auto"` selects another prompt for a tokenizer without a chat template.

    With a system message, this other prompt is impossible, since it is text and not a chat.
    """
    prompts = [choose_prompt(task, dataset, settings, has_template=True)]
    if settings.system is None and (other := choose_prompt(task, dataset, settings, has_template=False)) not in prompts:
        prompts.append(other)
    return prompts


def _fewest_tokens(task: TaskSpec, dataset: Dataset, settings: Settings, prompt: Prompt, tokenizer: Path) -> int:
    """The number of tokens that an episode may have, without tokens that a chat template or the id's own rules add."""
    longest = settings.max_prompt_tokens
    if longest is None:
        longest = _fewest_prompt_tokens(dataset, prompt, tokenizer)
    total = longest + fewest_new_tokens(task, settings, prompt) + (settings.max_inserted_tokens or 0)
    return total if settings.max_context_tokens is None else min(total, settings.max_context_tokens)


def _fewest_prompt_tokens(dataset: Dataset, prompt: Prompt, tokenizer: Path) -> int:
    """The number of tokens of the longest prompt's messages, without the tokens of a chat template."""
    renderer = PromptRenderer(prompt, ByteTokenizer(), question_in(dataset, prompt))
    longest = longest_problem(dataset, renderer.question)
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
