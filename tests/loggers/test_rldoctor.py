"""The failures that rldoctor demonstrates, and what `agents.runs.health` says of them, as a table of the docs has it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agents.runs.health import Health

pytest.importorskip("rl_doctor", reason="there is no rldoctor: make test-loggers installs it")

from rl_doctor.simulate import SCENARIOS, simulate

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "debugging.md"
NOISE = 0.012
"""Standard error of the simulated held-out scores, which they do not report."""


def signs_of(scenario: str, seed: int) -> set[str]:
    """The kinds of warnings of a simulated run."""
    health, kinds = Health(), set()
    for row in simulate(scenario, seed=seed)[0]:
        score = row.get("eval/accuracy")
        if score is not None:
            ends = {"eval/accuracy/low": score - 1.96 * NOISE, "eval/accuracy/high": score + 1.96 * NOISE}
            health.observe_held_out({"eval/accuracy": score, **ends})
        kinds |= {warning.kind for warning in health.observe(row["step"] + 1, row)}
    return kinds


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_health_finds_what_the_page_says(scenario: str) -> None:
    text = PAGE.read_text(encoding="utf-8").partition("### Beside rldoctor")[2]
    (said,) = re.findall(rf"^\| `{scenario}` \| (.*?) \|", text, re.MULTILINE)
    for seed in range(5):
        assert signs_of(scenario, seed) == set(re.findall(r"`(\w+)`", said)), seed
