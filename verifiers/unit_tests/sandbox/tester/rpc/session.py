"""The tester's side of the conversation with the candidate.

Nothing from the candidate is trusted: messages are decoded as plain data, and a violation of the protocol ends the job as a
failure of the program, before another line of the tests runs.
"""

from __future__ import annotations

import functools
import importlib
import operator
import sys
import threading
import types
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NoReturn

from ...candidate.tester_objects import UnsupportedUseError
from ...protocol.channel import Channel, ChannelClosedError, InvalidMessageError
from ...protocol.codec import DERIVED, Decoder, Encoder, NotPlainError, Wire, named_tuple
from ...protocol.object_types import describe_type_of
from ...protocol.packages import has_class, is_named, is_package
from ...protocol.shared_containers import ShortenedError, Table
from ..analysis.side_effects import PURE_MODULES
from ..outcomes import raised_by_assertion
from ..report import (
    MAX_TEXT,
    UNSUPPORTED,
    JobEndedError,
    Report,
    classify,
    described,
    finding,
    refusal,
    tidy,
    unsupported,
)
from .callbacks import description_of, kind_of, operate
from .derived import derived_content
from .exceptions import Exceptions
from .lent_exceptions import LentExceptions
from .proxy import Proxy, make_proxy, proxy_class, wait_for
from .turn_lock import Turns

_LOOKS = """
len reversed iter getitem bool str repr hash eq ne isinstance import signature fields
int float complex bytes index trunc floor ceil round format abs neg pos invert dir fspath
"""
_LOOKING = frozenset(_LOOKS.split())
"""Operations that change no object. An attribute or the next item may: an object can be drained by them."""
_MOST_ASSUMPTIONS = 10_000
"""In one case."""
_LONGEST_TYPE_INFO = 8 << 10
"""Characters."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """An answer assumed for the program, which was not asked because it would learn what the tests expect."""

    operation: str
    remote: Proxy
    value: object
    answer: bool | None
    """None for whether the object's iteration yields the value."""


