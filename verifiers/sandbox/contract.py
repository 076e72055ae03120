"""The contract between the jail and the package that uses it: the code that processes run, and the processes of a job.

A contract names a package. Before the first fork, the fork server loads modules of that package and of the jail's own package,
and nothing else of this distribution; these modules use only the standard library, and no `__init__.py` is run. The roles of
the contract are functions that run in forked and confined processes. The plan of a job says which roles it starts, and which
files each role gets as its descriptors 0, 1, 2, and so on:

    Contract("example.calls", (Role("caller", "example.calls.caller:run"), Role("callee", "example.calls.callee:run")))
    Plan(
        ("program", "calls", "results"),
        (("callee", ("null", "null", "null", "<questions", ">answers", "program")),
         ("caller", ("null", "null", "null", ">questions", "<answers", "calls", "results"))),
    )

A job lasts until the process of its last role ends. The function of a role never returns to the server: its process ends.

The last role may be a lasting one, whose process serves job after job with equal limits. The process's descriptor `CONTROL` is
a socket, on which the descriptors of each job arrive with one byte (`socket.recv_fds`). After each job the process sends
`READY`, or ends. A process that has served other jobs may instead send `DECLINED` and end; the job then goes to a new process.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from .limits import Limits

CONTROL = 3
"""Descriptor of a lasting process's socket."""
READY, DECLINED = b".", b"+"
"""Bytes that a lasting process sends after a job."""
MOST_DESCRIPTORS = 8
"""Maximum number of a job's files, and of the descriptors that a lasting process gets for a job."""


@dataclass(frozen=True, slots=True)
class Role:
    """A function that a process of a job runs."""

    name: str
    run: str
    """The function, as `module:function`."""
    lasting: bool = False
    """Whether the role's process serves one job after another."""
    output_mib: int = 0
    """Minimum size limit, in MiB, of each file that the process writes, even if the limits of a job allow less."""
    confines_itself: bool = False
    """Whether the process itself enters the jail (`programs.command`) and may start others. Its fork server isn't in a jail."""


SCRIPT_SAMPLE = "verifiers.sandbox.programs.script:run_sample"
SCRIPT = Role("script", "verifiers.sandbox.programs.script:run_script")
"""The role of the jail itself, which every fork server has: it runs a single program (see `python.run_script`)."""


@dataclass(frozen=True, slots=True)
class Contract:
    """The code that the jail's processes run."""

    package: str
    """The full name of the package, which the fork server imports without the packages that hold it."""
    roles: tuple[Role, ...]
    prepare: str = ""
    """A function, named as in `Role.run`, that the fork server calls before it imports any role. Its argument is the mapping
    `Packages`; modules of the packages are loaded by then.
    """
    sample: str = SCRIPT_SAMPLE
    """A function, named as in `Role.run`, that does what most processes do, and then ends. The fork server runs it to find the
    memory that processes write to. Each of its descriptors 3 to 5 is a program.
    """


@dataclass(frozen=True, slots=True)
class Plan:
    """The processes that a job starts, and the files and pipes that connect them."""

    files: tuple[str, ...]
    """Names of the files that come with the job."""
    roles: tuple[tuple[str, tuple[str, ...]], ...]
    """The roles, each with its descriptors: a file by its name, the reading end of a pipe as `"<name"`, its writing end as
    `">name"`, and the null device as `"null"`. The last role decides when the job ends."""


@functools.lru_cache(32)
def encoded_request(plan: Plan, limits: Limits, *, kept: bool = False) -> bytes:
    """Encode the request to a fork server; a descriptor is an index into the files, the pipes' ends and the null device.

    With `kept`, the process goes on after the job, until it ends or its first file, a pipe, is closed at the other end.
    """
    ends = [name for _, names in plan.roles for name in names if name[0] in "<>"]
    pipes = list(dict.fromkeys(name[1:] for name in ends))
    known = [*plan.files, *(end + name for name in pipes for end in "<>"), "null"]
    roles = [[role, [known.index(name) for name in names]] for role, names in plan.roles]
    return json.dumps({"roles": roles, "pipes": len(pipes), "limits": asdict(limits), "kept": kept}).encode()


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How a process of a job has ended, and the resources that it has used."""

    exit_code: int | None
    """The exit status, negative for a signal; None for a lasting process that goes on."""
    cpu_s: float
    """CPU seconds that the process has used in this job."""
    memory_bytes: int
    """Peak memory of the process; 0 for a process that goes on."""


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a job has ended."""

    stopped: str | None
    """The limit that stopped the job: `"cpu"`, `"wall"` or `"idle"`, or `"memory"` for a role that confines itself."""
    seconds: float
    """Wall-clock seconds."""
    processes: Mapping[str, ProcessEnd]
    """The ends of the job's processes, by role."""
