"""Wrong programs out of right ones: one place of the syntax tree is changed, as in mutation testing."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator

from benchmarks.mutants import COMPARISONS

Edit = Callable[[], object]

_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.FloorDiv,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.BitXor: ast.BitOr,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


def mutant(program: str, function: str, seed: str, first_line: int = 1) -> str | None:
    """Change one place of a function that the seed chooses; conditions and last statements of while loops stay.

    Args:
        program: A program.
        function: The name of one of its functions, of which the last counts.
        seed: Chooses the place.
        first_line: What stands above this line stays as it is.

    Returns:
        The changed program; None if there is no place to change.
    """
    tree = ast.parse(program)
    named = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function]
    statements = [statement for statement in named[-1].body if statement.lineno >= first_line]
    edits = [edit for statement in statements for edit in _edits(statement)]
    if not edits:
        return None
    random.Random(seed).choice(edits)()
    return ast.unparse(ast.fix_missing_locations(tree))


def _edits(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.While):  # a changed condition would mostly make the loop endless
        for statement in node.body[:-1]:
            yield from _edits(statement)
        return
    yield from _own_edits(node)
    for child in ast.iter_child_nodes(node):
        yield from _edits(child)


def _own_edits(node: ast.AST) -> Iterator[Edit]:
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in COMPARISONS:
            yield lambda: setattr(node, "ops", [COMPARISONS[type(operator)]()])
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if type(operator) in _ARITHMETIC:
            yield lambda: setattr(node, "op", _ARITHMETIC[type(operator)]())
        case ast.BoolOp(op=operator):
            yield lambda: setattr(node, "op", ast.Or() if isinstance(operator, ast.And) else ast.And())
        case ast.If(test=test) | ast.IfExp(test=test):
            yield lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), test))
        case ast.Return(value=ast.expr()):
            yield lambda: setattr(node, "value", ast.Constant(None))
        case ast.Constant(value=bool(value)):
            yield lambda: setattr(node, "value", not value)
        case ast.Constant(value=int(value) | float(value)):
            yield lambda: setattr(node, "value", value + 1)
        case ast.Constant(value=str(value)):
            yield lambda: setattr(node, "value", f"{value}x")
