"""Settings that are choices, apart from what they decide, which needs torch; and enum settings that may be given as text."""

from __future__ import annotations

import enum
from typing import Literal, TypeVar

from verifiers import unknown_name

ChoiceT = TypeVar("ChoiceT", bound=enum.StrEnum)

Precision = Literal["auto", "float32", "bfloat16"]
SaveDtype = Literal["source", "float32", "bfloat16", "float16"]
Checkpointing = Literal["auto", "on", "off"]
Gathering = Literal["auto", "trajectories", "rows"]
"""What of each episode goes to all ranks: the whole trajectory, after which passes are divided evenly, or only the numbers of
its row (rewards, lengths, verdict), after which each rank passes the episodes that it played. `auto` gathers rows if there are
more than `agents.distributed.ranks.MOST_GATHERING` ranks and the agent allows it."""


def choice(name: str, value: str, choices: type[ChoiceT]) -> ChoiceT:
    """Convert text to a member of an enum.

    Raises:
        UnknownNameError: If there is no such choice; the message suggests the nearest.
    """
    if value not in list(choices):
        raise unknown_name(name, str(value), [str(member) for member in choices])
    return choices(value)
