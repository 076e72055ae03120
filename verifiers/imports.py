"""Importing what a user names as `module:attribute`."""

from __future__ import annotations

import importlib
import operator
import re
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path

from verifiers.errors import InvalidArgumentError, MissingDependencyError, UnknownNameError, unknown_name, with_article

_PATH = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")


def is_attribute_path(text: str) -> bool:
    """Whether a text has the form `module:attribute`."""
    return _PATH.fullmatch(text) is not None


def import_attribute(path: str, kind: str) -> object:
    """Import what `module:attribute` names, where the module may also be in the current folder.

    The current folder joins `sys.path` behind all that is there, so that no file of it hides an installed module.

    Args:
        path: Such as `"my_verifiers:strict"`; the attribute may have dots.
        kind: What is named, for messages: `"verifier"`.

    Raises:
        InvalidArgumentError: If `path` has another form, or the module raised while it was imported; the message has its
            exception, file and line.
        UnknownNameError: If there is no such module or attribute.
        MissingDependencyError: If the module says that it needs a package which is not installed.
    """
    if not is_attribute_path(path):
        raise InvalidArgumentError(
            f"expected {with_article(kind)} as module:attribute, such as my_module:name, got {path!r}"
        )
    module_name, _, attribute = path.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        module = importlib.import_module(module_name)
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
        own = [name for name, value in vars(module).items() if not name.startswith("_") and _is_own(value, module_name)]
        raise unknown_name(f"attribute of module {module_name!r} ({where})", attribute, own) from error
    return value


def _is_own(value: object, module: str) -> bool:
    """Whether a module defines a value that a path may name: a class, a function, or an object that is called or indexed."""
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.".startswith(f"{module}.")
    serves = callable(value) or hasattr(value, "__getitem__")
    return serves and not isinstance(value, str | bytes | Mapping) and type(value).__module__ != "typing"


def _cause(error: BaseException) -> str:
    """An exception in one line, with the file and the line it comes from."""
    if isinstance(error, SyntaxError):  # raised by the compiler, not by a line of the module
        return f"{type(error).__name__}: {error.msg} ({error.filename}, line {error.lineno})"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {' '.join(str(error).split())} ({last.filename}, line {last.lineno})"
