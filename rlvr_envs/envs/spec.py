"""`TaskSpec`: what an environment with a name is, and how it follows from a benchmark, generated problems or worlds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rlvr_envs.data import ProblemDataset, Source
from rlvr_envs.procedural.base import DEFAULT_SIZES, ProceduralDataset
from rlvr_envs.prompts import Prompt
from rlvr_envs.tokenizers import Tokenizer
from rlvr_envs.types import Dataset
from rlvr_envs.worlds import world_rules
from rlvr_envs.worlds.process_data import ProcessDataset
from rlvr_envs.worlds.process_rules import process_rules


@dataclass(frozen=True)
class TaskSpec:
    """What an id stands for: the source of its problems, and the defaults of its environments."""

    load: Callable[..., Dataset]
    """Loads the data set, given `split=` and the options below."""
    sizes: Mapping[str, int]
    """The splits, with the number of problems of each."""
    source: str
    """Source of the data, in words."""
    default_split: str = "train"
    data_options: tuple[str, ...] = ()
    """Further arguments of `load`."""
    verifier: tuple[str, Mapping[str, object]] = ("math", {})
    prompt: str | Prompt = "plain"
    max_new_tokens: int = 512
    tokenizer: str = "byte"
    rules: Callable[[Any, Tokenizer], Mapping[str, Any]] | None = None
    """Gives, for a data set and a tokenizer, further defaults of `Rules` by name, `max_new_tokens` included;
    `max_inserted_tokens` may be a function of that budget."""

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""
        return tuple(self.sizes)

    def verifier_of(self, dataset: Dataset) -> tuple[str, Mapping[str, object]]:
        """Name and arguments of the default verifier of a data set: what its problems need, else that of the task."""
        own = dataset.verifier if isinstance(dataset, ProblemDataset) else None
        return own or self.verifier


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
        data_options=("data_dir",),
        verifier=verifier,
        prompt=prompt,
        max_new_tokens=max_new_tokens,
    )


def procedural_task(
    dataset: type[ProceduralDataset[Any]],
    *,
    max_new_tokens: int,
    sizes: Mapping[str, int] = DEFAULT_SIZES,
    rules: Callable[[Any, Tokenizer], Mapping[str, Any]] | None = None,
) -> TaskSpec:
    """Describe the task of a family of generated problems; its difficulty fields become arguments, `sizes` are by default."""
    names = tuple(field.name for field in dataclasses.fields(dataset) if field.name != "split")
    return TaskSpec(
        load=dataset,
        sizes=sizes,
        source="generated",
        data_options=names,
        verifier=dataset.verifier,
        max_new_tokens=max_new_tokens,
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
