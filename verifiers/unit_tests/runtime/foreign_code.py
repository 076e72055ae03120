"""No text of the program becomes code among its tests.

The tester holds what was expected and writes the report, so whatever runs in it decides. Test code may run text as code, as
`eval`, `typing.get_type_hints`, `doctest` and `pickle` do, and text may come from the program. The interpreter tells of each
compilation before it happens: allowed is the text of the tests themselves, what the standard library makes of checked names,
and expressions that can do nothing but compute. Anything else ends in an error that says that it is not supported.
"""

from __future__ import annotations

import ast
import builtins
import sys
import typing
from collections.abc import Callable, Collection, Iterable

from .pytest_subset import UnsupportedTestError

_MAKERS = frozenset(
    {"importlib._bootstrap", "importlib._bootstrap_external", "_frozen_importlib", "_frozen_importlib_external"}
    | {"ast", "collections", "dataclasses", "types", "unittest.mock"}
)
"""Modules that compile modules, trees only, or sources of their own with names in them that they have checked, or that give
functions other flags."""
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
"""What an expression may call: these functions, and all of these modules."""
_NAMES = frozenset({*dir(builtins), *typing.__all__, *_MATHEMATICS, "typing", "collections"})
"""What it may name, as annotations do. Names of the tests are none of it: one could be that of what is expected."""
_UNPICKLED = frozenset(
    {f"builtins.{name}" for name in ("bytearray", "complex", "frozenset", "object", "range", "set", "slice")}
    | {f"collections.{name}" for name in ("Counter", "OrderedDict", "defaultdict", "deque")}
    | {f"datetime.{name}" for name in ("date", "datetime", "time", "timedelta", "timezone")}
    | {"_codecs.encode", "copyreg._reconstructor", "decimal.Decimal", "fractions.Fraction"}
)
"""What a pickle may name: classes of plain data."""

_sources: Collection[str] = ()
"""The test code of the job."""


def watch() -> None:
    """Begin to watch, in a tester and for all its life."""
    sys.addaudithook(_judge)


def belongs_to_tests(sources: Iterable[str]) -> None:
    """Say what the test code of the next job is."""
    global _sources
    _sources = tuple(sources)


def _judge(event: str, arguments: tuple[object, ...]) -> None:
    judge = _JUDGES.get(event)
    if judge is not None and not _is_maker(sys._getframe(1).f_globals.get("__name__")):
        judge(*arguments)


def _is_maker(module: object) -> bool:
    return isinstance(module, str) and (module in _MAKERS or module.partition(".")[0] == "runtime")


def _judge_text(source: object, *_: object) -> None:
    if isinstance(source, str):
        allowed = _is_own(source) or _only_computes(source)
    elif isinstance(source, bytes | bytearray | memoryview):
        # What `eval` reads as UTF-8 a first line can declare to be in another encoding to `compile`.
        text = bytes(source).decode(errors="replace")
        allowed = _is_own(text) or (_only_computes(text) and _only_computes(bytes(source)))
    else:
        allowed = False
    if not allowed:
        _refuse("text as code that is not its own")


def _is_own(text: str) -> bool:
    """Whether test code has this as a literal; a name alone could be that of what is expected."""
    own = _without_margins(text)
    literals = (
        node.value for source in _sources for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)
    )
    return not own.isidentifier() and own in {_without_margins(each) for each in literals if isinstance(each, str)}


def _without_margins(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


def _only_computes(source: str | bytes) -> bool:
    try:
        tree = ast.parse(source.lstrip())
    except (SyntaxError, ValueError):
        return True  # it is going to fail
    except (RecursionError, MemoryError):
        return False
    return all(map(_computes, ast.walk(tree)))


def _computes(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        root, _, rest = ast.unparse(node.func).partition(".")
        return root in (_MATHEMATICS if rest else _FUNCTIONS) and not node.keywords
    if isinstance(node, ast.Name):
        return node.id in _NAMES and not node.id.startswith("_")
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name | ast.Attribute) and not node.attr.startswith("_")
    return isinstance(node, _COMPUTING)


def _judge_pickle(module: object, name: object) -> None:
    if f"{module}.{name}" not in _UNPICKLED:
        _refuse(f"a pickle that names {str(module)[:40]}.{str(name)[:40]}")


def _refuse(what: str = "compiled code") -> None:
    raise UnsupportedTestError(f"a test runs {what}: what a program gives may not run in the process that judges it")


_JUDGES: dict[str, Callable[..., None]] = {
    "compile": _judge_text,
    "pickle.find_class": _judge_pickle,
    "marshal.loads": lambda *_: _refuse(),
    "code.__new__": lambda *_: _refuse(),
}
