"""Makes the fork copy the memory that every child writes to, instead of copying each page at the child's first write.

After a fork all memory is shared, and the first write to each page costs a page fault, several times the cost of the copy. The
pages that are written hardly depend on the program: reference counts of common objects, caches, free memory. The kernel copies
pages at the fork if they are pinned for a device, and an io_uring instance used for nothing else pins the pages registered with
it. Without io_uring, only speed is lost.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import struct
from collections.abc import Callable, Iterable, Iterator

from ..isolation import syscalls

_PRESENT, _FILE, _EXCLUSIVE = 1 << 63, 1 << 61, 1 << 56
"""Flags of the entries of /proc/self/pagemap."""
_FLAGS, _OWN = _PRESENT | _FILE | _EXCLUSIVE, _PRESENT | _EXCLUSIVE
_PAGE = os.sysconf("SC_PAGESIZE")
_REGISTER_BUFFERS = 0
_SIZE_OF_PARAMETERS = 120


def pin_written_by(run: Callable[[], object]) -> bool:
    """Pin the pages of this process that a child writes to when it runs a function; return whether the system permits it."""
    # A second child, which does nothing, keeps unwritten pages shared even if this process writes to them.
    children = _stopped(lambda: None), _stopped(run)
    try:
        _pin(_own_pages(children[-1]))
    except OSError:
        return False
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return True


def _stopped(run: Callable[[], object]) -> int:
    """The process id of a stopped child that has run a function; raises RuntimeError if the function failed."""
    parent = os.getpid()
    pid = syscalls.fork()
    if pid == 0:
        try:
            syscalls.die_with(parent)
            run()
            os.kill(os.getpid(), signal.SIGSTOP)
        finally:
            os._exit(1)
    if not os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1]):
        raise RuntimeError("the trial of what a child writes to has failed")
    return pid


def _own_pages(pid: int) -> Iterator[int]:
    """The pages that a forked process has written to and that no other process shares."""
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
