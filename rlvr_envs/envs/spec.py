"""`TaskSpec`: the definition of a named environment, from a benchmark, generated problems or worlds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rlvr_envs.data import ProblemDataset, Source
from rlvr_envs.procedural.base import DEFAULT_SIZES, ProceduralDataset
from rlvr_envs.prompts import CHAT_PROMPTS, ChatPrompt, Prompt, get_prompt
from rlvr_envs.tokenizers import Tokenizer
from rlvr_envs.types import Dataset
from rlvr_envs.worlds import world_rules
from rlvr_envs.worlds.process_data import ProcessDataset
from rlvr_envs.worlds.process_rules import process_rules
from verifiers import unknown_name

_LEAST_CHAT_TOKENS = 256
_WORDINESS = 8
"""Expected length of a chat's turns, relative to the length of the answer with its end tokens."""


@dataclass(frozen=True)
class TaskSpec:
    """The definition of an environment's id: the source of the problems, and the defaults of the settings."""

    load: Callable[..., Dataset]
    """Loads the data set, given `split=` and the arguments in `data_options`."""
    sizes: Mapping[str, int]
    """The number of problems in each split."""
    source: str
    """A description of the data's source, in words."""
    default_split: str = "train"
    other_splits: bool = False
    """Whether `data_options` may name a data set whose splits differ from `sizes`."""
    data_options: tuple[str, ...] = ()
    """Names of further arguments of `load`."""
    verifier: tuple[str, Mapping[str, object]] = ("math", {})
    chat_verifier: tuple[str, Mapping[str, object]] | None = None
    """The default verifier under a chat prompt, if `verifier` accepts nothing but the bare answer."""
    prompt: str | Prompt = "plain"
    chat_prompt: str | None = None
    """Name of the prompt for models with a chat template. None selects `prompt` if it is a chat, and otherwise the chat prompt
    that fits the verifier."""
    max_new_tokens: int = 512
    chat_tokens: int = 0
    """The smallest default of `max_new_tokens` under a chat prompt, for ids whose own default leaves no room for words."""
    tokenizer: str = "byte"
    rules: Callable[[Any, Tokenizer], Mapping[str, Any]] | None = None
    """Returns further defaults of `Rules` by name, including `max_new_tokens`, for a data set and a tokenizer.
    `max_inserted_tokens` may be a function of `max_new_tokens`."""

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""
        return tuple(self.sizes)

    def problems(self, split: str | None = None, **options: Any) -> Dataset:
        """Load a split, by default the default split.

        Args:
            split: One of `splits`, unless the task has `other_splits`.
            **options: Further arguments of `load`.

        Raises:
            UnknownNameError: If there is no such split.
        """
        split = self.default_split if split is None else split
        if not (self.other_splits or split in self.sizes):
            raise unknown_name("split", split, self.sizes)
        return self.load(split=split, **options)

    def verifier_of(self, dataset: Dataset, *, chat: bool = False) -> tuple[str, Mapping[str, object]]:
        """Name and arguments of the default verifier: the verifier that the problems need, or else the task's verifier.

        Args:
            dataset: The problems.
            chat: Whether a `ChatPrompt` asks the problems.
        """
        own = dataset.verifier if isinstance(dataset, ProblemDataset) else None
        return own or (self.chat_verifier if chat else None) or self.verifier

    def prompt_for(self, dataset: Dataset, *, chat: bool) -> Prompt:
        """The prompt that `"auto"` selects: a chat prompt for a model with a chat template, otherwise the default prompt."""
        prompt = get_prompt(self.prompt)
        if not chat or isinstance(prompt, ChatPrompt):
            return prompt
        return get_prompt(self.chat_prompt or CHAT_PROMPTS.get(self.verifier_of(dataset)[0], "chat"))


def benchmark_task(
    source: Source,
    *,
    verifier: tuple[str, Mapping[str, object]],
    prompt: str | Prompt,
    max_new_tokens: int,
    default_split: str,
) -> TaskSpec:
    """Describe the task of a published benchmark."""
    return TaskSpec(
        load=source.load,
        sizes=source.sizes,
        source=f"hub: {source.hub_id}",
        default_split=default_split,
        data_options=("data_dir", "contracts") if verifier[0] == "unit_tests" else ("data_dir",),
        verifier=verifier,
        prompt=prompt,
        max_new_tokens=max_new_tokens,
    )


def procedural_task(
    dataset: type[ProceduralDataset[Any]],
    *,
    max_new_tokens: int,
    sizes: Mapping[str, int] = DEFAULT_SIZES,
    chat_prompt: str | None = None,
    rules: Callable[[Any, Tokenizer], Mapping[str, Any]] | None = None,
) -> TaskSpec:
    """Describe the task of a family of generated problems. Its difficulty fields become arguments; `sizes` are defaults."""
    names = tuple(field.name for field in dataclasses.fields(dataset) if field.name != "split")
    return TaskSpec(
        load=dataset,
        sizes=sizes,
        source="generated",
        data_options=names,
        verifier=dataset.verifier,
        chat_verifier=dataset.chat_verifier,
        # In words, a game's rules define the form of a move, which is not a final answer in a box.
        chat_prompt=chat_prompt or ("boxed_chat" if rules is None else "chat"),
        max_new_tokens=max_new_tokens,
        chat_tokens=max(_LEAST_CHAT_TOKENS, _WORDINESS * max_new_tokens),
        rules=rules,
    )


def world_task(dataset: type[Any], *, sizes: Mapping[str, int]) -> TaskSpec:
    """Describe the task of a data set of worlds."""
    return TaskSpec(
        load=dataset,
        sizes=sizes,
        source="generated",
        data_options=tuple(field.name for field in dataclasses.fields(dataset) if field.name != "split"),
        verifier=("rlvr_envs.worlds.rules:WalkVerifier", {}),
        tokenizer="char",
        rules=world_rules,
    )


def process_task(dataset: type[ProcessDataset]) -> TaskSpec:
    """Describe the task of episodes of a finite decision process."""
    return TaskSpec(
        load=dataset,
        sizes=dataset.sizes,
        source="generated",
        data_options=tuple(field.name for field in dataclasses.fields(dataset) if field.name != "split"),
        verifier=("rlvr_envs.worlds.process_rules:ProcessVerifier", {}),
        tokenizer="char",
        rules=process_rules,
    )
