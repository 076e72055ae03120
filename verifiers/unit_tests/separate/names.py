"""The meaning of names in test code, derived from the tests alone, so that no program can influence it."""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import symtable
import sys
from collections.abc import Sequence, Set as AbstractSet

from . import packages
from .report import TEST_FILE

_MODULES_OF_HELPERS = (
    "math", "collections", "itertools", "functools", "copy", "decimal", "fractions", "datetime", "statistics", "operator",
)  # fmt: skip
"""Modules whose functions tests use by bare name because they rely on the program's imports."""


@functools.cache
def helper(name: str) -> object | None:
    """The function or class of the standard library that a bare name in test code refers to; None if there is none."""
    for module in map(importlib.import_module, _MODULES_OF_HELPERS):
        if not name.startswith("_") and hasattr(module, name):
            function: object = getattr(module, name)
            return function
    return packages.judge(name)


def module_called(name: str) -> str | None:
    """The module of the standard library, or the package, that a bare name in test code refers to; None if there is none."""
    return name if name in sys.stdlib_module_names else packages.named(name)


def free_names(sources: Sequence[str]) -> set[str]:
    """Names that test code reads as globals in any scope, but never binds as globals."""
    return set(_free_names(tuple(sources)))


@functools.lru_cache(64)
def _free_names(sources: tuple[str, ...]) -> frozenset[str]:
    loaded: set[str] = set()
    bound: set[str] = set()
    tables = [symtable.symtable(source, TEST_FILE, "exec") for source in sources]
    for table in tables:  # the list grows in the loop
        tables += table.get_children()
        symbols = [symbol for symbol in table.get_symbols() if symbol.is_global() or table.get_type() == "module"]
        loaded |= {symbol.get_name() for symbol in symbols if symbol.is_referenced()}
        bound |= {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}
    return frozenset(loaded - bound)


def standard_names(sources: Sequence[str], names: set[str], imported: AbstractSet[str] = frozenset()) -> set[str]:
    """The free names that refer to the standard library, even if the program defines them.

    Args:
        sources: The test code.
        names: The free names of the test code.
        imported: The names that the prefix imports, from any module.

    Tests wrap the call in builtins and in functions that programs usually import (`set(f(x)) == ...`,
    `math.isclose(f(x), ...)`), which a program must not replace. Such a name is the program's only if the tests use no other
    name, so that no other name can be under test.
    """
    trees = [ast.parse(source) for source in sources]
    modules = set(filter(module_called, names & _names_with_attributes(*trees)))
    known = {name for name in names - modules if hasattr(builtins, name) or helper(name) is not None}
    ambiguous = known | (imported & names) - modules
    if names - modules - ambiguous:
        return modules | ambiguous
    return modules | ambiguous.difference(*(_tested(tree, ambiguous) for tree in trees))


def _tested(tree: ast.Module, names: set[str]) -> set[str]:
    """The names among `names` that a tree calls; builtins only if it calls nothing else, since a tree must test something."""
    called = _innermost_calls(tree) & names
    return {name for name in called if not hasattr(builtins, name)} or called


def _names_with_attributes(*trees: ast.Module) -> set[str]:
    """Names whose attributes the trees access."""
    nodes = (node for tree in trees for node in ast.walk(tree))
    return {node.value.id for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)}


def _innermost_calls(tree: ast.Module) -> set[str]:
    """Names of functions that are called without another named function in their arguments."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return {call.func.id for call in calls if isinstance(call.func, ast.Name) and not _has_inner_call(call)}


def _has_inner_call(call: ast.Call) -> bool:
    inner = (node for argument in call.args for node in ast.walk(argument))
    return any(isinstance(node, ast.Call) and isinstance(node.func, ast.Name) for node in inner)
