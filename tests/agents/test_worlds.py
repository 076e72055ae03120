"""Every agent learns from random weights, by its exact expected return."""

from __future__ import annotations

import pytest

from agents import AGENTS
from tests.agents import corridor
from tests.agents.corridor import share_learned


def test_every_agent_has_its_lesson_in_the_corridor() -> None:
    assert corridor.SETTINGS.keys() == AGENTS.keys()


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_learns_the_corridor(name: str) -> None:
    """By its exact expected return; `tests.agents.corridor` has what was measured with 20 seeds."""
    assert share_learned(name, seed=0) > corridor.ENOUGH


@pytest.mark.long
@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_learns_the_corridor_with_every_seed(name: str) -> None:
    assert min(share_learned(name, seed) for seed in range(1, 6)) > corridor.ENOUGH
