"""A program of the machine in the jail: what it may do, and how it ends."""

from __future__ import annotations

import json
import os
import shutil
import time

import pytest

from tests.sandbox.denying import DENY, run_in_a_new_process
from tests.sandbox.in_jail import LIMITS, MAY, TRY, run
from verifiers import InvalidArgumentError
from verifiers.sandbox import Command, CommandRunner, LaunchError, Limits, UnplacedFilesError

FOLDER = {"folder_mib": 16, "folder_files": 64}
PROCESSES = {"processes": 16}
MAY_IN_FOLDER = {
    "write what it is given",
    "make a program of its file",
    "create beside it",
    "remove",
    "rename",
}
"""What a program may do besides in a folder of its own, of which it also may change the mode."""


@pytest.fixture(scope="module")
def runner():
    runner = CommandRunner(workers=2)
    yield runner
    runner.close()


@pytest.mark.parametrize(
    ("extras", "more"),
    [
        ({}, set()),
        (FOLDER, MAY_IN_FOLDER),
        (PROCESSES, {"fork", "signal"}),
        ({**FOLDER, **PROCESSES}, {*MAY_IN_FOLDER, "fork", "signal"}),
    ],
)
def test_it_may_do_what_it_was_given_and_nothing_else(runner, extras, more):
    finished = run(TRY, runner, extras)
    assert finished.exit_code == 0, finished.stderr
    assert {name for name, worked in json.loads(finished.stdout).items() if worked} == MAY | more
    assert finished.written == ({} if "rename" in more else {"out.txt": b"written"})


DENIED = f"""
import sys
sys.path.insert(0, {os.getcwd()!r})
import json
from tests.sandbox.in_jail import TRY, run
from verifiers import SandboxUnavailableError
try:
    finished = run(TRY, None, EXTRAS)
    worked = [name for name, worked in json.loads(finished.stdout).items() if worked]
    print(json.dumps([finished.isolation, worked]))
except SandboxUnavailableError as error:
    print(json.dumps(["refused", str(error)]))
"""


def denied(names: str, extras: object = ()) -> list:
    source = DENIED.replace("EXTRAS", repr(extras))
    return json.loads(run_in_a_new_process(f"{DENY}\ndeny({names})\n{source}")[0])


def test_without_namespaces_landlock_holds_the_same():
    isolation, worked = denied("'unshare', error=1")
    assert (isolation, {*worked}) == ("landlock+seccomp", MAY)


@pytest.mark.parametrize(("extras", "what"), [(FOLDER, "a folder to write in"), (PROCESSES, "processes of their own")])
def test_without_namespaces_what_needs_them_is_refused(extras, what):
    said, why = denied("'unshare', error=1", extras)
    assert said == "refused"
    assert f"no namespaces, which programs with {what} need" in why


IN_CHILDREN = """
import os, time
for _ in range(2):
    if os.fork() == 0:
        if os.fork() == 0:
            BODY
        time.sleep(1000)
time.sleep(1000)
"""


@pytest.mark.parametrize(
    ("source", "stopped", "extras"),
    [
        ("while True: pass", "cpu", {}),
        ("import time; time.sleep(1000)", "wall", {}),
        ("import sys\nwhile True: sys.stdout.write('x' * 4096)", "output", {}),
        (IN_CHILDREN.replace("BODY", "while True: pass"), "cpu", PROCESSES),
        # Shared memory, which no limit of the kernel counts.
        (
            "import mmap, time; m = mmap.mmap(-1, 1 << 30); [m.write(bytes(1 << 20)) for _ in range(96)]; time.sleep(1000)",
            "memory",
            {},
        ),
        (IN_CHILDREN.replace("BODY", "hoard = b'x' * (48 << 20); time.sleep(1000)"), "memory", PROCESSES),
    ],
)
def test_limits_stop_it(runner, source, stopped, extras):
    memory_mib = 64 if stopped == "memory" else 512
    finished = run(source, runner, extras, cpu_s=2, wall_s=2 if stopped == "wall" else 60, memory_mib=memory_mib)
    assert (finished.stopped, finished.exit_code) == (stopped, None)
    assert len(finished.stdout) <= 1 << 20


HOARD = """
import ctypes, mmap, os, time
hoard = bytearray(40 << 20)
shared = mmap.mmap(-1, 8 << 20)
def fill(memory, value):
    for place in range(0, len(memory), 4096): memory[place] = value
def run(children, body):
    for _ in range(children):
        if os.fork() == 0:
            body()
            time.sleep(1)
            os._exit(0)
    for _ in range(children): os.wait()
fill(hoard, 1)
fill(shared, 1)
"""
IN_THE_SAME_SPACE = """
libc = ctypes.CDLL(None)
stack = ctypes.create_string_buffer(1 << 20)
top = ctypes.c_void_p(ctypes.addressof(stack) + (1 << 20) - 64)
CLONE_VM, CLONE_VFORK, SIGCHLD = 0x100, 0x4000, 17
os.waitpid(libc.clone(libc.sleep, top, CLONE_VM | CLONE_VFORK | SIGCHLD, ctypes.c_void_p(1)), 0)
"""


