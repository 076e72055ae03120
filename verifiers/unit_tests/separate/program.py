"""The process of the program under test: it runs the program and performs the operations that the tests request.

This process never sees the tests, and is not trusted: the other process decodes its messages as plain data and handles, so a
program that rewrites this code in its own process gains only wrong answers.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import gc
import importlib
import operator
import os
import sys
import threading
import types
from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn

from verifiers.sandbox.programs.exceptions import make_room, message_of
from verifiers.sandbox.programs.script import MEMORY, end
from verifiers.sandbox.programs.source_files import ProgramError

from . import handles
from .channel import Channel, ChannelClosedError, InvalidMessageError
from .exceptions import CHAINED, MAX_TEXT, UnsupportedUseError, args_of, describe, describe_class, is_builtin
from .messages import PROGRAM, Messages, keywords
from .objects import PrefixObjects
from .source import Program
from .values import Decoder, Encoder, NotPlainError, Wire, pairs

_ATOMS = frozenset({type(None), bool, int, float, str})
REQUESTS, REPLIES, SOURCE = 3, 4, 5
"""Descriptors: the pipe from the tests, the pipe to the tests, and the program's source."""
_RECURSION = 10_000
"""Minimum recursion limit while nested data is encoded or decoded, whatever the program's own limit."""


