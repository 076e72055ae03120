"""Keeps text from the program from running as code in the tester.

The tester holds the expected values and writes the report, so code that runs in it decides the verdict. Test code may run
text as code, as `eval`, `typing.get_type_hints`, `timeit` and `pickle` do, and the text may come from the program. The
interpreter raises an audit event before each compilation. Anything may run until the program has answered, and later an
expression of numbers, text and operators alone. Anything else ends the job as unsupported.

What the standard library compiles of its own may have names of the program in it, and a name that has been checked may become
another text when it is inserted, if its class is one of the program's derived from `str`. So it is the compiled text that
counts where it has one form, as that of mocks, and else nothing is compiled once the program has given such a value.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import re
import sys
import types
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NoReturn

from verifiers.sandbox.programs import source_files as program_files

from ...protocol import source_files
from .. import tester
from ..analysis import compilation

_COMPILERS = frozenset(
    {(name, "_compile_bytecode") for name in ("importlib._bootstrap_external", "_frozen_importlib_external")}
    | {(name, "_call_with_frames_removed") for name in ("importlib._bootstrap", "_frozen_importlib")}
    | {
        ("ast", "parse"),
        ("symtable", "symtable"),
        ("collections", "namedtuple"),
        ("types", "coroutine"),
    }
)
"""Functions that compile modules, trees and tables only, or their own sources with checked exact texts in them, or that change
a function's flags. Functions rather than whole modules: a builtin that such a module calls appears under the module's name."""
_DATACLASSES = frozenset({("dataclasses", "_create_fn"), ("dataclasses", "add_fns_to_class")})
"""Functions that compile their own sources with names in them that were checked before they became text."""
_MOCKS = frozenset({("unittest.mock", "_set_signature"), ("unittest.mock", "_set_async_signature")})
_SIGNATURE = re.compile(
    r"(async )?def \w+\(\*args, \*\*kwargs\):\n    _checksig_\(\*args, \*\*kwargs\)\n"
    r"    return (await )?mock\(\*args, \*\*kwargs\)"
)
"""The only source that mocks compile."""
_QUERIES = "pandas.core.computation.expr", "visit"
"""The function by which pandas evaluates text, such as that of `df.query`: it reads a tree, and runs that itself."""
_RUNTIME = frozenset(module.__name__ for module in (program_files, source_files, compilation, tester))
"""Modules of the runtime that compile what problems hold."""
_COMPUTING = (
    *(ast.Module, ast.Expr, ast.Constant, ast.Subscript, ast.Slice, ast.Starred, ast.IfExp),
    *(ast.Tuple, ast.List, ast.Set, ast.Dict, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context),
)
"""No names: one could be that of the expected value."""


def begin(
    has_answered: Callable[[], bool],
    has_own_texts: Callable[[], bool],
    sources: Sequence[str],
    refuse: Callable[[str], NoReturn],
) -> None:
    """Audit this process from now on; `refuse` ends the job with a reason, past any handler of the tests.

    `has_own_texts` says whether the program has given text of a class of its own, and `sources` are those of the tests.
    """
    literals = functools.cache(lambda: frozenset(_literals(sources)))

    def trusts(frame: types.FrameType, source: object) -> bool:
        function = _function_of(frame)
        if function in _MOCKS:
            return _SIGNATURE.fullmatch(_decoded(source)) is not None
        if function in _DATACLASSES:
            return not has_own_texts()
        if function == ("ast", "parse") and frame.f_back is not None and _function_of(frame.f_back) == _QUERIES:
            return _is_query(frame.f_back, source) or _is_of_the_tests(frame.f_back, literals())
        return function[0] in _RUNTIME or function in _COMPILERS

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        if event not in _EVENTS or not has_answered() or trusts(sys._getframe(1), arguments[0]):
            return
        if event == "compile" and _only_computes(arguments[0]):
            return
        what = (
            f"a pickle that names {'.'.join(map(str, arguments))[:80]}" if "pickle" in event else "text or data as code"
        )
        refuse(f"a test runs {what}: what may be the program's may not run in the process that judges it")

    sys.addaudithook(hear)


def _is_query(frame: types.FrameType, source: object) -> bool:
    """Whether a text that pandas evaluates compares columns with plain data. Other names could be the expected value's."""
    text = _decoded(source)
    # pandas begins the names of variables of the tests, written `@name`, with this.
    return _computes(text, *([] if "__pd_eval_local_" in text or not _has_columns(frame) else [ast.Name]))


def _is_of_the_tests(frame: types.FrameType | None, literals: Collection[str]) -> bool:
    """Whether pandas evaluates a query that the test code contains, or a part of one."""
    while frame is not None:
        if _function_of(frame) == _QUERIES and _has_columns(frame):
            text = frame.f_locals["node"]
            if type(text) is str and text in literals:
                return True
        frame = frame.f_back
    return False


def _has_columns(frame: types.FrameType) -> bool:
    """Whether the names in a text that pandas evaluates are those of columns; else they are those of variables."""
    return bool(frame.f_locals["self"].env.has_resolvers)


def _decoded(source: object) -> str:
    """A text that is compiled: each is audited twice, as it is and in UTF-8."""
    if isinstance(source, bytes):
        return source.decode()
    assert isinstance(source, str)  # neither mocks nor pandas compile trees
    return str.__str__(source)


def _literals(sources: Sequence[str]) -> Iterator[str]:
    for source in sources:
        with contextlib.suppress(SyntaxError, ValueError):
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


def _only_computes(source: object) -> bool:
    if isinstance(source, bytes):
        # `eval` reads UTF-8, but a first line can declare another encoding to `compile`.
        return _computes(source) and _computes(source.decode(errors="replace"))
    return isinstance(source, str) and _computes(source)


def _computes(source: str | bytes, *also: type[ast.AST]) -> bool:
    try:
        tree = ast.parse(source.lstrip())
    except (SyntaxError, ValueError):
        return True  # running it fails
    except (RecursionError, MemoryError):
        return False
    return all(isinstance(node, (*_COMPUTING, *also)) for node in ast.walk(tree))


_EVENTS = frozenset({"compile", "pickle.find_class", "marshal.loads", "code.__new__"})


def _function_of(frame: types.FrameType) -> tuple[object, str]:
    """A function's module and name."""
    return frame.f_globals.get("__name__"), frame.f_code.co_name
