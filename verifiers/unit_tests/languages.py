"""Programs in other languages than Python, which read standard input; `languages.toml` says how each is compiled and run."""

from __future__ import annotations

import functools
import glob
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from verifiers.errors import InvalidArgumentError, MissingDependencyError, unknown_name
from verifiers.sandbox import (
    Command,
    CommandRunner,
    Finished,
    JobEnd,
    Limits,
    NotExecutableError,
    ProcessEnd,
    ProgramOutput,
    UnplacedFilesError,
    excerpts_of,
)
from verifiers.unit_tests.extraction.extraction import PYTHON
from verifiers.unit_tests.java_source import java_names

_QUERY_S = 60.0
_FOLDER_MIB, _FOLDER_FILES, _PROCESSES = 512, 8192, 64
"""Limits on a compiler: the MiB and the number of files in its folder, and the number of processes."""
_KEPT_MIB = 64
"""Maximum size in MiB of the files that a compiler leaves; this process holds them, and each case gets a copy."""
_COMPILE = Limits(cpu_s=60, wall_s=630, idle_s=60, memory_mib=2048, output_mib=1, processes=128)
_LONGEST_PATH = 1000
_READABLE = ("/bin", "/usr/bin", "/usr/include", "/usr/libexec", "/etc/alternatives", "{home}")
"""Paths that compilers and interpreters may read."""


_NO_RUN = JobEnd(None, 0.0, {"command": ProcessEnd(None, 0.0, 0)})


@dataclass(frozen=True, kw_only=True)
class Language:
    """A language, as a row of the table. `{home}`, `{name}`, `{main}` and `{memory_mib}` in its texts are filled in later."""

    key: str
    """The name of the language in `StdioTests.languages`."""
    title: str
    tags: Sequence[str]
    """Labels of code blocks, in lower case."""
    program: str
    """The program whose location shows where the language is installed."""
    package: str
    """The Debian packages that contain the program."""
    file: str
    """The path of the source."""
    run: Sequence[str]
    """The command that runs a case."""
    home: Sequence[str] = ()
    """A command that prints the folder of the installation; by default, the folder is the parent of the program's folder
    `bin`."""
    compile: Sequence[str] = ()
    keeps: Sequence[str] = ()
    """The files, or folders of files, that the compiler leaves for running the cases."""
    readable: Sequence[str] = ()
    """Patterns of paths that may be read, besides those of the installation and the system."""
    environment: Mapping[str, str] | None = None
    time_factor: float = 1.0
    """Factor for the CPU seconds of a case, as judges use for languages that are slow or start slowly."""
    more_memory_mib: int = 0
    """Memory in MiB that the language itself needs, in addition to the program's."""
    processes: int = 0
    """Number of processes that a program may start."""
    folder_mib: int = 0
    """Size in MiB of the folder that a program may write in; 0 for none."""


@functools.cache
def languages() -> Mapping[str, Language]:
    """The languages by name."""
    table = tomllib.loads((Path(__file__).parent / "languages.toml").read_text(encoding="utf-8"))
    return {key: Language(key=key, **row) for key, row in table.items()}


def labels(names: Sequence[str]) -> dict[str, str]:
    """The language for each label of a code block, for programs in one of these languages."""
    return {tag: name for name in names for tag in ((PYTHON,) if name == PYTHON else languages()[name].tags)}


def check_languages(names: Sequence[str]) -> None:
    """Check that programs in these languages can be run here.

    Raises:
        InvalidArgumentError: If there is no such language.
        MissingDependencyError: If a language is not installed.
    """
    if not names or len({*names}) < len(names):
        raise InvalidArgumentError(f"languages holds at least one language, each once, got {tuple(names)!r}")
    for name in names:
        if name != PYTHON and name not in languages():
            raise unknown_name("language", name, (PYTHON, *languages()))
        if name != PYTHON:
            _home(name)


def check_isolation(names: Iterable[str], runner: CommandRunner, isolation: str) -> None:
    """Check that the system isolates compilers and programs in these languages as they need it; once is enough for a process.

    Raises:
        LaunchError, SandboxUnavailableError: As for `CommandRunner`.
    """
    for language in (languages()[name] for name in names):
        room = (_FOLDER_MIB, _PROCESSES) if language.compile else (language.folder_mib, language.processes)
        if (isolation, room) not in _isolated:
            command = Command(("/bin/true",), folder_mib=room[0], processes=room[1], readable=("/bin", "/usr/bin"))
            runner(command, _COMPILE)
            _isolated.add((isolation, room))


_isolated: set[tuple[str, tuple[int, int]]] = set()
"""The kinds of isolation, with the size of a folder and the number of processes, that this process has tried."""


