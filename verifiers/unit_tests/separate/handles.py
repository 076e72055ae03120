"""Objects of the program as the tests see them: handles, which pass every request on to the program.

A handle has exactly the special methods of its object's type, so that `callable`, `len` and `iter` treat both alike. A handle
is never compared with a plain value: the program would see the expected value and be its own judge.
"""

from __future__ import annotations

import builtins
import functools
import opcode
import operator
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from .report import TEST_FILE, is_programs

if TYPE_CHECKING:
    from .conversation import Conversation

COMPARISONS = ("lt", "le", "gt", "ge")
ARITHMETIC = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
    *("and_", "or_", "xor", "lshift", "rshift"),
)
UNARY = ("neg", "pos", "abs", "invert", "int", "float", "complex", "index", "round", "format")
CONVERSIONS = ("str", "repr", "len", "bool", "hash", *UNARY)
ASKED = ("call", "getitem", "setitem", "delitem", "enter", "next")
"""Special methods, without underscores, for which every answer of the program is accepted."""
_PREDICATES = frozenset(
    name for cls in (str, bytes, set, float) for name in dir(cls) if name.startswith("is") or name.endswith("swith")
)
"""Methods of plain data that tests use to judge the data."""
_OF_MEMORY = ("__array", "__dlpack", "__cuda", "__buffer")
"""Prefixes of the names through which C libraries find memory to read; a program must not choose the address."""


def special_name(operation: str) -> str:
    """The name of a special method."""
    return f"__{operation.rstrip('_')}__"


class Handle:
    """Stands for an object of the program, which its number identifies."""

    def __init__(self, asks: Conversation, number: int) -> None:
        object.__setattr__(self, "_handle", (asks, number))
        object.__setattr__(self, "_converted", (0, {}))

    def __getattr__(self, name: str) -> Any:
        if name.startswith(_OF_MEMORY):
            _refuse(self, f"{name} of an object of the program, which says where memory is")
        value = ask(self, "getattr", name)
        return functools.partial(_judge, self, name, value) if name in _PREDICATES else value

    def __setattr__(self, name: str, value: object) -> None:
        ask(self, "setattr", name, value)

    def __delattr__(self, name: str) -> None:
        ask(self, "delattr", name)

    @property
    def __signature__(self) -> NoReturn:
        """Refuse the signature that `inspect.signature` asks for."""
        _refuse(self, "the signature of an object of the program")

    def __instancecheck__(self, value: object) -> bool:
        if isinstance(value, BaseException) and not is_programs(value):
            _refuse(self, "an exception of the tests as an instance of a class of the program")
        return bool(ask(self, "isinstance", value))

    def __subclasscheck__(self, cls: object) -> bool:
        if not isinstance(cls, Handle):
            _refuse(self, "a class of the tests as one derived from a class of the program")
        return bool(ask(self, "issubclass", cls))

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        _refuse(self, "an object of the program can't be pickled or copied by the tests")

    def __mro_entries__(self, bases: object) -> NoReturn:
        _refuse(self, "a class of the tests derives from a class of the program")

    def __copy__(self) -> Any:
        return ask(self, "copy")

    def __deepcopy__(self, memo: object) -> Any:
        return ask(self, "deepcopy")


def _judge(handle: Handle, name: str, method: Any, /, *args: object) -> Any:
    """Call a method that judges plain data; refuses plain arguments, since an object that sees them could cheat."""
    if not all(isinstance(arg, Handle) for arg in args):
        _refuse(handle, f"an object of the program is asked by {name} about plain data")
    return method(*args)


def _class_in_doubt(handle: Handle) -> type:
    """The class of a handle, as `isinstance` sees it; the call is counted, since a conclusion from this class is uncertain."""
    object.__getattribute__(handle, "_handle")[0].doubts += 1
    return type(handle)


def number_of(handle: Handle) -> int:
    """The number of a handle's object."""
    number: int = object.__getattribute__(handle, "_handle")[1]
    return number


