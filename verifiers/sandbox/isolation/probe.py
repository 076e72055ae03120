"""Checks that the jail holds: tries operations that must fail, and compares the layers with the requested ones."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Collection, Mapping
from typing import Any


def escapes(allowed: Collection[str] = ()) -> list[str]:
    """Try forbidden operations in this process, which must be confined; return the names of those that succeeded."""
    return [name for name, attempt in _ATTEMPTS.items() if name not in allowed and _works(attempt)]


def isolation_problem(hello: Mapping[str, Any], isolation: str) -> str | None:
    """The reason why programs can't be run with this isolation; None if they can.

    Args:
        hello: The message of the process in the jail: its `layers`, the `missing` layers with their reasons, and `escapes`.
        isolation: One of `ISOLATIONS`.
    """
    if isolation == "none":
        return None
    layers, missing = set(hello["layers"]), hello["missing"]
    reasons = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
    if "seccomp" not in layers:
        return f"this system provides no seccomp filter ({reasons})"
    if isolation == "strict" and "namespaces" not in layers:
        return f"this system provides no namespaces, which isolation='strict' requires ({reasons})"
    if isolation != "available" and not layers & {"landlock", "namespaces"}:
        return f"this system provides neither landlock nor namespaces, so programs could read every file ({reasons})"
    if hello["escapes"]:
        return f"isolation was set up, but a trial program was still allowed: {', '.join(hello['escapes'])}"
    return None


def _works(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return False
    return True


def _fork_and_wait() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


_ATTEMPTS: dict[str, Callable[[], object]] = {
    "fork": _fork_and_wait,
    "sockets": lambda: socket.socket().close(),
    "signals": lambda: os.kill(os.getppid(), 0),
    "reading": lambda: os.close(os.open("/proc/version", os.O_RDONLY)),
    "listing": lambda: os.listdir("/proc"),
    "writing": lambda: os.close(os.open("/tmp/probe", os.O_WRONLY | os.O_CREAT | os.O_EXCL)),
}
