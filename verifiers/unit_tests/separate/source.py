"""The program under test, which may continue a prompt's code."""

from __future__ import annotations

import contextlib
import types
from dataclasses import dataclass

from verifiers.sandbox.programs import source_files
from verifiers.sandbox.programs.source_files import COMPILE_ERRORS

_FILE = "prefix.py"


def compile_whole(source: str) -> types.CodeType:
    """Compile a prompt's code, without a last statement that is incomplete."""
    source = source.removeprefix("\ufeff")
    try:
        return compile(source, _FILE, "exec", dont_inherit=True)
    except COMPILE_ERRORS:
        lines = source.splitlines(keepends=True)
    # A statement begins at the left margin, though not everything that begins there is a statement.
    for end in (number for number in reversed(range(len(lines))) if not lines[number][:1].isspace()):
        with contextlib.suppress(*COMPILE_ERRORS):
            return compile("".join(lines[:end]), _FILE, "exec", dont_inherit=True)
    return compile("", _FILE, "exec")


@dataclass(frozen=True, slots=True)
class Program(source_files.Program):
    """A program with the prompt's code, in the form in which its process runs it."""

    prefix: str = ""
    """Source that runs before the main file, in the same namespace; an end that does not compile is left out."""
    entry_point: str = ""
    """A name that the prefix only declares; its definition in the prefix is dropped. Empty if there is no such name."""

    def _prepare(self, module: types.ModuleType) -> None:
        source_files.Program._prepare(self, module)  # `super()` fails in a dataclass with slots
        if module.__dict__["__file__"] != self.main:
            return
        if self.prefix:
            exec(compile_whole(self.prefix), module.__dict__)
        if self.prelude or self.prefix:
            module.__dict__.pop(self.entry_point, None)
