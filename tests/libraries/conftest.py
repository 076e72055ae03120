"""Runs where Stable-Baselines3 and torchrl are installed: `make test-libraries`."""

from __future__ import annotations

import importlib.util

collect_ignore_glob = (
    [] if all(importlib.util.find_spec(name) for name in ("stable_baselines3", "torchrl")) else ["test_*.py"]
)
