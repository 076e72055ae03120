"""The names of an agent's settings, read from the source of its config, since importing the config would load torch."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path


def setting_names(home: str) -> Iterator[str]:
    """The field names of a settings dataclass, including those of its bases and nested dataclasses.

    Args:
        home: The dataclass, as module:Class. Its bases and the types of its fields are defined in the same module or imported
            from a module of `agents`, and the names of nested dataclasses end with Config.
    """
    module, _, name = home.partition(":")
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    body = ast.parse(Path(spec.origin).read_bytes()).body
    homes = {
        alias.name: f"{node.module}:{alias.name}"
        for node in body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
    homes |= {known: f"{module}:{known}" for known in classes}
    for base in classes[name].bases:
        yield from setting_names(homes[ast.unparse(base)])
    for node in classes[name].body:
        if not isinstance(node, ast.AnnAssign) or "ClassVar" in (annotation := ast.unparse(node.annotation)):
            continue
        nested = re.search(r"\w+Config\b", annotation)
        if nested is None:
            yield ast.unparse(node.target)
        else:
            yield from setting_names(homes[nested[0]])
