"""Checks whether the functions that judge are still the same as before the program ran."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_JUDGES = """
builtins sys unittest unittest.case unittest.suite unittest.loader unittest.mock pytest
_pytest.config _pytest.fixtures _pytest.main _pytest.outcomes _pytest.python _pytest.python_api _pytest.raises _pytest.recwarn
_pytest.reports _pytest.runner _pytest.skipping _pytest.unittest
pluggy._callers pluggy._hooks pluggy._manager pluggy._result
"""
"""The modules whose functions are compared."""
_HOOK = "hook"
"""Ending of the names in `sys` that pytest itself changes and restores."""
_Content = tuple[object, object, object, object]
_Entry = tuple[Mapping[str, object], str, str, object, _Content | None]
"""A namespace, its title, a name in it, the value and, if the value is a function, the parts that determine its behaviour."""
_get_type = type  # a program may replace it


def functions() -> list[_Entry]:
    """The functions of the modules that judge, and of their classes."""
    modules = [name for name in _JUDGES.split() if name in sys.modules]
    entries = [(namespace, title, name, value, _content(value)) for namespace, title, name, value in _named(modules)]
    return [*((sys.modules, "sys.modules", name, sys.modules[name], None) for name in modules), *entries]


def changed(before: list[_Entry]) -> list[str]:
    """Names of the functions that have been replaced or removed."""
    # One loop, since it runs for each test file; it calls nothing that a program may replace.
    names = []
    for namespace, title, name, value, content in before:
        if namespace.get(name) is not value or (content is not None and _differs(content, _content(value))):
            names.append(f"{title}.{name}")
    return names


def _differs(one: _Content, other: _Content | None) -> bool:
    # By identity: the program's objects may equal anything.
    return other is None or not (
        one[0] is other[0] and one[1] is other[1] and one[2] is other[2] and one[3] is other[3]
    )


def _content(value: Any) -> _Content | None:
    function = value.__func__ if _get_type(value) in (staticmethod, classmethod) else value
    if _get_type(function) is not types.FunctionType:
        return None
    return function, function.__code__, function.__defaults__, function.__kwdefaults__


def _named(modules: Iterable[str]) -> Iterator[tuple[Mapping[str, object], str, str, object]]:
    for module_name in modules:
        namespace = vars(sys.modules[module_name])
        for name, value in [*namespace.items()]:
            if callable(value) and not name.endswith(_HOOK):
                yield namespace, module_name, name, value
            # A class of another module is looked at in that module.
            if isinstance(value, type) and value.__module__ == module_name:
                members = vars(value)
                title = f"{module_name}.{name}"
                yield from ((members, title, own, one) for own, one in [*members.items()] if _judges(one))


def _judges(value: object) -> bool:
    return callable(value) or type(value) is classmethod
