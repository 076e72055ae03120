"""The jail's contract with its user: which code its processes run, and which of them a job starts.

A contract names a package. Before the first fork the fork server loads modules of that package and of this one, and nothing
else of this distribution: they use the standard library alone, and `__init__.py` is not run. The roles of the contract are
functions that run in forked and confined processes. The plan of a job says which roles it starts, and which files each gets as
its descriptors 0, 1, 2, and so on:

    Contract("example.calls", (Role("caller", "example.calls.caller:run"), Role("callee", "example.calls.callee:run")))
    Plan(
        ("program", "calls", "results"),
        (("callee", ("null", "null", "null", "<questions", ">answers", "program")),
         ("caller", ("null", "null", "null", ">questions", "<answers", "calls", "results"))),
    )

A job lasts until the process of its last role ends. The function of a role never returns to the server: its process ends.

The last role may be a lasting one, whose process serves job after job with equal limits. Its descriptor `CONTROL` is a socket,
on which the descriptors of each job arrive with one byte (`socket.recv_fds`). After each job the process sends `READY`, or
ends. A process that has served other jobs may send `DECLINED` and end instead: a new process then gets the job.
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
    """The role of a process in a job."""

    name: str
    run: str
    """The function, as `module:function`."""
    lasting: bool = False
    """Whether its process serves job after job."""
    output_mib: int = 0
    """Room in each file that it writes, in MiB, if the limits of a job leave less."""
    confines_itself: bool = False
    """Whether its process enters the jail itself (`programs.command`) and may start others. Its fork server is in none."""


SCRIPT_SAMPLE = "verifiers.sandbox.programs.script:run_sample"
SCRIPT = Role("script", "verifiers.sandbox.programs.script:run_script")
"""The role of the jail itself, which every fork server has: it runs a program by itself (see `python.run_script`)."""


@dataclass(frozen=True, slots=True)
class Contract:
    """The code that runs in the jail."""

    package: str
    """The whole name of the package, which the fork server imports by itself."""
    roles: tuple[Role, ...]
    prepare: str = ""
    """A function, named as in `Role.run`, that the fork server calls before it imports any role, with the mapping of
    `Packages`: modules of the packages are loaded then."""
    sample: str = SCRIPT_SAMPLE
    """A function, named as in `Role.run`, that does what most processes do, and ends; each of its descriptors from 3 to 5 is a
    program. By it the fork server finds the memory that processes write to."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Which processes a job starts, and how they are joined."""

    files: tuple[str, ...]
    """Names of the files that it comes with."""
    roles: tuple[tuple[str, tuple[str, ...]], ...]
    """Roles, the one that decides when the job ends last, each with its descriptors: a file by its name, the reading end of a
    pipe as `"<name"`, its writing end as `">name"`, and the null device as `"null"`."""


@functools.lru_cache(32)
def encoded_request(plan: Plan, limits: Limits, *, kept: bool = False) -> bytes:
    """Encode the request to a fork server, with descriptors as indices in the files, the pipes' ends and the null device.

    A process that is kept goes on after the job, until it ends or its first file, a pipe, is closed at the other end.
    """
    ends = [name for _, names in plan.roles for name in names if name[0] in "<>"]
    pipes = list(dict.fromkeys(name[1:] for name in ends))
    known = [*plan.files, *(end + name for name in pipes for end in "<>"), "null"]
    roles = [[role, [known.index(name) for name in names]] for role, names in plan.roles]
    return json.dumps({"roles": roles, "pipes": len(pipes), "limits": asdict(limits), "kept": kept}).encode()


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How a process of a job has ended, and what it has used."""

    exit_code: int | None
    """The exit status, negative for a signal; None for a lasting process that goes on."""
    cpu_s: float
    """CPU seconds of this job."""
    memory_bytes: int
    """The most memory that it had at a time; 0 for one that goes on."""


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a job has ended."""

    stopped: str | None
    """The limit that stopped it: `"cpu"`, `"wall"` or `"idle"`, or `"memory"` for a role that confines itself."""
    seconds: float
    """Wall-clock time."""
    processes: Mapping[str, ProcessEnd]
    """Its processes by their roles."""
