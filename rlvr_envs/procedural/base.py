"""Base of every family of generated problems: seeding, disjoint splits, ids and indexing."""

from __future__ import annotations

import abc
import dataclasses
import functools
import operator
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Annotated, Any, ClassVar, Generic, TypeVar

import numpy as np

from rlvr_envs.procedural.order import MOST_SCANNED, DividedOrder, Order, ScannedOrder
from verifiers import AtLeast, InvalidArgumentError, Problem, check_types, unknown_name

SPLITS = ("train", "test")
DEFAULT_SIZES: Mapping[str, int] = {"train": 100_000, "test": 1_000}
TEST_FRACTION = 10
"""One in this number of contents belongs to the test split."""
MOST_BY_DEFAULT = 10_000
"""Default size if a scan has to find distinct problems. For this size, a scan takes 0.05 to 0.2 s on one core."""
_FOR_EACH = {"train": 4, "test": 40}
"""Number of questions needed for each problem, so that more than enough questions belong to the split. Nine in ten questions
belong to train, and one in ten to test."""
_PLACES = {"train": 20, "test": 2_000}
"""Number of places of an index in a `DividedOrder`. The probability that no place belongs to the split is 1e-20 for train and
1e-91 for test."""

DIGITS = "0123456789"

ContentT = TypeVar("ContentT")


@dataclass(frozen=True)
class GeneratedProblem:
    """The text of one problem, before it has an id."""

    prompt: str
    reference: object
    gold_completion: str | None
    """A completion that is right; None if no completion of one turn is right for all answers of the environment."""
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class ProblemShape:
    """Description of the problems of one difficulty; the properties of `ProceduralDataset` explain the fields."""

    difficulty: str
    max_prompt_bytes: int
    max_answer_bytes: int
    prompt_alphabet: str
    answer_alphabet: str


@dataclass(frozen=True)
class GeneratedDataset(abc.ABC):
    """The problems of one split. Each problem is made on request.

    A subclass defines `name`, `__len__` and `_problem_at`.

    Args:
        split: `"train"` or `"test"`.

    Raises:
        UnknownNameError: If the split is unknown.
    """

    name: ClassVar[str]
    """The family's name, which is the first part of the problems' ids."""

    split: str = "train"

    def __post_init__(self) -> None:
        if self.split not in SPLITS:
            raise unknown_name("split", str(self.split), SPLITS)
        check_types(self)
        for name, value in dict(vars(self)).items():
            if isinstance(value, np.integer):  # NumPy's integers overflow
                object.__setattr__(self, name, int(value))

    @abc.abstractmethod
    def __len__(self) -> int:
        """Count the problems."""

    def in_words(self, problem: Problem) -> str:
        """The question of a problem for a chat, in words and with the rules of a game. The default is the prompt itself.

        The question of every problem must be longer than the prompt by the same number of bytes.
        """
        return str(problem.prompt)

    @property
    def distinct(self) -> int | None:
        """Number of different problems; None if the number is unknown before the problems are made.

        By default, all problems differ.
        """
        return len(self)

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
    """Any number of problems, generated from a seed. Subclasses define the fields `seed` and `size`, in their own order."""

    sizes: ClassVar[Mapping[str, int]] = DEFAULT_SIZES

    seed: Annotated[int, AtLeast(0)]
    """Seed of the whole data set, at least 0."""
    size: Annotated[int | None, AtLeast(1)]
    """Number of problems; None means the split's number in `sizes`."""

    def __len__(self) -> int:
        return self.sizes[self.split] if self.size is None else self.size


