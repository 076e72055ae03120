"""The system-call filters: an allow-list with checked arguments; every other call fails with EPERM.

There are two filters, and a call must pass both. The long allow-list is installed once, in the fork server, and inherited by
its children. Each child adds a second filter, which removes the calls that only the server needs, and checks arguments. The
second filter is short, since it is installed for each program, and the kernel's work to install a filter grows with its length.

The filters allow no sockets (except connected pairs inside the process, which asyncio needs), no exec, no fork, no ptrace, no
namespaces, and no signals to other processes. They allow threads (`clone` with CLONE_THREAD). Files can be opened for reading
only.

An installed program, such as a compiler, gets a variant that allows executing it and opening files for writing; Landlock or the
file system limits which files. With its own folder the program may also create and remove files, and in a namespace of process
ids it may start processes and signal them.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Iterable, Sequence

from . import syscalls

_ALLOWED = """
read write close lseek pread64 pwrite64 readv writev dup dup2 dup3 pipe pipe2 poll ppoll select pselect6
epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2 fsync fdatasync ftruncate fadvise64 stat fstat lstat
newfstatat statx access faccessat faccessat2 readlink readlinkat getcwd chdir getdents64 statfs fstatfs mmap munmap
mprotect mremap msync mincore madvise brk membarrier rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending
rt_sigtimedwait rt_sigsuspend sigaltstack pause alarm getitimer setitimer nanosleep clock_nanosleep clock_gettime
clock_getres gettimeofday time times futex set_robust_list set_tid_address rseq restart_syscall sched_yield
sched_getaffinity getcpu getpid gettid getppid getpgrp getpgid getsid getuid geteuid getgid getegid getresuid
getresgid getgroups getpriority getrlimit getrusage sysinfo uname getrandom arch_prctl exit exit_group recvfrom
shutdown getsockname getsockopt
"""
"""Calls that every process may make, with any arguments."""
_FOLDER = """
getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr creat truncate rename renameat renameat2 link linkat symlink
symlinkat unlink unlinkat mkdir mkdirat rmdir chmod fchmod fchmodat umask utime utimes utimensat flock fallocate fchdir
sendfile copy_file_range
"""
"""Calls of programs that have a folder to write in."""
_PROCESSES = "fork vfork execve waitid setpgid setsid"
"""Calls of programs that may start others."""
_SERVER_ONLY = "sendmsg recvmsg wait4 pidfd_open close_range sched_setaffinity"
"""Calls that only the fork server may make, besides those of its children: `_ALLOWED` and the calls in `_rules`."""

_RET_ALLOW = 0x7FFF0000
_RET_ERRNO = 0x00050000
_RET_KILL_PROCESS = 0x80000000
_LOAD, _AND, _JUMP, _JUMP_EQUAL, _JUMP_ABOVE, _RETURN = 0x20, 0x54, 0x05, 0x15, 0x35, 0x06
_OFFSET_NUMBER, _OFFSET_ARCHITECTURE, _OFFSET_ARGUMENTS = 0, 4, 16

_CLONE_THREAD = 0x00010000
_CLONE_VM = 0x00000100
_PTHREAD_FLAGS = 0x007D0F00
_NEW_NAMESPACES = 0x7E020080
_O_WRITING = 0o3 | 0o100 | 0o1000 | 0o20000000
"""O_ACCMODE, O_CREAT, O_TRUNC, and the bit that O_TMPFILE has besides O_DIRECTORY: each of them implies writing."""
_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""The allowed commands of ioctl: TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX."""
_FCNTLS = (0, 1, 2, 3, 4, 1030)
"""The allowed commands of fcntl: F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC. F_SETOWN, which can send signals
to other processes, is not among them.
"""
_LOCKS = (5, 6, 7)
"""The allowed commands of fcntl for locks: F_GETLK, F_SETLK, F_SETLKW."""
_PR_SET_NAME = 15
_RLIMIT_STACK = 3
_AF_UNIX = 1

