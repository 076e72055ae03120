"""A jail for untrusted code on Linux, for any purpose: isolation, fork servers, limits, and one narrow interface.

`ProgramRunner` runs a Python program for its output, and `CommandRunner` runs programs that are installed on the machine. The
module `contract` describes how a package runs its own code in the jail.
"""

from verifiers.sandbox.command import (
    Command,
    CommandRunner,
    Finished,
    LaunchError,
    NotExecutableError,
    UnplacedFilesError,
    encode_request,
    folder_on_disk,
    read_answer,
)
from verifiers.sandbox.contract import SCRIPT, Contract, JobEnd, Plan, ProcessEnd, Role
from verifiers.sandbox.limits import ISOLATIONS, Isolation, Limits
from verifiers.sandbox.live import LiveProgram, ProgramEndedError
from verifiers.sandbox.memory_files import memory_files
from verifiers.sandbox.packages import Packages, find_packages
from verifiers.sandbox.pool import Pool, available_cpus
from verifiers.sandbox.programs.script import MEMORY
from verifiers.sandbox.programs.source_files import module_name
from verifiers.sandbox.python import (
    ProgramOutput,
    ProgramRunner,
    clean,
    encode_program,
    excerpts,
    excerpts_of,
    run_script,
)
from verifiers.sandbox.sandbox import Sandbox
from verifiers.sandbox.worker import WorkerDiedError

__all__ = [
    "ISOLATIONS",
    "MEMORY",
    "SCRIPT",
    "Command",
    "CommandRunner",
    "Contract",
    "Finished",
    "Isolation",
    "JobEnd",
    "LaunchError",
    "Limits",
    "LiveProgram",
    "NotExecutableError",
    "Packages",
    "Plan",
    "Pool",
    "ProcessEnd",
    "ProgramEndedError",
    "ProgramOutput",
    "ProgramRunner",
    "Role",
    "Sandbox",
    "UnplacedFilesError",
    "WorkerDiedError",
    "available_cpus",
    "clean",
    "encode_program",
    "encode_request",
    "excerpts",
    "excerpts_of",
    "find_packages",
    "folder_on_disk",
    "memory_files",
    "module_name",
    "read_answer",
    "run_script",
]
