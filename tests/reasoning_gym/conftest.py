"""Runs where reasoning-gym is installed: `make test-reasoning-gym`."""

from __future__ import annotations

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("reasoning_gym") else ["test_*.py"]
