"""The fork server's handles for its children."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ..contract import DECLINED
from ..isolation import syscalls
from ..limits import Limits

_LAST_WORD_S = 2.0
"""Seconds within which a lasting process must notice that the other processes of its job were stopped."""


@dataclass(slots=True)
class Child:
    """A child process and, once it has ended, the resources it used."""

    pid: int
    handle: int
    status: int | None = None
    cpu_s: float = 0.0
    memory_bytes: int = 0
    before_s: float = 0.0
    """CPU seconds that the child used for earlier jobs."""
    cpu: int | None = None
    """The only CPU that the child may run on; None if it may run on all."""
    is_tree: bool = False
    """Whether the child may start processes, which then count as part of it."""

    def clock(self) -> float:
        """CPU seconds that the child has used for this job, over all threads."""
        if self.is_tree:
            return sum(map(_cpu_seconds, _tree(self.pid)))
        # The id of a process's CPU clock, as clock_getcpuclockid computes it.
        return time.clock_gettime((~self.pid << 3) | 2) - self.before_s

    def exceeds(self, memory_bytes: int) -> bool:
        """Whether the child and its descendants use more memory than this; each shared page counts once.

        Shared pages are only searched for if the plain sum exceeds the limit.
        """
        may = sum(map(_memory_bytes, _tree(self.pid))) > memory_bytes
        # If a process ends during the sum, its shares are counted with the processes that are read after it.
        return may and all(self.tree_memory() > memory_bytes for _ in range(_MEASURED))

    def tree_memory(self) -> int:
        """Memory in bytes of the child and its descendants, each page counted once, without files and this process's memory."""
        pids, own = _distinct(_tree(self.pid)), os.getpid()
        shares = {pid: share for pid in pids if (share := _share_bytes(pid))}
        hidden = sum(_beyond_own(pid) for pid in pids if pid not in shares)
        return hidden + (max(0, sum(shares.values()) + _share_bytes(own) - _memory_bytes(own)) if shares else 0)

    def reap(self) -> None:
        """Kill the child if it still runs, and reap it."""
        # Descendants that the child has not waited for are not in its own usage.
        spent, held = (self.clock(), self.tree_memory()) if self.is_tree else (0.0, 0)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        _, self.status, usage = os.wait4(self.pid, 0)
        os.close(self.handle)
        self.cpu_s = max(usage.ru_utime + usage.ru_stime - self.before_s, spent)
        self.memory_bytes = max(usage.ru_maxrss * 1024, held)

    def end(self) -> tuple[int | None, float, int]:
        """The fields of a `ProcessEnd`."""
        if self.status is None:
            return None, self.clock(), 0
        return os.waitstatus_to_exitcode(self.status), self.cpu_s, self.memory_bytes


class LastingProcess:
    """A process that serves one job after another, or ends after one."""

    def __init__(self, child: Child, control: socket.socket, role: str, limits: Limits) -> None:
        """Take charge of a process that receives the descriptors of jobs by `control` and sends back a byte after each job."""
        self.child = child
        self.control = control
        self.role = role
        self.limits = limits

    def begin(self, descriptors: Sequence[int]) -> bool:
        """Start a job; False if the process ended after its last job."""
        self.child.before_s += self.child.clock()
        try:
            socket.send_fds(self.control, [b"."], list(descriptors))
        except BrokenPipeError:
            return False
        return True

    def answers(self) -> bool:
        """Whether the process is ready for another job; False if it has ended, or takes too long to notice the job's end."""
        self.control.settimeout(_LAST_WORD_S)
        try:
            return bool(self.control.recv(1))
        except (TimeoutError, ConnectionError):
            return False

    def has_declined(self) -> bool:
        """Whether the process, having answered or ended, leaves the job to a new process, as it has served other jobs."""
        try:
            return self.control.recv(1, socket.MSG_PEEK) == DECLINED
        except ConnectionError:
            return False

    def end(self) -> None:
        """End the process."""
        self.control.close()
        self.child.reap()


_TICKS = os.sysconf("SC_CLK_TCK")
_MEASURED = 3
"""Number of measurements in a row that must exceed the memory limit."""
_SPACE = 1
"""The argument that makes `kcmp` compare address spaces."""


def _tree(pid: int) -> list[int]:
    """A process and its descendants."""
    pids = [pid]
    for parent in pids:
        with contextlib.suppress(OSError):  # the process has ended
            for thread in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{thread}/children") as file:
                    pids += map(int, file.read().split())
    return pids


def _cpu_seconds(pid: int) -> float:
    """CPU seconds of a process, over all its threads and the children that it has reaped; 0 if it has ended."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / _TICKS
    return 0.0


def _memory_bytes(pid: int) -> int:
    """Anonymous and shared memory of a process, in bytes; 0 if it has ended."""
    return _sizes(f"/proc/{pid}/status", "RssAnon", "RssShmem")


def _beyond_own(pid: int) -> int:
    return max(0, _memory_bytes(pid) - _memory_bytes(os.getpid()))


def _share_bytes(pid: int) -> int:
    """The same memory with each page divided by the number of processes that share it; 0 if this can't be read here."""
    return _sizes(f"/proc/{pid}/smaps_rollup", "Pss_Anon", "Pss_Shmem")


def _sizes(path: str, *names: str) -> int:
    with contextlib.suppress(OSError), open(path) as file:
        sizes = dict(line.split(":", 1) for line in file if ":" in line)
        return sum(int(sizes.get(name, "0 kB").split()[0]) << 10 for name in names)
    return 0


def _distinct(pids: Sequence[int]) -> list[int]:
    """One process for each address space, since a new process may share its parent's until it becomes another program."""
    return [pid for index, pid in enumerate(pids) if not any(_is_same_space(pid, one) for one in pids[:index])]


def _is_same_space(one: int, other: int) -> bool:
    try:
        return syscalls.syscall("kcmp", one, other, _SPACE, 0, 0) == 0
    except OSError:  # a process has ended, or this kernel does not say
        return False


def kill_strays() -> None:
    """Kill all remaining children and grandchildren: without the system-call filter, a program can fork."""
    path = f"/proc/self/task/{os.getpid()}/children"
    while os.path.exists(path):
        with open(path) as file:
            pids = file.read().split()
        if not pids:
            return
        for pid in pids:
            os.kill(int(pid), signal.SIGKILL)
            os.waitpid(int(pid), 0)
