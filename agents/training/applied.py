"""The part of a composed verifier that decided, as `hybrid` and `first` report it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verifiers import Verdict


def applied_part(verdict: Verdict | None) -> str | None:
    """The part that decided a verdict, or the first of its parts; None if no choice between parts was made."""
    return None if verdict is None else _applied(verdict.detail)


def _applied(detail: Any) -> str | None:
    if not isinstance(detail, Mapping):
        return None
    if isinstance(applied := detail.get("applied"), str):
        return applied
    parts = detail.get("parts")
    reports = [part for part in parts.values() if isinstance(part, Mapping)] if isinstance(parts, Mapping) else []
    return next((decided for part in reports if (decided := _applied(part.get("detail"))) is not None), None)
