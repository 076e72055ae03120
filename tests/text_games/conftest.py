"""Runs where TextArena and GEM are installed: `make test-adapters`."""

from __future__ import annotations

import importlib
import importlib.util
import warnings

INSTALLED = all(importlib.util.find_spec(name) for name in ("textarena", "gem"))
collect_ignore_glob = [] if INSTALLED else ["test_*.py"]


def names_of(library: str) -> set[str]:
    """Every id that a library registers."""
    with warnings.catch_warnings():  # what these packages warn of is their own
        warnings.simplefilter("ignore")
        return set(importlib.import_module(f"{library}.envs.registration").ENV_REGISTRY)
