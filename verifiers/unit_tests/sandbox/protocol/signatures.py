"""Signatures of functions: taken apart for sending, and rebuilt on the other side."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any


def signature_parts(function: Callable[..., object]) -> list[object]:
    """Name, kind, default and annotation of each parameter, and the result's annotation; lists of one item, or empty."""
    signature = inspect.signature(function)

    def item_of(value: object) -> list[object]:
        return [] if value is inspect.Parameter.empty else [value]

    parameters = [
        [p.name, int(p.kind), item_of(p.default), item_of(p.annotation)] for p in signature.parameters.values()
    ]
    return [parameters, item_of(signature.return_annotation)]


def signature_of_parts(parts: Sequence[Any], returned: list[object]) -> Any:
    """Rebuild an `inspect.Signature` from its parts; TypeError or ValueError if they make none."""
    parameters = [
        inspect.Parameter(name, kind, **_keyword("default", default), **_keyword("annotation", annotation))
        for name, kind, default, annotation in parts
    ]
    return inspect.Signature(parameters, **_keyword("return_annotation", returned))


def annotations_of_parts(parts: Sequence[Any], returned: list[object]) -> dict[str, object]:
    """The `__annotations__` of a function with such a signature."""
    annotations = {name: annotation[0] for name, _, _, annotation in parts if annotation}
    return annotations | _keyword("return", returned)


def _keyword(name: str, value: list[object]) -> dict[str, Any]:
    """A keyword argument of this name, or none."""
    return {name: value[0]} if value else {}
