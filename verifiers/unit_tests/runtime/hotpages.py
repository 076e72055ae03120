"""Memory that every child writes to is copied by the fork itself, and not page by page as the child meets it.

A fork shares all memory, and the first write to each page costs a page fault, several times the copy. Which pages those
are hardly depends on the program: reference counts of common objects, caches, free memory. The kernel copies pages at the
fork if they are pinned for a device, and an io_uring instance that is never used for anything pins what it is told to.
Where there is no io_uring, nothing is lost but the speed.
"""

from __future__ import annotations

import ctypes
import itertools
import operator
import os
import struct
from collections.abc import Callable, Iterator

from . import syscalls

Pages = range
"""Page numbers."""

_PRESENT, _FILE, _EXCLUSIVE = 1 << 63, 1 << 61, 1 << 56
"""Flags of an entry of /proc/self/pagemap."""
_PAGE = os.sysconf("SC_PAGESIZE")
_REGISTER_BUFFERS = 0
_SIZE_OF_PARAMETERS = 120


def pin_written_by(run: Callable[[], None]) -> bool:
    """Pin this process's pages that a child writes to when it runs a function.

    Returns:
        Whether the system lets this process pin memory, and tells which pages those are.
    """
    try:
        _pin(_written_by(run))
    except OSError:
        return False
    return True


def _written_by(run: Callable[[], None]) -> list[Pages]:
    # The child waits while it is looked at: looking itself would write to memory.
    finished, release = os.pipe(), os.pipe()
    pid = syscalls.fork()
    if pid == 0:
        try:
            os.close(release[1])
            run()
            os.write(finished[1], b".")
            os.read(release[0], 1)
        finally:
            os._exit(0)
    for descriptor in (finished[1], release[0]):
        os.close(descriptor)
    os.read(finished[0], 1)
    try:
        return list(_own_pages(pid))
    finally:
        for descriptor in (finished[0], release[1]):
            os.close(descriptor)
        os.waitpid(pid, 0)


def _own_pages(pid: int) -> Iterator[Pages]:
    """Runs of pages that a forked process has written to: no other process has them."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap:
        for region in maps.read().splitlines():
            bounds, access = region.split()[:2]
            if access == "rw-p":
                start, stop = (int(bound, 16) // _PAGE for bound in bounds.split("-"))
                yield from _runs(start, os.pread(pagemap.fileno(), 8 * (stop - start), 8 * start))


def _runs(first: int, entries: bytes) -> Iterator[Pages]:
    """Runs of present, private, unshared pages, from the entries of the pages from `first` on."""
    wanted, unwanted = _PRESENT | _EXCLUSIVE, _FILE
    own = [entry & (wanted | unwanted) == wanted for (entry,) in struct.iter_unpack("=Q", entries)]
    for is_own, group in itertools.groupby(enumerate(own, first), key=operator.itemgetter(1)):
        numbers = [number for number, _ in group]
        if is_own:
            yield range(numbers[0], numbers[-1] + 1)


def _pin(runs: list[Pages]) -> None:
    ring = syscalls.syscall("io_uring_setup", ctypes.c_uint(1), ctypes.create_string_buffer(_SIZE_OF_PARAMETERS))
    vectors = b"".join(struct.pack("=QQ", run.start * _PAGE, len(run) * _PAGE) for run in runs)
    syscalls.syscall(
        "io_uring_register", ctypes.c_int(ring), ctypes.c_uint(_REGISTER_BUFFERS), vectors, ctypes.c_uint(len(runs))
    )
