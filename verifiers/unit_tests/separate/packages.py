"""Packages that the fork server has loaded: how test code refers to them, and how their values are sent."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

_USUAL_NAMES = {
    **{"np": "numpy", "pd": "pandas", "sp": "scipy", "npt": "numpy.testing"},
    **dict.fromkeys(("LA", "la", "linalg"), "numpy.linalg"),
}
"""Packages and modules by the aliases that test code commonly gives them."""
_JUDGES = frozenset({"allclose", "array_equal", "array_equiv"})
"""NumPy functions that tests compare with; names that begin with `assert_` come from `numpy.testing`."""

_roots: set[str] = set()
"""Top-level names of the loaded packages."""
_arrays: Any = None
"""The module `arrays` if NumPy is loaded, else None."""


def register(packages: Mapping[str, Any]) -> None:
    """Register loaded packages (`sandbox.packages.Packages` as a mapping), and let their values be sent."""
    # A user who names pandas can import numpy too.
    _roots.update(map(root_of, [*packages["names"], *({"numpy"} & {*packages["modules"]})]))
    if "numpy" in sys.modules:
        global _arrays
        _arrays = importlib.import_module(f"{__package__}.arrays")
        _arrays.install()


def root_of(name: str) -> str:
    """The top-level package of a module's name."""
    return name.partition(".")[0]


def is_package(module: str) -> bool:
    """Whether a module belongs to a package, which both the program and the tests can import."""
    return root_of(module) in _roots


def named(name: str) -> str | None:
    """The package that a bare name in test code refers to; None if there is none."""
    package = _USUAL_NAMES.get(name, name)
    return package if root_of(package) in _roots and package in sys.modules else None


def judge(name: str) -> object | None:
    """The NumPy comparison function that a bare name in test code refers to; None if there is none."""
    if "numpy" not in _roots:
        return None
    function: object = getattr(sys.modules["numpy"], name) if name in _JUDGES else None
    return getattr(sys.modules["numpy.testing"], name, None) if name.startswith("assert_") else function


def any_loaded() -> bool:
    """Whether packages are loaded."""
    return bool(_roots)


def seed(number: int) -> None:
    """Seed the generator that NumPy's functions share with a number of at most 32 bits."""
    if _arrays is not None:
        _arrays.numpy.random.seed(number)


def is_array(value: object) -> bool:
    """Whether a value is an array of NumPy."""
    return _arrays is not None and _arrays.is_array(value)


def plain(value: object) -> object:
    """A NumPy array as lists, and a NumPy scalar as a Python value; any other value is returned unchanged."""
    is_numpys = _arrays is not None and isinstance(value, _arrays.ndarray | _arrays.generic)
    return value.tolist() if is_numpys else value  # type: ignore[attr-defined]  # both have it


def same(result: object, expected: object, equal: Callable[[object, object], bool]) -> bool:
    """Whether two values, which may contain arrays, are equal; `equal` compares values without arrays."""
    return bool(equal(result, expected) if _arrays is None else _arrays.same(result, expected, equal))
