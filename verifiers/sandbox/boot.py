"""The first code of a new interpreter: it makes a few packages importable, but nothing else of this distribution.

This file is run as text, since nothing can be imported before it has run. Its argument is a JSON object that maps the full name
of each package to the package's folder. The packages use only the standard library.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec


class StandAlone:
    """An import finder for some packages; neither their `__init__.py` nor those of the packages above them are run."""

    def __init__(self, folders: Mapping[str, str]) -> None:
        self._folders = folders
        self._roots = {name.partition(".")[0] for name in folders}

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        """Find one of the packages, or a package above one; the modules in a package are found through its folder."""
        if not any(f"{package}.".startswith(f"{name}.") for package in self._folders):
            return None
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [self._folders[name]] if name in self._folders else []
        return spec

    def retire(self) -> None:
        """Hide the packages: nothing more can be imported from them, and `sys.modules` no longer has their modules."""
        sys.meta_path.remove(self)
        for name in [name for name in sys.modules if name.partition(".")[0] in self._roots]:
            del sys.modules[name]


sys.meta_path.insert(0, StandAlone(json.loads(sys.argv.pop(1))))
