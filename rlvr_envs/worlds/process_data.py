"""`ProcessDataset`: problems that are episodes of one finite decision process, each with different chance events."""

from __future__ import annotations

import abc
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

from rlvr_envs.procedural.base import SeededDataset, characters
from rlvr_envs.worlds.process import Process, uniforms
from verifiers import InvalidArgumentError, Problem

_BEFORE = -1
"""Number of the step before the first step. The start is drawn at this step."""


@dataclass(frozen=True)
class ProcessStart:
    """The reference of a problem: the start of the episode, and the seed of its chance events.

    The reference holds the data set, not the process. Otherwise every record of the problem would contain the table of the
    process.
    """

    dataset: ProcessDataset
    state: int
    luck: int

    @property
    def process(self) -> Process:
        """The process."""
        return self.dataset.process


def start_of(problem: Problem) -> ProcessStart:
    """Return the start of a problem, which is the problem's reference.

    Raises:
        InvalidArgumentError: If the reference is not a `ProcessStart`.
    """
    if not isinstance(problem.reference, ProcessStart):
        raise InvalidArgumentError(
            f"the reference of problem {problem.id!r} is {type(problem.reference).__name__}; expected a ProcessStart, as in "
            "rlvr/Bandit-v0 and rlvr/FrozenLake-v0"
        )
    return problem.reference


def check_budget(dataset: object, name: str, budget: object) -> None:
    """Check that episodes can end within a budget of actions.

    Args:
        dataset: The data set. Without episodes of a process, nothing is checked.
        name: Name of the budget.
        budget: The budget.

    Raises:
        InvalidArgumentError: If no episode can end within the budget.
    """
    needed = dataset.needed_actions if isinstance(dataset, ProcessDataset) else 1
    if type(budget) is int and 1 <= budget < needed:
        raise InvalidArgumentError(
            f"{name} must be at least {needed} here, the number of actions of an episode, got {budget}: leave it out"
        )


@dataclass(frozen=True)
class ProcessDataset(SeededDataset):
    """Episodes of one process. A problem is a start and a hidden seed of chance events.

    The same actions in the same problem always meet the same chance events, like the cards in duplicate bridge. Over all
    problems, chance events have the probabilities of the process.

    A family defines its name, `process`, `starts` and `max_new_tokens`.

    Args:
        split: `"train"` or `"test"`, which differ only in the chance events.
        seed: Seed of the chance events of the whole data set, at least 0.
        size: Number of problems; by default 100 000 for train and 1 000 for test, or 1 without chance events.

    Raises:
        UnknownNameError: If the split is unknown.
        InvalidArgumentError: If another argument is out of range.
    """

    seed: int = 0
    size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.process  # noqa: B018 - errors in other arguments are reported here, before an environment is built

    @functools.cached_property
    @abc.abstractmethod
    def process(self) -> Process:
        """The process of all problems."""

    @property
    @abc.abstractmethod
    def starts(self) -> Mapping[int, float]:
        """The probability of starting in each state."""

    @property
    @abc.abstractmethod
    def max_new_tokens(self) -> int:
        """The default number of actions after which an episode is truncated."""

    @property
    def needed_actions(self) -> int:
        """The smallest number of actions after which an episode can end."""
        return 1

    def gold(self, state: int) -> str | None:
        """The actions of a right answer from a state; None if the right actions depend on chance."""
        return None

    def _problem_at(self, index: int) -> Problem:
        state = self.start(index)
        gold = self.gold(state)
        return Problem(
            id=f"{self.name}/{self.split}/{self.seed}/{index}",
            prompt=f"{self.process.states[state]}:",
            reference=ProcessStart(self, state, self.luck(index)),
            metadata={"hidden": True} | ({} if gold is None else {"gold_completion": gold}),
        )

    def start(self, index: int) -> int:
        """The state in which a problem starts."""
        chance, _ = uniforms(self.luck(index), _BEFORE, 0)
        for state, probability in self.starts.items():
            if chance < probability:
                return state
            chance -= probability
        return state

    def luck(self, index: int) -> int:
        """The seed of a problem's chance events."""
        digest = blake2b(f"{self.name}:{self.split}:{self.seed}:{index}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big")

    @property
    def alphabet(self) -> str:
        """All characters of prompts and answers. The actions come first, so that they are the first tokens."""
        actions = self.process.actions
        return actions + "".join(sorted(set(characters(*self.process.shown, ":")) - set(actions)))

    @property
    def max_prompt_bytes(self) -> int:
        """The length of the longest prompt, in UTF-8 bytes."""
        return max(len(f"{name}:".encode()) for name in self.process.shown)
