"""The environments of published problems. Each environment is a row of a table in this folder; each kind has its own table.

A row names the columns and sizes of the published data, but contains no data, and has the text of the class's docstring. The
value of a missing key comes from the row that `like` names, or else from the table's defaults above the first row, or else from
the defaults of `Benchmark`. Code that a row needs is a function in the module with the same name as the table, such as
`rlvr_envs.tasks.mathematics`.

The class `GSM8KEnv` of the row `[GSM8K]` is an attribute of this module, made at its first use.
"""

from __future__ import annotations

import functools
import pkgutil
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from rlvr_envs.data import Source
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task
from rlvr_envs.tasks import BENCHMARKS

_DOCSTRING = """{row.title}

Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

## Description
{row.description}

## Starting State
{row.start}

## Reward
{row.reward}

## Arguments
All of `rlvr_envs.Settings`, and {row.arguments}. Defaults: `split="{row.split}"`,
`max_new_tokens={row.max_new_tokens}`, `verifier="{row.verifier}"`.
"""


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A row of a table of benchmarks."""

    env: str
    """The row's own name: `GSM8K` for `rlvr/GSM8K-v0`."""
    name: str = ""
    """Name of the data's folder, and of the data in ids of problems; empty for the row's name in lower case."""
    hub_id: str
    """See `rlvr_envs.data.Source`, which also explains the other fields that it has under the same name."""
    hub_config: str | None = None
    sizes: Mapping[str, int]
    hub_splits: Mapping[str, str] = field(default_factory=dict)
    hub_parts: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    hub_files: Mapping[str, str] = field(default_factory=dict)
    combined_split: str | None = None
    reader: str
    """The `module:attribute` of the conversion from a row to a problem: a `rlvr_envs.data.source.ToProblem`, or a class whose
    instances are such conversions."""
    columns: Mapping[str, Any] = field(default_factory=dict)
    """The arguments of this class, if `reader` is a class."""
    belongs: str | None = None
    """The `module:attribute` of a function that decides whether a row belongs to a split."""
    used: str = ""
    default_split: str | None = None
    """The default split; None for `train`, or for `test` if there is no split `train`."""
    prompt: str
    """Name of the default prompt."""
    verifier: str
    """Name of the default verifier."""
    max_new_tokens: int
    title: str
    """The first line of the docstring. The fields below are the sections of the docstring."""
    description: str
    start: str
    reward: str

    @property
    def split(self) -> str:
        """The default split."""
        return self.default_split or ("train" if "train" in self.sizes else "test")

    @property
    def arguments(self) -> str:
        """The arguments of the data set, in words."""
        local = "`data_dir`: a local folder of the data"
        contracts = (
            "`contracts`: a file with the contract of each problem, as `rlvr check-dataset --contract auto` writes it"
        )
        return f"{local}; {contracts}" if self.verifier == "unit_tests" else local

    @property
    def docstring(self) -> str:
        """The docstring of the environment's class."""
        return _DOCSTRING.format(row=self)

    def make_source(self) -> Source:
        """Describe the origin of the rows, and their conversion to problems."""
        reader: Any = pkgutil.resolve_name(self.reader)
        return Source(
            name=self.name or self.env.lower(),
            hub_id=self.hub_id,
            hub_config=self.hub_config,
            sizes=self.sizes,
            to_problem=reader(**self.columns) if isinstance(reader, type) else reader,
            hub_splits=self.hub_splits,
            hub_parts={
                split: tuple((config, name) for config, name in parts) for split, parts in self.hub_parts.items()
            },
            hub_files=self.hub_files,
            combined_split=self.combined_split,
            belongs=None if self.belongs is None else pkgutil.resolve_name(self.belongs),
            used=self.used,
        )

    def make_task(self) -> TaskSpec:
        """Describe the task of the row's environment."""
        return benchmark_task(
            source_of(self.env),
            default_split=self.split,
            verifier=(self.verifier, {}),
            prompt=self.prompt,
            max_new_tokens=self.max_new_tokens,
        )


@functools.cache
def rows(kind: str) -> Mapping[str, Benchmark]:
    """The rows of the table of a kind, such as `"mathematics"`, by name."""
    table = tomllib.loads((Path(__file__).parent / f"{kind}.toml").read_text(encoding="utf-8"))
    defaults = {key: value for key, value in table.items() if not isinstance(value, dict)}
    own = {key: value for key, value in table.items() if isinstance(value, dict)}
    like = {name: own.get(row.pop("like", ""), {}) for name, row in own.items()}
    return {name: Benchmark(**{"env": name, **defaults, **like[name], **row}) for name, row in own.items()}


@functools.cache
def source_of(env: str) -> Source:
    """The source of the problems of a row's environment, by the row's name."""
    return rows(BENCHMARKS[env])[env].make_source()


def __getattr__(name: str) -> type[TaskEnv]:
    env = name.removesuffix("Env")
    if env == name or env not in BENCHMARKS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    row = rows(BENCHMARKS[env])[env]
    members = {"__module__": __name__, "__doc__": row.docstring, "task": row.make_task()}
    cls = cast("type[TaskEnv]", type(name, (TaskEnv,), members))
    globals()[name] = cls  # from now on Python finds the class without this function
    return cls
