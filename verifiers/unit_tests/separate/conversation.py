"""The tests' end of the conversation with the program: requests, answers, and calls of the tests' functions."""

from __future__ import annotations

import builtins
import contextlib
import functools
import importlib
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

from . import packages
from .channel import Channel, ChannelClosedError, InvalidMessageError
from .exceptions import ExceptionClasses, Exited, Stopped, number_of_exception
from .handles import Handle, handle_class, number_of
from .messages import TESTS, Messages, keywords
from .objects import PrefixObjects
from .report import MAX_TEXT, UNSUPPORTED, JobEndedError, Report, as_programs, finding, refused
from .values import Decoder, Encoder, NotPlainError, Wire, pairs

_LONGEST_NAME = 1000
_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial)
_STANDARD = (types.BuiltinFunctionType, types.MethodDescriptorType, type)


class Conversation:
    """Asks the program, whose process is not trusted: an invalid answer ends the job with a failure."""

    def __init__(self, channel: Channel, report: Report, own: Mapping[str, Any]) -> None:
        """Begin a conversation; `own` holds the tests' names, under which the classes of the prefix are found."""
        self._report = report
        self._handles: dict[int, Handle] = {}
        self._functions: list[Callable[..., Any]] = []
        self._function_numbers: dict[int, int] = {}
        self._depth = 0
        """Number of functions of the tests that the program is currently calling."""
        self._failed: BaseException | None = None
        """The exception that ended the test inside a function that the program had called; the program may have caught it."""
        self._exceptions = ExceptionClasses(self._attribute_of, self.refuse, own)
        self._objects = PrefixObjects(own.__getitem__)
        self._messages = Messages(channel, TESTS, self._objects, self._encode, self._decode)
        self.has_answered = False
        """Whether the program has answered a request, or given a constant."""
        self.has_resolved = False
        """Whether the tests use names that the program defines, through which the program may influence the tests."""
        self.refusals = 0
        """Number of answers that were refused because they are not supported."""
        self.requests = 0
        """Number of requests that may have changed the program's objects."""
        self.doubts = 0
        """Number of times that tests asked for the class of an object of the program; the class differs in this process."""

    @contextlib.contextmanager
    def _checked(self) -> Iterator[None]:
        """End the job with a failure if code in this context raises an exception because of the program's data."""
        try:
            yield
        except JobEndedError:
            raise
        except Exception as problem:  # noqa: BLE001 - recorded in the report
            self.abandon("protocol", repr(problem)[:MAX_TEXT])

    def resolve(self, names: Iterable[str], classes: frozenset[str], module: str | None = None) -> dict[str, Any]:
        """The values of global names that the program defines; ends the job if the program can't be loaded."""
        wanted = list(names)
        self._objects.names = classes
        self._send("resolve", plain=[module, wanted, sorted(classes)])
        self.has_resolved |= bool(wanted)
        message = self._receive()
        if message[0] == "unloadable":
            self._end_unloadable(message)
        is_there, values = self._answer("resolve", message)
        if not all(isinstance(value, Handle) for value in values):
            self.has_answered = True
        with self._checked():
            found = [name for name, there in zip(wanted, is_there, strict=True) if there]
            return dict(zip(found, values, strict=True))

    def _end_unloadable(self, message: Wire) -> NoReturn:
        with self._checked():
            _, phase, description = message
            found = finding(as_programs(Exception(), description))
            failure = {"compile": "syntax_error", "memory": "memory", "run": found["failure"]}[phase]
        self._report.end(**found | {"failure": failure})

    def request(self, operation: str, target: object, /, *args: object, **kwargs: object) -> Any:
        """Have the program perform an operation; return its answer or raise its exception."""
        self.requests += 1
        try:
            self._send(operation, target, args, keywords(kwargs))
        except NotPlainError as error:
            reason = f"an argument can't be sent: {error}"
            self._report.end(failure=UNSUPPORTED, reason=reason, broken=not self.has_answered)
        while (message := self._receive())[0] == "callback":
            self._call_back(message)
        self.has_answered = True
        try:
            return self._answer(operation, message)
        finally:
            self._raise_failed()

    def has_changes(self) -> bool:
        """Whether the tests have changed a container that the program also holds since their last request."""
        return self._messages.has_changes()

    def refuse(self, problem: str) -> NoReturn:
        """Raise the exception for a test that uses an answer in an unsupported way."""
        self.refusals += 1
        raise refused(TypeError(f"not supported: {problem}"))

    def _answer(self, operation: str, message: Wire) -> Any:
        kind, *content = message
        raised: BaseException | None = None
        with self._checked():
            if kind == "raised":
                raised = self._raised(operation, *content)
            elif kind == "returned":
                (*plain, wire) = content
                value = self._messages.decoder().decode(wire)
                answer = (*plain, value) if operation == "resolve" else value
            else:
                raise ValueError(f"no answer begins with {kind!r}"[:100])
        self._done()
        if self._messages.cuts_loop:
            self._messages.cuts_loop = False
            self.refuse("the program shortens what the tests loop over")
        if raised is not None:
            raise raised
        return answer

    def _raised(
        self, operation: str, description: Mapping[str, Any], identity: list[Wire], content: Wire
    ) -> BaseException:
        """Rebuild the program's exception."""
        values = self._messages.decoder().decode(content)
        error = self._exceptions.rebuild([*identity, description["text"]], values, stops=operation == "next")
        unsupported = description["unsupported"] is True or isinstance(error, Stopped | Exited)
        return as_programs(error, {**description, "unsupported": unsupported})

    def _call_back(self, message: Wire) -> None:
        """Call a function of the tests for the program."""
        self.has_answered = True
        with self._checked():
            _, number, *content = message
            function = self._functions[number]
            args, named = map(self._messages.decoder().decode, content)
            kwargs = dict(pairs(named))
        self._done()
        self._depth += 1
        try:
            self._send("result", function(*args, **kwargs))
        except JobEndedError:
            raise
        except BaseException as error:  # noqa: BLE001 - sent to the program, which made the call
            if isinstance(error, AssertionError) or not isinstance(error, Exception):
                self._failed = self._failed or error
            self._send_error(error)
        finally:
            self._depth -= 1

    def _send_error(self, error: BaseException) -> None:
        """Send an exception as an instance of its nearest builtin class."""
        cls = next(base for base in type(error).__mro__ if vars(builtins).get(base.__name__) is base)
        is_refusal = isinstance(error, NotPlainError)  # a function of the tests returns a value that can't be sent
        self.refusals += is_refusal
        hides = self._failed is not None or is_refusal
        try:
            self._send("error", (cls if issubclass(cls, Exception) else RuntimeError, () if hides else error.args))
        except (NotPlainError, RecursionError):
            self._send("error", (cls, ()))

    def _raise_failed(self) -> None:
        """Raise the exception that ended the test in one of its functions, after the last of these functions has returned."""
        if self._failed is not None and not self._depth:
            failed, self._failed = self._failed, None
            raise failed

    def _attribute_of(self, number: int, name: str) -> Any:
        return self.request("getattr", self._handle(number, "exception", "builtins", []), name)

    def _handle(self, number: object, name: object, module: object, special: list[str]) -> Handle:
        if type(number) is not int or type(name) is not str or len(name) > _LONGEST_NAME:
            raise TypeError("a handle is a number, and the name of a class")
        if not all(type(each) is str and re.fullmatch(r"__\w{1,50}__", each) for each in special):
            raise TypeError("special methods are described by their names")
        if number not in self._handles:
            self._handles[number] = handle_class(name, str(module)[:_LONGEST_NAME], tuple(special))(self, number)
        return self._handles[number]

    def _decode(self, decoder: Decoder, wire: Wire) -> Any:
        tag, *rest = wire
        if tag == "h":
            return self._handle(*rest)
        if tag == "cb":
            return self._functions[rest[0]]
        if tag == "xe":
            return self._exceptions.rebuild(rest[:3], decoder.decode(rest[3]))
        if tag == "m":
            return importlib.import_module(rest[0]) if _is_shared(rest[0]) else self._handle(*rest[1:])
        if tag == "x":
            return self._exceptions.named(rest[0])
        return self._objects.decode(decoder, wire)

    def _encode(self, encoder: Encoder, value: object) -> Wire:
        if isinstance(value, Handle):
            return ["h", number_of(value)]
        number = number_of_exception(value) if isinstance(value, BaseException) else self._exceptions.number_of(value)
        if number is not None:
            return ["h", number]
        place = _place_of(value)
        if place is not None:
            return ["g", *place]
        if isinstance(value, _FUNCTIONS):
            return ["cb", self._number_of(value), getattr(value, "__name__", "partial")]
        wire = self._objects.encode(encoder, value)
        if wire is None:
            raise NotPlainError(f"a value of type {type(value).__name__!r} is neither plain data nor a function")
        return wire

    def _number_of(self, function: Callable[..., Any]) -> int:
        number = self._function_numbers.get(id(function))
        if number is None:
            # The list keeps the function alive, so that its id stays unique.
            number = self._function_numbers[id(function)] = len(self._functions)
            self._functions.append(function)
        return number

    def _send(self, kind: str, *values: object, plain: list[Wire] | None = None) -> None:
        try:
            self._messages.send(kind, *values, plain=plain or ())
        except ChannelClosedError:
            self.abandon("exit")
        except (RecursionError, InvalidMessageError) as error:
            failure = "output_limit" if self.has_answered else UNSUPPORTED
            self._report.end(failure=failure, reason=f"an argument is too large: {error}", broken=not self.has_answered)

    def _receive(self) -> Wire:
        with self._checked():
            try:
                message = self._messages.receive()
            except ChannelClosedError:
                self.abandon("exit")
            if type(message[0]) is not str:
                raise TypeError("a message must begin with its kind")
        return message

    def _done(self) -> None:
        with self._checked():
            self._messages.done()

    def abandon(self, failure: str, reason: str = "") -> NoReturn:
        """End with a failing report: no test code runs after this."""
        self._report.end(failure=failure, reason=reason)


def _is_shared(module: object) -> bool:
    """Whether a module belongs to the standard library or to packages, which both processes can import."""
    root = packages.root_of(str(module))
    return root in sys.stdlib_module_names or packages.is_package(root)


def _place_of(value: object) -> list[Wire] | None:
    """Where a class or function is found in the standard library; None for a method of an object or anything outside it."""
    owner = getattr(value, "__self__", None)
    if not isinstance(value, _STANDARD) or not (owner is None or isinstance(owner, types.ModuleType)):
        return None
    module: str = getattr(value, "__module__", None) or "builtins"
    return [module, value.__qualname__] if module.partition(".")[0] in sys.stdlib_module_names else None
