"""Partial credit: each assert of a check is a case."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from .report import MAX_TEXT, passed, refusals
from .rpc.session import Session


class AssertCases:
    """The asserts of a check as cases: each passes if it holds every time it is reached."""

    def __init__(
        self,
        write: Callable[..., None],
        session: Session,
        failed: Callable[[BaseException, int], dict[str, Any] | None],
    ) -> None:
        self._write = write
        self._session = session
        self._failed = failed
        self._held: dict[int, bool] = {}
        self._undecided: dict[int, str] = {}

    @contextlib.contextmanager
    def __call__(self, number: int, name: str, repeats: bool) -> Iterator[None]:
        """Guard the assert of this number; if it repeats, it may be reached again."""
        unsupported_uses, refused = self._session.unsupported_uses, refusals()
        result: dict[str, Any] = {"passed": True}
        try:
            yield
        except BaseException as error:  # noqa: BLE001 - recorded in the report
            result = self._failed(error, unsupported_uses) or result
        else:
            result = passed(refused)
        before = self._held.get(number, True)
        self._held[number] = before and result["passed"]
        if self._held[number] and repeats:
            self._undecided[number] = name
        elif before:
            self._undecided.pop(number, None)
            self._write(result, number=number, name=name)

    def finish(self) -> int:
        """Report the remaining cases after the check has ended, and return how many there were: those that were reached."""
        for number, name in self._undecided.items():
            self._write({"passed": True}, number=number, name=name)
        if not self._held:
            self._write({"passed": True}, name="check")
        return max(1, len(self._held))


class SplitAsserts(ast.NodeTransformer):
    """Turns each assert of a test into a case: `assert x` becomes a guarded statement that records its result and continues."""

    def __init__(self) -> None:
        self.count = 0
        self._loops = 0

    def _visit_repeated(self, node: ast.AST) -> ast.AST:
        self._loops += 1
        self.generic_visit(node)
        self._loops -= 1
        return node

    visit_For = visit_AsyncFor = visit_While = visit_AsyncFunctionDef = _visit_repeated

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Visit a function; any other than `check` itself may be called more than once."""
        outermost = node.name == "check" and not self._loops
        return self.generic_visit(node) if outermost else self._visit_repeated(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Put the statement in a `with __case__(...)`."""
        content = (self.count, ast.unparse(node)[:MAX_TEXT], self._loops > 0)
        self.count += 1
        call = ast.Call(ast.Name("__case__", ast.Load()), [ast.Constant(value) for value in content], [])
        return ast.copy_location(ast.With([ast.withitem(call)], [node]), node)
