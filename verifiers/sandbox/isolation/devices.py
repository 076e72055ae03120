"""Devices that programs expect to open, but that the sandbox's file system or filter does not provide.

The system-call filter refuses to open any file for writing. Programs can write to the null device all the same, because the
fork server has opened it for them. `/dev/stdin`, `/dev/stdout` and `/dev/stderr` are links into a `/proc` that does not exist
in the jail; opening one gives descriptor 0, 1 or 2.
"""

from __future__ import annotations

import importlib
import io
import os
from typing import Any

NULL = 128
"""Descriptor of the null device; it is above all descriptors that a child closes or may open."""
_open = io.open
_STREAMS = {
    f"{folder}{name}": number
    for number, standard in enumerate(("stdin", "stdout", "stderr"))
    for folder, name in (("/dev/", standard), ("/dev/fd/", number), ("/proc/self/fd/", number))
}


def open_device_or_file(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
    """Open a file as `open` does, or one of the devices."""
    path = os.fspath(file) if isinstance(file, str | os.PathLike) else None
    if path == os.devnull and not set(mode) <= set("rbt"):
        file = os.dup(NULL)
    elif path in _STREAMS:
        file = os.dup(_STREAMS[path])
    return _open(file, mode, *args, **kwargs)


def install() -> None:
    """Make `open_device_or_file` the `open` of all code in this process and in its children."""
    open_device_or_file.__name__ = open_device_or_file.__qualname__ = "open"
    open_device_or_file.__module__ = "io"
    for name in ("builtins", "io"):
        vars(importlib.import_module(name))["open"] = open_device_or_file
