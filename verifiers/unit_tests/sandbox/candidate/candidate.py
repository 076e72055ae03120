"""The candidate: runs the program under test and answers the tester's requests; it never sees the tests.

Nothing here is trusted. The tester decodes its messages as plain data, so a program that rewrites this code in its own
process gains only wrong answers.
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import enum
import functools
import gc
import importlib
import json
import operator
import os
import sys
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn

from verifiers.sandbox.programs.exceptions import make_room
from verifiers.sandbox.programs.script import MEMORY, end
from verifiers.sandbox.programs.source_files import ProgramError, module_name

from ..protocol.channel import Channel, ChannelClosedError, InvalidMessageError
from ..protocol.codec import DERIVED, Decoder, Encoder, NotPlainError, Wire, named_tuple, own_names
from ..protocol.object_types import describe_type_of
from ..protocol.shared_containers import Table, Writer
from ..protocol.source_files import Program
from .exception_info import describe, describe_class, fields_of, has_members, is_plain_exception, links
from .operations import OPERATIONS
from .tester_objects import (
    TesterProxy,
    UnsupportedUseError,
    class_of,
    copied_exception,
    coroutine_of,
    exception_class_of,
    function_of,
)
from .turns import Turns

REQUESTS, REPLIES, PROGRAM = 3, 4, 5
"""Descriptors of the pipes from and to the tester, and of the program."""

_ATTRIBUTES = 10_000
"""Characters of the JSON of an exception's arguments and attributes that are sent."""
_DEEPEST = 4
"""How many exceptions that led to one another are described."""
_MOST_HANDLES = 1000
"""Exceptions without members get a handle only if there are fewer: it keeps them alive with all that their frames hold."""
_CODING_RECURSION = 10_000
"""Minimum recursion limit while nested data is encoded or decoded, whatever the program's own limit."""


