"""The program's exceptions, rebuilt for the tests.

A program chooses the class behind each of its names, and could choose one that includes the tests' own failures: with
`Refused = AssertionError`, `except Refused` would suppress a failed assertion. A name of the program therefore never yields
a builtin class but one derived from it, whose only instances are exceptions that the program raised.
"""

from __future__ import annotations

import builtins
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from ...protocol.codec import Wire
from ...protocol.object_types import FORWARDED
from ...protocol.packages import is_package
from ...protocol.source_files import is_in_memory
from ..report import MARK, is_unsupported, tidy

STOPPING = frozenset(("StopIteration", "StopAsyncIteration", "GeneratorExit", "CancelledError"))
"""If these were raised as they are, they could end a loop or a task of the test early and so pass it."""
STANDS_FOR = "candidate_stands_for"
"""The attribute of the substitute exception that holds the original."""
_STOPS: dict[str, type[BaseException]] = {"next": StopIteration, "anext": StopAsyncIteration}
"""Operations that regularly end with one of them."""
_BUILTINS = {
    name: cls for name, cls in vars(builtins).items() if isinstance(cls, type) and issubclass(cls, BaseException)
}
_Error = Mapping[str, Any]
"""A description of an exception, as `tidy` leaves it."""


class Exceptions:
    """Rebuilds classes and exceptions from the candidate's descriptions."""

    def __init__(
        self,
        decode: Callable[[Wire], Any],
        request: Callable[..., Any],
        lent: Callable[[object], BaseException],
        lent_class: Callable[[int], type[BaseException]],
    ) -> None:
        """`request` runs an operation in the candidate on a class or exception that has a number.

        `lent` finds an exception that the tests have lent to the program, or raises one; `lent_class` a class.
        """
        self._decode = decode
        self._request = request
        self._lent = lent
        self._lent_class = lent_class
        self.numbers: dict[type[BaseException], int] = {}
        """Handles of the program's classes that these are copies of."""
        self._known: dict[int, BaseException] = {}
        """Exceptions of the program, and those that the tests have made of its classes, by their handles."""
        self._classes: dict[str, type[BaseException]] = {}
        self._named: dict[type[BaseException], type[BaseException]] = {}
        """For each class that the program has a name for, the derived class that the tests see."""
        self._raised: dict[type[BaseException], type[BaseException]] = {}

    def named(self, description: Wire) -> type[BaseException]:
        """The class behind a name of the program; the tests' own failures are never instances of it."""
        cls = self._class(description)
        if not isinstance(description, str | int) and not is_shared(cls.__module__):
            return cls
        if cls not in self._named:
            self._named[cls] = _derived(cls, cls)
            self._raised.clear()
        return self._named[cls]

    def _class(self, description: Wire) -> type[BaseException]:
        """The class that `describe_class` described: a builtin, a shared one, or a new one with that name and those bases."""
        if isinstance(description, str):
            return _BUILTINS.get(description, Exception)
        if type(description) is int:
            return self._lent_class(description)
        key = json.dumps(description)
        if key not in self._classes:
            name, bases, full_name, *special = description
            known = _known(*str(full_name).rpartition(".")[::2])
            if known is not None:
                self._classes[key] = known
                return known
            base_classes = tuple(dict.fromkeys(map(self._class, bases))) or (Exception,)
            shown = name if str(name).isidentifier() else "Exception"
            forwarded = {name: _FORWARDED[name] for names in special for name in names}
            made: Any = _ProgramClass(shown, base_classes, {**_CONTENT, **forwarded, "_exceptions": self})
            self._classes[key] = made
        return self._classes[key]

    def _class_raised(self, cls: type[BaseException]) -> type[BaseException]:
        """The class to raise for one of the program's: it also derives from the classes that the program's names yield."""
        if not self._named:
            return cls
        if cls not in self._raised:
            named = [self._named[base] for base in cls.__mro__ if base in self._named]
            bases = named if cls in self._named else [cls, *named]
            self._raised[cls] = bases[0] if len(bases) == 1 else _derived(cls, *bases)
        return self._raised[cls]

    def number_of(self, value: object) -> int | None:
        """The handle of an exception of the program, or of its class or that from which the tests have derived it."""
        if isinstance(value, BaseException):
            number = value.__dict__.get(_NUMBER)
            return number if type(number) is int else None
        for base in value.__mro__ if isinstance(value, type) else ():
            if base in self.numbers or base in self._classes.values():
                return self.numbers.get(base)
        return None

    def attribute(self, value: object, name: str) -> object:
        """An attribute that a class of the program, or an instance of it, has there."""
        if name.startswith("__") or self.number_of(value) is None:
            shown = f"type object {value.__name__!r}" if isinstance(value, type) else f"{type(value).__name__!r} object"
            raise AttributeError(f"{shown} has no attribute {name!r}")
        return self._request("getattr", value, name)

    def operate(self, operation: str, error: BaseException, args: tuple[object, ...]) -> object:
        """Carry out an operation on an exception in the program; what every exception does on one that it can't name."""
        if self.number_of(error) is None:
            return BaseException.__repr__(error) if operation == "repr" else NotImplemented
        return self._request(operation, error, *args)

    def construct(self, error: BaseException, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        """Have the program make the exception that a test makes of one of its classes."""
        if self.number_of(type(error)) is None:
            return
        try:
            self._request("make", type(error), *args, **kwargs)
        except BaseException as made:
            description = made.__dict__.get("candidate_error")
            if description is None or not description["made"]:
                raise
            error.args = made.args
            error.__dict__.update({**made.__dict__, _MADE: description})
            del error.__dict__["candidate_error"]
            self._known[description["number"]] = error

    def returned(self, description: Wire) -> BaseException:
        """An exception that is a value; the same object each time, with its present content."""
        if type(description) is int:
            return self._known[description]
        made = self.raised(tidy(description))
        return self._known[description["number"]] if STANDS_FOR in made.__dict__ else made

    def received(self, description: Wire, operation: str = "") -> BaseException:
        """The exception that an operation raised: the tests' own if the program was lent it, else it is rebuilt."""
        if description.get("lent") is None:
            return self.raised(tidy(description), operation)
        lent = self._lent(description["lent"])
        if not is_unsupported(lent):
            # The tests chose what it says of files and groups.
            said = tidy(description) | {"forbidden": False, "unsupported": False, "errno": None}
            lent.__dict__["candidate_error"] = said
        return lent

    def raised(self, error: _Error, operation: str = "") -> BaseException:
        """Rebuild the exception that an operation raised, with those that led to it, from what `tidy` returns.

        The operation is empty for one that led to another. An invalid description raises some exception.
        """
        cls, number = self._class(error["class"]), error["number"]
        known = self._known.get(number)
        if isinstance(known, cls) and not _stops(type(known)):
            if error["args"] is not None and type(error["class"]) is not int:
                BaseException.__setattr__(known, "args", tuple(self._decode(error["args"])))
            known.__traceback__ = None  # it would grow at each level of a recursion
            return self._fill(known, error)
        if issubclass(cls, BaseExceptionGroup):
            # Its members are not sent: what needs them is not supported.
            cls, error = Exception if issubclass(cls, ExceptionGroup) else BaseException, {**error, "args": None}
        if cls is _STOPS.get(operation):
            return self._fill(self._class_raised(cls)(*(self._decode(error["args"]) if error["args"] else ())), error)
        original = self._single(cls, error)
        if number is not None:
            self._known[number] = original
        self._fill(original, error)
        if not _stops(cls):
            return original
        base = self._class_raised(Exception if issubclass(cls, Exception) else BaseException)
        made = _derived(cls, base)(f"the program raised {error['type']}")
        made.__dict__.update({**original.__dict__, STANDS_FOR: original})
        return made

    def _fill(self, made: BaseException, error: _Error) -> BaseException:
        """Give an exception what its description says: arguments, attributes, and those that led to it."""
        if error["attributes"] is not None:
            for name, value in self._decode(error["attributes"]).items():
                if name in _FIELDS and type(value) in (str, int):
                    BaseException.__setattr__(made, name, value)
                elif name not in HIDDEN:
                    made.__dict__[name] = value
        if _MADE not in made.__dict__:
            made.__dict__["candidate_error"] = error
        made.__dict__[_NUMBER] = error["number"]
        cls = self._class(error["class"])
        if error["class_number"] is not None and cls in self._classes.values():
            self.numbers.setdefault(cls, error["class_number"])
        if error["links"] is not None:
            cause, context, suppresses = error["links"]
            made.__cause__ = self._linked(cause)
            made.__context__ = self._linked(context) or made.__cause__
            made.__suppress_context__ = suppresses is True
        return made

    def _single(self, cls: type[BaseException], error: _Error) -> BaseException:
        args = (error["message"],) if error["args"] is None else tuple(self._decode(error["args"]))
        made = self._class_raised(cls)
        if type(error["class"]) is int:
            return _constructed(made, args)  # as in one process, the tests' constructor decides what it holds
        raised = _constructed(made, args) if made.__module__ == "builtins" else made.__new__(made)
        raised.args = args
        return raised

    def _linked(self, error: Any) -> BaseException | None:
        if type(error) is int:
            return self._known[error]
        return None if error is None else self.received(error)


class _ProgramClass(type):
    """The class of the program's exception classes."""

    _exceptions: Exceptions

    def __getattr__(cls, name: str) -> object:
        exceptions: Exceptions = cls._exceptions
        return exceptions.attribute(cls, name)


def _stops(cls: type[BaseException]) -> bool:
    return any(base.__name__ in STOPPING and is_shared(base.__module__) for base in cls.__mro__)


def _known(module: str, name: str) -> type[BaseException] | None:
    """The class of this name in a shared module that the tests have imported, if a shared module defines it; else None."""
    cls = vars(sys.modules[module]).get(name) if module in sys.modules and is_shared(module) else None
    return cls if isinstance(cls, type) and issubclass(cls, BaseException) and is_shared(cls.__module__) else None


def is_shared(module: str) -> bool:
    """Whether a module is a standard one, a package or a supplied file; `unittest`, which skips and fails tests, is not."""
    root = module.partition(".")[0]
    return is_in_memory(module) or is_package(module) or (root in sys.stdlib_module_names and root != "unittest")


def _derived(cls: type[BaseException], *bases: type[BaseException]) -> type[BaseException]:
    """A class with these bases and the name of another."""
    return type(cls.__name__, bases, {"__module__": cls.__module__})


def _constructed(cls: type[BaseException], args: tuple[object, ...]) -> BaseException:
    """Make an exception, by its constructor if that accepts the arguments, since it sets attributes such as `errno`."""
    try:
        return cls(*args)
    except Exception:  # noqa: BLE001 - constructors of the tests may raise any, and without them it is raised all the same
        return cls.__new__(cls, *args)


def _construct(error: Any, *args: object, **kwargs: object) -> None:
    error._exceptions.construct(error, args, kwargs)


def _attribute(error: Any, name: str) -> object:
    return error._exceptions.attribute(error, name)


def _set_attribute(error: Any, name: str, value: object) -> None:
    exceptions: Exceptions = error._exceptions
    if name.startswith("__") or exceptions.number_of(error) is None:
        BaseException.__setattr__(error, name, value)
    else:
        exceptions.operate("setattr", error, (name, value))
        if name in error.__dict__ or name == "args":
            BaseException.__setattr__(error, name, value)


def _text(error: BaseException) -> str:
    """`__str__` of the program's exception classes: the program's text."""
    theirs = error.__dict__.get("candidate_error") or error.__dict__.get(_MADE)
    return BaseException.__str__(error) if theirs is None else theirs["message"]


def _forwarding(name: str, result_type: type | None) -> Callable[..., object]:
    """A special method that the program carries out."""

    def method(error: Any, *args: object) -> object:
        exceptions: Exceptions = error._exceptions
        if name == "__eq__" and (not isinstance(args[0], BaseException) or exceptions.number_of(args[0]) is None):
            return NotImplemented  # by plain data the program would learn what the tests expect
        result = exceptions.operate(name.strip("_"), error, args)
        if result_type is not None and type(result) is not result_type:
            raise TypeError(
                f"{name} of a {type(error).__name__} is a {type(result).__name__}, not a {result_type.__name__}"
            )
        return result

    return method


_RESULTS = {"__repr__": str, "__eq__": bool, "__hash__": int, "__len__": int, "__bool__": bool}
_FORWARDED = {name: _forwarding(name, _RESULTS.get(name)) for name in FORWARDED}
_FIELDS = frozenset(("errno", "strerror", "filename", "filename2", "name", "path"))
"""What builtin classes keep beside the attributes in `__dict__`."""
_CONTENT = {"__init__": _construct, "__getattr__": _attribute, "__setattr__": _set_attribute, "__str__": _text}
_NUMBER, _MADE = "candidate_number", "candidate_made"
"""Attributes that hold an exception's handle, and the description of one that a test has made."""
HIDDEN = frozenset(("candidate_error", _NUMBER, _MADE, STANDS_FOR, MARK))
"""Attributes of exceptions that the program neither sees nor sets."""
