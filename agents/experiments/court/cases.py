"""The court's cases. Each case adds one complication to groups of equally long episodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from agents.experiments.court import worlds
from agents.experiments.court.worlds import World, plain
from verifiers import InvalidArgumentError, unknown_name

BASE = "one length"
"""The case with which all other cases are compared."""
LENGTHS = "unequal lengths"


@dataclass(frozen=True)
class Case:
    """Groups of episodes on which an expected gradient is compared with the exact gradient."""

    name: str
    worlds: tuple[World, ...]
    """The problem of each group in the batch."""
    group_size: int
    smallest: tuple[World, ...] = ()
    """Smaller problems that may show the same finding, for the program that demonstrates the finding."""
    errored: int = 0
    """Number of episodes of each group on which the verifier breaks, regardless of their content."""
    stale: float = 0.0
    """Distance of the sampler's logits from the learner's logits."""
    old_is_sampler: bool = True
    """Whether ratios are relative to the sampler's log-probabilities instead of the learner's own."""
    temperature: float = 1.0
    logit_scale: float = 1.0
    """Factor of the learner's logits."""
    kl_coefficient: float = 0.0
    exact_values: bool = False
    """Whether the critic's values are exact; if not, each value has a different error."""
    parts: tuple[int, ...] = ()
    """Number of groups in each part of the batch, which is a micro-batch or a rank's share; empty for a batch that is not
    divided."""
    splits_groups: bool = False
    """Whether parts may end within a group, if the estimator computes the advantages of the whole step."""

    @property
    def title(self) -> str:
        """The name of the case and its group size, in words."""
        return f"{self.name}, groups of {self.group_size}"

    def counterpart(self) -> Case:
        """The case without environment tokens, truncation and broken verifiers, and with logits divided by the temperature.

        On the counterpart, every estimator should have the expected gradient of this case, times the temperature.
        """
        return dataclasses.replace(
            self,
            worlds=tuple(map(plain, self.worlds)),
            group_size=self.group_size - self.errored,
            errored=0,
            temperature=1.0,
            logit_scale=self.logit_scale / self.temperature,
        )

    def small(self) -> Case:
        """The same case with smaller problems if it has any, else the case itself."""
        return dataclasses.replace(self, worlds=self.smallest or self.worlds)


_BASE = Case(BASE, (worlds.ONE_LENGTH,), 2, smallest=(worlds.SHORT,))
_UNEQUAL = Case(LENGTHS, (worlds.UNEQUAL_LENGTHS,), 2, smallest=(worlds.UNEQUAL_SHORT,))
_TWO = (worlds.UNEQUAL_SHORT, worlds.HARDER)
_FAMILIES = {
    case.name: case
    for case in (
        _BASE,
        _UNEQUAL,
        Case("tool tokens", (worlds.TOOL_TOKENS,), 2),
        Case("several turns", (worlds.TURNS,), 2, smallest=(worlds.TURNS_SHORT,)),
        Case("truncated", (worlds.TRUNCATED,), 2),
        dataclasses.replace(_UNEQUAL, name="excluded", errored=1),
        Case("two problems", (worlds.UNEQUAL_LENGTHS, worlds.HARDER), 2, smallest=_TWO),
        dataclasses.replace(_UNEQUAL, name="exact values", exact_values=True),
        dataclasses.replace(_UNEQUAL, name="temperature", temperature=0.5),
        dataclasses.replace(_BASE, name="KL term", kl_coefficient=0.3),
        dataclasses.replace(_BASE, name="stale samples", stale=0.3),
        dataclasses.replace(_BASE, name="another engine", stale=0.3, old_is_sampler=False),
        Case("accumulation", (*_TWO, worlds.UNEQUAL_SHORT), 2, parts=(2, 1), splits_groups=True),
        Case("ranks", _TWO, 2, parts=(1, 1)),
    )
}
GROUP_SIZES = {
    BASE: range(2, 9),
    LENGTHS: range(2, 6),
    "tool tokens": range(2, 5),
    "several turns": range(2, 5),
    "truncated": range(2, 5),
    "excluded": range(3, 5),
    "two problems": range(2, 4),
    "stale samples": range(2, 4),
    "KL term": range(2, 4),
}
"""The group sizes with which each case is tried; 2 for cases that are not listed."""


def names() -> list[str]:
    """The names of the cases, in the order of the trial."""
    return list(_FAMILIES)


def case(name: str, group_size: int = 2, *, small: bool = False) -> Case:
    """Find a case by its name.

    Args:
        name: The name, one of `names()`.
        group_size: Number of episodes in a group.
        small: Whether to take the smallest problems that may show a finding.

    Raises:
        UnknownNameError: If there is no such case; the message suggests the nearest name.
        InvalidArgumentError: If a group would have no valid episode.
    """
    if name not in _FAMILIES:
        raise unknown_name("case", name, _FAMILIES)
    found = dataclasses.replace(_FAMILIES[name], group_size=group_size)
    if group_size <= found.errored:
        raise InvalidArgumentError(
            f"in the case {name!r} the verifier breaks on {found.errored} episode of each group: group_size must be at least "
            f"{found.errored + 1}, got {group_size}"
        )
    return found.small() if small else found


def every_case() -> Iterator[Case]:
    """Every case with each of its group sizes, the smallest size first."""
    for name in _FAMILIES:
        for group_size in GROUP_SIZES.get(name, (2,)):
            yield case(name, group_size)
