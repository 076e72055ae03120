"""The first code of a new interpreter: it makes some packages importable, and nothing else of this distribution.

This file is run as text, since nothing can be imported before it has run. Its argument is a JSON object that maps the full name
of each package to the package's folder. The packages use only the standard library.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec


class StandAlone:
    """Finds some packages, without running their `__init__.py` or the `__init__.py` of the packages that hold them."""

    def __init__(self, folders: Mapping[str, str]) -> None:
        self._folders = folders
        self._roots = {name.partition(".")[0] for name in folders}

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        """Find one of the packages, or a package that holds one; modules in a package are found through its folder."""
        if not any(f"{package}.".startswith(f"{name}.") for package in self._folders):
            return None
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [self._folders[name]] if name in self._folders else []
        return spec

    def retire(self) -> None:
        """Hide the packages: nothing more can be imported from them, and their modules are removed from `sys.modules`."""
        sys.meta_path.remove(self)
        for name in [name for name in sys.modules if name.partition(".")[0] in self._roots]:
            del sys.modules[name]


sys.meta_path.insert(0, StandAlone(json.loads(sys.argv.pop(1))))
