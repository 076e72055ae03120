"""The tester's side of the conversation with the candidate.

Nothing from the candidate is trusted: messages are decoded as plain data, and a violation of the protocol ends the job as a
failure of the program, before another line of the tests runs.
"""

from __future__ import annotations

import importlib
import operator
import sys
import threading
import types
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

from ...candidate.tester_objects import UnsupportedUseError
from ...protocol.channel import Channel, ChannelClosedError, InvalidMessageError
from ...protocol.codec import Decoder, Encoder, NotPlainError, Wire, named_tuple
from ...protocol.object_types import describe_type_of
from ...protocol.packages import has_class, is_named, is_package
from ...protocol.shared_containers import ShortenedError, Table
from ..analysis.side_effects import PURE_MODULES
from ..outcomes import raised_by_assertion
from ..report import MAX_TEXT, UNSUPPORTED, Report, classify, described, finding, text_of
from .callbacks import description_of, kind_of, operate
from .exceptions import Exceptions, tidy
from .proxy import Proxy, as_coroutine, make_proxy, proxy_class
from .turn_lock import Turns

_LOOKS = """
len reversed iter getitem bool str repr hash eq ne isinstance import signature fields
int float complex bytes index trunc floor ceil round format abs neg pos invert dir
"""
_LOOKING = frozenset(_LOOKS.split())
"""Operations that change no object. An attribute or the next item may: an object can be drained by them."""
_LONGEST_TYPE_INFO = 8 << 10
"""Characters."""