class Session:
    """Sends requests to the candidate, and turns its answers into values and exceptions."""

    def __init__(self, channel: Channel, report: Report) -> None:
        self._channel = channel
        self._report = report
        self._coroutines: dict[int, tuple[object, Proxy]] = {}
        self.around_request: Callable[[], AbstractContextManager[None]] = nullcontext
        """Makes the context manager that surrounds each request and its answer."""
        self.before_callback: Callable[[], None] = lambda: None
        """Called before an object of the tests is used by the program."""
        self.program_modules: frozenset[str] = frozenset()
        """Top-level names of the program's modules that the tests may import."""
        self._callbacks: list[object] = []
        self._callback_numbers: dict[int, int] = {}
        self._remotes: dict[int, Proxy] = {}
        self._derived: dict[int, Any] = {}
        """Values of classes derived from those of plain data, by their handles."""
        self._derived_numbers: dict[int, int] = {}
        """Their handles by their ids."""
        self._derived_classes: dict[object, Any] = {}
        self._tuple_classes: dict[tuple[str, tuple[str, ...]], Any] = {}
        self._lent = LentExceptions(self._encode_opaque, self._number_of)
        self._exceptions = Exceptions(
            lambda wire: Decoder(self.decode_special).decode(wire), self.request, self._lent.lent, self._lent.lent_class
        )
        self.turns = Turns(report)
        self._shared = Table(self._encode_opaque, self.decode_special, first=0)
        self._last_resolved: dict[int, list[object]] = {}
        """For each requesting thread, the containers that its last answer introduced."""
        self.has_answered = False
        """Whether the program has sent anything that could influence the tests, more than functions and classes."""
        self.has_called_back = False
        """Whether it has used an object of the tests."""
        self.has_own_texts = False
        """Whether it has sent text of a class of its own, which may become another text with every use."""
        self.unsupported_uses = 0
        """How often the program was not asked whether its object equals plain data, or for an array's memory."""
        self._assumptions: dict[object, Assumption] = {}
        """Those made since they were last taken."""
        self.sized: dict[int, bool] = {}
        """Whether an object with `__len__`, by its handle, has a length; True if it has given one."""
        self.changes = 0
        """Number of requests that may have changed the program's objects."""
        self.reads = 0
        """Number of those that read an attribute or an item, and hardly change another object."""
        self._failed: BaseException | None = None
        """The failed assertion or other outcome of a callback, which the program may have suppressed."""
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
        message = self._reply()
        try:
            _, answers, contents = message
            # Kept alive, so that they stay shared until the tests receive them.
            self._last_resolved[threading.get_ident()] = self._shared.apply(contents)
            self.has_answered |= bool(contents)
            return list(answers)
        except Exception as problem:  # noqa: BLE001 - recorded in the report
            self.abandon("protocol", repr(problem)[:MAX_TEXT])

    def value_of(self, answer: Wire) -> object:
        """Turn an answer of `resolve` into a value."""
        try:
            if answer[0] == "exception":
                return self._class_of_exceptions(answer)
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
            self.reads += operation == "getattr"
        self._send(message)
        writer.commit()
        reply = self._reply()
        try:
            return self._finish(reply, operation)
        finally:
            self._raise_failed()

    def _reply(self) -> Wire:
        """Wait for the answer to a request, and meanwhile run what the program calls back."""
        while (message := self._receive())[0] == "callback":
            self._call_back(message)
        return message

    def assume(self, operation: str, remote: Proxy, value: object, answer: bool | None) -> None:
        """Assume an answer of the program for now."""
        try:
            Encoder(self._encode_opaque).encode(value)
        except (NotPlainError, RecursionError):
            value = _unknown
        key = operation, remote._remote_number, type(value), value if type(value) in (int, str) else id(value)
        if len(self._assumptions) < _MOST_ASSUMPTIONS:
            self._assumptions[key] = Assumption(operation, remote, value, answer)
        else:
            refusal(TypeError("a case makes too many comparisons with objects of the program"))

    def take_assumptions(self) -> list[Assumption]:
        """The assumptions made since the last call."""
        taken, self._assumptions = list(self._assumptions.values()), {}
        return taken

    def verify(self, assumptions: Iterable[Assumption]) -> None:
        """Ask the program, when no test runs any more: raise its exception, or one that says that it gives another answer.

        The object may have changed since then: what it holds is asked of its iteration again.
        """
        for assumption in assumptions:
            remote, value, expected = assumption.remote, assumption.value, assumption.answer
            if expected is None:
                expected = any(value is item or value == item for item in remote)  # type: ignore[attr-defined]  # its class has __iter__
            if bool(self.request(assumption.operation, remote, value)) is not expected:
                cls = type(value).__name__
                raise unsupported(
                    TypeError(f"{assumption.operation} of a {type(remote).__name__} and a {cls} is not {expected}")
                )

    @property
    def has_lent(self) -> bool:
        """Whether the program has functions or objects of the tests."""
        return bool(self._callbacks)

    def is_from_program(self, container: object) -> bool:
        """Whether this container came from the program."""
        return self._shared.is_from_other_side(container)

    def _finish(self, reply: Wire, operation: str) -> object:
        try:
            kind, body, contents = reply
            self.has_answered |= kind == "raised" or bool(contents) or operation not in ("import", "sleep")
            self._shared.apply(contents)
            if kind == "returned":
                return self._shared.reader().decode(body)
            raised = self._exceptions.received(body, operation)
        except ShortenedError as error:
            raise refusal(error) from None
        except Exception as problem:  # noqa: BLE001 - recorded in the report
            self.abandon("protocol", repr(problem)[:MAX_TEXT])
        raise raised

    def _call_back(self, message: Wire) -> None:
        self.has_answered = self.has_called_back = True
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
            self.before_callback()
            answer = ["result", writer.encode(operate(operation, callback, args, kwargs))]
            contents = writer.contents()
        except JobEndedError:
            raise
        except BaseException as error:  # noqa: BLE001 - sent to the candidate, which made the call
            if isinstance(error, NotPlainError):
                error = UnsupportedUseError(f"a callback of the tests returned what can't be sent: {error}")
            writer.abandon()
            writer = self._shared.writer()
            answer, contents = ["error", self._for_program(error)], writer.contents()
        finally:
            self._depth -= 1
        self._send([*answer, contents, self._shared.release()])
        writer.commit()

    def _for_program(self, error: BaseException) -> Wire:
        """A callback's exception; without any content for one by which the test API ends the test, which is kept to end it."""
        if not raised_by_assertion(error):
            return self._encode_opaque(error)
        self._failed = self._failed or error
        return self._lent.secret_wire(error)

    def _raise_failed(self) -> None:
        """Raise what ended the test in a callback, once no callback is running."""
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
        if wire[0] == "xi":
            return self._lent.lent(wire[1])
        if wire[0] == "xe":
            return self._exceptions.returned(wire[1])
        if wire[0] == "xc":
            return self._class_of_exceptions(wire)
        if wire[0] == DERIVED:
            return functools.partial(self._derived_value, *wire[1:4])
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
        coroutine = wait_for(remote)
        # The coroutine is kept alive, so that its id stays unique.
        self._coroutines[id(coroutine)] = coroutine, remote
        return coroutine

    def _tuple_class(self, name: str, fields: tuple[str, ...]) -> Any:
        """A class of named tuples, which are compared here; their further attributes are the program's."""
        _check_length(name)
        if (name, fields) not in self._tuple_classes:
            content = {"__slots__": (), **derived_content(self, (), is_copied=True)}
            self._tuple_classes[name, fields] = type(name, (named_tuple(name, fields),), content)
        return self._tuple_classes[name, fields]

    def _derived_value(self, number: int | None, name: str, own: list[str], content: list[Any]) -> Any:
        """A value with this content, of a class of its own, which has the attributes of its class in the program."""
        # Operators of its class may come from elsewhere than the class that is described.
        self.unsupported_uses += 1
        if number in self._derived:
            return self._derived[number]
        (plain,) = content
        base = type(plain)
        _check_length(name, *own)
        self.has_own_texts |= base is str
        key = base, name, tuple(own)
        if key not in self._derived_classes:
            if base.__module__ not in ("builtins", __name__):
                raise TypeError(f"a derived value can't be a {base.__name__}")
            self._derived_classes[key] = type(str(name), (base,), derived_content(self, own))
        cls = self._derived_classes[key]
        value = tuple.__new__(cls, plain) if issubclass(base, tuple) else cls(plain)
        if type(number) is int:
            self._derived[number] = value
            self._derived_numbers[id(value)] = number
        return value

    def _class_of_exceptions(self, wire: Wire) -> type[BaseException]:
        """An exception class that is an attribute of something."""
        _, number, description = wire
        cls = self._exceptions.named(description)
        if type(number) is not int:
            raise TypeError("a handle must be a number")
        self._exceptions.numbers[cls] = number
        return cls

    def has_class(self, value: object) -> bool:
        """Whether a value's class is one in the program too."""
        cls = type(value)
        return cls in self._derived_classes.values() or cls in self._tuple_classes.values()

    def _encode_opaque(self, value: object) -> Wire:
        if isinstance(value, Proxy):
            return ["h", value._remote_number]
        if id(value) in self._derived_numbers:
            return ["h", self._derived_numbers[id(value)]]
        if self.has_class(value):
            return None
        if id(value) in self._coroutines:
            return ["h", self._coroutines[id(value)][1]._remote_number]
        number = self._exceptions.number_of(value)
        if number is not None:
            return ["h", number]
        if isinstance(value, type) and issubclass(value, BaseException):
            return self._lent.class_wire(value)
        if isinstance(value, BaseException):
            return self._lent.wire(value)
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


