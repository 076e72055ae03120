"""Keeps text from the program from running as code in the tester.

The tester holds the expected values and writes the report, so code that runs in it decides the verdict. Test code may run
text as code, as `eval`, `typing.get_type_hints`, `timeit` and `pickle` do, and the text may come from the program. The
interpreter raises an audit event before each compilation. Anything may run until the program has answered, and later a
literal of the tests, and an expression that only computes. Anything else ends the job as unsupported.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterator
from typing import NoReturn

_COMPILERS = frozenset(
    {(name, "_compile_bytecode") for name in ("importlib._bootstrap_external", "_frozen_importlib_external")}
    | {(name, "_call_with_frames_removed") for name in ("importlib._bootstrap", "_frozen_importlib")}
    | {("ast", "parse"), ("collections", "namedtuple"), ("dataclasses", "_create_fn"), ("types", "coroutine")}
    | {("unittest.mock", "_set_signature")}
)
"""Functions that compile modules, trees only, or their own sources with checked names in them, or that change a function's
flags. Functions rather than whole modules: a builtin that such a module calls appears under the module's name."""
_RUNTIME = frozenset({"sandbox.protocol.source_files", "sandbox.tester.analysis.compilation", "sandbox.tester.tester"})
_COMPUTING = (
    *(ast.Module, ast.Expr, ast.Constant, ast.Subscript, ast.Slice, ast.Starred, ast.IfExp),
    *(ast.Tuple, ast.List, ast.Set, ast.Dict, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context),
)
_FUNCTIONS = frozenset(
    {"abs", "all", "any", "bool", "complex", "divmod", "float", "int", "len", "list", "max", "min", "pow", "range"}
    | {"reversed", "round", "set", "sorted", "str", "sum", "tuple"}
)
_MATHEMATICS = frozenset({"math", "cmath"})
"""Modules whose functions an expression may call, besides `_FUNCTIONS`."""
_NAMES = frozenset({*dir(builtins), *typing.__all__, *_MATHEMATICS, "typing"})
"""Names that an expression may use, as annotations do, unless the tests bind them: then one could be the expected value."""


class Watch:
    """Audits the code that one job runs."""

    def __init__(
        self, sources: Collection[str], has_answered: Callable[[], bool], refuse: Callable[[str], NoReturn]
    ) -> None:
        """Start to audit the test code; `refuse` ends the job with a reason, past any handler of the tests."""
        self._sources = sources
        self._has_answered = has_answered
        self._refuse = refuse

    def judge(self, event: str, arguments: tuple[object, ...]) -> None:
        """Refuse code that may come from the program."""
        if not self._has_answered():
            return
        if event == "compile":
            self._judge_text(arguments[0])
        elif event == "pickle.find_class":
            self._end(f"a pickle that names {'.'.join(map(str, arguments))[:80]}")
        else:
            self._end("compiled code")

    def _judge_text(self, source: object) -> None:
        if isinstance(source, bytes | bytearray | memoryview):
            text = bytes(source).decode(errors="replace")
            # `eval` reads UTF-8, but a first line can declare another encoding to `compile`.
            computes = self._only_computes(text) and self._only_computes(bytes(source))
            allowed = computes or (self._is_literal(text) and b"coding" not in bytes(source))
        else:
            allowed = isinstance(source, str) and (self._only_computes(source) or self._is_literal(source))
        if not allowed:
            self._end("text as code that may be the program's")

    def _is_literal(self, text: str) -> bool:
        """Whether test code has this as a literal; not if it is a bare name, which could be that of the expected value."""
        own = _without_margins(text)
        constants = (node.value for node in self._nodes() if isinstance(node, ast.Constant))
        literals = (value for value in constants if isinstance(value, str))
        return not own.isidentifier() and own in map(_without_margins, literals)

    def _only_computes(self, source: str | bytes) -> bool:
        try:
            tree = ast.parse(source.lstrip())
        except (SyntaxError, ValueError):
            return True  # running it fails
        except (RecursionError, MemoryError):
            return False
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        return all(map(_computes, ast.walk(tree))) and names.isdisjoint(self._bound())

    def _bound(self) -> set[str]:
        """Names that the tests bind."""
        names: set[str] = set()
        for node in self._nodes():
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                names.add(node.id)
            elif isinstance(node, ast.arg):
                names.add(node.arg)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.alias) and node.asname:
                names.add(node.asname)
        return names

    def _nodes(self) -> Iterator[ast.AST]:
        for source in self._sources:
            with contextlib.suppress(SyntaxError):  # a prompt may end inside a statement
                yield from ast.walk(ast.parse(source))

    def _end(self, what: str) -> NoReturn:
        self._refuse(f"a test runs {what}: text from a program may not run in the process that judges it")


_watch: Watch | None = None


def begin(watch: Watch) -> None:
    """Audit a job, in place of the previous one."""
    global _watch
    if _watch is None:
        sys.addaudithook(_hear)
    _watch = watch


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if event in _EVENTS and _watch is not None and not _is_compiler(sys._getframe(1)):
        _watch.judge(event, arguments)


_EVENTS = frozenset({"compile", "pickle.find_class", "marshal.loads", "code.__new__"})


def _is_compiler(frame: types.FrameType) -> bool:
    module = frame.f_globals.get("__name__")
    return module in _RUNTIME or (module, frame.f_code.co_name) in _COMPILERS


def _without_margins(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


def _computes(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        root, _, rest = ast.unparse(node.func).partition(".")
        return root in (_MATHEMATICS if rest else _FUNCTIONS) and not node.keywords
    if isinstance(node, ast.Name):
        return node.id in _NAMES and not node.id.startswith("_")
    if isinstance(node, ast.Attribute):
        known = _MATHEMATICS | {"typing"}
        return isinstance(node.value, ast.Name) and node.value.id in known and node.attr in _public(node.value.id)
    return isinstance(node, _COMPUTING)


def _public(module: str) -> Collection[str]:
    return typing.__all__ if module == "typing" else {name for name in dir(sys.modules.get(module)) if name[0] != "_"}
