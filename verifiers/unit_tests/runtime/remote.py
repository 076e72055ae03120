"""`Remote`: an object that lives in the candidate, as test code sees it.

Whatever the object does with itself and with other such objects is the program's own affair. What it must never see is the
value that a test expects, or the program would be its own judge: so it equals no plain value, and takes part in no
arithmetic or order with one. The exception are instances of a class that is itself under test, whose operators the test
means to exercise (`let_operators_see_plain`).
"""

from __future__ import annotations

import opcode
import types
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Protocol, Self

from .operations import BINARY_OPERATORS, IN_PLACE_OPERATORS, REFLECTED_OPERATORS
from .pytest_subset import UnsupportedTestError

_ONLY_PLAIN = (
    "the program would learn the expected value and be its own judge; only plain data is compared with plain data"
)
_COMPARING_METHODS = frozenset({"startswith", "endswith", "issubset", "issuperset", "isdisjoint", "equals"})
_COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "contains"})


# Names that no class of a program will have, since they hide the object's own.
_SLOTS = (
    "_remote_session",
    "_remote_number",
    "_remote_type_name",
    "_remote_class_tested",
    "_remote_operators_tested",
)


class RemoteSession(Protocol):
    """Who carries out what is asked of a remote object."""

    def request(self, operation: str, subject: object, *args: object, **kwargs: object) -> Any:
        """Have the candidate do something, and return or raise what came of it."""
        ...

    def number_of_class(self, kind: type[Any]) -> object:
        """The handle of the program's class of which a class here is the copy, None if it is none."""
        ...

    def is_new(self, remote: Remote) -> bool:
        """Whether the object was met for the first time in the last answer."""
        ...


