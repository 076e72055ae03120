"""System calls for which Python has no function, made through ctypes; for Linux on x86-64 and aarch64."""

from __future__ import annotations

import ctypes
import os

# PyDLL keeps the interpreter lock: the fork server has one thread, so nothing waits for it, and calls are cheaper.
libc = ctypes.PyDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
# Looked up here, since ctypes creates a function on first access: otherwise every child would create its own.
_prctl, _fork, _sched_getcpu = libc.prctl, libc.fork, libc.sched_getcpu

PR_SET_PDEATHSIG = 1
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
PR_SET_CHILD_SUBREAPER = 36
SECCOMP_MODE_FILTER = 2

AUDIT_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The architecture's number as seccomp filters see it."""

# Numbers that are the same on every architecture (system calls added since 2018 share one table).
_COMMON = {
    "io_uring_setup": 425,
    "io_uring_register": 427,
    "pidfd_open": 434,
    "clone3": 435,
    "faccessat2": 439,
    "close_range": 436,
    "mount_setattr": 442,
    "landlock_create_ruleset": 444,
    "landlock_add_rule": 445,
    "landlock_restrict_self": 446,
}
_X86_64 = {
    "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7, "lseek": 8, "mmap": 9,
    "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "ioctl": 16,
    "pread64": 17, "pwrite64": 18, "readv": 19, "writev": 20, "access": 21, "pipe": 22, "select": 23, "sched_yield": 24,
    "mremap": 25, "msync": 26, "mincore": 27, "madvise": 28, "dup": 32, "dup2": 33, "pause": 34, "sendto": 44, "recvfrom": 45,
    "sendmsg": 46, "recvmsg": 47,
    "shutdown": 48, "getsockname": 51, "socketpair": 53, "getsockopt": 55, "nanosleep": 35,
    "getitimer": 36, "alarm": 37, "setitimer": 38, "getpid": 39, "clone": 56, "execve": 59, "exit": 60, "wait4": 61, "kill": 62,
    "uname": 63,
    "fcntl": 72, "flock": 73, "fsync": 74, "fdatasync": 75, "truncate": 76, "ftruncate": 77, "getcwd": 79, "chdir": 80,
    "fchdir": 81, "rename": 82, "mkdir": 83, "rmdir": 84, "creat": 85, "link": 86, "unlink": 87, "symlink": 88, "readlink": 89,
    "chmod": 90, "fchmod": 91, "umask": 95, "sendfile": 40, "fork": 57, "vfork": 58, "setpgid": 109, "setsid": 112,
    "utime": 132, "utimes": 235, "waitid": 247, "mkdirat": 258, "unlinkat": 263, "renameat": 264, "linkat": 265,
    "symlinkat": 266, "fchmodat": 268, "utimensat": 280, "fallocate": 285, "renameat2": 316, "copy_file_range": 326,
    "gettimeofday": 96, "getrlimit": 97, "getrusage": 98, "sysinfo": 99, "times": 100, "getuid": 102, "getgid": 104,
    "geteuid": 107, "getegid": 108, "getppid": 110, "getpgrp": 111, "getgroups": 115, "getresuid": 118, "getresgid": 120,
    "getpgid": 121, "getsid": 124, "capset": 126, "rt_sigpending": 127, "rt_sigtimedwait": 128, "rt_sigsuspend": 130,
    "sigaltstack": 131, "statfs": 137, "fstatfs": 138, "getpriority": 140, "pivot_root": 155, "prctl": 157,
    "arch_prctl": 158, "gettid": 186, "getxattr": 191, "lgetxattr": 192, "fgetxattr": 193, "listxattr": 194,
    "llistxattr": 195, "flistxattr": 196, "tkill": 200, "time": 201, "futex": 202,
    "sched_setaffinity": 203, "sched_getaffinity": 204, "getdents64": 217, "set_tid_address": 218, "restart_syscall": 219,
    "fadvise64": 221, "clock_gettime": 228,
    "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231, "epoll_wait": 232, "epoll_ctl": 233, "tgkill": 234,
    "openat": 257, "newfstatat": 262, "readlinkat": 267, "faccessat": 269, "pselect6": 270, "ppoll": 271,
    "set_robust_list": 273, "epoll_pwait": 281, "eventfd2": 290, "epoll_create1": 291, "dup3": 292, "pipe2": 293,
    "prlimit64": 302, "getcpu": 309, "kcmp": 312, "getrandom": 318, "membarrier": 324, "statx": 332, "rseq": 334,
}  # fmt: skip
_AARCH64 = {
    "getxattr": 8, "lgetxattr": 9, "fgetxattr": 10, "listxattr": 11, "llistxattr": 12, "flistxattr": 13,
    "getcwd": 17, "eventfd2": 19, "epoll_create1": 20, "epoll_ctl": 21, "epoll_pwait": 22, "dup": 23, "dup3": 24,
    "fcntl": 25, "ioctl": 29, "flock": 32, "mkdirat": 34, "unlinkat": 35, "symlinkat": 36, "linkat": 37, "renameat": 38,
    "truncate": 45, "fallocate": 47, "fchdir": 50, "fchmod": 52, "fchmodat": 53, "sendfile": 71, "utimensat": 88, "waitid": 95,
    "setpgid": 154, "setsid": 157, "umask": 166, "renameat2": 276, "copy_file_range": 285,
    "pivot_root": 41, "statfs": 43, "fstatfs": 44, "ftruncate": 46, "faccessat": 48,
    "chdir": 49, "openat": 56, "close": 57, "pipe2": 59, "getdents64": 61, "lseek": 62, "read": 63, "write": 64,
    "readv": 65, "writev": 66, "pread64": 67, "pwrite64": 68, "pselect6": 72, "ppoll": 73, "readlinkat": 78,
    "newfstatat": 79, "fstat": 80, "fsync": 82, "fdatasync": 83, "capset": 91, "socketpair": 199, "getsockname": 204,
    "sendto": 206, "recvfrom": 207, "sendmsg": 211, "recvmsg": 212, "getsockopt": 209, "shutdown": 210,
    "exit": 93, "exit_group": 94,
    "set_tid_address": 96, "futex": 98, "set_robust_list": 99, "nanosleep": 101, "getitimer": 102, "setitimer": 103,
    "clock_gettime": 113, "clock_getres": 114, "clock_nanosleep": 115,
    "sched_setaffinity": 122, "sched_getaffinity": 123, "sched_yield": 124, "restart_syscall": 128, "kill": 129, "tkill": 130,
    "tgkill": 131, "sigaltstack": 132, "rt_sigsuspend": 133,
    "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigpending": 136, "rt_sigtimedwait": 137, "rt_sigreturn": 139,
    "getpriority": 141, "getresuid": 148, "getresgid": 150, "times": 153, "getpgid": 155, "getsid": 156,
    "getgroups": 158, "uname": 160, "getrlimit": 163, "getrusage": 165, "prctl": 167, "getcpu": 168,
    "gettimeofday": 169, "getpid": 172, "getppid": 173, "getuid": 174, "geteuid": 175, "getgid": 176, "getegid": 177,
    "gettid": 178, "sysinfo": 179, "brk": 214, "munmap": 215, "mremap": 216, "clone": 220, "execve": 221, "mmap": 222,
    "fadvise64": 223, "mprotect": 226, "msync": 227, "mincore": 232, "madvise": 233, "wait4": 260, "prlimit64": 261,
    "kcmp": 272, "getrandom": 278, "membarrier": 283, "statx": 291, "rseq": 293,
}  # fmt: skip
NUMBERS: dict[str, dict[str, int]] = {"x86_64": _X86_64 | _COMMON, "aarch64": _AARCH64 | _COMMON}
"""System call numbers by machine and name; a call that a machine does not have is absent from its table."""

