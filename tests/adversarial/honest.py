"""Honest programs that use what a sandbox could take away; they run between the hostile ones and must pass."""

from __future__ import annotations

from tests.sandbox import load

DATA = load("adversarial/honest")
FUNCTIONS: dict[str, str] = DATA["functions"]
"""Programs that define `solve(n)`, which returns n * n + 7, by what they use."""
SCRIPTS: dict[str, str] = DATA["scripts"]
"""Programs that read n and write n * n + 7, by what they use."""
