"""The candidate: runs the program under test and answers the tester's calls; knows no test.

Nothing here is trusted. What it says is decoded by the tester as plain data, so a program that rewrites this code in its
own process gains nothing but wrong answers.
"""

from __future__ import annotations

import atexit
import contextlib
import copy
import gc
import importlib
import json
import operator
import os
import random
import sys
import threading
import traceback
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .channel import Channel, ChannelClosedError, InvalidMessageError, read_all
from .codec import Decoder, Encoder, NotPlainError, Wire

CHANNEL, PROGRAM = 3, 4
"""Descriptors of the channel to the tester and of the program (in stdin/stdout runs the program is 3)."""

_MESSAGE_LENGTH = 2000
_SOLUTION = "solution"

BINARY_OPERATORS = """
add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift lt le gt ge eq ne
"""
"""Names in `operator`, separated by white space."""
OPERATIONS: dict[str, Callable[..., object]] = {
    "call": lambda function, *args, **kwargs: function(*args, **kwargs),
    "getattr": getattr,
    "setattr": setattr,
    "delattr": delattr,
    "isinstance": lambda cls, value: isinstance(value, cls),
    "issubclass": lambda cls, value: issubclass(value, cls),
    "getitem": operator.getitem,
    "setitem": operator.setitem,
    "delitem": operator.delitem,
    "len": len,
    "iter": iter,
    "next": next,
    "str": str,
    "repr": repr,
    "bool": bool,
    "int": int,
    "float": float,
    "abs": abs,
    "neg": operator.neg,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "enter": lambda value: value.__enter__(),
    "exit": lambda value: value.__exit__(None, None, None),
    **{name: getattr(operator, name) for name in BINARY_OPERATORS.split()},
}
"""What the tester may do with an object of the candidate: the first argument is the object."""


class ProgramError(Exception):
    """The program could not be loaded."""

    def __init__(self, phase: str, error: BaseException) -> None:
        super().__init__(phase)
        self.phase = phase
        self.error = error


@dataclass(frozen=True, slots=True)
class Program:
    """What the candidate is given to run."""

    files: Mapping[str, str]
    """Source text by module name; the last is the main one."""
    prefix: str
    """Source that runs before the main module, in its namespace."""
    entry_point: str
    """A name that the prefix only announces: its definition there is dropped. May be empty."""
    seed: str
    """Seeds `random`."""

    @classmethod
    def read(cls, descriptor: int) -> Program:
        """Read a program from a file descriptor, and close it."""
        return cls(**json.loads(read_all(descriptor)))

    def run(self, main_name: str) -> dict[str, Any]:
        """Run every module in order; the main one goes under the given name.

        Returns:
            The main module's namespace.

        Raises:
            ProgramError: If a module does not compile.
        """
        random.seed(f"candidate {self.seed}")
        *others, (_, main) = self.files.items()
        for name, source in others:
            _run(_new_module(name), source, f"{name}.py")
        module = _new_module(main_name)
        if self.prefix:
            _run(module, self.prefix, "prefix.py")
            module.__dict__.pop(self.entry_point, None)
        _run(module, main, f"{_SOLUTION}.py")
        return module.__dict__


def _new_module(name: str) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__dict__["__builtins__"] = __builtins__
    sys.modules[name] = module
    return module


def _run(module: types.ModuleType, source: str, filename: str) -> None:
    module.__dict__["__file__"] = filename
    try:
        code = compile(source, filename, "exec", dont_inherit=True)
    except MemoryError as error:
        raise ProgramError("memory", error) from None
    except (SyntaxError, ValueError, OverflowError, RecursionError) as error:
        raise ProgramError("compile", error) from None
    exec(code, module.__dict__)