_X32_CALLS = 0x40000000
_PID = 0xFFFFFFFE
"""Placeholder in a built filter for the id of the process; `install` fills in the id."""

_Instruction = tuple[int, int, int, int]


def _load(offset: int) -> _Instruction:
    return (_LOAD, 0, 0, offset)


def _argument(index: int, *, high: bool = False) -> _Instruction:
    return _load(_OFFSET_ARGUMENTS + 8 * index + 4 * high)


def _return(value: int) -> _Instruction:
    return (_RETURN, 0, 0, value)


def _deny(error: int = errno.EPERM) -> _Instruction:
    return _return(_RET_ERRNO | error)


def _when(number: int, body: list[_Instruction]) -> list[_Instruction]:
    """Run the body if the system call has this number; the body must return on every path."""
    return [(_JUMP_EQUAL, 0, len(body), number), *body]


def _one_of(index: int, values: Iterable[int]) -> list[_Instruction]:
    """Allow a system call if the low half of the argument at this index is one of the values; the kernel reads no more."""
    values = list(values)
    checks = [(_JUMP_EQUAL, len(values) - position, 0, value) for position, value in enumerate(values)]
    return [_argument(index), *checks, _deny(), _return(_RET_ALLOW)]


def _without(index: int, mask: int) -> list[_Instruction]:
    """Allow a system call if the argument at this index has none of the bits of the mask."""
    return [_argument(index), (_AND, 0, 0, mask), (_JUMP_EQUAL, 0, 1, 0), _return(_RET_ALLOW), _deny()]


def _thread_only() -> list[_Instruction]:
    needed = _CLONE_THREAD | _CLONE_VM
    forbidden = 0xFFFFFFFF & ~_PTHREAD_FLAGS
    return [
        _argument(0),
        (_AND, 0, 0, forbidden),
        (_JUMP_EQUAL, 0, 3, 0),
        _argument(0),
        (_AND, 0, 0, needed),
        (_JUMP_EQUAL, 1, 0, needed),
        _deny(),
        _return(_RET_ALLOW),
    ]


def _null(index: int) -> list[_Instruction]:
    """Allow a system call if the pointer at this argument index is NULL."""
    return [
        _argument(index),
        (_JUMP_EQUAL, 0, 2, 0),
        _argument(index, high=True),
        (_JUMP_EQUAL, 1, 0, 0),
        _deny(),
        _return(_RET_ALLOW),
    ]


def _own_stack_limit() -> list[_Instruction]:
    """Allow `prlimit64` to read limits, and to set the limit on the process's own stack, as deeply recursive programs do."""
    return [
        _argument(2),
        (_JUMP_EQUAL, 0, 2, 0),
        _argument(2, high=True),
        (_JUMP_EQUAL, 6, 0, 0),
        _argument(1),
        (_JUMP_EQUAL, 0, 3, _RLIMIT_STACK),
        _argument(0),
        (_JUMP_EQUAL, 2, 0, 0),
        (_JUMP_EQUAL, 1, 0, _PID),
        _deny(),
        _return(_RET_ALLOW),
    ]


def _rules() -> dict[str, list[_Instruction]]:
    """Calls that a child may make only with certain arguments."""
    return {
        "clone": _thread_only(),
        "open": _without(1, _O_WRITING),
        "openat": _without(2, _O_WRITING),
        "kill": _one_of(0, [_PID]),
        "tgkill": _one_of(0, [_PID]),
        "fcntl": _one_of(1, _FCNTLS),
        "ioctl": _one_of(1, _IOCTLS),
        "prctl": _one_of(0, [_PR_SET_NAME]),
        "prlimit64": _own_stack_limit(),
        "socketpair": _one_of(0, [_AF_UNIX]),
        "sendto": _null(4),
    }


def _numbers() -> dict[str, int]:
    numbers = syscalls.NUMBERS.get(syscalls.MACHINE)
    if numbers is None:
        raise OSError(errno.ENOSYS, f"no seccomp filter is known for {syscalls.MACHINE!r}")
    return numbers


