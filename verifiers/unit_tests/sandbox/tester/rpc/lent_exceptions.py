"""Exceptions of the tests in the hands of the program: raised to it by a callback, or passed to it.

The program sees copies. When it lets one through, or returns it, the tests get their own exception back, as in one process.
It can name no other: only what was lent has a number, and what skips, fails or ends a test, or a loop of it, is never lent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...protocol.codec import Encoder, NotPlainError, Wire
from ...protocol.source_files import is_in_memory
from ..report import text_of
from .exceptions import HIDDEN, STOPPING, is_shared

_MOST = 1000
"""A program that calls callbacks in vain must not fill the memory with tracebacks; later ones are not lent."""
_NEVER = STOPPING | {"MemoryError", "RecursionError"}


class LentExceptions:
    """Encodes exceptions of the tests and their classes, and remembers which ones the program has."""

    def __init__(self, encode_opaque: Callable[[object], Wire], number_of: Callable[[object], int]) -> None:
        """`number_of` gives a class that is lent its number as an object of the tests."""
        self._encode_opaque = encode_opaque
        self._number_of_class = number_of
        self._lent: list[BaseException] = []
        self._numbers: dict[int, int] = {}
        self._classes: dict[int, type[BaseException]] = {}

    def lent(self, number: object) -> BaseException:
        """The exception with this number; an error if none was lent."""
        if type(number) is not int or not 0 <= number < len(self._lent):
            raise ValueError(f"no exception of the tests has the number {number!r}")
        return self._lent[number]

    def lent_class(self, number: int) -> type[BaseException]:
        """The exception class with this number; KeyError if the program has none such."""
        return self._classes[number]

    def class_wire(self, cls: type[BaseException]) -> Wire:
        """Encode a class: its name, its builtin bases, and if it may be lent, where it comes from."""
        wire = ["x", cls.__name__, [base.__name__ for base in cls.__mro__ if base.__module__ == "builtins"]]
        if not _may_be_lent(cls):
            return wire
        if is_shared(cls.__module__) and not _is_of_the_tests(cls):
            return [*wire, cls.__module__, cls.__qualname__]
        bases = [self.class_wire(base) for base in cls.__bases__ if issubclass(base, BaseException)]
        number = self._number_of_class(cls)
        self._classes[number] = cls
        return [*wire, number, bases]

    def wire(self, error: BaseException) -> Wire:
        """Encode an exception, and lend it if that is possible."""
        number = self._number_of(error) if _may_be_lent(type(error)) else None
        return ["xi", number, self.class_wire(type(error)), text_of(error), *self._content(error)]

    def secret_wire(self, error: BaseException) -> Wire:
        """Encode an exception by its class alone; it is not lent."""
        return ["xi", None, self.class_wire(type(error)), "", None, []]

    def _number_of(self, error: BaseException) -> int | None:
        number = self._numbers.get(id(error))
        if number is None and len(self._lent) < _MOST:
            number = self._numbers[id(error)] = len(self._lent)
            self._lent.append(error)  # kept alive, so that its id stays unique
        return number

    def _content(self, error: BaseException) -> list[Wire]:
        """The arguments, None if they can't be sent, and the attributes that can, with their names."""
        own = {**_constants(type(error)), **error.__dict__}
        shown = [(name, value) for name, value in own.items() if name == "__notes__" or _is_public(name)]
        attributes = [[name, self._plain(value)] for name, value in shown]
        # `args` leaves out the name of a file.
        args = OSError.__reduce__(error)[1] if isinstance(error, OSError) else error.args
        return [self._plain(args), [item for item in attributes if item[1] is not None]]

    def _plain(self, value: object) -> Wire:
        """Encode a value; as a list of one, to tell None from what can't be sent."""
        try:
            return [Encoder(self._encode_opaque).encode(value)]
        except (NotPlainError, RecursionError):
            return None


def _constants(cls: type[BaseException]) -> dict[str, object]:
    """Plain attributes that classes of the tests have for all their exceptions, such as a status."""
    own = [base for base in reversed(cls.__mro__) if _is_of_the_tests(base)]
    found = {name: value for base in own for name, value in vars(base).items() if _is_public(name)}
    return {name: value for name, value in found.items() if type(value) in (bool, int, float, str)}


def _is_public(name: object) -> bool:
    return type(name) is str and not name.startswith("_") and name not in HIDDEN


def _is_of_the_tests(cls: type) -> bool:
    return cls.__module__ == "tests" or is_in_memory(cls.__module__)


def _may_be_lent(cls: type[Any]) -> bool:
    """Whether the program may raise an exception of this class in the tests as it is."""
    shared = all(is_shared(base.__module__) or _is_of_the_tests(base) for base in cls.__mro__)
    ends = any(base.__name__ in _NEVER and is_shared(base.__module__) for base in cls.__mro__)
    return shared and issubclass(cls, Exception) and not ends
