"""Checks how many files this process may open, since every program in the sandbox needs a few."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator

from verifiers.errors import SandboxUnavailableError

_OF_A_SERVER = 129
"""Number of descriptors that a fork server needs; `isolation.devices.NULL` is the highest of them."""


@contextlib.contextmanager
def enough_descriptors() -> Iterator[None]:
    """Raise SandboxUnavailableError with advice if the system says within the block that too many files are open."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        soft, hard = _limits()
        raise SandboxUnavailableError(
            f"the sandbox needs more descriptors: this process may have {soft} files open at a time (hard limit {hard}), and a "
            f"fork server needs a hard limit of at least {_OF_A_SERVER}. Raise both before this process starts, for example by "
            "`ulimit -n 4096`, or run fewer programs at a time (workers=...)"
        ) from error


def check_server_limit() -> None:
    """Raise OSError if a fork server started by this process could not open enough files."""
    hard = _limits()[1]
    if 0 <= hard < _OF_A_SERVER:  # a negative number means no limit
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def _limits() -> tuple[int, int]:
    import resource  # which not every system has

    return resource.getrlimit(resource.RLIMIT_NOFILE)
