"""Data sets of problems: one adapter for each benchmark, and `text` for anything else.

Each adapter module has `load(split, *, data_dir=None) -> ProblemDataset`, its `SPLITS` and its `SOURCE`. Rows come
from the folder `data_dir`, else from the folder that the environment variable `RLVR_DATA_DIR` names, else from the
hub through `datasets.load_dataset`. Local folders look like this:

```
<data folder>/gsm8k/train.jsonl        one JSON object on each line, in the columns of the hub's data set
<data folder>/gsm8k/test.parquet       or Parquet with the same columns
<data folder>/mbpp/test.jsonl          MBPP may have all its splits in one file
```
"""

from __future__ import annotations

import os
from types import MappingProxyType

from rlvr_envs.data import text
from rlvr_envs.data.dataset import ProblemDataset
from rlvr_envs.data.local import DATA_DIR_VARIABLE
from rlvr_envs.data.source import Source, clear_cache
from rlvr_envs.tasks import aime24, amc23, gsm8k, humaneval, math, math500, mbpp
from verifiers import unknown_name

_SOURCES = (
    gsm8k.SOURCE,
    math.SOURCE,
    math500.SOURCE,
    aime24.SOURCE,
    amc23.SOURCE,
    humaneval.SOURCE,
    mbpp.SOURCE,
)
SOURCES = MappingProxyType({source.name: source for source in _SOURCES})
"""The benchmarks by name."""


def load(name: str, split: str, *, data_dir: str | os.PathLike[str] | None = None) -> ProblemDataset:
    """Load a benchmark by its name.

    Args:
        name: A key of `SOURCES`, such as `"gsm8k"`.
        split: One of its splits.
        data_dir: As for `Source.load`, which also lists the other errors.

    Raises:
        UnknownNameError: If there is no such benchmark or split.
    """
    if name not in SOURCES:
        raise unknown_name("data set", name, SOURCES)
    return SOURCES[name].load(split, data_dir=data_dir)


__all__ = [
    "DATA_DIR_VARIABLE",
    "SOURCES",
    "ProblemDataset",
    "Source",
    "aime24",
    "amc23",
    "clear_cache",
    "gsm8k",
    "humaneval",
    "load",
    "math",
    "math500",
    "mbpp",
    "text",
]
