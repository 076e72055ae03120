"""Loads a program of one or more files from memory; the files can import each other."""

from __future__ import annotations

import builtins
import importlib
import json
import os
import random
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any, Self

from ..memory_files import read_all

if TYPE_CHECKING:
    from importlib.abc import Loader as Loader
else:
    Loader = object
    """`importlib.abc` imports archives, temporary files and paths, and each fork would pay for the memory."""

_decode = json.JSONDecoder().raw_decode
COMPILE_ERRORS = (SyntaxError, ValueError, OverflowError, RecursionError)


class ProgramError(Exception):
    """The program could not be loaded."""

    def __init__(self, phase: str, error: BaseException) -> None:
        super().__init__(phase)
        self.phase = phase
        self.error = error


def module_name(path: str) -> str:
    """The name under which a file is imported: `a/b.py` is `a.b`, and `a/__init__.py` is `a`."""
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


class SourceFiles(Loader):
    """Finds and loads modules whose source is in memory; an entry of `sys.meta_path`."""

    def __init__(self, files: Mapping[str, str], prelude: Callable[[types.ModuleType], None] | None = None) -> None:
        """Make a finder for source by path, such as `"bank/account.py"`; `prelude` is called with each module before it runs.

        A folder without `__init__.py` is a package too.
        """
        self._files = files
        self._prelude = prelude

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        """Find one of the files by its module's name."""
        file = self._path_of(name)
        if file is None:
            return ModuleSpec(name, None, is_package=True) if self._is_folder(name) else None
        spec = ModuleSpec(name, self, origin=file, is_package=file.endswith("__init__.py"))
        spec.has_location = True
        return spec

    def _path_of(self, name: str) -> str | None:
        """The path of a module's file (the last if several match), found on demand, as few programs import modules."""
        paths = [path for path in self._files if module_name(path) == name]
        return paths[-1] if paths else None

    def _is_folder(self, name: str) -> bool:
        return any(module_name(path).startswith(f"{name}.") for path in self._files)

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None, so that the import system creates the module."""

    def exec_module(self, module: types.ModuleType) -> None:
        """Run a module's source in the module; raises ProgramError if it does not compile."""
        if self._prelude is not None:
            self._prelude(module)
        run_source(module, *self._source(module.__name__))

    def get_source(self, fullname: str) -> str:
        """The source of a module, for `inspect` and tracebacks."""
        return self._source(fullname)[0]

    def _source(self, name: str) -> tuple[str, str]:
        """A module's source and path."""
        path = self._path_of(name)
        if path is None:
            raise ImportError(f"no file of the program is the module {name!r}", name=name)
        return self._files[path], path


def run_source(module: types.ModuleType, source: str, filename: str) -> None:
    """Compile and run a file's source in a module; raises ProgramError if it does not compile."""
    try:
        # Some editors write a byte-order mark, which the interpreter itself drops from a file.
        code = compile(source.removeprefix("\ufeff"), filename, "exec", dont_inherit=True)
    except MemoryError as error:
        raise ProgramError("memory", error) from None
    except COMPILE_ERRORS as error:
        raise ProgramError("compile", error) from None
    # As the import system does; `exec` would set the builtins of this module.
    module.__dict__.setdefault("__builtins__", vars(builtins))
    exec(code, module.__dict__)


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run: its files and settings."""

    files: Mapping[str, str]
    """Source text by path."""
    main: str
    """The path of the file to run; it can import the others."""
    prelude: str = field(default="", kw_only=True)
    """Source that runs before the main file, in its namespace."""
    seed: int = field(default=0, kw_only=True)
    """Seed for `random` and, if NumPy is loaded, for NumPy's generator."""

    @classmethod
    def read(cls, descriptor: int) -> Self:
        """Read a program from a file descriptor, and close it."""
        content = read_all(descriptor).decode("utf-8", "surrogatepass")
        os.close(descriptor)
        return cls(**_decode(content)[0])

    def run(self, main_name: str = "") -> dict[str, Any]:
        """Run the main file under a name, by default its path's, and return its namespace; raises ProgramError if invalid."""
        return self._run_module(main_name).__dict__

    def _run_module(self, main_name: str) -> types.ModuleType:
        random.seed(self.seed)
        if "numpy.random" in sys.modules:
            sys.modules["numpy.random"].seed(self.seed)
        name = module_name(self.main)
        finder = SourceFiles(self.files, self._prepare)
        if len(self.files) > 1:
            self._make_importable(finder)
            if not main_name:
                return importlib.import_module(name)
        module = self._new_main(finder, main_name or name)
        self._prepare(module)
        run_source(module, self.files[self.main], self.main)
        return module

    def _make_importable(self, finder: SourceFiles) -> None:
        # As with a script, whose folder comes before the standard library on the path.
        sys.meta_path.insert(0, finder)
        for path in self.files:
            sys.modules.pop(module_name(path).partition(".")[0], None)

    def _new_main(self, finder: SourceFiles, name: str) -> types.ModuleType:
        module = types.ModuleType(name)
        module.__dict__.update({"__file__": self.main, "__package__": ""})
        if name != "__main__":
            module.__dict__["__loader__"] = finder
        sys.modules[name] = module
        return module

    def _prepare(self, module: types.ModuleType) -> None:
        if module.__dict__["__file__"] != self.main:
            return
        # As in a script, whose `__builtins__` is the module; in an imported module it would be the dict of the module
        # `builtins`.
        module.__dict__["__builtins__"] = builtins
        if self.prelude:
            run_source(module, self.prelude, "prelude.py")
