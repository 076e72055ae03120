"""Suites: the environments of a benchmark, the numbers of samples, and the agents to train first.

A suite is a TOML file; the files in this folder can be named without a path. `read_suite` reads a file.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

from verifiers import AtLeast, DataError, InvalidArgumentError, MissingDataError, RLVRError, check_types, unknown_name

SMALL_SET = 50
"""A problem is answered `SMALL_SET_SAMPLES` times by default if its data set has at most this number of problems."""
SMALL_SET_SAMPLES = 32
_FOLDER = Path(__file__).parent
TableT = TypeVar("TableT")


@dataclass(frozen=True)
class SuiteEnvironment:
    """One environment of a suite, a table `[[environments]]`."""

    name: str
    """Name of the environment, such as `"GSM8K"`."""
    label: str | None = None
    """The environment's label in the leaderboard; None uses the name. Environments with the same name need labels."""
    split: str = "test"
    problems: Annotated[int | None, AtLeast(1)] = None
    """Number of problems, beginning with the first; None for all."""
    samples: Annotated[int | None, AtLeast(1)] = None
    """Number of completions for each problem; None for `samples_of`'s default."""
    max_new_tokens: Annotated[int | None, AtLeast(1)] = None
    """Token budget of a completion; None for the suite's budget or, if it has none, the environment's own."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the environment."""

    def __post_init__(self) -> None:
        check_types(self)

    @property
    def column(self) -> str:
        """The label or, without a label, the name without the prefix and suffix that all ids share."""
        return self.label or self.name.removeprefix("rlvr/").removesuffix("-v0")

    @property
    def folder(self) -> str:
        """The name of the folder for the environment's evaluations."""
        return re.sub(r"[^\w.-]+", "-", self.column)

    def samples_of(self, problems: int, temperature: float) -> int:
        """The number of completions per problem; 1 by default at temperature 0, where all completions would be the same."""
        if self.samples is not None:
            return self.samples
        return SMALL_SET_SAMPLES if problems <= SMALL_SET and temperature > 0 else 1


@dataclass(frozen=True)
class SuiteTraining:
    """Agents that are trained from the same model with the same budget: the table `[train]`."""

    agents: Sequence[str]
    """Names of agents, or module:Class."""
    env: str
    tokens: Annotated[int, AtLeast(1)]
    """Number of sampled tokens that each agent may learn from."""
    model: str = "tiny"
    """The model that each agent starts from, as for `rlvr train --model`."""
    seeds: Sequence[Any] = (0, 1, 2)
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further options of `rlvr train`, such as `num-envs = 32`."""

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("agents", "seeds"):
            values = getattr(self, name)
            if isinstance(values, str) or not values or len(set(values)) < len(values):
                raise InvalidArgumentError(
                    f"{name} must be a list that is not empty and repeats nothing, got {values!r}"
                )
        if not all(isinstance(seed, int) and seed >= 0 for seed in self.seeds):
            raise InvalidArgumentError(f"seeds must be whole numbers of at least 0, got {self.seeds!r}")


@dataclass(frozen=True)
class Suite:
    """The settings of a benchmark."""

    name: str
    title: str
    environments: Sequence[SuiteEnvironment]
    temperature: Annotated[float, AtLeast(0)] = 0.0
    seed: Annotated[int, AtLeast(0)] = 0
    """Seed of the sampling in evaluations."""
    max_new_tokens: Annotated[int | None, AtLeast(1)] = None
    train: SuiteTraining | None = None

    def __post_init__(self) -> None:
        check_types(self)
        folders = [environment.folder for environment in self.environments]
        if len(set(folders)) < len(folders):
            raise InvalidArgumentError(f"environments of the same name need different labels: {', '.join(folders)}")
        if not self.environments:
            raise InvalidArgumentError("a suite needs at least one environment: [[environments]]")


def suite_names() -> list[str]:
    """The names of the suites in this folder."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def read_suite(name: str) -> Suite:
    """Read a suite.

    Args:
        name: One of `suite_names`, or the path of a file that ends in `.toml`.

    Raises:
        UnknownNameError: If there is no such suite; the message suggests the nearest.
        MissingDataError: If there is no such file.
        DataError: If the file can't be read, or is not TOML.
        InvalidArgumentError: If a key is unknown or missing, or its value is not allowed.
    """
    path = Path(name) if name.endswith(".toml") else _FOLDER / f"{name}.toml"
    if not name.endswith(".toml") and name not in suite_names():
        raise unknown_name("suite", name, suite_names())
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        known = ", ".join(suite_names())
        raise MissingDataError(f"there is no file {name!r}: expected a suite's path, or one of {known}") from error
    except OSError as error:
        raise DataError(f"the suite {name!r} can't be read: {error.strerror}") from error
    except ValueError as error:
        raise DataError(f"the suite {name!r} is not TOML: {' '.join(str(error).split())}") from error
    try:
        return _suite(path.stem, content)
    except RLVRError as error:
        raise InvalidArgumentError(f"the suite {name!r}: {error}") from error


def _suite(name: str, content: dict[str, Any]) -> Suite:
    environments = content.get("environments", [])
    if not isinstance(environments, list):
        raise InvalidArgumentError(f"environments are tables [[environments]], got {environments!r}")
    train = content.get("train")
    return _read(
        Suite,
        {
            **content,
            "environments": tuple(_read(SuiteEnvironment, table, "[[environments]]") for table in environments),
            "train": None if train is None else _read(SuiteTraining, train, "[train]"),
        },
        "its top level",
        name=name,
    )


def _read(cls: type[TableT], table: object, where: str, **own: Any) -> TableT:
    """Read a table as a dataclass; `own` gives the fields that are not in the table."""
    if not isinstance(table, dict):
        raise InvalidArgumentError(f"{where} must be a table, got {table!r}")
    fields: Any = dataclasses.fields(cls)  # type: ignore[arg-type] # a dataclass
    known = [setting.name for setting in fields if setting.name not in own]
    for key in table:
        if key not in known:
            raise unknown_name(f"key in {where}", key, known)
    required = [
        setting.name
        for setting in fields
        if setting.default is dataclasses.MISSING and setting.default_factory is dataclasses.MISSING
    ]
    for key in required:
        if key not in table and key not in own:
            raise InvalidArgumentError(f"{where} has no {key!r}")
    return cls(**own, **table)
