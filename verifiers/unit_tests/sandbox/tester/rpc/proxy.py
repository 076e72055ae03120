"""`Proxy`: an object that lives in the candidate, as test code sees it.

The object may do anything with itself and with other objects of the program. It must never see the value that a test
expects, or the program would judge itself: a proxy therefore equals no plain value, and refuses arithmetic and ordering
with one.

The proxy's class mirrors the object's type (`proxy_class`): it has the same name and the same special methods, and no
others. Anything else that a test reads, such as documentation or a signature, comes from the candidate.
"""

from __future__ import annotations

import dataclasses
import functools
import opcode
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, Self

from ...protocol.object_types import OPERATORS, PROTOCOLS, STANDARD_CLASSES
from ...protocol.signatures import signature_of_parts
from ..outcomes import TestOutcome, UnsupportedTestError
from ..report import TEST_FILE, refusal, unsupported
from .callbacks import is_of_the_tests

if TYPE_CHECKING:
    from .session import Session

ONLY_PLAIN = (
    "the program would learn the expected value and be its own judge; only plain data is compared with plain data"
)
COMPARING_METHODS = frozenset({"startswith", "endswith", "issubset", "issuperset", "isdisjoint", "equals"})
_COMPARISONS = frozenset({"lt", "le", "gt", "ge"})
_GUARDED = frozenset(f"__{name}__" for name in OPERATORS)
_UNSUPPORTED = (
    *("__array", "__dlpack", "__arrow", "__cuda_array", "__dataframe__"),
    *("__base", "__mro__", "__globals__"),
)
_TYPE_OF_PANDAS = "_typ"
"""Prefixes of attributes that are not sent: those by which packages access an object's memory, the bases of a class, and a
function's globals."""
_CACHED_CLASSES = 256

# These names hide the object's own attributes, so they are ones that no program uses.
_SLOTS = ("_remote_session", "_remote_number", "_remote_type_name", "_remote_conversions")


def _binary_operator(name: str) -> Callable[..., object]:
    """A binary operator, which accepts no plain operand."""

    def method(self: Proxy, other: object, *others: object) -> object:
        # `sum` starts with 0, which reveals nothing about the expected value.
        begins_sum = name == "radd" and type(other) is int and other == 0
        if others or not (isinstance(other, Proxy) or begins_sum):
            raise refusal(TypeError(f"{name} of a {self._remote_type_name} and a {type(other).__name__}: {ONLY_PLAIN}"))
        value = self._remote_session.request(name, self, other)
        return bool(value) if name in _COMPARISONS else value

    return method


def _operation(name: str, result_type: type | None) -> Callable[..., Any]:
    is_conversion = result_type is not None or name in _SAME_CLASS

    def method(self: Proxy, *args: object) -> object:
        session = self._remote_session
        value = self._remote_converted(name, *args) if is_conversion else session.request(name, self, *args)
        if result_type is not None and type(value) is not result_type:
            raise TypeError(
                f"{name} of a {self._remote_type_name} is a {type(value).__name__}, not a {result_type.__name__}"
            )
        return value

    return method


_HASHED = frozenset({str, int, type(None)})
_RESULT_TYPES: dict[str, type] = {
    **{"str": str, "repr": str, "int": int, "float": float, "complex": complex, "bytes": bytes},
    **{"index": int, "trunc": int, "floor": int, "ceil": int, "format": str},
}
_SAME_CLASS = frozenset({"neg", "pos", "invert", "abs"})


