"""Every setting of every config that has a bound refuses what lies outside, and takes what lies at its edge."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Annotated, Any, Literal, get_type_hints

import pytest

import agents
from agents.commands.main import main
from agents.experiments.rlhf import RLHFConfig
from agents.experiments.supervised import SupervisedConfig
from agents.preferences.reward_model import RewardModelConfig
from agents.registry import agent_classes, tabular_classes
from rlvr_envs.tasks import Addition, Polynomial
from verifiers import (
    Above,
    AtLeast,
    Between,
    Bound,
    HTTPAddress,
    InvalidArgumentError,
    UnknownNameError,
    UsedIf,
    bounds_of,
    check_types,
    check_uses,
    checked,
)

NEEDED: dict[str, dict[str, Any]] = {
    "dr-grpo": {"max_tokens": 4},
    "endpoint": {"base_url": "http://localhost:1", "model": "m"},
}
CONFIGS = {
    "learner": agents.LearnerConfig,
    "critic": agents.CriticConfig,
    "shared": agents.AgentConfig,
    "rlhf": RLHFConfig,
    "supervised": SupervisedConfig,
    "reward-model": RewardModelConfig,
    "policy": agents.PolicyConfig,
    "vllm": agents.VLLMConfig,
    "endpoint": agents.EndpointConfig,
    "addition": Addition,
    "polynomial": Polynomial,
    **{name: agent_classes(name)[1] for name in {**agents.AGENTS, **agents.VALUE_AGENTS}},
    **{name: tabular_classes(name)[1] for name in agents.TABULAR_AGENTS},
}
CASES = [
    (name, setting, bound)
    for name, config in CONFIGS.items()
    for setting, bound in bounds_of(config)
    if not isinstance(bound, HTTPAddress)
]


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
            config(**{**NEEDED.get(name, {}), setting: (0, number) if setting == "price" else number})


@dataclasses.dataclass(frozen=True)
class Settings:
    count: Annotated[int, AtLeast(1)] = 3
    share: Annotated[float | None, Between(0, 1, open_high=True)] = None
    rate: Annotated[float, Above(0), UsedIf("share", "nothing is shared: set share")] = 1.0
    cap: Annotated[float, AtLeast(1, infinite=True)] = math.inf
    several: Annotated[tuple[int, ...], Between(1, 10**6)] = ()
    word: Annotated[float | Literal["all"], Above(0)] = "all"
    server: Annotated[str, HTTPAddress()] = "http://localhost"

    def __post_init__(self) -> None:
        check_types(self)
        check_uses(self)


@dataclasses.dataclass(frozen=True)
class Others(Settings):
    count: int = 5  # with the bound of the base


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"share": math.inf}, "share must be finite and from 0 to below 1, or None, got inf"),
        ({"rate": 0.0, "share": 0.5}, "rate must be greater than 0, got 0.0"),
        ({"rate": 2.0}, "rate=2.0 has no effect, since nothing is shared: set share, or leave it out"),
        ({"count": True}, "count must be a whole number, got True"),
        ({"several": (3, 0)}, "several must be from 1 to 1000000, got 0"),
        ({"word": 0}, "word must be greater than 0, got 0"),
        ({"server": "localhost"}, f"server must be {HTTPAddress()}, got 'localhost'"),
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


@checked
def scaled(count: Annotated[int, AtLeast(1)], unit: Literal["s", "ms"] | None = None, *rest: Any) -> int:
    return count


def test_a_checked_function_refuses_what_its_parameters_do() -> None:
    assert scaled(2, "s", object()) == scaled(count=2) == 2
    for arguments, said in (
        ((0,), "count must be at least 1, got 0"),
        (("2",), "count must be a whole number, got '2'"),
        ((1, 5), "unit must be one of 's', 'ms' or None, got 5"),
        ((1, "m"), "unknown unit 'm'. Did you mean 'ms'? Known: ms, s."),
    ):
        with pytest.raises((InvalidArgumentError, UnknownNameError), match=f"^{re.escape(said)}$"):
            scaled(*arguments)
    with pytest.raises(TypeError, match="scaled"):
        scaled()  # type: ignore[call-arg]  # as a caller may who forgot it


def test_the_help_says_the_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "q-learning", "--help"])
    shown = " ".join(re.sub("[│╭╮╰╯─]", " ", capsys.readouterr().out).split())
    assert "Discount factor from one action to the next. (from 0 to 1; default: 0.99)" in shown
