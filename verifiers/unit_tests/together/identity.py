"""Whether the functions that judge are still those that they were before the program ran."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

_JUDGES = """
builtins sys unittest unittest.case unittest.suite unittest.loader unittest.mock pytest
_pytest.config _pytest.fixtures _pytest.main _pytest.outcomes _pytest.python _pytest.python_api _pytest.raises _pytest.recwarn
_pytest.reports _pytest.runner _pytest.skipping _pytest.unittest
pluggy._callers pluggy._hooks pluggy._manager pluggy._result
"""
"""The modules whose functions are compared."""
_HOOK = "hook"
"""End of the names in `sys` that pytest sets by itself, and sets back later."""
# A program may replace them.
_get_type, _id, _vars, _isinstance = type, id, vars, isinstance


def functions() -> dict[str, tuple[object, ...]]:
    """The functions of these modules and of their classes, each with what decides what it does."""
    return {name: _content(value) for name, value in _named()}


def changed(before: dict[str, tuple[object, ...]]) -> list[str]:
    """Names of those that are others now, or gone."""
    now = dict(_named())
    return [name for name, content in before.items() if name not in now or _differs(content, _content(now[name]))]


def _differs(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    # By identity: the program's objects may equal anything.
    return any(a is not b for a, b in zip(one, other, strict=True))


def _content(value: Any) -> tuple[object, ...]:
    if _get_type(value) is types.FunctionType:
        return value, value.__code__, value.__defaults__, value.__kwdefaults__
    if _get_type(value) in (staticmethod, classmethod):
        return value, value.__func__, None, None
    return value, None, None, None


def _named() -> Iterator[tuple[str, object]]:
    for module_name in _JUDGES.split():
        for name, value in [*_vars(sys.modules[module_name]).items()] if module_name in sys.modules else ():
            if callable(value) and not name.endswith(_HOOK):
                yield f"{module_name}.{name}", value
            # A class that another module shows is looked at there.
            if _isinstance(value, type) and value.__module__ == module_name:
                members = [*_vars(value).items()]
                yield from ((f"{module_name}.{name}.{own}", one) for own, one in members if _judges(one))


def _judges(value: object) -> bool:
    return callable(value) or _get_type(value) is classmethod