class Candidate:
    """Performs the operations that the tests request of a loaded program."""

    def __init__(self, channel: Channel) -> None:
        self._namespace: dict[str, Any] = {}
        self._files: Collection[str] = ()
        self._objects: list[object] = []
        """Objects for which the tests have handles; the index is the handle's number."""
        self._numbers: dict[int, int] = {}
        self._stand_ins: dict[int, int] = {}
        """Numbers of the tests' functions, by the ids of the objects that stand in for them."""
        self._functions: dict[int, Callable[..., Any]] = {}
        self._thread = threading.get_ident()
        self._describes = False
        """Whether the content of an exception is being encoded."""
        objects = PrefixObjects(lambda name: self._namespace[name])
        self._messages = Messages(channel, PROGRAM, objects, self._encode, self._decode)
        self._flush = (sys.stdout.flush, sys.stderr.flush)
        self._limit = 0
        """The program's own recursion limit, in force while its code runs."""

    def serve(self, program: Program) -> None:
        """Load the program, and answer requests until the tests are done."""
        self._files = program.files
        self._limit = sys.getrecursionlimit()
        try:
            self._namespace = self._run(program.run)
        except BaseException as error:  # noqa: BLE001 - recorded: the tests report what the program raised
            make_room(error)
            phase, cause = (error.phase, error.error) if type(error) is ProgramError else ("run", error)
            description = describe(cause, self._files)
            self._messages.receive()  # the tests' first request, so that they can send it
            self._send("unloadable", plain=[phase, description])
            return
        while True:
            self._answer(self._messages.receive())

    def _run(self, code: Callable[..., Any], /, *args: object, **kwargs: object) -> Any:
        """Run code of the program, under its own recursion limit."""
        sys.setrecursionlimit(self._limit)
        try:
            return code(*args, **kwargs)
        finally:
            # Only builtin functions are called here: the program may have left no stack for any other.
            self._limit = _get_limit()
            _set_limit(max(self._limit, _RECURSION))

    def _send(self, kind: str, *values: object, plain: list[Wire] | None = None) -> None:
        for flush in self._flush:
            with contextlib.suppress(OSError, ValueError):  # the output is full or closed; only the message matters
                flush()
        self._messages.send(kind, *values, plain=plain or ())

    def _answer(self, request: Wire) -> None:
        operation, *content = request
        if operation == "resolve":
            self._resolve(*content)
            return
        try:
            value = self._perform(operation, content)
        except BaseException as error:  # noqa: BLE001 - recorded: the tests' process raises it again
            make_room(error)
            self._raise(error)
            return
        try:
            self._send("returned", value)
        except ChannelClosedError:
            raise
        except Exception as error:  # noqa: BLE001 - recorded: what can't be sent, or is too large
            self._raise(error, unsendable=True)

    def _perform(self, operation: str, content: list[Wire]) -> object:
        try:
            decode = self._messages.decoder().decode
            target, arguments, named = map(decode, content)
        finally:
            self._messages.done()
        return self._run(OPERATIONS[operation], target, *arguments, **dict(pairs(named)))

    def _raise(self, error: BaseException, *, unsendable: bool = False) -> None:
        """Make the tests' process raise an exception."""
        is_refusal = issubclass(type(error), NotPlainError)  # `isinstance` would consult the error too
        description = describe(error, self._files) | {"unsendable": unsendable and not is_refusal}
        description["unsupported"] |= is_refusal
        identity = self._identity(error)
        self._describes = True
        try:
            self._send("raised", (args_of(error), _attributes(error)), plain=[description, identity])
        except (RecursionError, MemoryError, InvalidMessageError):
            self._send("raised", ((description["text"],), {}), plain=[description, identity])
        finally:
            self._describes = False

    def _identity(self, error: BaseException) -> list[Wire]:
        """The class of an exception; also the number of its handle, if the class may have methods."""
        described = describe_class(type(error), self._number_of)
        return [described, None if type(described) is str else self._number_of(error)]

    def _resolve(self, module: str | None, names: list[str], classes: list[str]) -> None:
        """Send the values of global names in one of the program's modules."""
        self._messages.done()
        self._messages.objects.names = frozenset(classes)
        try:
            found: Mapping[str, Any] = (
                self._namespace if module is None else vars(self._run(importlib.import_module, module))
            )
        except BaseException as error:  # noqa: BLE001 - recorded: the tests' process raises it again
            self._raise(error)
            return
        values = [found[name] for name in names if name in found]
        try:
            self._send("returned", values, plain=[[name in found for name in names]])
        except (RecursionError, MemoryError, InvalidMessageError) as error:
            self._raise(error, unsendable=True)

    def _encode(self, encoder: Encoder, value: object) -> Wire:
        cls = type(value)  # `isinstance` would consult the value too
        if id(value) in self._stand_ins:
            return ["cb", self._stand_ins[id(value)]]
        if issubclass(cls, types.ModuleType):
            return ["m", value.__name__, self._number_of(value), *_type_of(cls)]  # type: ignore[attr-defined, arg-type]  # it is one
        if issubclass(cls, type) and issubclass(value, BaseException) and not is_builtin(value):  # type: ignore[arg-type]
            return ["x", describe_class(value, self._number_of)]  # type: ignore[arg-type]  # it is one of exceptions
        if issubclass(cls, BaseException):
            error: Any = value
            return ["xe", *self._identity(error), message_of(error)[:MAX_TEXT], self._content(encoder, error)]
        wire = self._messages.objects.encode(encoder, value)
        return wire or ["h", self._number_of(value), *_type_of(cls)]  # type: ignore[arg-type]  # a class is hashable

    def _content(self, encoder: Encoder, error: BaseException) -> Wire:
        """The arguments and attributes of an exception; exceptions among these lose their attributes, which may hold more."""
        if self._describes:
            args = args_of(error)
            told = args if all(type(arg) in _ATOMS for arg in args) else (message_of(error)[:MAX_TEXT],)
            return encoder.encode((told, {}))
        self._describes = True
        try:
            return encoder.encode((args_of(error), _attributes(error)))
        finally:
            self._describes = False

    def _number_of(self, value: object) -> int:
        number = self._numbers.get(id(value))
        if number is None:
            # The list keeps the object alive, so that its id stays unique.
            number = self._numbers[id(value)] = len(self._objects)
            self._objects.append(value)
        return number

    def _decode(self, decoder: Decoder, wire: Wire) -> Any:
        tag, *rest = wire
        if tag == "h":
            return self._objects[rest[0]]
        if tag == "cb":
            return self._function(*rest)
        if tag == "g":
            return operator.attrgetter(rest[1])(importlib.import_module(rest[0]))
        return self._messages.objects.decode(decoder, wire)

    def _function(self, number: int, name: str) -> Callable[..., Any]:
        """Make a stand-in for a function of the tests."""
        if number not in self._functions:

            def call(*args: object, **kwargs: object) -> Any:
                return self._call_back(number, args, kwargs)

            call.__name__ = call.__qualname__ = name
            call.__module__ = "tests"
            self._functions[number] = call
            self._stand_ins[id(call)] = number
        return self._functions[number]

    def _call_back(self, number: int, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Any:
        if threading.get_ident() != self._thread:
            raise UnsupportedUseError("a thread of the program calls a function of the tests")
        named = keywords(kwargs)
        self._limit = _get_limit()
        _set_limit(max(self._limit, _RECURSION))
        try:
            try:
                self._send("callback", args, named, plain=[number])
            except NotPlainError as error:
                raise UnsupportedUseError(
                    f"a function of the tests is called with a value that can't be sent: {error}"
                ) from None
            while (message := self._messages.receive())[0] not in ("result", "error"):
                self._answer(message)
            return self._result(*message)
        finally:
            _set_limit(self._limit)

    def _result(self, kind: str, content: Wire) -> Any:
        try:
            if kind == "result":
                return self._messages.decoder().decode(content)
            cls, args = self._messages.decoder().decode(content)
        finally:
            self._messages.done()
        raise cls(*args)


@functools.lru_cache(256)
def _type_of(cls: Any) -> list[Any]:
    """The name and module of a class, and the special methods that its instances have."""
    names = {name for base in cls.__mro__ if base is not object for name in vars(base)}
    special = sorted(name for name in names if name[:2] == "__" == name[-2:] and _defines(cls, name))
    return [cls.__name__, cls.__module__, special]


def _attributes(error: BaseException) -> dict[str, object]:
    """The attributes of an exception, including those that Python set."""
    held: dict[str, object] = object.__getattribute__(error, "__dict__")
    found = {name: value for name, value in held.items() if not name.startswith("__") or name == "__notes__"}
    chained = {name: BaseException.__dict__[name].__get__(error) for name in CHAINED}
    return found | {name: value for name, value in chained.items() if value}


def _defines(cls: type, name: str) -> bool:
    """Whether a class has its own version of a special method instead of the version of `object`."""
    found = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
    return found is not None and found is not vars(object).get(name)


for _cls in (types.FunctionType, type):
    _type_of(_cls)  # cached here, so that no program spends time on it
_get_limit, _set_limit = sys.getrecursionlimit, sys.setrecursionlimit


def _agrees_with_a_stranger(value: object) -> object:
    """Whether an object claims to equal an object that it can't know, and so would equal anything."""
    try:
        return value == object()
    except Exception:  # noqa: BLE001 - a class may expect only its own instances
        return False


OPERATIONS: dict[str, Callable[..., Any]] = {
    "call": lambda function, /, *args, **kwargs: function(*args, **kwargs),
    "getattr": getattr,
    "setattr": setattr,
    "delattr": delattr,
    "isinstance": lambda cls, value: isinstance(value, cls),
    "issubclass": lambda cls, value: issubclass(value, cls),
    "agrees": _agrees_with_a_stranger,
    "iter": iter,
    "next": next,
    "enter": lambda value: value.__enter__(),
    "exit": lambda value, cls, args: value.__exit__(cls, None if cls is None else cls(*args), None),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{name: getattr(operator, name) for name in ("getitem", "setitem", "delitem", "contains", "eq", "ne")},
    **{name: getattr(operator, name) for name in (*handles.COMPARISONS, *handles.ARITHMETIC)},
    **{name: getattr(operator, name) for name in ("neg", "pos", "abs", "invert", "index")},
    **{
        function.__name__: function
        for function in (len, str, repr, bool, int, float, complex, hash, format, round, reversed)
    },
}
"""The operations that the tests may ask for, each with an object of the program as the first argument."""


def run_sample() -> None:
    """Do what most processes of a program do: run a program, and answer calls."""
    requests, asking = os.pipe()
    for request in _SAMPLE:
        Channel(requests, asking).send(request)
    os.close(asking)
    Candidate(Channel(requests, REPLIES)).serve(Program.read(SOURCE))


_SAMPLE = (
    ["resolve", [], [], None, ["f"], [], []],
    *(["call", [], [], ["h", 0], ["t", ["l", 2 * n, None, 3, 1, True]], ["l", 2 * n + 10, None], []] for n in range(3)),
)


def answer() -> NoReturn:
    """Run the program, and perform the operations that the tests request, until the tests are done."""
    gc.enable()
    try:
        Candidate(Channel(REQUESTS, REPLIES)).serve(Program.read(SOURCE))
        os._exit(0)
    except (ChannelClosedError, InvalidMessageError):
        os._exit(1)
    except MemoryError:
        # The program's objects leave no memory for a message.
        end(MEMORY)