class Candidate:
    """Answers the tester's requests on behalf of a loaded program."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._namespace: dict[str, Any] = {}
        self._files: Collection[str] = ()
        self._modules: Collection[str] = ()
        self._handles: list[Any] = []
        self._handle_numbers: dict[int, int] = {}
        self._made: set[int] = set()
        """Ids of instances that the tests made of the program's classes, which have handles."""
        self._tester_objects: dict[int, object] = {}
        self._tester_functions: dict[int, int] = {}
        """Numbers of functions, coroutines and exception classes by their ids; `_tester_objects` keeps them alive."""
        self._lent: dict[int, BaseException] = {}
        """Copies of the tests' exceptions by their numbers."""
        self._lent_numbers: dict[int, int] = {}
        self._describing: dict[int, int | None] = {}
        """Ids of the exceptions that a message describes, with their numbers, which may be used after their arguments."""
        self._depth = 0
        """That of the exception that is being described."""
        self._constructed: object = None
        """The exception that the tests have made last of one of the program's classes."""
        self._derived: dict[str, type[Any]] = {}
        """Classes by their names of values that were sent by their content."""
        self._turns = Turns()
        self._shared = Table(self._encode_opaque, self._decode_special, first=1)
        self._flush = (sys.stdout.flush, sys.stderr.flush)
        self._get_limit, self._set_limit = sys.getrecursionlimit, sys.setrecursionlimit
        self._limit = 0
        """The program's recursion limit, in force while its code runs."""

    def serve(self, program: Program) -> None:
        """Load the program and answer requests until the tester is done."""
        self._files = program.files
        self._modules = {program.alias, *map(module_name, program.files)}
        self._leave_program()
        try:
            self._namespace = self._run(program.run)
        except BaseException as error:  # noqa: BLE001 - recorded: the tester reports what the program raised
            make_room(error)
            phase, cause = (error.phase, error.error) if type(error) is ProgramError else ("run", error)
            self._reply(["unloadable", phase, describe(cause, self._files)])
            return
        self._reply(["loaded"])
        while True:
            self._answer(self._channel.receive())

    def _run(self, code: Callable[..., Any], /, *args: object, **kwargs: object) -> Any:
        """Run code of the program."""
        self._set_limit(self._limit)
        try:
            return code(*args, **kwargs)
        finally:
            # Only builtin functions are called here: the program may have left no stack for any other.
            self._limit = self._get_limit()
            self._set_limit(max(self._limit, _CODING_RECURSION))

    def _leave_program(self) -> None:
        """Save the program's recursion limit, and raise it for this class's code, which recurses over nested data."""
        self._limit = self._get_limit()
        self._set_limit(max(self._limit, _CODING_RECURSION))

    def _reply(self, message: Wire) -> None:
        try:
            for flush in self._flush:
                flush()
        except (OSError, ValueError):
            # The output is full or closed; only the reply matters.
            pass
        self._channel.send(message)

    def _answer(self, request: Wire) -> None:
        operation, target, arguments, *rest = request
        if operation == "resolve":
            turn = self._turns.begin_request()
            names = self._namespace if target is None else vars(importlib.import_module(target))
            self._turns.begin_reply(turn)
            try:
                writer = self._shared.writer()
                self._send_with(writer, ["resolved", [self._resolve(writer, names, name) for name in arguments]])
            finally:
                self._turns.end_reply()
            return
        turn = 0
        try:
            try:
                subject, args, kwargs = self._decoded(target, arguments, *rest)
            finally:
                turn = self._turns.begin_request()  # not earlier: threads that wait for it use what is shared, too
            value = self._run(OPERATIONS[operation], subject, *args, **kwargs)
            if operation == "make":
                self._constructed = value
                raise value
        except BaseException as error:  # noqa: BLE001 - recorded: the tester raises it again
            make_room(error)
            self._send_answer(turn, functools.partial(self._raised, error))
        else:
            self._send_answer(turn, lambda writer: ["returned", self._result(operation, subject, value, writer)])

    def _decoded(
        self, target: Wire, arguments: list[Wire], keywords: list[list[Any]], contents: Wire, dropped: list[int]
    ) -> tuple[object, list[object], dict[str, object]]:
        """The subject and the arguments of a request."""
        try:
            self._shared.apply(contents)
            decode = self._shared.reader().decode
            return decode(target), [decode(item) for item in arguments], {name: decode(item) for name, item in keywords}
        finally:
            self._shared.forget(dropped)  # not earlier: the message itself may hold the last reference

    def _raised(self, error: BaseException, _: Encoder) -> list[Wire]:
        return ["raised", self._described(error)]

    def _described(self, error: BaseException, depth: int = 0) -> dict[str, Any]:
        """Describe an exception with its arguments and, up to a depth, those that led to it or that it holds, each once."""
        self._depth, before = depth, self._depth
        try:
            is_made, has_more = error is self._constructed, has_members(type(error))
            is_kept = has_more or is_made or id(error) in self._handle_numbers or len(self._handles) < _MOST_HANDLES
            number = self._number_of(error) if is_kept else None
            self._describing[id(error)] = None
            described = describe(error, self._files) | {"number": number, "made": is_made}
            described |= self._encoded("args", error.args)
            self._describing[id(error)] = number
            described |= self._encoded("attributes", {**error.__dict__, **fields_of(error)})
            if id(error) in self._lent_numbers:
                described["lent"] = self._lent_numbers[id(error)]
                del self._describing[id(error)]  # the tester knows it by that number
            if has_more or is_made:
                described["class_number"] = self._number_of(type(error))
            cause, context, suppresses = links(error)
            if depth < _DEEPEST and not (cause is context is None and not suppresses):
                described["links"] = [self._link(cause, depth), self._link(context, depth), suppresses]
            return described
        finally:
            self._depth = before
            if depth == 0:
                self._describing.clear()

    def _link(self, error: BaseException | None, depth: int) -> Wire:
        """An exception that led to another: its number if the message describes it already."""
        number = self._describing.get(id(error))
        return number if error is None or number is not None else self._described(error, depth + 1)

    def _encode_exception(self, error: BaseException) -> Wire:
        """Encode an exception that is a value."""
        depth = self._depth + 1 if self._describing else 0
        if id(error) not in self._describing and depth <= _DEEPEST:
            described = self._described(error, depth)
            return self._handle(error) if described["number"] is None else ["xe", described]
        number = self._describing.get(id(error))
        return self._handle(error) if number is None else ["xe", number]

    def _send_answer(self, turn: int, make: Callable[[Encoder], list[Wire]]) -> None:
        """Send an answer, or the exception that prevents it."""
        self._turns.begin_reply(turn)
        writer = self._shared.writer()
        try:
            self._send_with(writer, make(writer))
        except ChannelClosedError:
            raise
        except Exception as error:  # noqa: BLE001 - recorded: the tester raises it in place of the answer
            writer.abandon()
            self._reply(["raised", describe(error, self._files) | _unsendable(error), []])
        finally:
            self._turns.end_reply()

    def _send_with(self, writer: Writer, message: list[Wire]) -> None:
        """Send a message, with the changes to the containers that the tester shares."""
        self._reply([*message, writer.contents()])
        writer.commit()

    def _result(self, operation: str, subject: object, value: object, encoder: Encoder) -> Wire:
        """Encode the result of an operation."""
        if operation == "call" and isinstance(subject, type) and self._is_own_instance(value):
            self._made.add(id(value))
            return self._handle(value)
        return encoder.encode(value)

    def _is_own_instance(self, value: object) -> bool:
        """Whether a value is an instance of a program's class of which a test may use more than the content."""
        cls = type(value)
        by_content = issubclass(cls, enum.Enum) or (cls.__bases__ == (tuple,) and hasattr(cls, "_fields"))
        return cls.__module__ in self._modules and not by_content

    def _encoded(self, name: str, content: object) -> dict[str, Wire]:
        """The arguments or the attributes of an exception by this name, where they can be sent."""
        before = self._describing.copy()
        try:
            wire = Encoder(self._encode_opaque).encode(content)
            if len(json.dumps(wire)) <= _ATTRIBUTES:
                return {name: wire}
        except (NotPlainError, RecursionError, MemoryError, ValueError):
            pass  # the exception is raised all the same, with its text
        self._describing = before  # what is not sent describes nothing
        return {}

    def _resolve(self, writer: Writer, namespace: Mapping[str, Any], name: str) -> Wire:
        """Describe a global name of one of the program's modules."""
        if name not in namespace:
            return ["missing"]
        value = namespace[name]
        if isinstance(value, types.ModuleType):
            return ["module", value.__name__, self._handle(value)]
        if isinstance(value, type) and issubclass(value, BaseException):
            return ["exception", self._number_of(value), describe_class(value)]
        try:
            return ["value", writer.encode(value)]
        except NotPlainError:
            return ["value", self._handle(value)]

    def _encode_opaque(self, value: object) -> Wire:
        cls = type(value)  # `isinstance` would consult the value too
        if issubclass(cls, TesterProxy):
            return ["cb", value._number]  # type: ignore[attr-defined]  # its type was just checked
        if id(value) in self._tester_functions:
            return ["cb", self._tester_functions[id(value)]]
        if id(value) in self._lent_numbers:
            return ["xi", self._lent_numbers[id(value)]]
        if issubclass(cls, type) and issubclass(value, BaseException):  # type: ignore[arg-type]  # it is a class
            return ["xc", self._handle(value)[1], describe_class(value)]  # type: ignore[arg-type]  # it is one of exceptions
        if is_plain_exception(cls):
            return self._encode_exception(value)  # type: ignore[arg-type]  # it is one
        if issubclass(cls, (int, float, str, bytes, list, tuple, dict, set, frozenset, complex)):
            self._derived[cls.__name__] = cls
            if id(value) in self._made:
                return self._handle(value)
            own = own_names(value)
            is_shared = issubclass(cls, (list, dict, set)) and not issubclass(cls, collections.OrderedDict)
            number = None if own is None or is_shared else self._number_of(value)
            return None if own is None else [DERIVED, number, cls.__name__, own]
        return self._handle(value)

    def _handle(self, value: object) -> Wire:
        return ["h", self._number_of(value), *describe_type_of(value)]

    def _number_of(self, value: object) -> int:
        number = self._handle_numbers.get(id(value))
        if number is None:
            number = self._handle_numbers[id(value)] = len(self._handles)
            self._handles.append(value)
        return number

    def _decode_special(self, wire: Wire) -> Any:
        if wire[0] == "h":
            return self._handles[wire[1]]
        if wire[0] == "cb":
            return self._tester_object(*wire[1:])
        if wire[0] == "nt":
            return self._tuple_class(wire[1], tuple(wire[2]))._make
        if wire[0] == "more":
            return operator.itemgetter(0)
        if wire[0] == "x":
            return self._exception_class(*wire[1:])
        if wire[0] == "m":
            return importlib.import_module(wire[1])
        if wire[0] == "xi":
            return self._exception(*wire[1:])
        return operator.attrgetter(wire[2])(importlib.import_module(wire[1]))

    def _tester_object(self, number: int, kind: str, description: Wire = "") -> object:
        """The object of the tests with this number; always the same one."""
        if number not in self._tester_objects:
            if kind == "coroutine":
                coroutine = self._tester_objects[number] = coroutine_of(self, number)
                self._tester_functions[id(coroutine)] = number
            elif isinstance(description, str):
                self._tester_objects[number] = class_of(kind, description)(self, number)
            else:
                function = self._tester_objects[number] = function_of(
                    self, number, Decoder(_refuse).decode(description)
                )
                self._tester_functions[id(function)] = number
        return self._tester_objects[number]

    def _tuple_class(self, name: str, fields: tuple[str, ...]) -> type[Any]:
        owners = (self._namespace.get(name), self._derived.get(name))
        own = (cls for cls in owners if isinstance(cls, type) and getattr(cls, "_fields", None) == fields)
        return next(own, None) or named_tuple(name, fields)

    def _exception(
        self, number: int | None, cls: Wire, text: str, args: list[Wire] | None, attributes: list[list[Any]]
    ) -> BaseException:
        """A copy of an exception of the tests; always the same one if it has a number."""
        if number is not None and number in self._lent:
            return self._lent[number]
        decode = Decoder(self._decode_special).decode
        copy = copied_exception(decode(cls), text, (text,) if args is None else decode(args[0]))
        copy.__dict__.update((name, decode(wire)) for name, (wire,) in attributes)
        if number is not None:
            self._lent[number] = copy
            self._lent_numbers[id(copy)] = number
        return copy

    def _exception_class(self, name: str, bases: Sequence[str], *origin: Any) -> type[BaseException]:
        """The class of an exception of the tests.

        It is theirs by a number and its bases, or a module's by its path there. Without either it is the program's of this
        name, else the first of the builtin bases.
        """
        if origin and isinstance(origin[0], str):
            with contextlib.suppress(ImportError, AttributeError):
                return operator.attrgetter(origin[1])(importlib.import_module(origin[0]))  # type: ignore[no-any-return]
            return self._exception_class(name, bases)
        if origin:
            return self._class_of_the_tests(name, *origin)
        if name == UnsupportedUseError.__name__:
            return UnsupportedUseError
        own = self._namespace.get(name)
        if isinstance(own, type) and issubclass(own, BaseException):
            return own
        builtin_classes = (getattr(builtins, base, None) for base in bases)
        return next(
            (cls for cls in builtin_classes if isinstance(cls, type) and issubclass(cls, BaseException)), Exception
        )

    def _class_of_the_tests(self, name: str, number: int, bases: Sequence[Wire]) -> type[BaseException]:
        if number not in self._tester_objects:
            cls = exception_class_of(name, number, [self._decode_special(base) for base in bases])
            self._tester_objects[number] = cls
            self._tester_functions[id(cls)] = number
        return self._tester_objects[number]  # type: ignore[return-value]  # the number is that of a class

    def call_back(self, operation: str, number: int, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        """Have the tester run an operation on an object of its own, and return its result or raise its exception."""
        self._turns.begin_call()
        self._leave_program()
        try:
            self._send_callback(operation, number, args, kwargs)
            return self._outcome()
        finally:
            self._set_limit(self._limit)
            self._turns.end_call()

    def _send_callback(
        self, operation: str, number: int, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> None:
        writer = self._shared.writer()
        try:
            keywords = [[name, writer.encode(value)] for name, value in kwargs.items()]
            self._send_with(writer, ["callback", operation, number, writer.items(args), keywords])
        except BaseException:
            writer.abandon()
            raise

    def _outcome(self) -> object:
        """Wait for the result of a callback, and meanwhile answer the tester's requests."""
        while (message := self._channel.receive())[0] not in ("result", "error"):
            self._answer(message)
        kind, *answer, contents, dropped = message
        try:
            self._shared.apply(contents)
            if kind == "result":
                return self._shared.reader().decode(answer[0])
        finally:
            self._shared.forget(dropped)
        error: BaseException = self._decode_special(answer[0])
        raise error.with_traceback(
            None
        )  # one of the program's own would have a longer one at each level of a recursion


def _unsendable(error: BaseException) -> dict[str, bool]:
    return {"unsendable": True, **({"unsupported": True} if type(error) is NotPlainError else {})}


def _refuse(wire: Wire) -> NoReturn:
    raise ValueError(f"not plain data: {wire!r}")


_candidate = Candidate(Channel(REQUESTS, REPLIES))
"""Created once, in the fork server: a child pays for everything it creates with copies of the pages that it writes to."""


def serve() -> None:
    """Load the program and answer a tester's requests; ChannelClosedError when it is gone."""
    gc.enable()
    _candidate.serve(Program.read(PROGRAM))


def answer_calls() -> None:
    """Serve a tester as its candidate, to the end of this process."""
    try:
        serve()
    except (ChannelClosedError, InvalidMessageError):
        os._exit(1)
    except MemoryError:
        # The program's objects leave no memory for a reply.
        end(MEMORY)
