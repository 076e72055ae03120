"""How a test file imports the program: modules whose contents are requested from the candidate."""

from __future__ import annotations

import dis
import importlib
import sys
import types
from collections.abc import Collection, Sequence
from importlib.machinery import ModuleSpec
from typing import Any

from verifiers.sandbox.programs.source_files import Loader

from ...protocol import packages
from ...protocol.packages import root_of
from ..report import TEST_FILE, absent
from ..rpc.proxy import Proxy
from ..rpc.session import Session


class ProgramFinder(Loader):
    """Lets tests import the program's modules as proxies, and nothing else of the program."""

    def __init__(self, session: Session, *, starred: Collection[str], tried: Collection[int]) -> None:
        """Create a finder for `sys.meta_path`.

        `starred` are the names that `from solution import *` may bind, `tried` the lines of the test file in a `try`.
        """
        self._session = session
        self._starred = starred
        self._tried = tried

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        """Find a module of the program by its name."""
        own = root_of(name) in self._session.program_modules
        return ModuleSpec(name, self, is_package=True) if own else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Make the proxy of a module."""
        return _ProgramModule(spec.name, self)

    def exec_module(self, module: types.ModuleType) -> None:
        """Have the candidate import the module."""
        try:
            module.__dict__[_REMOTE] = self._session.request("import", None, module.__name__)
        except ModuleNotFoundError as error:
            if str(error).startswith(f"No module named {module.__name__!r}"):
                error.name = module.__name__  # as the import system sets it, which then looks for an attribute
            raise

    def remote(self, module: types.ModuleType) -> Proxy:
        """The proxy of the module in the candidate."""
        proxy = module.__dict__[_REMOTE]
        if not isinstance(proxy, Proxy):
            self._session.abandon("protocol", f"{module.__name__} is no module")
        return proxy

    def starred(self, module: str) -> list[str]:
        """The names that `*` imports from a module."""
        answers = self._session.resolve(sorted(self._starred), module)
        return [name for name, answer in answers.items() if answer[0] != "missing"]

    def _is_required(self, frame: types.FrameType) -> bool:
        """Whether test code fails here without an attribute: not where `hasattr` or a `try` asks for it."""
        if frame.f_code.co_filename != TEST_FILE:
            return frame.f_globals.get("__name__") == "importlib._bootstrap"  # before the import statement itself asks
        return frame.f_code.co_code[frame.f_lasti] in _REQUIRING_CODES and frame.f_lineno not in self._tried

    def attribute(self, module: str, name: str) -> object:
        """A global or a submodule of a module; AttributeError if it has neither."""
        answer = self._session.resolve([name], module)[name]
        if answer[0] == "missing" or not self._is_required(sys._getframe(2)):
            self._session.has_answered = True  # by its absence or presence
        package = packages.named(name)
        if package is not None and answer[0] != "missing":
            return importlib.import_module(package)
        if answer[0] == "module":
            return self._session.module_of(answer, name)
        if answer[0] != "missing":
            return self._session.value_of(answer)
        try:
            return importlib.import_module(f"{module}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{module}.{name}":
                raise
            raise absent(AttributeError, f"module {module!r} has no attribute {name!r}") from None


_REQUIRING = ("IMPORT_FROM", "LOAD_ATTR", "LOAD_METHOD", "IMPORT_STAR", "CALL_INTRINSIC_1")
_REQUIRING_CODES = frozenset(dis.opmap[name] for name in _REQUIRING if name in dis.opmap)
"""Instructions that import a name, read an attribute, or import `*`, in some version of Python."""
_REMOTE, _FINDER = "__remote__", "__finder__"
"""Keys in a module's namespace; underscores keep them apart from the program's names, which come through `__getattr__`."""


_OF_THE_IMPORT_SYSTEM = frozenset(
    f"__{name}__"
    for name in (
        *("file", "cached", "builtins", "path", "spec", "loader", "package", "dict", "class", "getattr", "dir"),
        *("wrapped", "signature", "annotations", "annotate", "test", "warningregistry", "mro_entries"),
    )
)
"""Names that are not the program's to define: the import system and the standard library read them in a module."""


class _ProgramModule(types.ModuleType):
    """A module of the program, as the tests see it. Attributes that they set are set in the program."""

    def __init__(self, name: str, finder: ProgramFinder) -> None:
        super().__init__(name)
        self.__dict__[_FINDER] = finder

    def __getattr__(self, name: str) -> Any:
        finder: ProgramFinder = self.__dict__[_FINDER]
        if name == "__all__":
            return finder.starred(self.__name__)
        if name in _OF_THE_IMPORT_SYSTEM:
            raise AttributeError(name)
        return finder.attribute(self.__name__, name)

    # The namespace of every module holds one, which hides the program's.
    __doc__ = property(lambda self: _documentation(self))

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("__") or isinstance(value, _ProgramModule):  # the import system's
            super().__setattr__(name, value)
        else:
            setattr(self.__dict__[_FINDER].remote(self), name, value)

    def __delattr__(self, name: str) -> None:
        if name in self.__dict__:
            super().__delattr__(name)
        else:
            delattr(self.__dict__[_FINDER].remote(self), name)


def _documentation(module: types.ModuleType) -> object:
    finder: ProgramFinder = module.__dict__[_FINDER]
    return finder.attribute(module.__name__, "__doc__")