def _unknown() -> None:
    """What the program sees in place of a value that can't be sent."""


def _reveals_nothing(answer: Wire) -> bool:
    """Whether an answer of `resolve` says no more of a name than that it is missing, or a function or class."""
    handle = answer[-1]
    return answer == ["missing"] or (
        answer[0] == "value" and type(handle) is list and handle[:1] == ["h"] and handle[2:] in _USUAL_TYPES
    )


_USUAL_TYPES = [list(describe_type_of(value)) for value in (_reveals_nothing, Session)]
"""Descriptions of a function and of a class, which say nothing more."""


def _class_of(handle: Wire) -> type[Proxy]:
    """The proxy class for the object behind a handle."""
    _, _, *info = handle
    _check_length(*info)
    return proxy_class(*info)


def _check_length(*names: object) -> None:
    """Raise an exception unless names of the program are short enough to be in messages of the sandbox."""
    if not all(type(name) is str and len(name) <= _LONGEST_TYPE_INFO for name in names):
        raise ValueError("a type must be described by short strings")


def _is_standard_module(name: str) -> bool:
    return name.partition(".")[0] in sys.stdlib_module_names or is_package(name)


def _is_standard(value: type | types.BuiltinFunctionType) -> bool:
    module = value.__module__ or ""
    return _is_standard_module(module) and "<" not in value.__qualname__