class Session:
    """Sends requests to the candidate, and turns its answers into values and exceptions."""

    def __init__(self, channel: Channel, report: Report) -> None:
        self._channel = channel
        self._report = report
        self._coroutines: dict[int, tuple[object, Proxy]] = {}
        self.around_request: Callable[[], AbstractContextManager[None]] = nullcontext
        """Makes the context manager that surrounds each request and its answer."""
        self.program_modules: frozenset[str] = frozenset()
        """Top-level names of the program's modules that the tests may import."""
        self._callbacks: list[object] = []
        self._callback_numbers: dict[int, int] = {}
        self._remotes: dict[int, Proxy] = {}
        self._members: dict[int, Any] = {}
        """Members of enumerations of numbers or texts, by their handles."""
        self._tuple_classes: dict[tuple[str, tuple[str, ...]], Any] = {}
        self._exception_numbers: dict[type[BaseException], object] = {}
        """Handles of the program's exception classes that these are copies of."""
        self._exceptions = Exceptions(lambda wire: Decoder(self.decode_special).decode(wire))
        self.turns = Turns(report)
        self._shared = Table(self._encode_opaque, self.decode_special, first=0)
        self._last_resolved: dict[int, list[object]] = {}
        """For each requesting thread, the containers that its last answer introduced."""
        self.has_answered = False
        """Whether the program has sent anything that could influence the tests, more than functions and classes."""
        self.unsupported_uses = 0
        """How often the program was not asked whether its object equals plain data, or for an array's memory."""
        self.withheld = 0
        """How often an exception came from here in place of the program's own answer."""
        self.changes = 0
        """Number of requests that may have changed the program's objects."""
        self._failed: BaseException | None = None
        """The failed assertion of a callback, which the program may have suppressed."""
        self._depth = 0
        """Nesting depth of the program's callbacks, which may call the program in turn."""

    def load(self) -> None:
        """Wait until the candidate has loaded the program; end the job if it can't."""
        message = self._receive()
        if message[0] == "loaded":
            return
        try:
            phase, error = str(message[1]), tidy(message[2])
        except Exception as problem:  # noqa: BLE001 - recorded in the report
            self.abandon("protocol", repr(problem)[:MAX_TEXT])
        failure = {"compile": "syntax_error", "memory": "memory"}.get(phase) or classify(error)
        self._report.end(failure=failure, exception=described(error))

    def resolve(self, names: list[str], module: str | None = None) -> dict[str, Wire]:
        """Look up global names in one of the program's modules, by default the main one."""
        if not names:
            return {}
        with self.turns:
            self._send(["resolve", module, names, []])
            answers = self._take_answers()
        if len(answers) != len(names) or not all(type(answer) is list and answer for answer in answers):
            self.abandon("protocol", "not an answer for each name")
        self.has_answered |= not all(map(_reveals_nothing, answers))
        return dict(zip(names, answers, strict=True))

    def _take_answers(self) -> list[Wire]:
        message = self._receive()
        try:
            _, answers, contents = message
            # Kept alive, so that they stay shared until the tests receive them.
            self._last_resolved[threading.get_ident()] = self._shared.apply(contents)
            return list(answers)
        except Exception as problem:  # noqa: BLE001 - recorded in the report
            self.abandon("protocol", repr(problem)[:MAX_TEXT])

    def value_of(self, answer: Wire) -> object:
        """Turn an answer of `resolve` into a value."""
        try:
            if answer[0] == "exception":
                return self._exceptions.named(answer[1])
            with self.turns:
                return self._shared.reader().decode(answer[-1])
        except Exception as problem:  # noqa: BLE001 - recorded in the report
            self.abandon("protocol", repr(problem)[:MAX_TEXT])

    def module_of(self, answer: Wire, alias: str) -> object:
        """The tester's own copy of a module that the program imported; for one of the program's own modules, a proxy.

        The tests use `alias` for it. If that is not the module's name, the module must be one that only computes: otherwise the
        program could choose one in which anything equals the expected value.
        """
        name = answer[1] if len(answer) == 3 and type(answer[1]) is str else ""
        parts = name.split(".")
        known = parts[0] in sys.stdlib_module_names and (alias in (name, parts[0], parts[-1]) or name in PURE_MODULES)
        # Importing a `__main__` runs it.
        if "__main__" in parts or not (known or is_named(alias, name) or parts[0] in self.program_modules):
            return self.value_of(answer)
        try:
            return importlib.import_module(name)
        except (Exception, SystemExit) as problem:  # noqa: BLE001 - recorded in the report
            self.abandon("protocol", repr(problem)[:MAX_TEXT])

    def request(self, operation: str, subject: object, /, *args: object, **kwargs: object) -> Any:
        """Run an operation in the candidate, and return its result or raise its exception."""
        with self.turns, self.around_request():
            return self._exchange(operation, subject, args, kwargs)

    def _exchange(
        self, operation: str, subject: object, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> object:
        writer = self._shared.writer()
        try:
            keywords = [[name, writer.encode(value)] for name, value in kwargs.items()]
            message = [operation, writer.encode(subject), writer.items(args), keywords]
            message += [writer.contents(), self._shared.release()]
        except NotPlainError as error:
            # The tests may have made such an object from an answer.
            reason = f"an argument can't be sent: {error}"
            self._report.end(failure=UNSUPPORTED, reason=reason, broken=not self.has_answered)
        except RecursionError as error:
            if self._depth:
                self._report.end(failure="exception", exception=finding(error)["exception"])
            self._refuse("an argument nests too deeply")
        if operation not in _LOOKING:
            self.changes += 1
        self._send(message)
        writer.commit()
        while True:
            reply = self._receive()
            if reply[0] == "callback":
                self._call_back(reply)
                continue
            try:
                return self._finish(reply, operation)
            finally:
                self._raise_failed()

    def is_from_program(self, container: object) -> bool:
        """Whether this container came from the program."""
        return self._shared.is_from_other_side(container)

    def _finish(self, reply: Wire, operation: str) -> object:
        try:
            kind, body, contents = reply
            self.has_answered |= kind == "raised" or bool(contents) or operation != "import"
            self._shared.apply(contents)
            if kind == "returned":
                return self._shared.reader().decode(body)
            raised = self._exceptions.raised(tidy(body), operation)
        except ShortenedError:
            raise
        except Exception as problem:  # noqa: BLE001 - recorded in the report
            self.abandon("protocol", repr(problem)[:MAX_TEXT])
        raise raised

    def _call_back(self, message: Wire) -> None:
        self.has_answered = True
        try:
            _, operation, number, arguments, keywords, contents = message
            callback = self._callbacks[number]
            self._shared.apply(contents)
            decode = self._shared.reader().decode
            args = [decode(item) for item in arguments]
            kwargs = {str(name): decode(item) for name, item in keywords}
        except Exception as problem:  # noqa: BLE001 - recorded in the report
            self.abandon("protocol", repr(problem)[:MAX_TEXT])
        self._depth += 1
        writer = self._shared.writer()
        try:
            answer = ["result", writer.encode(operate(operation, callback, args, kwargs))]
            contents = writer.contents()
        except Exception as error:  # noqa: BLE001 - sent to the candidate, which made the call
            if isinstance(error, NotPlainError):
                error = UnsupportedUseError(f"a callback of the tests returned what can't be sent: {error}")
            writer.abandon()
            writer = self._shared.writer()
            answer, contents = (
                ["error", *_name_and_bases(type(error)), self._text_for_program(error)],
                writer.contents(),
            )
        finally:
            self._depth -= 1
        self._send([*answer, contents, self._shared.release()])
        writer.commit()

    def _text_for_program(self, error: BaseException) -> str:
        """The text of a callback's exception; empty for a failed assertion, which is kept to fail the test."""
        if not raised_by_assertion(error):
            return text_of(error)
        self._failed = self._failed or error
        return ""

    def _raise_failed(self) -> None:
        """Raise the failed assertion of a callback, once no callback is running."""
        if self._failed is not None and not self._depth:
            failed, self._failed = self._failed, None
            raise failed

    def decode_special(self, wire: Wire) -> Any:
        """Decode what is not plain data: an object of the candidate, or a function of the tests."""
        if wire[0] == "h":
            return self._remote(wire)
        if wire[0] == "cb":
            return self._callbacks[wire[1]]
        if wire[0] == "nt":
            return self._tuple_class(str(wire[1]), tuple(map(str, wire[2])))._make
        if wire[0] == "more":
            self.unsupported_uses += 1
            return operator.itemgetter(0)
        if wire[0] == "xc":
            return self._class_of_exceptions(wire)
        if wire[0] == "en":
            return self._member(wire)
        raise ValueError(f"unknown tag: {wire[0]!r}")

    def _remote(self, wire: Wire) -> object:
        number = wire[1]
        if type(number) is not int:
            raise TypeError("a handle must be a number")
        remote = self._remotes.get(number)
        if remote is None:
            # The tests may have a package compare it, which knows only its own objects.
            self.unsupported_uses += has_class(wire[2])
            remote = self._remotes[number] = make_proxy(_class_of(wire), self, number)
        if wire[2] != "coroutine":
            return remote
        coroutine = as_coroutine(remote)
        # The coroutine is kept alive, so that its id stays unique.
        self._coroutines[id(coroutine)] = coroutine, remote
        return coroutine

    def _tuple_class(self, name: str, fields: tuple[str, ...]) -> Any:
        """A class of named tuples, which are compared here; their further attributes are the program's."""
        if (name, fields) not in self._tuple_classes:
            content = {"__slots__": (), "__getattr__": self._attribute()}
            self._tuple_classes[name, fields] = type(name, (named_tuple(name, fields),), content)
        return self._tuple_classes[name, fields]

    def _attribute(self) -> Callable[[object, str], object]:
        """What gives the attributes of a value that only its class in the program has, such as its methods."""

        def attribute(value: object, name: str) -> object:
            if name.startswith("_"):
                raise AttributeError(f"{type(value).__name__!r} object has no attribute {name!r}")
            return self.request("getattr", value, name)

        return attribute

    def _text(self, operation: str) -> Callable[..., str]:
        """What gives a text of a value as its class in the program does."""

        def text(value: object, *args: object) -> str:
            said = self.request(operation, value, *args)
            if type(said) is not str:
                raise TypeError(f"{operation}() of a {type(value).__name__} is no text")
            return said

        return text

    def _member(self, wire: Wire) -> Any:
        """A member of an enumeration of numbers or texts: its content, of a class of its own, and its handle's attributes."""
        _, number, name, content = wire
        if number not in self._members:
            if type(number) is not int or type(content) not in (int, float, str):
                raise TypeError("a member must have a number and plain content")
            texts = {f"__{operation}__": self._text(operation) for operation in ("str", "repr", "format")}
            cls: Any = type(str(name), (type(content),), {"__getattr__": self._attribute(), **texts})
            self._members[number] = cls(content)
            self._members[number].__dict__["_remote_number"] = number
        # Its operators are not sent.
        self.unsupported_uses += 1
        return self._members[number]

    def _class_of_exceptions(self, wire: Wire) -> type[BaseException]:
        """An exception class that is an attribute of something."""
        _, number, description = wire
        cls = self._exceptions.named(description)
        self._exception_numbers[cls] = number
        return cls

    def has_handle(self, value: object) -> bool:
        """Whether a value is a member of an enumeration of the program."""
        return any(value is member for member in self._members.values())

    def _encode_opaque(self, value: object) -> Wire:
        if isinstance(value, Proxy):
            return ["h", value._remote_number]
        if self.has_handle(value):
            return ["h", value._remote_number]  # type: ignore[attr-defined]  # a member has it
        if id(value) in self._coroutines:
            return ["h", self._coroutines[id(value)][1]._remote_number]
        if isinstance(value, type) and issubclass(value, BaseException):
            if value in self._exception_numbers:
                return ["h", self._exception_numbers[value]]
            return ["x", *_name_and_bases(value)]
        if isinstance(value, BaseException):
            return ["xi", *_name_and_bases(type(value)), Encoder(self._encode_opaque).encode(value.args)]
        if isinstance(value, type | types.BuiltinFunctionType) and _is_standard(value):
            return ["g", value.__module__, value.__qualname__]
        if isinstance(value, types.ModuleType) and _is_standard_module(value.__name__):
            return ["m", value.__name__]
        kind = kind_of(value)
        return None if kind is None else ["cb", self._number_of(value), kind, *description_of(value)]

    def _number_of(self, value: object) -> int:
        number = self._callback_numbers.get(id(value))
        if number is None:
            # The list keeps it alive, so its id stays unique.
            number = self._callback_numbers[id(value)] = len(self._callbacks)
            self._callbacks.append(value)
        return number

    def _send(self, message: Wire) -> None:
        try:
            self._channel.send(message)
        except ChannelClosedError:
            self.abandon("exit")
        except InvalidMessageError as error:
            self._refuse(f"an argument is too large: {error}")

    def _refuse(self, reason: str) -> NoReturn:
        """End the job over an argument that can't be sent: the program's failure if the tests may have made it from an answer.

        The size of the answer does not matter: from one number a test can make a list of any length.
        """
        failure = "output_limit" if self.has_answered else UNSUPPORTED
        self._report.end(failure=failure, reason=reason, broken=not self.has_answered)

    def _receive(self) -> Wire:
        try:
            message = self._channel.receive()
        except ChannelClosedError:
            self.abandon("exit")
        except InvalidMessageError as error:
            self.abandon("protocol", str(error)[:MAX_TEXT])
        if type(message) is not list or not message:
            self.abandon("protocol", "not a list")
        return message

    def abandon(self, failure: str, reason: str = "") -> NoReturn:
        """End with a failing report: no test code runs after this."""
        self._report.end(failure=failure, reason=reason)


def _reveals_nothing(answer: Wire) -> bool:
    """Whether an answer of `resolve` says no more of a name than that it is missing, or a function or class."""
    handle = answer[-1]
    return answer == ["missing"] or (
        answer[0] == "value"
        and type(handle) is list
        and handle[:1] == ["h"]
        and tuple(handle[2:]) in _USUAL_TYPES
    )


_USUAL_TYPES = frozenset(map(describe_type_of, (_reveals_nothing, Session)))
"""Descriptions of a function and of a class, which say nothing more."""


def _class_of(handle: Wire) -> type[Proxy]:
    """The proxy class for the object behind a handle."""
    _, _, *info = handle
    if not all(type(text) is str and len(text) <= _LONGEST_TYPE_INFO for text in info):
        raise ValueError("a type must be described by short strings")
    return proxy_class(*info)


def _name_and_bases(cls: type[BaseException]) -> tuple[str, list[str]]:
    return cls.__name__, [base.__name__ for base in cls.__mro__ if base.__module__ == "builtins"]


def _is_standard_module(name: str) -> bool:
    return name.partition(".")[0] in sys.stdlib_module_names or is_package(name)


def _is_standard(value: type | types.BuiltinFunctionType) -> bool:
    module = value.__module__ or ""
    return _is_standard_module(module) and "<" not in value.__qualname__
