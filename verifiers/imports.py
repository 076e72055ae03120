"""Imports objects that a user names as `module:attribute`."""

from __future__ import annotations

import importlib.util
import operator
import os
import re
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from verifiers.errors import InvalidArgumentError, MissingDependencyError, UnknownNameError, unknown_name, with_article

_ATTRIBUTE = r"[^\W\d][\w.]*"
_PATH = re.compile(rf"(?:{_ATTRIBUTE}|[^:]+\.py):{_ATTRIBUTE}")
_FILE = ".py"
_SOURCE = re.compile(r"[^:{}\n]+\.py")


def is_attribute_path(text: str) -> bool:
    """Whether a text has the form `module:attribute` or `path/to/file.py:attribute`, or is the name of a Python file."""
    return _PATH.fullmatch(text) is not None or _SOURCE.fullmatch(text) is not None


def import_attribute(path: str, kind: str) -> object:
    """Import the object that `module:attribute` names; the module may be in the current folder, or given as a file's path.

    The current folder, or the file's folder, is appended to `sys.path`, so that it hides no installed module.

    Args:
        path: Such as `"my_verifiers:strict"` or `"rewards/mine.py:strict"`; the attribute may have dots.
        kind: The kind of object that is named, for messages: `"verifier"`.

    Raises:
        InvalidArgumentError: If `path` has another form, or the module raised an exception while it was imported; the message
            has the exception, file and line.
        UnknownNameError: If there is no such module or attribute.
        MissingDependencyError: If the module says that it needs a package which is not installed.
    """
    module_name, _, attribute = path.partition(":")
    if _PATH.fullmatch(path) is None:
        raise InvalidArgumentError(
            f"expected {with_article(kind)} as module:attribute, such as my_module:name or my_file.py:name, got {path!r}"
            f"{_advice(module_name, attribute)}"
        )
    file = Path(module_name).expanduser().resolve() if module_name.endswith(_FILE) else None
    if file is not None and not file.is_file():
        raise UnknownNameError(f"unknown {kind} {path!r}: there is no file {module_name}")
    here = str(Path.cwd() if file is None else file.parent)
    if here not in sys.path:
        sys.path.append(here)
    try:
        module = importlib.import_module(module_name) if file is None else _module_of(file)
    except MissingDependencyError:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}."):
            raise UnknownNameError(
                f"unknown {kind} {path!r}: there is no module {error.name!r}, neither installed nor in {here}"
            ) from error
        raise InvalidArgumentError(f"can't import {module_name!r} for the {kind} {path!r}: {_cause(error)}") from error
    try:
        value: object = operator.attrgetter(attribute)(module)
    except AttributeError as error:
        where = getattr(module, "__file__", None) or "a package without a file"
        own = [
            name for name, value in vars(module).items() if not name.startswith("_") and _is_own(value, module.__name__)
        ]
        raise unknown_name(f"attribute of module {module_name!r} ({where})", attribute, own) from error
    return value


def _advice(module: str, attribute: str) -> str:
    """Advice on how to name an object in a file, if a part of the name is missing."""
    if module.endswith(_FILE):
        return f": name what is in the file, as in {module}:name"
    return f": did you mean {module}{_FILE}:{attribute or 'name'}?" if Path(module + _FILE).is_file() else ""


def _module_of(file: Path) -> ModuleType:
    """Import a file as a module: under the file's name if that name imports the same file, else under a separate name."""
    known = sys.modules.get(file.stem)
    if known is None and file.stem.isidentifier():
        spec = importlib.util.find_spec(file.stem)
        if spec is not None and spec.origin is not None and Path(spec.origin).resolve() == file:
            return importlib.import_module(file.stem)
    if known is not None and getattr(known, "__file__", None) == str(file):
        return known
    name = f"{file.stem} in {file.parent}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None, "a path that ends in .py has a loader"
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(sys.modules[name])
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def _is_own(value: object, module: str) -> bool:
    """Whether a module defines a value that a path may name: a class, a function, or an object to call or index."""
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.".startswith(f"{module}.")
    serves = callable(value) or hasattr(value, "__getitem__")
    return serves and not isinstance(value, str | bytes | Mapping) and type(value).__module__ != "typing"


_OWN = tuple(str(Path(__file__).resolve().parents[1] / name) + os.sep for name in ("verifiers", "rlvr_envs", "agents"))
"""Folders of this project's packages."""


def _cause(error: BaseException) -> str:
    """An exception in one line, with the file and line that raised it or else the last line of the user's code."""
    if isinstance(error, SyntaxError):  # raised by the compiler, not by a line of the module
        return f"{type(error).__name__}: {error.msg} ({error.filename}, line {error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    last = next((frame for frame in reversed(frames) if not frame.filename.startswith((*_OWN, "<"))), frames[-1])
    return f"{type(error).__name__}: {' '.join(str(error).split())} ({last.filename}, line {last.lineno})"
