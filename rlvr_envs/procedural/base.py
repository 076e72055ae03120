"""What every family of generated problems shares: seeding, disjoint splits, ids and indexing."""

from __future__ import annotations

import abc
import functools
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import ClassVar, Generic, TypeVar

import numpy as np

from verifiers import InvalidArgumentError, Problem, unknown_name

SPLITS = ("train", "test")
DEFAULT_SIZES: Mapping[str, int] = {"train": 100_000, "test": 1_000}
TEST_FRACTION = 10
"""One in this many contents belongs to the test split."""
MAX_DRAWS = 20_000
"""After this many draws without a content of the split, the split counts as empty."""

DIGITS = "0123456789"

ContentT = TypeVar("ContentT")


@dataclass(frozen=True)
class GeneratedProblem:
    """The text of one problem, before it has an id."""

    prompt: str
    reference: object
    gold_completion: str | None
    """None where no completion of one turn is right whatever the environment answers."""
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class ProblemShape:
    """How the problems of one difficulty look; the properties of `ProceduralDataset` say what each field means."""

    difficulty: str
    max_prompt_bytes: int
    max_answer_bytes: int
    prompt_alphabet: str
    answer_alphabet: str


@dataclass(frozen=True)
class GeneratedDataset(abc.ABC):
    """Problems of one split, each made when it is asked for.

    A data set defines its name, `__len__` and `_problem_at`.

    Args:
        split: `"train"` or `"test"`.

    Raises:
        UnknownNameError: If the split is unknown.
    """

    name: ClassVar[str]
    """The family's name, first part of its problems' ids."""

    split: str = "train"

    def __post_init__(self) -> None:
        if self.split not in SPLITS:
            raise unknown_name("split", str(self.split), SPLITS)

    @abc.abstractmethod
    def __len__(self) -> int:
        """Count the problems."""

    def __iter__(self) -> Iterator[Problem]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int, /) -> Problem:
        """Make problem `index`.

        Raises:
            IndexError: If the index is negative or too large.
        """
        index = operator.index(index)
        if not 0 <= index < len(self):
            raise IndexError(f"{self.name} ({self.split}) has problems 0 to {len(self) - 1}, got index {index}")
        return self._problem_at(index)

    @abc.abstractmethod
    def _problem_at(self, index: int) -> Problem:
        """Make a problem whose index is in range."""


