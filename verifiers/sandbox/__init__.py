"""A jail for untrusted code on Linux: isolation, fork servers, limits, and one narrow interface; it knows nothing of its use.

`ProgramRunner` runs a program of Python for its output, and `run_binary` a program of the machine. `contract` says how the jail
runs code of one's own.
"""

from verifiers.sandbox.command import Finished, LaunchError, run_binary
from verifiers.sandbox.contract import SCRIPT, Contract, JobEnd, Plan, ProcessEnd, Role
from verifiers.sandbox.limits import ISOLATIONS, Limits
from verifiers.sandbox.live import LiveProgram, ProgramEndedError
from verifiers.sandbox.memory_files import memory_files
from verifiers.sandbox.pool import Pool, available_cpus
from verifiers.sandbox.programs.script import MEMORY
from verifiers.sandbox.python import (
    ProgramOutput,
    ProgramRunner,
    clean,
    encode_program,
    excerpts,
    run_script,
)
from verifiers.sandbox.sandbox import Sandbox
from verifiers.sandbox.worker import WorkerDiedError

__all__ = [
    "ISOLATIONS",
    "MEMORY",
    "SCRIPT",
    "Contract",
    "Finished",
    "JobEnd",
    "LaunchError",
    "Limits",
    "LiveProgram",
    "Plan",
    "Pool",
    "ProcessEnd",
    "ProgramEndedError",
    "ProgramOutput",
    "ProgramRunner",
    "Role",
    "Sandbox",
    "WorkerDiedError",
    "available_cpus",
    "clean",
    "encode_program",
    "excerpts",
    "memory_files",
    "run_binary",
    "run_script",
]