class Remote:
    """An object of the candidate. Equal only to itself, or to another such object that says so."""

    __slots__ = _SLOTS
    _remote_session: RemoteSession
    _remote_number: int | str
    _remote_type_name: str
    _remote_class_tested: bool
    _remote_operators_tested: bool

    def __init__(
        self, session: RemoteSession, number: int | str, type_name: str, *, class_tested: bool = False
    ) -> None:
        """Make the proxy of an object.

        Args:
            session: Reaches the object.
            number: Its handle, or the name of a global of the program.
            type_name: For messages.
            class_tested: Whether it is a class whose instances' operators are tested.
        """
        content = (session, number, type_name, class_tested, False)
        for name, value in zip(_SLOTS, content, strict=True):
            object.__setattr__(self, name, value)

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Call the object in the candidate."""
        made = self._remote_session.request("call", self, *args, **kwargs)
        if self._remote_class_tested and isinstance(made, Remote) and self._remote_session.is_new(made):
            let_operators_see_plain(made)
        return made

    def __getattr__(self, name: str) -> object:
        if name in _COMPARING_METHODS and not self._remote_operators_tested:
            raise AttributeError(f"{name} of a {self._remote_type_name}: {_ONLY_PLAIN}")
        return self._remote_session.request("getattr", self, name)

    def __setattr__(self, name: str, value: object) -> None:
        self._remote_session.request("setattr", self, name, value)

    def __delattr__(self, name: str) -> None:
        self._remote_session.request("delattr", self, name)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        asked = isinstance(other, Remote) or self._remote_operators_tested
        return asked and self._remote_session.request("eq", self, other) is True and not self._says_yes_to_all("eq")

    def __ne__(self, other: object) -> bool:
        if isinstance(other, Remote) or self._remote_operators_tested:
            return self._remote_session.request("ne", self, other) is True
        return True

    def _says_yes_to_all(self, operation: str) -> bool:
        """Whether the object also claims to equal, or to hold, what nothing does: then its word is worth nothing."""
        try:
            return self._remote_session.request(operation, self, _nobody) is not False
        except Exception:  # noqa: BLE001 - to raise on what it does not know is honest
            return False

    def __hash__(self) -> int:
        value = self._remote_session.request("hash", self)
        return value if type(value) is int else id(self)

    def __next__(self) -> object:
        return self._remote_session.request("next", self)

    def __iter__(self) -> Iterator[object]:
        return self._iterator("iter")

    def __reversed__(self) -> Iterator[object]:
        return self._iterator("reversed")

    def _iterator(self, operation: str) -> Iterator[object]:
        iterator = self._remote_session.request(operation, self)
        if not isinstance(iterator, Remote):
            raise TypeError(f"{operation}() of a {self._remote_type_name} returned plain data")
        return iterator

    def __contains__(self, value: object) -> bool:
        if self._remote_operators_tested or isinstance(value, Remote):
            return self._remote_session.request("contains", self, value) is True and not self._says_yes_to_all(
                "contains"
            )
        return any(value is item or value == item for item in self)

    def __bool__(self) -> bool:
        return self._remote_session.request("bool", self) is True

    def __round__(self, digits: int | None = None) -> object:
        return self._remote_session.request("round", self, digits)

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        raise UnsupportedTestError(
            f"a test derives a class from the program's {self._remote_number!r}, which lives elsewhere"
        )

    def __instancecheck__(self, value: object) -> bool:
        if not isinstance(value, Remote):
            number = self._remote_session.number_of_class(type(value))
            return number is not None and number == self._remote_number
        return self._remote_session.request("isinstance", self, value) is True

    def __subclasscheck__(self, value: object) -> bool:
        return isinstance(value, Remote) and self._remote_session.request("issubclass", self, value) is True

    def __deepcopy__(self, memo: object) -> object:
        return self._remote_session.request("deepcopy", self)

    def __copy__(self) -> object:
        return self._remote_session.request("copy", self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> bool:
        return self._leave("exit", kind, error, trace)

    async def __aenter__(self) -> object:
        return self._remote_session.request("aenter", self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> bool:
        return self._leave("aexit", kind, error, trace)

    def _leave(
        self,
        operation: str,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> bool:
        # Its arguments are told, and it is swallowed, only if a statement of the test raised it: the message of a failed
        # check says what was expected, and the check must not get lost in here.
        own = raised_by_statement(error, trace)
        answer = self._remote_session.request(operation, self, kind, error.args if own and error is not None else ())
        return answer is True and own

    def __aiter__(self) -> Self:
        return self._remote_session.request("aiter", self)  # type: ignore[no-any-return]  # an object of the candidate, or TypeError follows

    async def __anext__(self) -> object:
        return self._remote_session.request("anext", self)

    def __await__(self) -> Iterator[Any]:
        return wait_for(self).__await__()


def _nobody() -> None:
    """Stands for an object that nothing equals or holds: the candidate sees some function."""


async def wait_for(remote: Remote) -> object:
    """Await an awaitable of the candidate, which runs it to its end meanwhile."""
    return remote._remote_session.request("await", remote)


def as_coroutine(remote: Remote) -> Coroutine[Any, Any, object]:
    """Make a coroutine of the candidate a real one, as `asyncio.run` wants it."""
    return wait_for(remote)


def raised_by_statement(error: BaseException | None, trace: types.TracebackType | None) -> bool:
    """Whether a `raise` statement of the test file raised this, and not an assertion, a call or an operation."""
    if error is None or trace is None or isinstance(error, AssertionError):
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return code.co_filename == TEST_FILE and code.co_code[trace.tb_lasti] == _RAISE


TEST_FILE = "test.py"
"""The name under which test code is compiled."""
_RAISE = opcode.opmap["RAISE_VARARGS"]


def _computing(name: str) -> Callable[..., object]:
    """An operator with another value: with a plain one only where the object's operators are tested."""

    def method(self: Remote, other: object) -> object:
        if not (isinstance(other, Remote) or self._remote_operators_tested):
            raise TypeError(f"{name} of a {self._remote_type_name} and a {type(other).__name__}: {_ONLY_PLAIN}")
        tested = self._remote_operators_tested
        value = self._remote_session.request(name, self, other)
        if tested and isinstance(value, Remote):
            let_operators_see_plain(value)
        if name in _COMPARISONS and type(value) is not bool:
            raise TypeError(f"{name} of a {self._remote_type_name} is a {type(value).__name__}, not a bool")
        return value

    return method


def _asking(name: str, kind: type | None) -> Callable[..., object]:
    def method(self: Remote, *args: object) -> object:
        tested = self._remote_operators_tested
        value = self._remote_session.request(name, self, *args)
        if kind is not None and type(value) is not kind:
            raise TypeError(f"{name} of a {self._remote_type_name} is a {type(value).__name__}, not a {kind.__name__}")
        if tested and isinstance(value, Remote) and (name in _SAME_KIND or (name == "enter" and value is self)):
            let_operators_see_plain(value)
        return value

    return method


_KINDS: dict[str, type] = {
    **{"len": int, "str": str, "repr": str, "int": int, "float": float, "complex": complex, "bytes": bytes},
    **{"index": int, "trunc": int, "floor": int, "ceil": int, "format": str},
}
_SAME_KIND = frozenset({"neg", "pos", "invert", "abs"})
_OTHERS = ("getitem", "setitem", "delitem", "enter", "dir")


def _add_operations() -> None:
    for name in (*_KINDS, *_SAME_KIND, *_OTHERS):
        setattr(Remote, f"__{name}__", _asking(name, _KINDS.get(name)))
    for name in (*BINARY_OPERATORS, *REFLECTED_OPERATORS, *IN_PLACE_OPERATORS):
        plain = name.rstrip("_")
        if plain not in ("eq", "ne", "contains"):
            setattr(Remote, f"__{plain}__", _computing(name))


_add_operations()


def let_operators_see_plain(remote: Remote, tested: bool = True) -> None:
    """Say whether the object's operators are what is tested, so that they may see plain values."""
    object.__setattr__(remote, "_remote_operators_tested", tested)
