"""Packages that the fork server loads before its first job, so that programs can import them.

Only the named packages and their requirements can be imported, whatever else is installed: otherwise a program could behave
differently on a machine where a package's optional dependency is installed.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import importlib.metadata  # noqa: TC004 - `importlib` itself is what is used

_ALWAYS_WITH = {"numpy": ("numpy.ma", "numpy.random", "numpy.testing")}
"""Modules that a package loads only on first use, but that many programs use."""


class PackageFinder:
    """An import finder for the top-level modules of packages; each package finds its own submodules."""

    def __init__(self, modules: Collection[str], folders: Sequence[str]) -> None:
        self._modules = frozenset(modules)
        self._folders = list(folders)

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        """Find a module that may be imported."""
        return PathFinder.find_spec(name, self._folders) if name in self._modules else None

    def find_distributions(
        self, context: importlib.metadata.DistributionFinder.Context
    ) -> Iterable[importlib.metadata.Distribution]:
        """Find the metadata that packages look up about themselves, such as their version."""
        import importlib.metadata  # here, since it takes long, and nothing else in a server needs it

        where = importlib.metadata.DistributionFinder.Context(name=context.name, path=self._folders)
        return importlib.metadata.MetadataPathFinder.find_distributions(where)


def load_packages(packages: Mapping[str, Any]) -> int:
    """Load packages (`Packages` as a mapping), and return the address space that they take, in MiB.

    Raises:
        ImportError: If a package can't be loaded into a fork server, for whatever reason.
    """
    if not packages["names"]:
        return 0
    before = address_space_mib()
    sys.meta_path.append(PackageFinder(packages["modules"], packages["folders"]))
    # A program that may import pandas can import numpy too.
    for name in [*packages["names"], *({"numpy"} & {*packages["modules"]})]:
        for module in (name, *_ALWAYS_WITH.get(name, ())):
            _load(module)
    return round(address_space_mib() - before)


def _load(name: str) -> None:
    try:
        importlib.import_module(name)
    except Exception as error:
        raise ImportError(f"{name} can't be imported: {type(error).__name__}: {error}") from error
    if len(os.listdir("/proc/self/task")) > 1:
        raise ImportError(
            f"{name} starts a thread when it is imported, and a process with several threads can't be forked"
        )


def address_space_mib() -> float:
    """The address space of this process, in MiB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