class Proxy:
    """An object of the candidate. It equals itself, and another proxy if the program says so.

    These methods exist for every object; `_Everything` has those that depend on its type.
    """

    __slots__ = (*_SLOTS, "__weakref__")
    __comparing__ = False
    """Whether the object's class defines `==`."""
    _remote_session: Session
    _remote_number: int
    _remote_type_name: str
    _remote_conversions: tuple[int, dict[tuple[object, ...], object]]
    """The session's `changes` when conversions were first requested, and their results since then."""

    def __new__(cls, /, *args: object, **kwargs: object) -> Self:
        """Refuse: `make_proxy` makes proxies, and a test has called the type of an object of the program."""
        raise refusal(TypeError(f"type(x)(...) can't make a {cls.__name__} of the program: call the class by name"))

    def __getattr__(self, name: str) -> object:
        if name in COMPARING_METHODS:
            raise refusal(AttributeError(f"{name} of a {self._remote_type_name}: {ONLY_PLAIN}"))
        if name in _GUARDED:
            return self._guarded_method(name)
        if name.startswith(_UNSUPPORTED) or name == _TYPE_OF_PANDAS:
            self._remote_session.unsupported_uses += 1
            raise AttributeError(f"{self._remote_type_name!r} object has no attribute {name!r}")
        if name not in _REBUILT:
            value = self._remote_session.request("getattr", self, name)
            return _naming(self, name, value) if name in _NAMING else value
        try:
            return _REBUILT[name](self)
        except (TypeError, ValueError) as error:
            raise AttributeError(f"{self._remote_type_name!r} object has no attribute {name!r}") from error

    def _guarded_method(self, name: str) -> Callable[..., object]:
        """An operator read from a class; a call with an instance goes through that instance's proxy."""
        if not issubclass(self.__class__, type):
            raise AttributeError(f"{self._remote_type_name!r} object has no attribute {name!r}")
        self._remote_session.request("getattr", self, name)
        return lambda value, *others: getattr(value, name)(*others)

    def __setattr__(self, name: str, value: object) -> None:
        self._remote_session.request("setattr", self, name, value)

    def __delattr__(self, name: str) -> None:
        self._remote_session.request("delattr", self, name)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Proxy):
            return self._equals_plain("eq", other)
        return bool(self._remote_session.request("eq", self, other)) and not self._says_yes_to_all("eq")

    def __ne__(self, other: object) -> bool:
        if isinstance(other, Proxy):
            return bool(self._remote_session.request("ne", self, other))
        return not self._equals_plain("ne", other)

    def _equals_plain(self, operation: str, other: object) -> bool:
        """Whether an object of the tests claims to equal this one; plain values never do, and the program is asked later."""
        if is_of_the_tests(other):
            return type(other).__eq__(other, self) is True
        if type(self).__comparing__:
            self._remote_session.unsupported_uses += 1
            self._remote_session.assume(operation, self, other, operation == "ne")
        return False

    def _says_yes_to_all(self, operation: str) -> bool:
        """Whether the object also claims to equal or contain a sentinel, so that its answer must be discarded."""
        try:
            return bool(self._remote_session.request(operation, self, _nobody))
        except Exception:  # noqa: BLE001 - raising for an unknown object is a valid answer
            return False

    def _remote_converted(self, operation: str, *args: object) -> object:
        """Convert the object once, until a request may have changed it, so that no comparison gets a number of its own."""
        session = self._remote_session
        if any(type(arg) not in _HASHED for arg in args):
            return session.request(operation, self, *args)
        known, key = _known(self), (operation, *args)
        if key not in known:
            known[key] = session.request(operation, self, *args)
        else:  # an object that counts its conversions would say something else
            session.unsupported_uses += operation not in ("hash", "len", "bool")
        return known[key]

    def __hash__(self) -> int:
        value = self._remote_converted("hash")
        return value if type(value) is int else id(self)

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        if not issubclass(self.__class__, type):
            raise TypeError(f"a test derives a class from the program's {self._remote_number!r}, which is not a class")
        # Had the program made it an exception class, the test could derive from it.
        message = f"a test derives a class from the program's {self._remote_number!r}, which lives elsewhere"
        raise refusal(UnsupportedTestError(message))

    def __instancecheck__(self, value: object) -> bool:
        session = self._remote_session
        known = isinstance(value, Proxy) or session.has_class(value)
        return known and session.request("isinstance", self, value) is True

    def __subclasscheck__(self, value: object) -> bool:
        return isinstance(value, Proxy) and self._remote_session.request("issubclass", self, value) is True

    def __deepcopy__(self, memo: object) -> object:
        return self._remote_session.request("deepcopy", self)

    def __copy__(self) -> object:
        return self._remote_session.request("copy", self)

    def __array__(self, *_: object, **__: object) -> NoReturn:
        # NumPy reads size and items several times, and the program could answer differently each time.
        raise refusal(TypeError(f"an array of a {self._remote_type_name} of the program"))

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise refusal(TypeError(f"a {self._remote_type_name} of the program can't be pickled by a test"))

    # Every object has these, whatever its class.
    __lt__, __le__, __gt__, __ge__ = (_binary_operator(name) for name in ("lt", "le", "gt", "ge"))
    __str__, __repr__, __format__ = (_operation(name, str) for name in ("str", "repr", "format"))
    __dir__ = _operation("dir", None)


