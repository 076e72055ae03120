"""A file that replaces the program while its tests are inspected: any name can be imported from it.

Any other use of the file ends the inspection and is reported; the inspection then decides nothing about the tests.
"""

from __future__ import annotations

import os
from typing import NoReturn

_RESULTS = 4
__path__: list[str] = []
_NEED = "call iter next len bool contains getitem eq ne lt le gt ge int float index add radd sub mul or ror enter str format"


class ProgramNeededError(BaseException):
    """A test file needs the program as soon as it is imported."""


def _need(*_: object, **__: object) -> NoReturn:
    os.write(_RESULTS, b'{"needed": true}\n')
    raise ProgramNeededError


class _Absent:
    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> _Absent:
        return __getattr__(name)

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return ()

    __hash__ = object.__hash__


for _name in _NEED.split():
    setattr(_Absent, f"__{_name}__", _need)


def __getattr__(name: str) -> _Absent:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Absent(name)


def __dir__() -> NoReturn:
    _need()