class SeededDataset(GeneratedDataset):
    """As many generated problems as wanted, which follow from a seed. Subclasses make fields of both, in their own order."""

    sizes: ClassVar[Mapping[str, int]] = DEFAULT_SIZES

    seed: int
    """Seed of the whole data set, at least 0."""
    size: int | None
    """Number of problems; None for that of the split in `sizes`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole("seed", self.seed, 0)
        if self.size is not None:
            require_whole("size", self.size, 1)

    def __len__(self) -> int:
        return self.sizes[self.split] if self.size is None else self.size


@dataclass(frozen=True)
class ProceduralDataset(SeededDataset, Generic[ContentT]):
    """Generated problems, each a pure function of family, difficulty, split, seed and index.

    The splits are disjoint by construction, whatever the seeds and difficulties: a stable hash of what a problem asks
    decides its split (one content in ten belongs to `"test"`), and drawing is repeated until the content belongs to the
    split at hand. Problems may repeat within a split where its contents are few.

    A family defines its name and its verifier, and implements `_describe`, `_draw`, `_key` and `_task`.

    Args:
        split: `"train"` or `"test"`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems; by default 100 000 for train and 1 000 for test.

    Raises:
        UnknownNameError: If the split is unknown.
        InvalidArgumentError: If an argument is out of range, or no content of this difficulty belongs to the split.
    """

    verifier: ClassVar[tuple[str, Mapping[str, object]]]
    """The verifier that judges the answers, as the name and the arguments that `verifiers.make` takes."""

    seed: int = 0
    size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_difficulty()
        self._content(0)

    def _problem_at(self, index: int) -> Problem:
        task = self._task(self._content(index))
        gold = {} if task.gold_completion is None else {"gold_completion": task.gold_completion}
        return Problem(
            id=f"{self.name}/{self.split}/{self.difficulty}/{self.seed}/{index}",
            prompt=task.prompt,
            reference=task.reference,
            metadata={**gold, "difficulty": self.difficulty, **task.metadata},
        )

    @property
    def difficulty(self) -> str:
        """The difficulty in words, different for different difficulties, such as `"2-digit"`."""
        return self._format.difficulty

    @property
    def max_prompt_bytes(self) -> int:
        """Upper bound of the length of every prompt of this difficulty, in UTF-8 bytes."""
        return self._format.max_prompt_bytes

    @property
    def max_answer_bytes(self) -> int:
        """Upper bound of the length of every gold completion of this difficulty, in UTF-8 bytes."""
        return self._format.max_answer_bytes

    @property
    def alphabet(self) -> str:
        """The distinct characters that may occur in prompts and answers, sorted."""
        return characters(self._format.prompt_alphabet, self._format.answer_alphabet)

    @property
    def answer_alphabet(self) -> str:
        """The distinct characters that a legal answer may consist of, sorted."""
        return characters(self._format.answer_alphabet)

    @functools.cached_property
    def _format(self) -> ProblemShape:
        return self._describe()

    @abc.abstractmethod
    def _describe(self) -> ProblemShape:
        """Describe the problems of this difficulty."""

    def _check_difficulty(self) -> None:
        """Raise `InvalidArgumentError` if a difficulty field is out of range."""

    @abc.abstractmethod
    def _draw(self, rng: np.random.Generator) -> ContentT:
        """Draw the content of a problem from the whole family at this difficulty."""

    @abc.abstractmethod
    def _key(self, content: ContentT) -> object:
        """Return the key that decides the split: plain data whose `repr` is equal for contents that ask the same question."""

    @abc.abstractmethod
    def _task(self, content: ContentT) -> GeneratedProblem:
        """Write the problem as text."""

    def _content(self, index: int) -> ContentT:
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([*self._entropy, *_words(index)])))
        for _ in range(MAX_DRAWS):
            content = self._draw(rng)
            if _split_of(self.name, self._key(content)) == self.split:
                return content
        raise InvalidArgumentError(
            f"{self.name} at difficulty {self.difficulty!r} has too few different problems for disjoint splits: "
            f"none of {MAX_DRAWS} draws belongs to {self.split!r}; choose a greater difficulty"
        )

    @functools.cached_property
    def _entropy(self) -> tuple[int, ...]:
        # Hashed to a fixed number of words: SeedSequence joins its words without separators and pads them with zeros,
        # so that lists of free length would give some different data sets one stream.
        origin = repr((self.name, self.difficulty, self.split, self.seed))
        digest = blake2b(origin.encode(), digest_size=16).digest()
        return tuple(int.from_bytes(digest[start : start + 4], "little") for start in range(0, 16, 4))


def _words(index: int) -> tuple[int, int]:
    return index & 0xFFFFFFFF, index >> 32


def _split_of(family: str, key: object) -> str:
    digest = blake2b(f"{family}:{key!r}".encode(), digest_size=8).digest()
    return "test" if int.from_bytes(digest, "little") % TEST_FRACTION == 0 else "train"


def require_whole(name: str, value: object, low: int, high: int | None = None) -> None:
    """Check that an argument is an int of a range, both ends included.

    Raises:
        InvalidArgumentError: If it is not.
    """
    if type(value) is not int or value < low or (high is not None and value > high):
        limits = f"at least {low}" if high is None else f"from {low} to {high}"
        raise InvalidArgumentError(f"{name} must be a whole number {limits}, got {value!r}")


def characters(*texts: str) -> str:
    """The distinct characters of the texts, sorted."""
    return "".join(sorted(set("".join(texts))))