@functools.cache
def _home(name: str) -> str:
    """The folder of a language's installation."""
    language = languages()[name]
    found = shutil.which(language.program)
    advice = f"install it, on Debian and Ubuntu by `apt-get install {language.package}`"
    if found is None:
        raise MissingDependencyError(
            f"programs in {language.title} need {language.program}, which is not in PATH: {advice}"
        )
    if not language.home:
        return os.path.dirname(os.path.dirname(os.path.realpath(found)))
    try:
        said = subprocess.run(language.home, capture_output=True, text=True, timeout=_QUERY_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise MissingDependencyError(
            f"programs in {language.title} need {language.program}, which does not run: {error}; {advice}"
        ) from error
    return os.path.realpath(said.stdout.strip())


def _failure(finished: Finished) -> str | None:
    if finished.stopped:
        return {"memory": "memory", "output": "output_limit"}.get(finished.stopped, "timeout")
    if finished.exit_code == 0:
        return None
    return "crash" if finished.exit_code is None or finished.exit_code < 0 else "exit"


def language_title(name: str) -> str:
    """The display name of a language."""
    return "Python" if name == PYTHON else languages()[name].title


class CompileError(Exception):
    """A program does not compile."""

    def __init__(self, failure: str, finished: Finished) -> None:
        super().__init__(failure)
        self.failure = failure
        self.finished = finished


@dataclass(frozen=True)
class Executable:
    """A program that is ready to run."""

    language: Language
    files: Mapping[str, bytes]
    limits: Limits
    """The limits that the problem sets, before the language's factors are applied."""
    runner: CommandRunner
    name: str
    """The name of the program's file, for languages in which the name depends on the source."""
    main: str
    """The name of the class that is run, for languages in which it depends on the source."""

    @classmethod
    def of(cls, source: str, name: str, files: Mapping[str, str], limits: Limits, runner: CommandRunner) -> Executable:
        """Make a program ready to run; compile it if its language is a compiled one.

        Raises:
            CompileError: If the program does not compile.
            LaunchError, SandboxUnavailableError: As for `CommandRunner`.
        """
        language = languages()[name]
        program = cls(language, {}, limits, runner, *(java_names(source) if name == "java" else ("main", "main")))
        content = {**files, program._filled(language.file): source}
        sources = {path: text.encode("utf-8", "surrogatepass") for path, text in content.items()}
        if not language.compile:
            return replace(program, files=sources)
        command = program._command(language.compile, sources, _READABLE)
        room: dict[str, Any] = {"folder_mib": _FOLDER_MIB, "folder_files": _FOLDER_FILES, "processes": _PROCESSES}
        finished = runner(replace(command, writes=language.keeps, **room), _COMPILE)
        if finished.stopped or finished.exit_code != 0:
            timed_out = finished.stopped in ("cpu", "wall", "idle")
            raise CompileError("timeout" if timed_out else "syntax_error", finished)
        if sum(map(len, finished.written.values())) > _KEPT_MIB << 20:
            raise CompileError("output_limit", finished)
        # A longer path may be invalid in another folder.
        return replace(
            program, files={path: one for path, one in finished.written.items() if len(path) < _LONGEST_PATH}
        )

    def run(self, stdin: str) -> ProgramOutput:
        """Run a case.

        Raises:
            LaunchError, SandboxUnavailableError: As for `CommandRunner`.
        """
        language = self.language
        limits = replace(
            self.limits,
            cpu_s=self.limits.cpu_s * language.time_factor,
            idle_s=self.limits.idle_s * language.time_factor,
            wall_s=self.limits.wall_s * language.time_factor,
            memory_mib=self.limits.memory_mib + language.more_memory_mib,
        )
        command = self._command(language.run, self.files, _READABLE if "{home}" in language.run[0] else ())
        room: dict[str, Any] = {"folder_mib": language.folder_mib, "processes": language.processes}
        try:
            finished = self.runner(replace(command, stdin=stdin.encode("utf-8", "surrogatepass"), **room), limits)
        except NotExecutableError:
            if language.compile and "{home}" not in language.run[0]:
                return ProgramOutput(
                    "", {}, "exit", None, _NO_RUN
                )  # the program led the compiler to make something else
            raise
        except UnplacedFilesError:
            if len(self.files) > 1:
                raise  # the files may be the problem's
            return ProgramOutput("", {}, "output_limit", None, _NO_RUN)
        return ProgramOutput(
            finished.stdout.decode(errors="replace"),
            excerpts_of(finished.stdout, finished.stderr),
            _failure(finished),
            None,
            finished.end,
        )

    def _command(self, arguments: Sequence[str], files: Mapping[str, bytes], readable: Sequence[str]) -> Command:
        patterns = map(self._filled, (*readable, *(self.language.readable if readable else ())))
        environment = self.language.environment or {}
        return Command(
            list(map(self._filled, arguments)),
            files,
            readable=[path for pattern in patterns for path in glob.glob(pattern)],
            environment={key: self._filled(value) for key, value in environment.items()},
        )

    def _filled(self, text: str) -> str:
        known = {"home": _home(self.language.key), "memory_mib": str(self.limits.memory_mib)}
        known |= {"name": self.name, "main": self.main}
        return re.sub(r"\{(\w+)\}", lambda match: known[match[1]], text)
