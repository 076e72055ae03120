"""Runs where reasoning-gym is installed: `make test-reasoning-gym`."""

from __future__ import annotations

import importlib.util
import warnings

INSTALLED = importlib.util.find_spec("reasoning_gym") is not None
collect_ignore_glob = [] if INSTALLED else ["test_*.py"]

if INSTALLED:
    with warnings.catch_warnings():  # a package that it needs has code of which Python warns when it compiles it
        warnings.simplefilter("ignore")
        import reasoning_gym  # noqa: F401
