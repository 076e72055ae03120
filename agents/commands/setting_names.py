"""The names of an agent's settings, read from the source of its config: importing that would load torch."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path


def setting_names(home: str) -> Iterator[str]:
    """The names of the fields of a dataclass of settings, with those of its bases and of the dataclasses in it.

    Args:
        home: Its module:Class. Its bases and fields come from the same module or are imported from one of `agents`, and the
            name of a dataclass in it ends with Config.
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
