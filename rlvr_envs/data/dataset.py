"""`ProblemDataset`: an immutable sequence of problems that knows its name, its split and its checksum."""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from typing import SupportsIndex, overload

from verifiers import DataError, InvalidArgumentError, Problem


@dataclass(frozen=True, eq=False)
class ProblemDataset(Sequence[Problem]):
    """The problems of one split of one data set, in the source's order.

    Compare the contents of two data sets by `fingerprint`; `==` compares identity, so a data set can be the key of a cache.

    Raises:
        DataError: If two problems have the same id.
    """

    name: str
    """The data set's name, such as `"gsm8k"`."""
    split: str
    """The split's name, such as `"test"`."""
    problems: tuple[Problem, ...] = dataclasses.field(repr=False)
    """The problems, in the source's order."""
    verifier: tuple[str, Mapping[str, object]] | None = dataclasses.field(default=None, repr=False)
    """Name and arguments of the verifier that these problems need; None if the environment's own verifier fits these
    problems."""

    def __post_init__(self) -> None:
        first: dict[str, int] = {}
        for index, problem in enumerate(self.problems):
            if first.setdefault(problem.id, index) != index:
                raise DataError(
                    f"{self.name}, split {self.split!r}: problems {first[problem.id]} and {index} (counted from 0) "
                    f"have the same id {problem.id!r}; expected ids unique within the data set"
                )

    def __len__(self) -> int:
        return len(self.problems)

    @overload
    def __getitem__(self, index: SupportsIndex) -> Problem: ...
    @overload
    def __getitem__(self, index: slice) -> ProblemDataset: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Problem | ProblemDataset:
        """Return one problem or, for a slice, a data set with the sliced problems and the same name and split."""
        if isinstance(index, slice):
            return dataclasses.replace(self, problems=self.problems[index])
        return self.problems[index]

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.problems)

    @functools.cached_property
    def distinct(self) -> int:
        """Number of different problems.

        Problems with equal prompts count as one problem, unless `metadata["hidden"]` is set.
        """
        shown = [problem.prompt for problem in self.problems if not problem.metadata.get("hidden")]
        return len(set(shown)) + len(self) - len(shown)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hexadecimal sha256 over every problem's id, prompt, reference and metadata, in order.

        The same content gives the same fingerprint in every process and from every source: lists and tuples count as equal, the
        order of mapping keys and set members does not matter, and name and split are not included.

        Raises:
            InvalidArgumentError: If a problem holds an object without a stable written form, such as a function.
        """
        digest = hashlib.sha256()
        for problem in self.problems:
            digest.update(_canonical_json(problem).encode() + b"\n")
        return digest.hexdigest()


def _canonical_json(problem: Problem) -> str:
    content = [problem.id, problem.prompt, problem.reference, problem.metadata]
    try:
        return json.dumps(_plain(content))
    except _NotPlainError as error:
        raise InvalidArgumentError(
            f"problem {problem.id!r} has no fingerprint: it holds {error.args[0]}, whose representation differs in every "
            "process; expected plain data, dataclasses, or objects with a repr that names their content"
        ) from None


class _NotPlainError(Exception):
    """Raised for an object without a stable written form; the error's only argument describes the object."""


_LONG_BITS = 14_000
"""An integer with more bits may have more than 4,300 digits, and Python refuses to write such integers in decimal."""
_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+")


def _plain(value: object) -> object:
    """Turn a value into plain JSON. Scalars and lists stay unchanged; any other value becomes an object that names its type."""
    if isinstance(value, enum.Enum):
        return {"enum": [type(value).__qualname__, value.name]}
    if isinstance(value, int) and value.bit_length() > _LONG_BITS:  # too many digits for JSON, which is decimal
        return {"integer": hex(value)}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {"mapping": sorted(([_plain(key), _plain(item)] for key, item in value.items()), key=json.dumps)}
    if isinstance(value, AbstractSet):
        return {"set": sorted(map(_plain, value), key=json.dumps)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        compared = (field.name for field in dataclasses.fields(value) if field.compare)
        fields = [[name, _plain(getattr(value, name))] for name in compared]
        return {"dataclass": [type(value).__qualname__, fields]}
    if callable(to_list := getattr(value, "tolist", None)):  # an array, whose repr leaves items out
        return {"array": [type(value).__qualname__, _plain(to_list())]}
    written = repr(value)
    if _ADDRESS.search(written):
        raise _NotPlainError(f"a {type(value).__name__} ({written})")
    return {"object": [type(value).__qualname__, written]}
