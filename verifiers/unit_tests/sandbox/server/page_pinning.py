"""Makes the fork itself copy the memory that every child writes to, instead of page by page on each first write.

A fork shares all memory, and the first write to each page costs a page fault, several times the copy. Which pages those
are hardly depends on the program: reference counts of common objects, caches, free memory. The kernel copies pages at the
fork if they are pinned for a device, and an io_uring instance used for nothing else pins the pages registered with it.
Without io_uring, only speed is lost.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ..isolation import syscalls

_PRESENT, _FILE, _EXCLUSIVE = 1 << 63, 1 << 61, 1 << 56
"""Flags of an entry of /proc/self/pagemap."""
_FLAGS, _OWN = _PRESENT | _FILE | _EXCLUSIVE, _PRESENT | _EXCLUSIVE
_PAGE = os.sysconf("SC_PAGESIZE")
_REGISTER_BUFFERS = 0
_SIZE_OF_PARAMETERS = 120


@dataclass(frozen=True, slots=True)
class Trial:
    """What a child does while its page writes are observed."""

    run: Callable[[], object]
    """The function that the child runs; it may not return."""
    await_end: Callable[[], object]
    """Waits, in this process, until the child is done."""


def pin_written_in(trial: Trial) -> bool:
    """Pin this process's pages that a child writes to in a trial; return whether the system permits that."""
    try:
        _pin(_written_in(trial))
    except OSError:
        return False
    return True


def _written_in(trial: Trial) -> list[int]:
    # A second child, which does nothing, keeps unwritten pages shared even if this process writes to them.
    children = [_fork(lambda: None), _fork(trial.run)]
    try:
        trial.await_end()
        return list(_own_pages(children[-1]))
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _fork(run: Callable[[], object]) -> int:
    parent = os.getpid()
    pid = syscalls.fork()
    if pid == 0:
        try:
            syscalls.die_with(parent)
            run()
            signal.pause()
        finally:
            os._exit(0)
    return pid


def _own_pages(pid: int) -> Iterator[int]:
    """Pages that a forked process has written to, which no other process shares."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap:
        for region in maps.read().splitlines():
            bounds, access = region.split()[:2]
            if access == "rw-p":
                start, stop = (int(bound, 16) // _PAGE for bound in bounds.split("-"))
                entries = struct.iter_unpack("=Q", os.pread(pagemap.fileno(), 8 * (stop - start), 8 * start))
                yield from (page for page, (entry,) in enumerate(entries, start) if entry & _FLAGS == _OWN)


def _runs(pages: Iterable[int]) -> Iterator[range]:
    """Group numbers into runs without gaps."""
    for _, group in itertools.groupby(enumerate(sorted(pages)), key=lambda item: item[1] - item[0]):
        numbers = [number for _, number in group]
        yield range(numbers[0], numbers[-1] + 1)


def _pin(pages: Iterable[int]) -> None:
    ring = syscalls.syscall("io_uring_setup", ctypes.c_uint(1), ctypes.create_string_buffer(_SIZE_OF_PARAMETERS))
    vectors = [struct.pack("=QQ", run.start * _PAGE, len(run) * _PAGE) for run in _runs(pages)]
    syscalls.syscall(
        "io_uring_register",
        ctypes.c_int(ring),
        ctypes.c_uint(_REGISTER_BUFFERS),
        b"".join(vectors),
        ctypes.c_uint(len(vectors)),
    )
