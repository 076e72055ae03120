"""The groups of completions in a recorded run, each from a training step or of a problem in an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from agents.runs.evaluation_record import Sample
from agents.watching.lines import Place
from verifiers import Outcome

Key: TypeAlias = tuple[int, int]
"""Training step and number of the group; for an evaluation, 0 and the index of the problem."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The data of a recorded completion that is kept in memory; the rest stays in its file."""

    place: Place
    key: Key
    sample: Sample

    @classmethod
    def read(cls, line: dict[str, Any], place: Place) -> Completion:
        """Read a line of `rollouts.jsonl` or `samples.jsonl`.

        Raises:
            DataError: If a column is missing or of another type.
        """
        sample = replace(Sample.read(line), answer=None)  # the answer may be long
        step, group = line.get("step"), line.get("group")
        key = (step, group) if isinstance(step, int) and isinstance(group, int) else (0, sample.problem)
        return cls(place, key, sample)

    @property
    def right(self) -> bool:
        """Whether the verifier judged the completion correct, or scored it 1."""
        return self.sample.outcome == Outcome.CORRECT or self.sample.score == 1


Group: TypeAlias = Sequence[Completion]
"""Completions of one problem that are shown side by side."""


def grouped(completions: Sequence[Completion]) -> dict[Key, Group]:
    """Group completions, with the last step's groups first; a later line of the same sample replaces an earlier one."""
    groups: dict[Key, dict[int, Completion]] = {}
    for completion in completions:
        groups.setdefault(completion.key, {})[completion.sample.sample] = completion
    order = sorted(groups, key=lambda key: (-key[0], key[1]))
    return {key: [groups[key][sample] for sample in sorted(groups[key])] for key in order}


def _never_solved(groups: Sequence[Group]) -> list[Group]:
    solved = {one.sample.problem_id for group in groups for one in group if one.right}
    return [group for group in groups if group[0].sample.problem_id not in solved]


FILTERS: dict[str, Callable[[Sequence[Group]], Sequence[Group]]] = {
    "all": lambda groups: groups,
    "never solved": _never_solved,
    "solved by one": lambda groups: [group for group in groups if sum(one.right for one in group) == 1 < len(group)],
    "longest": lambda groups: sorted(groups, key=lambda group: -max(one.sample.tokens for one in group)),
    "verifier broke": lambda groups: [group for group in groups if any(one.sample.errored for one in group)],
}
"""Functions that select the groups to list, in order, by the filter's name."""
