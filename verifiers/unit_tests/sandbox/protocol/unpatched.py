"""Builtins and standard modules as the runtime sees them, whatever tests and programs replace in theirs.

A test that patches `io.StringIO` or `builtins.len` means the program, but runs in the tester's process; the replacement is
repeated in the candidate. The modules of this distribution therefore get their own builtins, and each module that one of them
imports as a whole is a copy of the module's names at that time. Code of the standard library itself sees replacements, as it
does without a sandbox.
"""

from __future__ import annotations

import builtins
import sys
import types
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from typing import Any

_DISTRIBUTION = __name__.partition(".")[0]
_STATE = frozenset({"builtins", "sys"})
"""Modules whose attributes are the interpreter's state, and which a copy would not share."""
_copies: dict[str, types.ModuleType] = {}


def install() -> None:
    """Make modules of this distribution that are imported from now on see the present names."""
    sys.meta_path.insert(0, _Finder())


def uninstall() -> None:
    """Restore the import system; imported modules keep their names."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]


class _Finder:
    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name.startswith(f"{_DISTRIBUTION}.") else None
        if spec is None or spec.origin is None:
            return None
        spec.loader = Loader(name, spec.origin)
        return spec


class Loader(SourceFileLoader):
    """Runs a module of this distribution with separate builtins."""

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Make the module."""
        module = types.ModuleType(spec.name)
        # Functions keep the builtins that their module had when they were made.
        module.__dict__["__builtins__"] = _BUILTINS
        return module


def _import(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    module = _import_really(name, globals, locals, fromlist, level)
    # Names imported from a module are bound at once.
    return module if fromlist or level or module.__name__ in _STATE else _copy(module)


def _copy(module: types.ModuleType) -> types.ModuleType:
    known = _copies.get(module.__name__)
    if known is None:
        known = _copies[module.__name__] = types.ModuleType(module.__name__)
    # Each time, since a further import may have added submodules.
    known.__dict__.update({name: value for name, value in vars(module).items() if name not in known.__dict__})
    if module.__name__ == "os":
        known.__dict__["path"] = _copy(module.path)
    return known


_import_really = builtins.__import__
_BUILTINS = {**vars(builtins), "__import__": _import}
