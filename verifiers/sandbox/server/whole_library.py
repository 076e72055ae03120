"""Loads the whole standard library before the first program, for systems on which programs can't open files."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import sysconfig
import time
from collections.abc import Iterator

_LEFT_OUT = """
antigravity this test idlelib tkinter turtle turtledemo lib2to3 ensurepip venv pydoc_data site readline rlcompleter msilib
sitecustomize usercustomize pip setuptools
"""
"""Modules that open something when imported, need a terminal or a screen, or are not part of the library."""


def load() -> None:
    """Import every module that can be imported, and load other data that the library would read on first use."""
    for name in _modules():
        try:
            importlib.import_module(name)
        except (Exception, SystemExit):  # noqa: BLE001 - a module of another system, or one that lacks a shared library
            sys.modules.pop(name, None)
    time.tzset()


def _modules() -> Iterator[str]:
    folders = [path for path in sys.path if os.path.isdir(path)]
    folders.append(sysconfig.get_path("platstdlib"))
    yield from _in_folders(folders, "")


def _in_folders(folders: list[str], prefix: str) -> Iterator[str]:
    for module in pkgutil.iter_modules(folders, prefix):
        root = module.name.partition(".")[0]
        is_private = module.name.rpartition(".")[2].startswith(("__", "_test", "_xx", "_ctypes_test"))
        if (
            root not in sys.stdlib_module_names
            or root in _LEFT_OUT.split()
            or (is_private and module.name != "__future__")
        ):
            continue
        yield module.name
        if module.ispkg and not module.name.endswith((".test", ".tests")):
            yield from _in_folders(list(getattr(sys.modules.get(module.name), "__path__", ())), f"{module.name}.")