def ask(handle: Handle, operation: str, /, *args: object, **kwargs: object) -> Any:
    """Have the program perform an operation on a handle's object."""
    asks: Conversation = object.__getattribute__(handle, "_handle")[0]
    return asks.request(operation, handle, *args, **kwargs)


def _refuse(handle: Handle, problem: str) -> NoReturn:
    asks: Conversation = object.__getattribute__(handle, "_handle")[0]
    asks.refuse(problem)


@functools.lru_cache(256)
def handle_class(name: str, module: str, special: tuple[str, ...]) -> type[Handle]:
    """The class of handles for objects whose type has this name and these special methods."""
    content: dict[str, Any] = {"__module__": module, "__qualname__": name, "__class__": property(_class_in_doubt)}
    content |= {name: _attribute(name) for name in ("__doc__", "__dict__")}
    for method in special:
        operation = _BY_NAME.get(method)
        if operation is not None:
            content[method] = _METHODS[operation]
        elif method in _REFUSED:
            content[method] = _refusing(method)
    if "__getitem__" in special:
        content.setdefault("__iter__", _iterate)
    if "__eq__" in special:
        content.setdefault("__hash__", None)
    return type(name, (Handle,), content)


def _attribute(name: str) -> property:
    """A property for an attribute that every object has; it gives the value of the program's object."""
    return property(lambda handle: ask(handle, "getattr", name))


_REFUSED = frozenset(
    f"__{name}__"
    for name in (
        *("divmod", "rdivmod", "trunc", "ceil", "floor", "bytes", "fspath", "length_hint", "missing", "sizeof", "dir"),
        *("await", "aiter", "anext", "aenter", "aexit", "get", "set", "delete"),
        *(f"i{name.rstrip('_')}" for name in ARITHMETIC),
    )
)
"""Further special methods that Python calls by itself; they are refused."""


def _refusing(method: str) -> Callable[..., NoReturn]:
    def refuse(self: Handle, /, *args: object, **kwargs: object) -> NoReturn:
        _refuse(self, f"{method} of an object of the program")

    return refuse


def _converted(operation: str) -> Callable[..., Any]:
    """A conversion of a handle; its result stays the same until the program is asked for anything else."""

    def method(self: Handle, *args: Any) -> Any:
        asks: Conversation = object.__getattribute__(self, "_handle")[0]
        requests, known = object.__getattribute__(self, "_converted")
        if requests != asks.requests or asks.has_changes():
            known = {}
        if (operation, *args) not in known:
            known[operation, *args] = ask(self, operation, *args)
            asks.requests -= 1
        object.__setattr__(self, "_converted", (asks.requests, known))
        return known[operation, *args]

    return method


def _asked(operation: str) -> Callable[..., Any]:
    def method(self: Handle, /, *args: object, **kwargs: object) -> Any:
        return ask(self, operation, *args, **kwargs)

    return method


def _between(operation: str) -> Callable[[Handle, object], Any]:
    """A binary operator; the program evaluates it if both operands are its objects."""

    def method(self: Handle, other: object) -> Any:
        if not isinstance(other, Handle):
            _refuse(self, f"{operation.rstrip('_')} of an object of the program and a {type(other).__name__}")
        return ask(self, operation, other)

    return method


def _reflected(operation: str) -> Callable[[Handle, object], Any]:
    def method(self: Handle, other: object) -> NoReturn:
        _refuse(self, f"{operation.rstrip('_')} of a {type(other).__name__} and an object of the program")

    return method


def _equal(self: Handle, other: object) -> bool:
    if not isinstance(other, Handle):
        _refuse(self, f"an object of the program is compared with a {type(other).__name__}")
    # The answer of an object that equals everything means nothing.
    return bool(ask(self, "eq", other)) and not ask(self, "agrees")


def _length(self: Handle) -> int:
    if _ENDLESS in object.__getattribute__(self, "_handle"):
        _refuse(self, "an object of the program has a len now, and had none when the tests looped over it")
    return operator.index(_converted("len")(self))


