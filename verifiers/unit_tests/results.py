"""The record of what running one program gave, and helpers that make such records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from verifiers.sandbox import JobEnd, ProcessEnd


@dataclass(frozen=True, slots=True)
class JobResult:
    """The result of one program."""

    failure: str | None
    """The class of the first failure, None if every case passed."""
    errored: bool
    """Whether the tests are broken or need something unsupported, so that no program can be judged."""
    passed: int
    total: int
    detail: Mapping[str, object]
    cost: Mapping[str, float]


def without_surrogates(value: Any) -> Any:
    """Escape lone surrogates in plain data: a program's messages and names may contain them, and UTF-8 can't encode them."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    return value


def process_of(end: JobEnd) -> ProcessEnd:
    """The only process of a job."""
    return next(iter(end.processes.values()))


def cost_of(end: JobEnd, program: ProcessEnd) -> dict[str, float]:
    """The cost of a job, given how the job and the program's process ended."""
    return {"seconds": end.seconds, "cpu_seconds": program.cpu_s, "bytes": float(program.memory_bytes)}
