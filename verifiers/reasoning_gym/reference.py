"""The reference of a problem of reasoning-gym: the data from which the problem can be made again."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from verifiers._settings import check_types, is_whole_number
from verifiers.bounds import Between
from verifiers.errors import InvalidArgumentError

MAX_SEED = 2**32 - 10_000
"""Exclusive upper limit of seeds: some data sets seed NumPy with seed plus index, which must fit in 32 bits."""
_OWN = ("seed", "size")


@dataclass(frozen=True)
class ReasoningGymReference:
    """One problem of a data set of reasoning-gym: all the data needed to make it again, including its right answer.

    Raises:
        InvalidArgumentError: If a field is out of range, or the config is not plain data.
    """

    task: str
    """Name of the data set, such as `"chain_sum"`."""
    seed: Annotated[int, Between(0, MAX_SEED - 1)]
    """The data set's seed."""
    index: Annotated[int, Between(0, 9_999)] = 0
    """Index of the problem in the data set."""
    level: int | None = None
    """Level of the data set's curriculum; None for the defaults of its config."""
    config: Mapping[str, object] = field(default_factory=dict)
    """Fields of the data set's config that differ from the level or the defaults."""

    def __post_init__(self) -> None:
        check_choice(self.task, self.level, self.config)
        check_types(self)


def check_choice(task: object, level: Any, config: object) -> None:
    """Check the arguments that choose a data set.

    Raises:
        InvalidArgumentError: If an argument has the wrong type, or the config is not plain data.
    """
    if not isinstance(task, str):
        raise InvalidArgumentError(f"task must be the name of a data set of reasoning-gym, got {task!r}"[:300])
    if level is not None and not (is_whole_number(level) and level >= 0):
        raise InvalidArgumentError(f"level must be a whole number of at least 0, or None, got {level!r}"[:300])
    if not isinstance(config, Mapping) or not _is_plain(dict(config)):
        raise InvalidArgumentError(
            f"config must map names of fields to numbers, texts, lists and other plain data, got {config!r}"[:300]
        )
    for name in _OWN:
        if name in config:
            raise InvalidArgumentError(
                f"config can't hold {name!r}, which is an argument of the data set here: {name}="
            )


def _is_plain(value: object) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False


def read_reference(reference: object) -> ReasoningGymReference:
    """Return a reference unchanged, or make one from a mapping with its fields.

    Raises:
        InvalidArgumentError: If the reference is neither of these, or a field is invalid.
    """
    if isinstance(reference, ReasoningGymReference):
        return reference
    names = {setting.name for setting in fields(ReasoningGymReference)}
    if not isinstance(reference, Mapping) or not {"task", "seed"} <= reference.keys() <= names:
        raise InvalidArgumentError(
            f"expected a ReasoningGymReference, or a mapping with 'task' and 'seed', got {reference!r}"[:300]
        )
    return ReasoningGymReference(**{str(name): value for name, value in reference.items()})