def _iterate(self: Handle, operation: str = "iter") -> Iterator[Any]:
    """Iterate over an object; if the object has a `len`, over exactly that number of items."""
    length = _length_or_none(self) if hasattr(type(self), "__len__") else None
    items = ask(self, operation)
    if not isinstance(items, Handle):
        return iter(items)
    return (
        items if length is None else _Counted(self, items, length)
    )  # if it is not an iterator, Python raises an error


def _length_or_none(self: Handle) -> int | None:
    """The `len` of an object; None if asking for it raises an exception."""
    try:
        return _length(self)
    except Exception as error:
        if not is_programs(error):
            raise
        object.__setattr__(self, "_handle", (*object.__getattribute__(self, "_handle")[:2], _ENDLESS))
        return None


_ENDLESS = "endless"
"""Marks a handle over which a loop runs without a count because its `len` raises; a later `len` is refused."""


class _Counted:
    """An iterator over exactly as many items as the `len` of the object says."""

    def __init__(self, owner: Handle, items: Handle, length: int) -> None:
        self._owner, self._items, self._length, self._left = owner, items, length, length

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> Any:
        if not self._left:
            if _length(self._owner) != self._length:
                _refuse(self._owner, "an object of the program gets another len while the tests loop over it")
            raise StopIteration
        try:
            item = ask(self._items, "next")
        except StopIteration:
            _refuse(self._owner, f"an object of the program has a len of {self._length} and yields fewer items")
        self._left -= 1
        return item

    def __repr__(self) -> str:
        return repr(self._items)


def _contains(self: Handle, item: object) -> bool:
    """Ask an object whose class defines `__contains__`; for any other object, Python examines each item."""
    if not isinstance(item, Handle):
        _refuse(self, f"whether a {type(item).__name__} is in an object of the program")
    return bool(ask(self, "contains", item))


def _exit(self: Handle, cls: type[BaseException] | None, error: BaseException | None, trace: Any) -> bool:
    if error is None or is_programs(error) or _raised_by_statement(error, trace):
        return bool(ask(self, "exit", _nearest(cls), _told(error)))
    # The program does not see the text of a failed check, and can't make the check pass.
    if ask(self, "exit", _nearest(cls), ()) and not isinstance(error, AssertionError):
        _refuse(self, "an object of the program suppresses an exception of the tests")
    return False


def _told(error: BaseException | None) -> tuple[object, ...]:
    """The arguments of an exception, or its text if some arguments are not plain data."""
    args = () if error is None else error.args
    return args if all(type(arg) in (str, int, float, bool, type(None)) for arg in args) else (str(error),)


def _nearest(cls: type[BaseException] | None) -> type[BaseException] | None:
    """The exception class itself if it is builtin, else the builtin class from which it derives; None without an exception."""
    return None if cls is None else next(base for base in cls.__mro__ if vars(builtins).get(base.__name__) is base)


def _raised_by_statement(error: BaseException, trace: types.TracebackType | None) -> bool:
    """Whether a `raise` statement in test code raised an exception; false for assertions."""
    if trace is None or isinstance(error, AssertionError):
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return code.co_filename == TEST_FILE and code.co_code[trace.tb_lasti] == opcode.opmap["RAISE_VARARGS"]


_METHODS: dict[str, Callable[..., Any]] = {
    **{name: _asked(name) for name in ASKED},
    **{name: _converted(name) for name in CONVERSIONS},
    **{name: _between(name) for name in (*COMPARISONS, *ARITHMETIC)},
    "len": _length,
    "iter": _iterate,
    "reversed": lambda self: _iterate(self, "reversed"),
    "contains": _contains,
    "exit": _exit,
    "eq": _equal,
    "ne": lambda self, other: not _equal(self, other),
    **{f"r{name.rstrip('_')}": _reflected(name) for name in ARITHMETIC},
}
_BY_NAME = {special_name(operation): operation for operation in _METHODS}
