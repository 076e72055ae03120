"""The first code of a new interpreter: it makes some packages importable, and nothing else of this distribution.

It is run as text, since nothing can be imported before it has run. Its argument is a JSON object: for each package by its whole
name, its folder. The packages use the standard library alone.
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
        """Find one of the packages, or one that holds it; any module in them is found by the folder."""
        if not any(f"{package}.".startswith(f"{name}.") for package in self._folders):
            return None
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [self._folders[name]] if name in self._folders else []
        return spec

    def retire(self) -> None:
        """Hide the packages: from now on nothing can be imported from them, and what was is not among the modules."""
        sys.meta_path.remove(self)
        for name in [name for name in sys.modules if name.partition(".")[0] in self._roots]:
            del sys.modules[name]


sys.meta_path.insert(0, StandAlone(json.loads(sys.argv.pop(1))))
