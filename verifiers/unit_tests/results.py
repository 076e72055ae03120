"""The result of running one program, and what makes it."""

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
    """Whether the tests are broken or need something unsupported whatever the program does, so that it can't be judged."""
    passed: int
    total: int
    detail: Mapping[str, object]
    cost: Mapping[str, float]


def without_surrogates(value: Any) -> Any:
    """Plain data with lone surrogates escaped, which a program may have in messages and names and UTF-8 can't encode."""
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
    """The cost of a job, of which one process is the program's."""
    return {"seconds": end.seconds, "cpu_seconds": program.cpu_s, "bytes": float(program.memory_bytes)}
