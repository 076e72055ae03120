"""What the fork server calls before it loads candidate and tester."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from .protocol import unpatched


def prepare(packages: Mapping[str, Any]) -> None:
    """Load all modules with the present names of what they import, whatever tests and programs replace later."""
    unpatched.install()
    importlib.import_module(f"{__package__}.roles")
    importlib.import_module(f"{__package__}.protocol.packages").register(packages)
    unpatched.uninstall()