@pytest.mark.parametrize(
    ("body", "stopped"),
    [
        ("run(1, lambda: 1)", None),
        ("run(4, lambda: sum(shared[place] for place in range(0, len(shared), 4096)))", None),
        (IN_THE_SAME_SPACE, None),
        ("run(1, lambda: fill(hoard, 2))", "memory"),
        ("run(3, lambda: fill(bytearray(8 << 20), 2))", None),
        ("run(3, lambda: globals().update(more=b'x' * (20 << 20)))", "memory"),
    ],
)
def test_memory_that_processes_share_counts_once(runner, body, stopped):
    finished = run(HOARD + body, runner, PROCESSES, memory_mib=80, cpu_s=20)
    assert (finished.stopped, finished.exit_code) == (stopped, None if stopped else 0), finished.stderr


def test_data_is_limited_and_reserved_memory_is_not(runner):
    finished = run("print(len(bytearray(1 << 30)))", runner)
    assert finished.exit_code == 1
    assert b"MemoryError" in finished.stderr
    reserve = "import mmap; print(len(mmap.mmap(-1, 1 << 34, mmap.MAP_PRIVATE, mmap.PROT_READ)))"
    assert run(reserve, runner).stdout == b"17179869184\n"


@pytest.mark.parametrize(
    "source",
    [
        "open('big', 'wb').write(bytes(1 << 25))",
        "[open(f'big{i}', 'wb').write(bytes(1 << 22)) for i in range(8)]",
        "[open(f'f{i}', 'w') for i in range(100)]",
        "import os; os.truncate('given.txt', 1 << 40)",
        "import os; [os.mkdir(f'd{i}') for i in range(100)]",
    ],
)
def test_a_folder_has_a_size_and_a_number_of_files(runner, source):
    finished = run(source, runner, FOLDER)
    assert finished.exit_code != 0
    assert b"OSError" in finished.stderr or finished.stopped == "output", finished.stderr


def test_what_daemonises_ends_with_the_run(runner):
    daemon = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", "import time; time.sleep(987654)"])
    os._exit(0)
os.wait()
print("left it running")
""".replace("sys.executable", repr(os.path.realpath(os.sys.executable)))
    finished = run(daemon, runner, PROCESSES)
    assert (finished.exit_code, finished.stdout) == (0, b"left it running\n"), finished.stderr
    commands = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline") as file:
                commands.append(file.read())
        except OSError:  # it has ended since
            continue
    assert not [command for command in commands if "987654" in command]


def test_a_fork_bomb_ends(runner):
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    start = time.monotonic()
    assert run(bomb, runner, PROCESSES, cpu_s=1).stopped == "cpu"
    assert time.monotonic() - start < 60
    assert run("print(1)", runner, PROCESSES).stdout == b"1\n"


def test_only_files_are_handed_back_and_links_lead_nowhere(runner):
    source = """
import os
os.symlink("/etc/passwd", "link")
os.symlink(".", "here")
os.symlink("/usr/lib", "libraries")
os.symlink("/usr", "system")
os.mkdir("folder")
open("folder/file", "w").write("kept")
os.symlink("/usr/lib", "folder/libraries")
"""
    writes = ["link", "here/folder/file", "folder", "missing", "libraries", "system/lib"]
    finished = run(source, runner, {**FOLDER, "writes": writes})
    assert finished.exit_code == 0, finished.stderr
    assert finished.written == {"here/folder/file": b"kept", "folder/file": b"kept"}


def test_a_program_can_neither_end_nor_confuse_the_process_that_watches_it(runner):
    source = """
import os, signal
for number in range(1, 65):
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        try: signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError): pass
for pid in (1, -1):
    for number in range(1, 65):
        if pid == 1 or number not in (signal.SIGKILL, signal.SIGSTOP):
            try: os.kill(pid, number)
            except OSError: pass
for _ in range(2000):
    try: os.mkdir("d"); os.chdir("d")
    except OSError: break
"""
    finished = run(source, runner, {**FOLDER, "folder_files": 4096, **PROCESSES, "writes": ["d"]})
    assert (finished.exit_code, finished.stopped, finished.written) == (0, None, {}), finished.stderr


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", "a//x", ".", "a/", ""])
def test_no_file_lies_outside_of_the_folder(path):
    with pytest.raises(InvalidArgumentError, match="in its folder"):
        Command(["/bin/true"], {path: b""})


def test_what_is_no_program_is_an_error_and_no_verdict(runner):
    with pytest.raises(LaunchError, match="can't execute /no/such/program"):
        runner(Command(["/no/such/program"]), Limits(**LIMITS))


@pytest.mark.parametrize("extras", [{}, FOLDER])
def test_files_that_no_folder_can_hold_are_an_error_of_their_own(runner, extras):
    for files in ({"x" * 300: b""}, {"a/" * 1500 + "x": b""}, {"a": b"", "a/b": b""}):
        with pytest.raises(UnplacedFilesError, match="can't hold"):
            runner(Command([shutil.which("true")], files, readable=["/bin", "/usr/bin"], **extras), Limits(**LIMITS))


FIND_OPEN = """
import os
def is_open(number):
    try: os.fstat(number)
    except OSError: return False
    return True
print([number for number in range(3, 512) if is_open(number)])
"""


@pytest.mark.parametrize("extras", [{}, {**FOLDER, **PROCESSES}])
def test_a_program_gets_no_report_however_many_files_its_caller_has_open(runner, extras):
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(150)]
    try:
        finished = run(FIND_OPEN, runner, extras)
        stopped = run("import time; time.sleep(1000)", runner, extras, wall_s=2)
    finally:
        for descriptor in opened:
            os.close(descriptor)
    assert finished.stdout == b"[]\n", finished.stderr
    assert stopped.stopped == "wall"
