"""Reads facts from a verdict: why the verifier broke, whether it supports the problem's tests, and which part decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verifiers import Outcome, Verdict

_SHOWN = 300
"""Largest number of characters of a cause in a message."""


def error_cause(detail: Mapping[str, Any]) -> str:
    """The reason why a verifier broke, from the detail of its verdict or from the part of the verdict that broke."""
    parts, applied = detail.get("parts"), detail.get("applied")
    if isinstance(parts, Mapping) and applied in parts:
        parts = {applied: parts[applied]}  # the other parts' errors decided nothing
    for name, part in parts.items() if isinstance(parts, Mapping) else ():
        if isinstance(part, Mapping) and part.get("outcome") == Outcome.VERIFIER_ERROR:
            return f"{name}: {error_cause(part.get('detail') or {})}"
    said = detail.get("error") or detail.get("reason")
    return str(said) if said else f"the verifier gave no reason, only {dict(detail)!r}"


def is_unsupported(verdict: Verdict) -> bool:
    """Whether a verdict, or a part of it, is 0 because the problem's tests need a feature the verifier does not support.

    A completion may provoke this, so it scores 0. If right completions provoke it too, the problem can't be used with this
    verifier.
    """
    if verdict.outcome is Outcome.VERIFIER_ERROR:
        return False
    return any(detail.get("failure") == "unsupported" for detail in _details(verdict))


def ran_together(verdict: Verdict) -> bool:
    """Whether a verdict, or a part of it, comes from tests that ran together with the program, which can forge it."""
    return any(detail.get("tests") == "together" for detail in _details(verdict))


def _details(verdict: Verdict) -> list[Mapping[str, Any]]:
    """The details of a verdict and of all its parts."""
    parts = verdict.detail.get("parts")
    values = parts.values() if isinstance(parts, Mapping) else ()
    details = (verdict.detail, *(part.get("detail") for part in values if isinstance(part, Mapping)))
    return [detail for detail in details if isinstance(detail, Mapping)]


def shown(cause: str) -> str:
    """A cause on one line, shortened if it is long."""
    line = " ".join(cause.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]} ..."


def applied_part(verdict: Verdict | None) -> str | None:
    """The part that decided a verdict or one of its parts; None if no choice between parts was made."""
    return None if verdict is None else _applied(verdict.detail)


def _applied(detail: Any) -> str | None:
    if not isinstance(detail, Mapping):
        return None
    if isinstance(applied := detail.get("applied"), str):
        return applied
    parts = detail.get("parts")
    reports = [part for part in parts.values() if isinstance(part, Mapping)] if isinstance(parts, Mapping) else []
    return next((decided for part in reports if (decided := _applied(part.get("detail"))) is not None), None)
