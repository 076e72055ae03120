"""Tables of all environments. Importing this module imports the modules of all environments."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from types import MappingProxyType

from rlvr_envs.data import ProblemDataset, Source
from rlvr_envs.envs import TaskEnv
from rlvr_envs.tasks import BENCHMARKS, MADE, benchmarks
from verifiers import unknown_name

CLASSES: tuple[type[TaskEnv], ...] = (
    *(getattr(benchmarks, f"{name}Env") for name in BENCHMARKS),
    *(getattr(importlib.import_module(f"rlvr_envs.tasks.{module}"), f"{name}Env") for name, module in MADE.items()),
)
"""The class of every id, such as `GSM8KEnv` for `rlvr/GSM8K-v0`."""

SOURCES: Mapping[str, Source] = MappingProxyType(
    {source.name: source for source in map(benchmarks.source_of, BENCHMARKS)}
)
"""The source of the rows of each benchmark, by the source's name."""


def load(name: str, split: str, *, data_dir: str | os.PathLike[str] | None = None) -> ProblemDataset:
    """Load the problems of a benchmark by its name.

    Args:
        name: A key of `SOURCES`, such as `"gsm8k"`.
        split: One of the benchmark's splits.
        data_dir: As for `Source.load`, which also documents the other errors.

    Raises:
        UnknownNameError: If there is no such benchmark or split.
    """
    if name not in SOURCES:
        raise unknown_name("data set", name, SOURCES)
    return SOURCES[name].load(split, data_dir=data_dir)
