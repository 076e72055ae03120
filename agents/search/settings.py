"""Shared code of searches that are dataclasses of settings."""

from __future__ import annotations

import dataclasses
from typing import Any

from agents.search.guides import ORACLE, guide_name
from verifiers import InvalidArgumentError


def manifest_of(method: str, search: Any) -> dict[str, Any]:
    """The manifest of a search that is a dataclass of settings."""
    settings = {field.name: getattr(search, field.name) for field in dataclasses.fields(search)}
    if "guide" in settings:
        settings["guide"] = guide_name(settings["guide"])
    return {"method": method, **settings, "oracle": settings.get("guide") == ORACLE}


def require_counts(**values: object) -> None:
    """Check that settings are whole numbers of at least 1.

    Raises:
        InvalidArgumentError: If one is not.
    """
    for name, value in values.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InvalidArgumentError(f"{name} must be a whole number of at least 1, got {value!r}")
