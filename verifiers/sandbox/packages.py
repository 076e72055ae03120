"""Packages outside the standard library that programs may import: their locations and the packages that they require."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from verifiers.errors import InvalidArgumentError

_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_REQUIREMENT = re.compile(r"[\w.-]+")


@dataclass(frozen=True, slots=True)
class Packages:
    """Installed packages, as described to a fork server."""

    names: tuple[str, ...] = ()
    """Modules to load before the first program."""
    modules: tuple[str, ...] = ()
    """Top-level names of all importable modules: the named ones, and the modules of the distributions that they require."""
    folders: tuple[str, ...] = ()
    """Folders that contain the modules."""
    paths: tuple[str, ...] = ()
    """Paths in the folders that may be read."""

    def versions(self) -> dict[str, str]:
        """The version of each named package; empty if a package has none."""
        return {name: _version(name) for name in dict.fromkeys(name.partition(".")[0] for name in self.names)}


def find_packages(names: str | Sequence[str]) -> Packages:
    """Find packages and their requirements among those installed for this interpreter.

    Args:
        names: Names of packages or of modules in them, as a sequence or a comma-separated string.

    Raises:
        InvalidArgumentError: If a name is invalid, or the package is not installed.
    """
    wanted = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else tuple(names)
    for name in wanted:
        _check(name)
    roots = dict.fromkeys(name.partition(".")[0] for name in wanted)
    distributions = list(_with_requirements(roots))
    known = _modules_by_distribution()
    required = {module for distribution in distributions for module in known[_normal(distribution.name)]}
    locations = {name: location for name in {*roots, *required} for location in [_location(name)] if location}
    paths = {*locations.values()} | {path for distribution in distributions for path in _top_level(distribution)}
    folders = dict.fromkeys(os.path.dirname(location) for location in locations.values())
    return Packages(wanted, tuple(sorted(locations)), tuple(folders), tuple(sorted(paths)))


def folder_of(package: str) -> str:
    """The folder of the package with this full name."""
    location = _location(package)
    if location is None:
        raise InvalidArgumentError(f"a contract names a package of Python files, got {package!r}")
    return location


def _check(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidArgumentError(f"packages holds names of packages such as 'numpy', got {name!r}")
    root = name.partition(".")[0]
    if root in sys.stdlib_module_names:
        raise InvalidArgumentError(f"packages holds {name!r}, but the standard library is always there: leave it out")
    if _location(root) is None:
        raise InvalidArgumentError(
            f"packages holds {name!r}, but no package {root!r} is installed for {sys.executable}: install the distribution "
            f"that has it, for example by `pip install {root}`"
        )


def _location(name: str) -> str | None:
    """The folder or file of a top-level module; None if it has neither."""
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # a module without a spec
        return None
    if spec is None:
        return None
    locations = list(spec.submodule_search_locations or ())
    return locations[0] if locations else spec.origin if spec.has_location else None


def _version(root: str) -> str:
    distributions = _distributions_of(root)
    return distributions[0].version if distributions else ""


def _distributions_of(root: str) -> list[importlib.metadata.Distribution]:
    names = _distributions_by_module().get(root, ())
    return [importlib.metadata.distribution(name) for name in dict.fromkeys(names)]


def _with_requirements(roots: Iterable[str]) -> Iterator[importlib.metadata.Distribution]:
    """The distributions that hold some modules, and the distributions that these require, except optional ones."""
    waiting = [distribution for root in roots for distribution in _distributions_of(root)]
    seen: set[str] = set()
    while waiting:
        distribution = waiting.pop()
        if _normal(distribution.name) in seen:
            continue
        seen.add(_normal(distribution.name))
        yield distribution
        needed = (text for text in distribution.requires or () if "extra ==" not in text)
        for name in (match[0] for text in needed if (match := _REQUIREMENT.match(text))):
            if _normal(name) in _modules_by_distribution():  # else it is for another platform
                waiting.append(importlib.metadata.distribution(name))


def _top_level(distribution: importlib.metadata.Distribution) -> Iterator[str]:
    """The top-level folders and files of a distribution, such as `numpy` and `numpy.libs`."""
    tops = {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}
    return (str(distribution.locate_file(top)) for top in tops if not top.endswith(".pth"))


@functools.cache
def _distributions_by_module() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()


@functools.cache
def _modules_by_distribution() -> dict[str, set[str]]:
    modules: dict[str, set[str]] = {}
    for module, names in _distributions_by_module().items():
        for name in names:
            modules.setdefault(_normal(name), set()).add(module)
    return modules


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
