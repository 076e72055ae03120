"""The system-call filters of every machine, run by an interpreter of their instructions; no kernel is asked."""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from verifiers.sandbox.isolation import seccomp, syscalls

ALLOW, KILL = "allow", "kill"
MACHINES = ("x86_64", "aarch64")
PID = 4711
HEADERS = {"x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "aarch64": "/usr/include/asm-generic/unistd.h"}
"""Where Debian's `linux-libc-dev` has the kernel's own lists; that of aarch64 is the one that new architectures share."""
FORBIDDEN = {
    **{"execve": (59, 221), "execveat": (322, 281), "ptrace": (101, 117), "socket": (41, 198), "connect": (42, 203)},
    **{"bind": (49, 200), "listen": (50, 201), "accept4": (288, 242), "unshare": (272, 97), "setns": (308, 268)},
    **{"mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "bpf": (321, 280)},
    **{
        "process_vm_readv": (310, 270),
        "process_vm_writev": (311, 271),
        "memfd_create": (319, 279),
        "tkill": (200, 130),
    },
    **{
        "pidfd_send_signal": (424, 424),
        "pidfd_getfd": (438, 438),
        "rt_sigqueueinfo": (129, 138),
        "openat2": (437, 437),
    },
    **{
        "mkdirat": (258, 34),
        "unlinkat": (263, 35),
        "renameat2": (316, 276),
        "linkat": (265, 37),
        "symlinkat": (266, 36),
    },
    **{"fchmodat": (268, 53), "fchownat": (260, 54), "truncate": (76, 45), "mknodat": (259, 33), "keyctl": (250, 219)},
    **{"open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "perf_event_open": (298, 241)},
    **{
        "setuid": (105, 146),
        "setresuid": (117, 147),
        "setgroups": (116, 159),
        "capset": (126, 91),
        "seccomp": (317, 277),
    },
    **{
        "shmget": (29, 194),
        "msgget": (68, 186),
        "semget": (64, 190),
        "personality": (135, 92),
        "setrlimit": (160, 164),
    },
    **{
        "io_uring_setup": (425, 425),
        "io_uring_enter": (426, 426),
        "userfaultfd": (323, 282),
        "setpriority": (141, 140),
    },
    **{"landlock_restrict_self": (446, 446), "mount_setattr": (442, 442), "sendmmsg": (307, 269), "splice": (275, 76)},
}
"""Numbers, on x86-64 and on aarch64, of calls that no child may make."""
SERVER_ONLY = ("sendmsg", "recvmsg", "wait4", "pidfd_open", "close_range", "sched_setaffinity")


def run(instructions: Sequence[tuple[int, int, int, int]], number: int, machine: str, args: Sequence[int]) -> str | int:
    """What a filter decides about a call: `ALLOW`, `KILL`, or the error."""
    words = [number, syscalls.AUDIT_ARCHITECTURES[machine], 0, 0]
    words += [half for arg in (*args, *[0] * (6 - len(args))) for half in (arg & 0xFFFFFFFF, arg >> 32)]
    accumulator, place = 0, 0
    while True:
        code, if_true, if_false, k = instructions[place]
        k = PID if k == seccomp._PID else k
        place += 1
        if code == 0x20:  # BPF_LD | BPF_W | BPF_ABS
            assert k % 4 == 0, "the kernel refuses any other offset"
            accumulator = words[k // 4]
        elif code == 0x54:  # BPF_ALU | BPF_AND | BPF_K
            accumulator &= k
        elif code == 0x15:  # BPF_JMP | BPF_JEQ | BPF_K
            place += if_true if accumulator == k else if_false
        elif code == 0x35:  # BPF_JMP | BPF_JGE | BPF_K
            place += if_true if accumulator >= k else if_false
        else:
            assert code == 0x06, f"not an instruction of the filters: {code:#x}"  # BPF_RET | BPF_K
            action, data = k & 0xFFFF0000, k & 0xFFFF
            return {0x7FFF0000: ALLOW, 0x80000000: KILL}.get(action, data)


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(syscalls, "MACHINE", request.param)
    return str(request.param)


def number_of(machine: str, name: str) -> int:
    return FORBIDDEN[name][MACHINES.index(machine)] if name in FORBIDDEN else syscalls.NUMBERS[machine][name]


def child(machine: str, name: str, *args: int, **settings: bool) -> str | int:
    """What both filters together decide about a call of a child."""
    number = number_of(machine, name)
    first = run(seccomp.build_outer(), number, machine, args)
    return run(seccomp.build_inner(**settings), number, machine, args) if first == ALLOW else first


@pytest.mark.parametrize("machine", MACHINES)
def test_the_numbers_are_the_kernels(machine: str) -> None:
    header = Path(HEADERS[machine])
    if not header.exists():
        pytest.skip("the kernel's headers are not installed")
    text = header.read_text()
    numbers = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)$", text, re.M)}
    # Names that stand for another call where a `long` has 32 bits.
    numbers |= {
        name: numbers[of] for name, of in re.findall(r"#define __NR_(\w+) __NR3264_(\w+)", text) if of in numbers
    }
    known = syscalls.NUMBERS[machine]
    assert known == {name: numbers[name] for name in known}
    assert not {*seccomp._ALLOWED.split(), *SERVER_ONLY, *seccomp._rules()} & numbers.keys() - known.keys()
    forbidden = {name: number_of(machine, name) for name in FORBIDDEN}
    assert forbidden == {name: numbers[name] for name in FORBIDDEN}


def test_the_server_may_make_the_calls_of_the_list_and_no_others(machine: str) -> None:
    outer = seccomp.build_outer()
    names = {*seccomp._ALLOWED.split(), *SERVER_ONLY, *seccomp._rules()}
    allowed = {number for name, number in syscalls.NUMBERS[machine].items() if name in names}
    for number in range(2048):
        expected = ALLOW if number in allowed else errno.ENOSYS if number == 435 else errno.EPERM  # clone3
        assert run(outer, number, machine, ()) == expected, number
    for number in (1 << 30, (1 << 30) + 59, (1 << 31) - 1, (1 << 32) - 1):
        assert run(outer, number, machine, ()) == errno.ENOSYS, "calls of x86's x32"
    other = MACHINES[machine == MACHINES[0]]
    assert {run(outer, number, other, ()) for number in range(512)} == {KILL}
    seccomp.Filter(outer)  # packs: no jump is longer than 255


def test_a_child_makes_no_forbidden_call(machine: str) -> None:
    assert {child(machine, name) for name in FORBIDDEN} == {errno.EPERM}
    assert {child(machine, name, receives_descriptors=True) for name in SERVER_ONLY if name != "recvmsg"} == {
        errno.EPERM
    }
    assert child(machine, "recvmsg") == errno.EPERM
    assert child(machine, "recvmsg", receives_descriptors=True) == ALLOW
    plain = [name for name in seccomp._ALLOWED.split() if name in syscalls.NUMBERS[machine]]
    assert {child(machine, name, *[(1 << 64) - 1] * 6) for name in plain} == {ALLOW}


def test_a_child_makes_threads_and_no_processes(machine: str) -> None:
    thread = 0x3D0F00  # what pthread_create of glibc asks for
    needed, optional = {8, 16}, {9, 10, 11, 18, 19, 20, 21, 22}  # CLONE_VM and CLONE_THREAD
    assert child(machine, "clone", thread) == ALLOW
    for bit in range(32):
        expected = ALLOW if bit in optional else errno.EPERM
        assert child(machine, "clone", thread ^ 1 << bit) == expected, bit
        assert bit in needed | optional or not thread >> bit & 1
    for fork in (17, 0x1200011, 0x4111):  # SIGCHLD alone, glibc's fork, vfork
        assert child(machine, "clone", fork) == errno.EPERM
    assert child(machine, "clone3") == errno.ENOSYS


def test_a_child_opens_files_for_reading_alone(machine: str) -> None:
    # O_DIRECTORY, O_NOFOLLOW and O_LARGEFILE have other values on aarch64; what writes has the same.
    harmless = 0o200000 | 0o400000 | 0o100000 | 0o2000000 | 0o40000
    for name, index in (("open", 1), ("openat", 2)):
        if name in syscalls.NUMBERS[machine]:
            before = [0] * index
            assert child(machine, name, *before, harmless) == ALLOW
            for writing in (1, 2, 3, 0o100, 0o1000, 0o20000000):
                assert child(machine, name, *before, harmless | writing) == errno.EPERM
                assert child(machine, name, *before, writing) == errno.EPERM
            assert child(machine, name, *before, harmless, opens_files=False) == errno.EACCES


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("kill", [(PID, 9)], [(0, 9), (1, 9), (PID + 1, 9), (0xFFFFFFFF, 9), (seccomp._PID, 9)]),
        ("tgkill", [(PID, PID, 6)], [(1, 1, 6), (0xFFFFFFFF, 1, 6)]),
        (
            "fcntl",
            [(3, each) for each in (0, 1, 2, 3, 4, 1030)],
            [(3, each) for each in (5, 6, 7, 8, 10, 15, 1024, 1033)],
        ),
        ("ioctl", [(1, 0x5401), (1, 0x5413), (1, 0x541B)], [(1, 0x5412), (1, 0x5402), (1, 0x541D), (1, 0)]),
        ("prctl", [(15,)], [(1,), (4,), (22,), (23,), (36,), (0x59616D61,)]),
        ("prlimit64", [(0, 3, 1 << 40), (PID, 3, 1), (1, 7, 0)], [(1, 3, 1), (0, 7, 1), (0, 6, 1 << 32), (PID, 0, 1)]),
        ("socketpair", [(1,)], [(2,), (10,), (16,), (17,)]),
        ("sendto", [(3, 1, 1, 0, 0)], [(3, 1, 1, 0, 1), (3, 1, 1, 0, 1 << 32)]),
    ],
)
def test_arguments_are_looked_at(
    machine: str, name: str, good: list[tuple[int, ...]], bad: list[tuple[int, ...]]
) -> None:
    assert [child(machine, name, *args) for args in good] == [ALLOW] * len(good)
    assert [child(machine, name, *args) for args in bad] == [errno.EPERM] * len(bad)


FOLDER_CALLS = {"mkdirat", "unlinkat", "renameat2", "linkat", "symlinkat", "fchmodat", "truncate"}


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize("processes", [False, True])
def test_a_program_of_the_machine_makes_the_calls_of_what_it_was_given(
    machine: str, folder: bool, processes: bool
) -> None:
    outer = seccomp.build_outer(executes=True, folder=folder, processes=processes)
    inner = seccomp.build_inner(writes_files=True, processes=processes)
    seccomp.Filter(outer)  # packs

    def decide(name: str, *args: int) -> str | int:
        number = number_of(machine, name)
        first = run(outer, number, machine, args)
        return run(inner, number, machine, args) if first == ALLOW else first

    given = {"execve"} | (FOLDER_CALLS if folder else set())
    assert {name for name in FORBIDDEN if decide(name) == ALLOW} == given
    fork, namespaces = 17, [1 << bit for bit in (7, 17, 25, 26, 27, 28, 29, 30)]
    assert [decide("clone", fork | flag) for flag in (0, *namespaces)] == [ALLOW if processes else errno.EPERM] + [
        errno.EPERM
    ] * len(namespaces)
    assert decide("clone3") == errno.ENOSYS
    of_processes = [("wait4",), ("kill", 0xFFFFFFFF, 9), ("tgkill", 1, 1, 6), ("setsid",)]
    assert {decide(*call) for call in of_processes} == {ALLOW if processes else errno.EPERM}
    server_only = set(SERVER_ONLY) - {"wait4"}
    assert {decide(name) for name in server_only} == {errno.EPERM}
