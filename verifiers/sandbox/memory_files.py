"""Files in memory, without a path, that hold a job's input and output."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def memory_files(*contents: bytes) -> Iterator[list[int]]:
    """Make files with these contents, positioned at the beginning, and close them at the end of the block."""
    files: list[int] = []
    try:
        for content in contents:
            files.append(os.memfd_create("job", os.MFD_CLOEXEC))
            if content:
                with os.fdopen(files[-1], "wb", closefd=False) as file:
                    file.write(content)
                os.lseek(files[-1], 0, os.SEEK_SET)
        yield files
    finally:
        for descriptor in files:
            os.close(descriptor)


def read_all(descriptor: int) -> bytes:
    """Read a file from its beginning to its end."""
    size = os.fstat(descriptor).st_size
    content = b""
    # One call reads at most 2 GiB.
    while len(content) < size and (chunk := os.pread(descriptor, size, len(content))):
        content += chunk
    return content
