"""Keeps text from the program from running as code in the tester.

The tester holds the expected values and writes the report, so code that runs in it decides the verdict. Test code may run
text as code, as `eval`, `typing.get_type_hints`, `timeit` and `pickle` do, and the text may come from the program. The
interpreter raises an audit event before each compilation. Anything may run until the program has answered, and later an
expression of numbers, text and operators alone. Anything else ends the job as unsupported.
"""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Callable
from typing import NoReturn

_COMPILERS = frozenset(
    {(name, "_compile_bytecode") for name in ("importlib._bootstrap_external", "_frozen_importlib_external")}
    | {(name, "_call_with_frames_removed") for name in ("importlib._bootstrap", "_frozen_importlib")}
    | {
        ("ast", "parse"),
        ("symtable", "symtable"),
        ("collections", "namedtuple"),
        ("dataclasses", "_create_fn"),
        ("types", "coroutine"),
    }
    | {("unittest.mock", "_set_signature")}
)
"""Functions that compile modules, trees and tables only, or their own sources with checked names in them, or that change a
function's flags. Functions rather than whole modules: a builtin that such a module calls appears under the module's name."""
_RUNTIME = frozenset({"sandbox.protocol.source_files", "sandbox.tester.analysis.compilation", "sandbox.tester.tester"})
_COMPUTING = (
    *(ast.Module, ast.Expr, ast.Constant, ast.Subscript, ast.Slice, ast.Starred, ast.IfExp),
    *(ast.Tuple, ast.List, ast.Set, ast.Dict, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context),
)
"""No names: one could be that of the expected value."""


def begin(has_answered: Callable[[], bool], refuse: Callable[[str], NoReturn]) -> None:
    """Audit this process from now on; `refuse` ends the job with a reason, past any handler of the tests."""

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        if event not in _EVENTS or _is_compiler(sys._getframe(1)) or not has_answered():
            return
        if event == "compile" and _only_computes(arguments[0]):
            return
        what = (
            f"a pickle that names {'.'.join(map(str, arguments))[:80]}" if "pickle" in event else "text or data as code"
        )
        refuse(f"a test runs {what}: what may be the program's may not run in the process that judges it")

    sys.addaudithook(hear)


def _only_computes(source: object) -> bool:
    if isinstance(source, bytes):
        # `eval` reads UTF-8, but a first line can declare another encoding to `compile`.
        return _computes(source) and _computes(source.decode(errors="replace"))
    return isinstance(source, str) and _computes(source)


def _computes(source: str | bytes) -> bool:
    try:
        tree = ast.parse(source.lstrip())
    except (SyntaxError, ValueError):
        return True  # running it fails
    except (RecursionError, MemoryError):
        return False
    return all(isinstance(node, _COMPUTING) for node in ast.walk(tree))


_EVENTS = frozenset({"compile", "pickle.find_class", "marshal.loads", "code.__new__"})


def _is_compiler(frame: types.FrameType) -> bool:
    module = frame.f_globals.get("__name__")
    return module in _RUNTIME or (module, frame.f_code.co_name) in _COMPILERS
