"""Makes packages lazy: the module of a public name is loaded when the name is first used."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable, Mapping
from importlib.abc import InspectLoader
from types import ModuleType

from verifiers.errors import missing_dependency


def lazy_face(
    package: str, extras: Mapping[str, str] | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Make `__getattr__`, `__dir__` and `__all__` for a package that imports its public names only under `TYPE_CHECKING`.

    Type checkers and this function read the same imports, so the names are listed only once.

    Args:
        package: The package's `__name__`.
        extras: For each package that may be missing, the extra of this distribution that installs it, such as
            `{"torch": "train"}`. A name that needs a missing package raises a `MissingDependencyError`.
    """
    module = sys.modules[package]
    homes = _homes(package)

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        try:
            value: object = (
                importlib.import_module(f"{package}.{name}")
                if home == package
                else getattr(importlib.import_module(home), name)
            )
        except ModuleNotFoundError as error:
            if error.name is not None and error.name in (extras or {}):
                raise missing_dependency(error.name, (extras or {})[error.name], f"{package}.{name}") from error
            raise
        setattr(module, name, value)  # from now on Python finds it without this function
        return value

    return load, lambda: sorted({*vars(module), *homes}), sorted(homes)


class _Deferred(ModuleType):
    """A module that is imported at the first use of an attribute."""

    def __init__(self, name: str, extra: str, user: str) -> None:
        super().__init__(name)
        self._needed_by = (name, extra, user)

    def __getattr__(self, name: str) -> object:
        # Nothing is cached here, so that replacing an attribute of the module takes effect everywhere.
        module = sys.modules.get(self.__name__) or self._imported()
        return getattr(module, name)

    def _imported(self) -> ModuleType:
        try:
            return importlib.import_module(self.__name__)
        except ModuleNotFoundError as error:
            if error.name == self.__name__:
                raise missing_dependency(*self._needed_by) from error
            raise


def lazy_module(name: str, *, extra: str, user: str) -> ModuleType:
    """A stand-in that imports a module when one of the module's attributes is first used.

    Args:
        name: The module.
        extra: The extra of this distribution that installs it.
        user: What needs the module, for the `MissingDependencyError` that is raised if it is not installed.
    """
    return sys.modules.get(name) or _Deferred(name, extra, user)


def _homes(package: str) -> dict[str, str]:
    """The module from which a package imports each name for type checkers; the package itself for names that are modules."""
    spec = sys.modules[package].__spec__
    loader = None if spec is None else spec.loader
    source = loader.get_source(package) if isinstance(loader, InspectLoader) else None
    if source is None:
        raise ImportError(
            f"{package} needs its source: install the files of this distribution, not compiled ones alone"
        )
    imports = [
        statement
        for node in ast.parse(source).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for statement in node.body
        if isinstance(statement, ast.ImportFrom)
    ]
    return {alias.name: statement.module or package for statement in imports for alias in statement.names}
