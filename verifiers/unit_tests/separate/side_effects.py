"""Decides which test code leaves no trace in its process, so that the process can run the tests of the next job too.

The compiled code is analysed conservatively before it runs: any name or instruction that might affect the interpreter counts as
a trace, which costs only a fork.
"""

from __future__ import annotations

import builtins
import collections
import datetime
import decimal
import dis
import fractions
import functools
import importlib
import re
import sys
import types
from collections.abc import Iterator

PURE_MODULES = (
    *("bisect", "cmath", "collections", "copy", "datetime", "fractions", "functools", "heapq", "itertools", "math"),
    *("operator", "random", "re", "statistics", "string", "typing"),
)
"""Modules of the standard library whose functions only compute results."""
_MODULES = tuple(map(importlib.import_module, PURE_MODULES))
_TYPES = (
    *(bool, int, float, complex, str, bytes, bytearray, list, tuple, set, frozenset, dict, range, slice),
    *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta, fractions.Fraction, re.Match, re.Pattern),
    *(collections.Counter, collections.OrderedDict, collections.defaultdict, collections.deque),
)
_REACHABLE = (
    *(decimal, types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType),
    *(types.FrameType, types.CodeType, types.TracebackType),
)
"""Types that harmless code can reach and whose attributes lead to state that outlives a job: contexts, frames, globals."""
_EFFECTFUL = """
breakpoint compile copyright credits delattr eval exec exit getattr globals hash help id input license locals open quit
setattr super vars
attrgetter methodcaller cache lru_cache singledispatch singledispatchmethod update_wrapper wraps cached_property namedtuple
NamedTuple TypedDict NewType total_ordering register purge template get_type_hints no_type_check overload get_overloads
clear_overloads runtime_checkable SystemRandom seed setstate
"""
"""Public names of builtins and of these modules with a side effect: they change state that outlives a job, reach arbitrary
objects through strings, depend on the history of the process, or should affect the program too."""


def _public(owner: object) -> Iterator[str]:
    return (name for name in dir(owner) if not name.startswith("_"))


def _exported(module: types.ModuleType) -> Iterator[str]:
    """Public names of a module, except its mutable data and the modules that it imports."""
    names: list[str] = getattr(module, "__all__", None) or list(_public(module))
    shared = (types.ModuleType, list, dict, set, bytearray)
    return (name for name in names if not isinstance(getattr(module, name), shared))


_KNOWN = frozenset(
    {name for owner in (builtins, *_MODULES, *_TYPES, *_REACHABLE) for name in _public(owner)}
    | {*sys.stdlib_module_names, "pytest", "test"}
)
_HARMLESS = (
    frozenset(PURE_MODULES)
    .union(*(_exported(module) for module in (builtins, *_MODULES)))
    .union(*(_public(cls) for cls in _TYPES))
    .difference(_EFFECTFUL.split())
)
_INSTRUCTIONS = frozenset(
    dis.opmap[name]
    for name in ("STORE_ATTR", "DELETE_ATTR", "LOAD_BUILD_CLASS", "PUSH_EXC_INFO", "GET_AWAITABLE")
    if name in dis.opmap
)
"""Instructions that may leave a trace: attribute assignment; class definitions, which bases remember; handlers, which could
suppress the end of the job.
"""


@functools.lru_cache(64)
def leaves_no_trace(code: types.CodeType) -> bool:
    """Whether code, and the functions defined in it, can run without changing what later code in the process sees."""
    return (
        _INSTRUCTIONS.isdisjoint(code.co_code[::2])
        and all(map(_is_harmless, code.co_names))
        and all(leaves_no_trace(inner) for inner in code.co_consts if isinstance(inner, types.CodeType))
    )


def _is_harmless(name: str) -> bool:
    # A name that no reachable object has is a variable of the code itself, or an attribute of an object of the program.
    return name in _HARMLESS or (name not in _KNOWN and not name.startswith("_") and "." not in name)
