"""Checks the modules and names that test code uses, before the program runs: some may be missing, and some are refused."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
from collections.abc import Collection, Iterable

from . import names, packages
from .report import UnsupportedTestError

_MODULES = """
unittest.mock mock marshal asyncio threading multiprocessing subprocess concurrent.futures inspect pickle copyreg doctest timeit
warnings logging tempfile builtins code codeop runpy pdb bdb profile cProfile trace
"""
_MEMBERS = """
redirect_stdout redirect_stderr get_type_hints assertWarns assertWarnsRegex assertLogs
assertNoLogs expectedFailure IsolatedAsyncioTestCase dataclasses.asdict dataclasses.astuple dataclasses.fields
dataclasses.is_dataclass dataclasses.replace sys.stdin sys.stdout sys.stderr sys.argv os.environ
os.fdopen os.read os.write os.pread os.pwrite os.dup os.dup2 os.open io.open io.FileIO
"""
_BUILTINS = "eval exec compile globals open __builtins__"
"""Modules, members of modules, and builtins that are refused: they act on the tests' own process instead of the program's, look
into the program's objects, or run text.
"""
_OF_PYTEST = re.compile(r"pytest\.(?!(raises|approx|skip|fail|main)\b)\w+")
"""Matches unsupported members of pytest; `main` is allowed, for files that are also scripts."""

_SUSPECT = re.compile("import|" + "|".join(map(re.escape, f"{_MEMBERS} {_BUILTINS} query".split())))
"""Matches words that require a closer look at the code, which takes a millisecond."""


def check(sources: Iterable[str], given: Collection[str]) -> None:
    """Check test code.

    Args:
        sources: The code.
        given: Modules that the tests get besides the standard library and packages.

    Raises:
        UnsupportedTestError: If the code uses anything unsupported.
        ModuleNotFoundError: If the code imports a missing module outside of a `try`.
    """
    known = {name.partition(".")[0] for name in given}
    for source in filter(_SUSPECT.search, sources):
        used = imported(source) & {*_MODULES.split(), *_MEMBERS.split()}
        used |= set(filter(_OF_PYTEST.fullmatch, imported(source)))
        used |= names.free_names([source]) & {*_BUILTINS.split()}
        if packages.is_package("pandas"):
            used |= imported(source) & {"query", "eval"}  # pandas runs text that these functions get
        if used:
            raise UnsupportedTestError(f"tests that use {', '.join(sorted(used))} are not supported")
        for name in sorted(_needed(source) - known):
            if importlib.util.find_spec(name) is None:
                raise ModuleNotFoundError(f"the tests import {name!r}, which is not there", name=name)


@functools.lru_cache(64)
def imported(source: str) -> frozenset[str]:
    """Modules that code imports, names that it imports from them, and attributes that it uses, alone and with their owners."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module or "", *(alias.name for alias in node.names)}
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute):
            found |= {node.attr, ast.unparse(node)}
    return frozenset(found)


@functools.lru_cache(64)
def _needed(source: str) -> frozenset[str]:
    """Top-level names of the modules that code imports outside of a `try`."""
    tree = ast.parse(source)
    tried = {inner for node in ast.walk(tree) if isinstance(node, ast.Try) for inner in ast.walk(node)}
    nodes = [node for node in ast.walk(tree) if node not in tried]
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level]
    return frozenset(name.partition(".")[0] for name in modules)