MACHINE = os.uname().machine


def check(result: int, what: str) -> int:
    """Return the result of a libc call; if it is negative, raise OSError with the call's name."""
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def syscall(name: str, *arguments: object) -> int:
    """Make a system call by name; raises OSError if the kernel refuses or the machine's architecture is unknown here."""
    numbers = NUMBERS.get(MACHINE)
    if numbers is None:
        raise OSError(38, f"{name}: system call numbers of {MACHINE!r} are not known")
    return check(libc.syscall(ctypes.c_long(numbers[name]), *arguments), name)


def prctl(option: int, argument: int) -> None:
    """Set an attribute of this process; raises OSError if the kernel refuses."""
    # Plain numbers are passed as they are, widened; a ctypes object for each would cost every child a page or two.
    check(_prctl(option, argument, 0, 0, 0), "prctl")


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends; if the parent has ended already, end this process now."""
    prctl(PR_SET_PDEATHSIG, 9)
    if os.getppid() != parent:
        os._exit(1)


def current_cpu() -> int:
    """The CPU on which this process is running; raises OSError if the kernel does not say."""
    return check(_sched_getcpu(), "sched_getcpu")


def fork() -> int:
    """Fork without Python's after-fork hooks, which touch half the heap and double the cost; raises OSError on failure.

    Safe only in a process with a single thread. The child keeps the parent's random state: reseed it.
    """
    return check(_fork(), "fork")