@dataclass(frozen=True)
class ProceduralDataset(SeededDataset, Generic[ContentT]):
    """Generated problems. Each problem is a pure function of family, difficulty, split, seed and index.

    The splits are disjoint by construction for all seeds and difficulties: a stable hash of a problem's question decides the
    split (one question in ten belongs to `"test"`). A split holds each problem only once; if there are fewer problems than the
    default size, the split has all of them.

    A content is what defines a problem, such as the two numbers of a sum, and a code is a whole number that stands for a
    content. A family defines its name and its verifier, and implements `_describe`, `_space`, `_at`, `_key` and `_task`.

    Args:
        split: `"train"` or `"test"`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems; by default 100 000 for train and 1 000 for test, or all problems if there are fewer. The
            default for train is 10 000 if the codes have to be scanned, because there are few codes or several codes ask the
            same question (see `rlvr_envs.procedural.order`).

    Raises:
        UnknownNameError: If the split is unknown.
        InvalidArgumentError: If an argument is out of range, the split has fewer different problems than `size`, or no content
            of this difficulty belongs to the split.
    """

    verifier: ClassVar[tuple[str, Mapping[str, object]]]
    """The verifier that judges the answers, as a name and arguments for `verifiers.make`."""
    chat_verifier: ClassVar[tuple[str, Mapping[str, object]] | None] = None
    """The verifier that judges the answers of a chat, if `verifier` accepts nothing but the bare answer."""
    hidden: ClassVar[bool] = False
    """Whether something that determines the episode is not in the prompt, such as a secret. Problems with equal prompts may
    then differ."""

    seed: Annotated[int, AtLeast(0)] = 0
    size: Annotated[int | None, AtLeast(1)] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_difficulty()
        if self._order.code(0) is None:
            raise InvalidArgumentError(
                f"{self.name} at difficulty {self.difficulty!r} has too few different problems for disjoint splits: "
                f"none of them belongs to {self.split!r}; choose a greater difficulty"
            )
        if self.size is not None and (count := self._order.count(self.size)) < self.size:
            raise InvalidArgumentError(
                f"{self.name} at difficulty {self.difficulty!r} has {count} different problems in {self.split!r}, got size "
                f"{self.size}: choose a size of at most {count}, or a greater difficulty"
            )

    def __len__(self) -> int:
        if self.size is not None:
            return self.size
        most = self.sizes[self.split]
        return self._order.count(min(most, MOST_BY_DEFAULT) if isinstance(self._order, ScannedOrder) else most)

    def _problem_at(self, index: int) -> Problem:
        task = self._task(self._content(index))
        gold = {} if task.gold_completion is None else {"gold_completion": task.gold_completion}
        hidden = {"hidden": True} if self.hidden else {}
        return Problem(
            id=f"{self.name}/{self.split}/{self.difficulty}/{self.seed}/{index}",
            prompt=task.prompt,
            reference=task.reference,
            metadata={**gold, **hidden, "difficulty": self.difficulty, **task.metadata},
        )

    @property
    def difficulty(self) -> str:
        """The difficulty in words, such as `"2-digit"`; different difficulties have different words."""
        return self._format.difficulty

    @property
    def max_prompt_bytes(self) -> int:
        """Upper bound on the length of every prompt of this difficulty, in UTF-8 bytes."""
        return self._format.max_prompt_bytes

    @property
    def max_answer_bytes(self) -> int:
        """Upper bound on the length of every gold completion of this difficulty, in UTF-8 bytes."""
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
        """Raise `InvalidArgumentError` if difficulty fields contradict each other. The types of the fields check the bounds."""

    @property
    @abc.abstractmethod
    def _space(self) -> int:
        """Number of codes of this difficulty. A content is drawn by drawing its code."""

    @abc.abstractmethod
    def _at(self, code: int) -> ContentT:
        """Make the content of a code, which is from 0 to `_space - 1`."""

    def _question(self, content: ContentT) -> Hashable | None:
        """A key that is equal for contents that ask the same question.

        None, the default, means that no two codes ask the same question.
        """
        return None

    @property
    def _least_questions(self) -> int:
        """Number of different questions of this difficulty, or a lower bound.

        Families that define `_question` define this, too.
        """
        return self._space

    def _key(self, content: ContentT) -> object:
        """Return the key that decides the split.

        A key is plain data; contents that ask the same question have keys with equal `repr`.
        """
        return content

    @abc.abstractmethod
    def _task(self, content: ContentT) -> GeneratedProblem:
        """Write the problem as text."""

    def _content(self, index: int) -> ContentT:
        code = self._order.code(index)
        if code is None:
            raise InvalidArgumentError(
                f"{self.name} at difficulty {self.difficulty!r} has too few different problems for one of index {index} in "
                f"{self.split!r}: choose a greater difficulty"
            )
        return self._at(code)

    @functools.cached_property
    def _order(self) -> Order:
        return _shared_order(self if self.size is None else dataclasses.replace(self, size=None))

    def _make_order(self) -> Order:
        repeats = self._question(self._at(0)) is not None
        if self._space > MOST_SCANNED and not repeats:
            return DividedOrder(self._space, self._belongs, self._key_of_order, places=_PLACES[self.split])
        assured = self._least_questions // _FOR_EACH[self.split]
        return ScannedOrder(self._space, self._asked, self._key_of_order, repeats=repeats, assured=assured)

    def _belongs(self, code: int) -> bool:
        return _split_of(self.name, self._key(self._at(code))) == self.split

    def _asked(self, code: int) -> Hashable | None:
        content = self._at(code)
        if _split_of(self.name, self._key(content)) != self.split:
            return None
        question = self._question(content)
        return code if question is None else question

    def __getstate__(self) -> dict[str, object]:
        """The fields without the order; data sets with equal fields share one order."""
        return {name: value for name, value in self.__dict__.items() if name != "_order"}

    @property
    def _key_of_order(self) -> bytes:
        origin = repr((self.name, self.difficulty, self.split, self.seed))
        return blake2b(origin.encode(), digest_size=16).digest()


@functools.lru_cache(maxsize=64)
def _shared_order(dataset: ProceduralDataset[Any]) -> Order:
    """The order of the problems of a data set without a size; cached, since finding the order may go through many codes."""
    return dataset._make_order()


def _split_of(family: str, key: object) -> str:
    digest = blake2b(f"{family}:{key!r}".encode(), digest_size=8).digest()
    return "test" if int.from_bytes(digest, "little") % TEST_FRACTION == 0 else "train"


def require_whole(name: str, value: object, low: int, high: int | None = None) -> None:
    """Check that an argument is an int within a range, which includes both ends.

    Raises:
        InvalidArgumentError: If the argument is not such an int.
    """
    if type(value) is not int or value < low or (high is not None and value > high):
        limits = f"at least {low}" if high is None else f"from {low} to {high}"
        raise InvalidArgumentError(f"{name} must be a whole number {limits}, got {value!r}")


def characters(*texts: str) -> str:
    """The distinct characters of the texts, sorted."""
    return "".join(sorted(set("".join(texts))))


def in_base(code: int, base: int, count: int) -> tuple[int, list[int]]:
    """Split off the last `count` digits of a number in a base. Return the remaining number, and the digits in reverse order."""
    digits = []
    for _ in range(count):
        code, digit = divmod(code, base)
        digits.append(digit)
    return code, digits
