"""The operations that the tester can request on an object of the candidate, by name."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import math
import operator
import os
import time
from collections.abc import Callable
from typing import Any

from ..protocol.object_types import BINARY_OPERATORS, IN_PLACE_OPERATORS, REFLECTED_OPERATORS
from ..protocol.signatures import signature_parts

_runner: Any = None


async def _await(awaitable: Any) -> object:
    return await awaitable


def _run_awaitable(awaitable: object) -> object:
    """Run an awaitable to completion; all awaitables of a job share an event loop, which is idle in between."""
    global _runner
    if _runner is None:
        _runner = importlib.import_module("asyncio").Runner()
    return _runner.run(_await(awaitable))


def _exception(cls: type[BaseException] | None, args: tuple[object, ...]) -> BaseException | None:
    if cls is None:
        return None
    try:
        return cls(*args)
    except TypeError:  # its constructor takes other arguments
        return cls.__new__(cls)


def _import(_: object, name: str) -> object:
    return importlib.import_module(name)


def _reflected(name: str) -> Callable[..., object]:
    operation = getattr(operator, name)
    return lambda value, other: operation(other, value)


OPERATIONS: dict[str, Callable[..., object]] = {
    "call": lambda function, /, *args, **kwargs: function(*args, **kwargs),
    "make": lambda cls, /, *args, **kwargs: cls(*args, **kwargs),
    "getattr": getattr,
    "setattr": setattr,
    "delattr": delattr,
    "isinstance": lambda cls, value: isinstance(value, cls),
    "issubclass": lambda cls, value: issubclass(value, cls),
    "getitem": operator.getitem,
    "setitem": operator.setitem,
    "delitem": operator.delitem,
    "iter": iter,
    "next": next,
    "enter": lambda value: value.__enter__(),
    "exit": lambda value, cls, args: value.__exit__(cls, _exception(cls, args), None),
    "await": _run_awaitable,
    "aiter": lambda value: value.__aiter__(),
    "anext": lambda value: _run_awaitable(value.__anext__()),
    "aenter": lambda value: _run_awaitable(value.__aenter__()),
    "aexit": lambda value, cls, args: _run_awaitable(value.__aexit__(cls, _exception(cls, args), None)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "import": _import,
    "sleep": lambda _, seconds: time.sleep(seconds),
    "signature": signature_parts,
    "fields": lambda cls: [field.name for field in dataclasses.fields(cls)],
    **{
        function.__name__: function
        for function in (len, str, repr, bool, int, float, complex, bytes, abs, hash, format, round)
    },
    **{
        function.__name__: function
        for function in (reversed, divmod, math.trunc, math.floor, math.ceil, dir, os.fspath)
    },
    **{name: getattr(operator, name) for name in ("neg", "pos", "invert", "index")},
    **{name: getattr(operator, name) for name in (*BINARY_OPERATORS, *IN_PLACE_OPERATORS)},
    **{name: _reflected(plain) for name, plain in REFLECTED_OPERATORS.items()},
}
"""What the tester may do with an object of the candidate, which is the first argument."""
