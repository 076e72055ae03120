"""Every setting of every config that has a bound refuses what lies outside, and takes what lies at its edge."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Any, get_type_hints

import pytest

from agents import AGENTS, TABULAR_AGENTS, VALUE_AGENTS, AgentConfig, CriticConfig, LearnerConfig
from agents.experiments.rlhf import RLHFConfig
from agents.registry import agent_classes, tabular_classes
from verifiers import (
    FINITE,
    Above,
    AtLeast,
    Between,
    Bound,
    InvalidArgumentError,
    UsedIf,
    bounds_of,
    check_types,
    check_uses,
)

NEEDED: dict[str, dict[str, Any]] = {"dr-grpo": {"max_tokens": 4}}
CONFIGS = {
    "learner": LearnerConfig,
    "critic": CriticConfig,
    "shared": AgentConfig,
    "rlhf": RLHFConfig,
    **{name: agent_classes(name)[1] for name in {**AGENTS, **VALUE_AGENTS}},
    **{name: tabular_classes(name)[1] for name in TABULAR_AGENTS},
}
CASES = [(name, setting, bound) for name, config in CONFIGS.items() for setting, bound in bounds_of(config)]


def outside(bound: Bound, *, whole: bool) -> list[float]:
    """Numbers that a bound does not admit, next to its ends where they are finite."""
    step = 1 if whole else 1e-9
    low = [] if bound.low == -math.inf else [bound.low - (0 if bound.open_low else step)]
    high = [] if bound.high == math.inf else [bound.high + (0 if bound.open_high else step)]
    infinite = [] if whole or bound.infinite else [math.inf]
    numbers = [*low, *high, *infinite]
    return [int(number) for number in numbers] if whole else numbers


@pytest.mark.parametrize(("name", "setting", "bound"), CASES, ids=[f"{name}-{setting}" for name, setting, _ in CASES])
def test_a_number_outside_is_refused_by_name(name: str, setting: str, bound: Bound) -> None:
    config = CONFIGS[name]
    whole = int in (hint := get_type_hints(config)[setting], *getattr(hint, "__args__", ()))
    wrong = outside(bound, whole=whole)
    assert wrong
    for number in wrong:
        with pytest.raises(InvalidArgumentError, match=rf"^{setting} must be .*{bound}.*, got {number}$"):
            config(**{**NEEDED.get(name, {}), setting: number})


@dataclasses.dataclass(frozen=True)
class Settings:
    count: Annotated[int, AtLeast(1)] = 3
    share: Annotated[float | None, Between(0, 1, open_high=True)] = None
    rate: Annotated[float, Above(0), UsedIf("share", "nothing is shared: set share")] = 1.0
    cap: Annotated[float, AtLeast(1, infinite=True)] = math.inf
    any_number: Annotated[float, FINITE] = 0.0

    def __post_init__(self) -> None:
        check_types(self)
        check_uses(self)


@dataclasses.dataclass(frozen=True)
class Others(Settings):
    count: int = 5  # with the bound of the base


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"count": 0}, "count must be at least 1, got 0"),
        ({"share": 1.0}, "share must be from 0 to below 1, or None, got 1.0"),
        ({"share": math.inf}, "share must be finite and from 0 to below 1, or None, got inf"),
        ({"rate": 0.0, "share": 0.5}, "rate must be greater than 0, got 0.0"),
        ({"rate": 2.0}, "rate=2.0 has no effect, since nothing is shared: set share, or leave it out"),
        ({"cap": 0.5}, "cap must be at least 1, got 0.5"),
        ({"any_number": -math.inf}, "any_number must be finite, got -inf"),
        ({"count": True}, "count must be a whole number, got True"),
    ],
)
def test_what_a_bound_and_a_use_say(settings: dict[str, Any], said: str) -> None:
    for config in (Settings, Others):
        with pytest.raises(InvalidArgumentError) as caught:
            config(**settings)
        assert str(caught.value) == said


def test_edges_and_none_are_within() -> None:
    for config in (Settings, Others):
        assert config(count=1, share=0.0, cap=1.0).share == 0.0
        assert config(share=0.5, rate=2.0).rate == 2.0
        assert config().share is None