class _Everything(Proxy):
    """Special methods that a proxy has only if its object's type has them."""

    __slots__ = ()

    def __call__(self, /, *args: object, **kwargs: object) -> object:
        """Call the object in the candidate."""
        return self._remote_session.request("call", self, *args, **kwargs)

    def __len__(self) -> int:
        size, known = self._remote_converted("len"), _known(self)
        if type(size) is not int:
            raise TypeError(f"len of a {self._remote_type_name} is a {type(size).__name__}, not an int")
        if size > known.get(_END, size):  # type: ignore[operator]  # a position
            raise refusal(TypeError(f"a {self._remote_type_name} of {size} items has none at an earlier position"))
        if not self._remote_session.sized.setdefault(self._remote_number, True):
            raise refusal(TypeError(f"a {self._remote_type_name} without a length has one"))
        return size

    def __getitem__(self, key: object) -> object:
        size = _known_size(self)
        if type(key) is not int:
            self._remote_session.changes += 1  # some mappings create missing items
            self._remote_session.reads += 1
        try:
            return self._remote_session.request("getitem", self, key)
        except IndexError as error:
            if type(key) is int and key >= 0:
                _known(self)[_END] = key
            if type(key) is int and 0 <= key < size:
                raise refusal(TypeError(f"a {self._remote_type_name} of {size} items has none at {key}")) from error
            raise

    def __next__(self) -> object:
        size = _known_size(self)
        try:
            item = self._remote_session.request("next", self)
        except StopIteration:
            if size:
                raise refusal(TypeError(f"a {self._remote_type_name} of {size} items yields none")) from None
            _known(self)["len",] = 0
            raise
        if size:
            _known(self)[_LEFT] = size - 1
        return item

    def __iter__(self) -> Iterator[object]:
        return _iterator(self, "iter")

    def __reversed__(self) -> Iterator[object]:
        return _iterator(self, "reversed")

    def __contains__(self, value: object) -> bool:
        if isinstance(value, Proxy):
            contains = bool(self._remote_session.request("contains", self, value))
            return contains and not self._says_yes_to_all("contains")
        if not hasattr(type(self), "__iter__"):
            raise refusal(TypeError(f"whether a {self._remote_type_name} holds plain data: {ONLY_PLAIN}"))
        self._remote_session.assume("contains", self, value, None)
        found = any(value is item or value == item for item in self)
        self._remote_session.unsupported_uses += not found  # its class may hold more than it yields
        return found

    def __bool__(self) -> bool:
        return self._remote_converted("bool") is True

    def __round__(self, digits: int | None = None) -> object:
        return self._remote_converted("round", digits)

    def __exit__(
        self, cls: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> bool:
        return _leave(self, "exit", cls, error, trace)

    async def __aenter__(self) -> object:
        return self._remote_session.request("aenter", self)

    async def __aexit__(
        self, cls: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> bool:
        return _leave(self, "aexit", cls, error, trace)

    async def __anext__(self) -> object:
        return self._remote_session.request("anext", self)

    def __await__(self) -> Iterator[Any]:
        return wait_for(self).__await__()


def _iterator(remote: Proxy, operation: str) -> Iterator[object]:
    iterator = remote._remote_session.request(operation, remote)
    if not isinstance(iterator, Proxy):
        raise TypeError(f"{operation}() of a {remote._remote_type_name} returned plain data")
    is_judged = hasattr(type(remote), "__len__") and iterator is not remote
    return _counted(remote, iterator) if is_judged else iterator  # type: ignore[return-value]  # if it has no __next__, iteration itself says so


def _counted(remote: Proxy, iterator: Proxy) -> Iterator[object]:
    """Iterate over a result, whose length must match the number of items at the end.

    Else one that claims the expected length, but yields no items to compare, would pass. The length is that before the first
    item: the items may be taken out of the object. An object whose length raises has none, now and later.
    """
    session = remote._remote_session
    try:
        size, count = len(remote), 0  # type: ignore[arg-type]  # its class has __len__
    except Exception:
        if session.sized.setdefault(remote._remote_number, False):
            raise
        yield from iterator  # type: ignore[misc]  # if it has no __next__, iteration itself says so
        return
    changes = session.changes - session.reads
    while True:
        changes += 1  # by the request itself
        try:
            item = session.request("next", iterator)
        except StopIteration:
            break
        yield item
        count += 1
    # What the tests did in the loop, calls for instance, may have changed the object. Its length is asked again then: a loop
    # ends after as many items as there were or are, and one that takes items out of the object leaves none.
    is_unchanged = changes == session.changes - session.reads
    if (count != size) if is_unchanged else count < min(size, len(remote)):  # type: ignore[arg-type]
        raise refusal(TypeError(f"a {remote._remote_type_name} of {size} items yields {count}"))


_LEFT, _END = ("left",), ("end",)
"""What is known of a result besides its conversions: how many items an iterator has left, and a position without an item."""


def _known_size(remote: Proxy) -> int:
    """The number of items that are left by the length that a result has given, if no request could have changed it; else 0."""
    known = _known(remote)
    size = known.get(_LEFT, known.get(("len",)))
    return size if type(size) is int else 0


def _known(remote: Proxy) -> dict[tuple[object, ...], object]:
    """What is known of an object that no request could have changed since."""
    changes, known = remote._remote_conversions
    if changes != remote._remote_session.changes:
        known = {}
        object.__setattr__(remote, "_remote_conversions", (remote._remote_session.changes, known))
    return known


def _leave(
    remote: Proxy,
    operation: str,
    cls: type[BaseException] | None,
    error: BaseException | None,
    trace: types.TracebackType | None,
) -> bool:
    # The program receives the arguments, and may suppress the exception, only if a statement of the test raised it: the
    # message of a failed check reveals the expected value, and a failed check must not be suppressed.
    own = raised_by_statement(error, trace)
    fails = isinstance(error, AssertionError | TestOutcome)
    if error is not None and not (own or fails or "candidate_error" in error.__dict__):
        unsupported(error)
    # A test that calls the method itself may give a class alone.
    args = error.args if own and error is not None else ()
    answer = remote._remote_session.request(operation, remote, cls, args)
    if answer is True and error is not None and not (own or fails):
        # Raised again, it could be what the test expects of a program that suppresses nothing.
        refusal(error)
    return answer is True and own


def _nobody() -> None:
    """A sentinel that no honest object equals or contains; the candidate sees it as a function."""


async def wait_for(remote: Proxy) -> object:
    """Await an awaitable of the candidate, which runs it to completion; a real coroutine, as `asyncio.run` requires."""
    return remote._remote_session.request("await", remote)


def raised_by_statement(error: BaseException | None, trace: types.TracebackType | None) -> bool:
    """Whether a `raise` in the test file raised this; False for assertions."""
    if error is None or trace is None or isinstance(error, AssertionError):
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return code.co_filename == TEST_FILE and code.co_code[trace.tb_lasti] == _RAISE


_RAISE = opcode.opmap["RAISE_VARARGS"]

_METHODS: dict[str, Callable[..., object]] = {
    **{name: _operation(name, _RESULT_TYPES.get(name)) for name in PROTOCOLS - OPERATORS.keys()},
    **{name: _binary_operator(operation) for name, operation in OPERATORS.items()},
    **{name.strip("_"): method for name, method in vars(_Everything).items() if name.strip("_") in PROTOCOLS},
}
"""Keyed by protocol name."""


class _Forwarded:
    """An attribute that every class defines, but that is read from the remote object."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, remote: Proxy | None, owner: type) -> object:
        if remote is None:
            return None
        value = remote._remote_session.request("getattr", remote, self._name)
        return _naming(remote, self._name, value) if self._name in _NAMING else value


def _naming(remote: Proxy, name: str, value: object) -> object:
    """An attribute where the standard library assumes text, which it inserts into code: no object, and exact text."""
    if isinstance(value, Proxy):
        raise AttributeError(f"{name} of a {remote._remote_type_name} is not text")
    return str.__str__(value) if isinstance(value, str) else value


_FORWARDED = {name: _Forwarded(name) for name in ("__doc__", "__module__", "__annotations__", "__slots__", "__init__")}


@functools.lru_cache(_CACHED_CLASSES)
def proxy_class(type_name: str, protocols: str, standard_classes: str, fields: str) -> type[Proxy]:
    """Make the class of proxies of objects of one type, from `object_types.TypeInfo`; it raises some exception if invalid."""
    if not type_name.isidentifier():  # else it could be text that the tests run
        type_name = "object"
    has = PROTOCOLS.intersection(protocols.split())
    content: dict[str, object] = {f"__{name}__": _METHODS[name] for name in has - {"hash"}}
    if "hash" not in has:
        content["__hash__"] = None
    shown = _shown_class(type_name, standard_classes.split())
    if shown is not None:
        content["__class__"] = property(functools.partial(_shown, shown))
    content["__comparing__"] = not {"eq", "ne"}.isdisjoint(protocols.split())
    if fields:
        content["__dataclass_fields__"] = _fields_of(fields.split())
    made = type(type_name, (Proxy,), content | {"__slots__": ()})
    for name, attribute in _FORWARDED.items():
        setattr(made, name, attribute)
    return made


def _shown_class(type_name: str, names: list[str]) -> type | None:
    """The class that `isinstance` sees for an object that derives from these classes."""
    classes = [STANDARD_CLASSES[name] for name in names]
    if [cls.__name__ for cls in classes] == [type_name]:
        return classes[0]
    return type(type_name, tuple(classes), {}) if classes else None


def _shown(cls: type, remote: Proxy) -> type:
    remote._remote_session.has_answered = True  # tests may go on in one way for a class, and in another for a function
    return cls


def _fields_of(names: list[str]) -> object:
    if len(set(names)) < len(names) or not all(map(str.isidentifier, names)):
        raise TypeError("the names of fields must be identifiers, each once")
    # `make_dataclass` runs text as code in some versions of Python, which the tests' process may not.
    fields: dict[str, Any] = {name: dataclasses.field() for name in names}
    for name, field in fields.items():
        field.name, field.type, field.kw_only = name, Any, False
        field._field_type = vars(dataclasses)["_FIELD"]
    return fields


def _rebuilt_fields(remote: Proxy) -> object:
    names = remote._remote_session.request("fields", remote)
    return _fields_of([str(name) for name in names])


def _rebuilt_signature(remote: Proxy) -> object:
    return signature_of_parts(*remote._remote_session.request("signature", remote))


_NAMING = frozenset({"__name__", "__qualname__", "__module__", "__doc__"})
_REBUILT: dict[str, Callable[[Proxy], object]] = {
    "__dataclass_fields__": _rebuilt_fields,
    "__signature__": _rebuilt_signature,
}
"""Attributes that the standard library expects to be its own objects."""


def make_proxy(cls: type[Proxy], session: Session, number: int) -> Proxy:
    """Make the proxy, of a class from `proxy_class`, of the object with this handle."""
    remote = object.__new__(cls)
    content: tuple[object, ...] = (session, number, cls.__name__, (-1, {}))
    for name, value in zip(_SLOTS, content, strict=True):
        object.__setattr__(remote, name, value)
    return remote