def build_outer(*, executes: bool = False, folder: bool = False, processes: bool = False) -> list[_Instruction]:
    """Build the fork server's filter for this machine: an allow-list.

    Args:
        executes: Whether the process is to become another program.
        folder: Whether the program may make and remove files; another layer must limit it to a folder.
        processes: Whether the program may start processes, which must be in a namespace of their own.

    Raises:
        OSError: If the machine's architecture is not known here.
    """
    numbers = _numbers()
    more = (executes * "execve", folder * _FOLDER, processes * _PROCESSES)
    names = dict.fromkeys([*_ALLOWED.split(), *_SERVER_ONLY.split(), *_rules(), *" ".join(more).split()])
    allowed = [numbers[name] for name in names if name in numbers and name != "clone3"]
    checks = [(_JUMP_EQUAL, len(allowed) - position, 0, number) for position, number in enumerate(allowed)]
    return [
        _load(_OFFSET_ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, syscalls.AUDIT_ARCHITECTURES[syscalls.MACHINE]),
        _return(_RET_KILL_PROCESS),
        _load(_OFFSET_NUMBER),
        (_JUMP_ABOVE, 0, 1, _X32_CALLS),
        _deny(errno.ENOSYS),
        # The flags of clone3 are in memory, which a filter can't read; libc falls back to `clone`.
        *_when(numbers["clone3"], [_deny(errno.ENOSYS)]),
        *checks,
        _deny(),
        _return(_RET_ALLOW),
    ]


def build_inner(
    *,
    receives_descriptors: bool = False,
    opens_files: bool = True,
    writes_files: bool = False,
    processes: bool = False,
) -> list[_Instruction]:
    """Build the filter that each child adds; `install` fills in the process id.

    Args:
        receives_descriptors: Whether the child takes the files of its jobs from a socket.
        opens_files: Whether the child may open files; must be false if no other layer limits which files it reads.
        writes_files: Whether the child may also open files for writing; needs another layer that limits which files.
        processes: Whether the child may start processes, wait for them and signal them, in a namespace of their own.

    Raises:
        OSError: If the machine's architecture is not known here.
    """
    numbers = _numbers()
    denied = [name for name in _SERVER_ONLY.split() if name != "recvmsg" or not receives_descriptors]
    rules = _rules() | {name: [_deny()] for name in denied}
    if writes_files:
        rules = {name: body for name, body in rules.items() if name not in ("open", "openat")}
        rules["fcntl"] = _one_of(1, (*_FCNTLS, *_LOCKS))
    if processes:
        rules["clone"] = _without(0, _NEW_NAMESPACES)
        rules = {name: body for name, body in rules.items() if name not in ("kill", "tgkill", "wait4")}
    if not opens_files:
        rules |= {name: [_deny(errno.EACCES)] for name in ("open", "openat")}
    checks = [_when(numbers[name], body) for name, body in rules.items() if name in numbers]
    return [_load(_OFFSET_NUMBER), *(instruction for check in checks for instruction in check), _return(_RET_ALLOW)]


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


class Filter:
    """A system-call filter, packed once and installed in every child."""

    def __init__(self, instructions: Sequence[_Instruction]) -> None:
        packed = b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)
        self._packed = ctypes.create_string_buffer(packed, len(packed))
        self._words = memoryview(self._packed).cast("B").cast("I")
        self._pid_words = [2 * i + 1 for i, instruction in enumerate(instructions) if instruction[3] == _PID]
        # Made here rather than in `install`, since allocations take time in every child.
        self._program = _FilterProgram(len(instructions), ctypes.addressof(self._packed))
        self._pointer = ctypes.byref(self._program)

    def install(self, pid: int) -> None:
        """Install the filter permanently in this process, whose id is `pid`; raises OSError if the kernel refuses."""
        for index in self._pid_words:
            self._words[index] = pid
        result = syscalls.libc.prctl(syscalls.PR_SET_SECCOMP, syscalls.SECCOMP_MODE_FILTER, self._pointer, 0, 0)
        syscalls.check(result, "seccomp filter")