def describe(error: BaseException) -> dict[str, Any]:
    """Describe an exception in plain data: its type, its builtin bases, its message, and where the program raised it."""
    try:
        message = str(error)
    except BaseException as second:  # noqa: BLE001 - recorded: an exception whose text raises is described by that
        message = f"<its text raised {type(second).__name__}>"
    kinds = [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"]
    return {
        "type": type(error).__name__,
        "bases": kinds,
        "message": str.__str__(message)[:_MESSAGE_LENGTH],
        "errno": error.errno if isinstance(error, OSError) and type(error.errno) is int else None,
        "line": _line(error),
    }


def _line(error: BaseException) -> int | None:
    """The line of the program in which it was raised, None if it was not raised there."""
    if isinstance(error, SyntaxError) and error.filename == f"{_SOLUTION}.py":
        return error.lineno
    line = None
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == f"{_SOLUTION}.py":
            line = number
    return line


class Candidate:
    """Answers the tester's requests on behalf of a loaded program."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._namespace: dict[str, Any] = {}
        self._handles: list[object] = []
        self._handle_numbers: dict[int, int] = {}
        self._flush = (sys.stdout.flush, sys.stderr.flush)

    def serve(self, program: Program) -> None:
        """Load the program and answer requests until the tester is done."""
        try:
            self._namespace = program.run(_SOLUTION)
        except ProgramError as error:
            self._reply(["unloadable", error.phase, describe(error.error)])
            return
        except BaseException as error:  # noqa: BLE001 - recorded: the tester reports what the program raised
            self._reply(["unloadable", "run", describe(error)])
            return
        self._reply(["loaded"])
        while True:
            self._answer(self._channel.receive())

    def _reply(self, message: Wire) -> None:
        try:
            for flush in self._flush:
                flush()
        except (OSError, ValueError):
            # The output is full or closed; what matters is the reply.
            pass
        self._channel.send(message)

    def _answer(self, request: Wire) -> None:
        operation, target, arguments, keywords = request
        if operation == "resolve":
            self._reply([self._resolve(name) for name in arguments])
            return
        decoder = Decoder(self._decode_special)
        subject = self._namespace.get(target) if isinstance(target, str) else decoder.decode(target)
        args = [decoder.decode(item) for item in arguments]
        kwargs = {name: decoder.decode(item) for name, item in keywords}
        known = decoder.objects
        before = self._snapshot(known)
        try:
            value = OPERATIONS[operation](subject, *args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - recorded: the tester raises it again
            self._reply(["raised", describe(error), self._updates(Encoder(self._encode_opaque, known), before)])
        else:
            self._return(value, known, before, constructed=operation == "call" and isinstance(subject, type))

    def _return(self, value: object, known: Sequence[object], before: Wire, *, constructed: bool) -> None:
        encoder = Encoder(self._encode_opaque, known)
        try:
            updates = self._updates(encoder, before)
            wire = self._handle(value) if constructed and type(value).__module__ == _SOLUTION else encoder.encode(value)
            self._reply(["returned", wire, updates])
        except (NotPlainError, RecursionError, MemoryError, InvalidMessageError, ValueError) as error:
            self._reply(["raised", describe(error) | {"unsendable": True}, []])

    def _snapshot(self, known: Sequence[object]) -> list[Wire]:
        if not known:
            return []
        encoder = Encoder(self._encode_opaque, known)
        return [encoder.encode_content(value) for value in list(known)]

    def _updates(self, encoder: Encoder, before: list[Wire]) -> list[Wire]:
        """Encode the content of each argument that the call changed."""
        after = [encoder.encode_content(value) for value in encoder.objects[: len(before)]]
        if after == before:
            return []
        return [[number, wire] for number, wire in enumerate(after)]

    def _resolve(self, name: str) -> Wire:
        """Describe a global name of the program."""
        if name not in self._namespace:
            return ["missing"]
        value = self._namespace[name]
        if isinstance(value, types.ModuleType):
            return ["module", value.__name__]
        if isinstance(value, type) and issubclass(value, BaseException):
            return ["exception", describe_class(value)]
        try:
            return ["value", Encoder(self._encode_opaque).encode(value)]
        except NotPlainError:
            return ["value", self._handle(value)]

    def _encode_opaque(self, value: object) -> Wire:
        if isinstance(value, _Callback):
            return ["cb", value.number]
        if isinstance(value, (int, float, str, bytes, list, tuple, dict, set, frozenset, complex)):
            return self._handle(value) if id(value) in self._handle_numbers else None
        return self._handle(value)

    def _handle(self, value: object) -> Wire:
        number = self._handle_numbers.get(id(value))
        if number is None:
            number = self._handle_numbers[id(value)] = len(self._handles)
            self._handles.append(value)
        return ["h", number, type(value).__name__, callable(value)]

    def _decode_special(self, wire: Wire) -> object:
        if wire[0] == "h":
            return self._handles[wire[1]]
        if wire[0] == "cb":
            return _Callback(self, wire[1])
        return _find_global(wire[1], wire[2])

    def call_back(self, number: int, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        """Call a function of the tester."""
        encoder = Encoder(self._encode_opaque)
        self._reply(["callback", number, encoder.items(args), [[k, encoder.encode(v)] for k, v in kwargs.items()]])
        while True:
            message = self._channel.receive()
            if message[0] == "result":
                return Decoder(self._decode_special).decode(message[1])
            if message[0] == "error":
                raise RuntimeError(message[1])
            self._answer(message)


def describe_class(kind: type[BaseException]) -> dict[str, Any]:
    """Describe an exception class as `describe` does an instance."""
    return {"type": kind.__name__, "bases": [base.__name__ for base in kind.__mro__ if base.__module__ == "builtins"]}


class _Callback:
    """A function of the tester, as the candidate sees it."""

    def __init__(self, candidate: Candidate, number: int) -> None:
        self._candidate = candidate
        self.number = number

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._candidate.call_back(self.number, args, kwargs)


def _find_global(module: str, qualified_name: str) -> object:
    return operator.attrgetter(qualified_name)(importlib.import_module(module))


def answer_calls() -> None:
    """Be the candidate of a tester: load the program and answer."""
    gc.enable()
    try:
        Candidate(Channel(CHANNEL)).serve(Program.read(PROGRAM))
    except (ChannelClosedError, InvalidMessageError):
        os._exit(1)


def run_script() -> None:
    """Be a program that reads standard input and writes standard output; exit with its status."""
    gc.enable()
    status = 0
    try:
        Program.read(CHANNEL).run("__main__")
    except SystemExit as error:
        status = _exit_status(error)
    except ProgramError as error:
        _print_error(error.error)
        status = EXIT_SYNTAX if error.phase == "compile" else EXIT_MEMORY
    except BaseException as error:  # noqa: BLE001 - recorded on stderr and in the exit status
        _print_error(error)
        status = EXIT_MEMORY if isinstance(error, MemoryError) else EXIT_EXCEPTION
    os._exit(_finish(status))


EXIT_EXCEPTION, EXIT_SYNTAX, EXIT_MEMORY = 1, 121, 122
"""Exit statuses of a stdin/stdout run."""


def _exit_status(error: SystemExit) -> int:
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1


def _print_error(error: BaseException) -> None:
    found = describe(error)
    where = f" (line {found['line']})" if found["line"] else ""
    # The program may have closed or replaced its stderr; the exit status still tells.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"{found['type']}: {found['message']}{where}\n")


def _finish(status: int) -> int:
    """Do what an interpreter does at its end: join threads, run exit handlers, flush."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # what Py_Finalize calls
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException as error:  # noqa: BLE001 - recorded on stderr and in the exit status
        _print_error(error)
        return status or EXIT_EXCEPTION
    return status
