"""The installed Coq compiler and independent checker, each run in its own jail."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from verifiers.errors import MissingDependencyError
from verifiers.sandbox import Command, CommandRunner, Finished, Limits

_FLAGS = ("-q", "-noglob", "-w", "none", "-native-compiler", "no", "-Q", ".", "")
"""Flags of coqc: no start-up file, no index, no warnings; `native_compute` becomes `vm_compute`; the folder's modules have no
prefix.
"""
_QUERY_S = 60.0


@dataclass(frozen=True)
class Toolchain:
    """The programs of one installation, and the limits of each run."""

    coqc: str
    coqchk: str
    version: str
    readable: tuple[str, ...]
    """Folders of the installation."""
    limits: Limits
    runner: CommandRunner

    def compile(
        self, module: str, source: str, libraries: Mapping[str, bytes], imports: Sequence[str] = ()
    ) -> Finished:
        """Compile a module in a fresh process whose folder holds the module and these libraries.

        Args:
            module: The module's name.
            source: The module's source.
            libraries: Compiled modules by file name, such as `{"Definitions.vo": ...}`.
            imports: Modules that are required and imported before the module.
        """
        first = [argument for name in imports for argument in ("-ri", name)]
        writes = [f"{module}.vo", f"{module}.vos", f"{module}.vok", f".{module}.aux"]
        files = {**libraries, f"{module}.v": source.encode(errors="replace")}
        return self._run([self.coqc, *_FLAGS, *first, f"{module}.v"], files, writes)

    def check(self, modules: Sequence[str], libraries: Mapping[str, bytes]) -> Finished:
        """Have the checker type-check modules again from their compiled files, without their dependencies."""
        only = [argument for name in modules for argument in ("-norec", name)]
        return self._run([self.coqchk, "-o", "-silent", "-Q", ".", "", *only], libraries, [])

    def _run(self, command: Sequence[str], files: Mapping[str, bytes], writes: Sequence[str]) -> Finished:
        return self.runner(Command(command, files, writes=writes, readable=self.readable), self.limits)


def find_toolchain(limits: Limits, runner: CommandRunner) -> Toolchain:
    """Find the installation in `PATH`, to be run by a runner.

    Raises:
        MissingDependencyError: If Coq is not installed, or does not state the location of its library.
    """
    coqc, coqchk = map(shutil.which, ("coqc", "coqchk"))
    if coqc is None or coqchk is None:
        raise MissingDependencyError(
            "the verifier 'coq' needs Coq's programs coqc and coqchk, which are not in PATH. Install Coq: "
            "`apt-get install coq` on Debian and Ubuntu, `opam install coq` elsewhere"
        )
    coqc, coqchk = os.path.realpath(coqc), os.path.realpath(coqchk)
    settings = dict(re.findall(r"^(\w+)=(.*)$", _query(coqc, "-config"), re.MULTILINE))
    if "COQLIB" not in settings:
        raise MissingDependencyError(f"the verifier 'coq' needs Coq 8.16, and `{coqc} -config` names no COQLIB")
    library = os.path.normpath(settings["COQLIB"])
    core = os.path.normpath(settings.get("COQCORELIB", library))
    readable = (coqc, coqchk, library, os.path.dirname(core), "/etc/ocamlfind.conf")
    return Toolchain(coqc, coqchk, _query(coqc, "-print-version").split()[0], readable, limits, runner)


def _query(program: str, flag: str) -> str:
    """Return a program's answer to a flag, such as its version.

    Raises:
        MissingDependencyError: If the program does not run.
    """
    try:
        done = subprocess.run(
            [program, flag], capture_output=True, text=True, errors="replace", timeout=_QUERY_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise MissingDependencyError(f"the verifier 'coq' can't run {program} {flag}: {error}") from error
    return done.stdout
