"""Schemas: checked before anything is judged by them, with patterns as Python reads them and references that stay inside."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Container
from typing import Any

from verifiers.json_schema.formats import FORMATS

_UNFAILING = {
    *("$anchor", "$comment", "$defs", "$dynamicAnchor", "$id", "$recursiveAnchor", "$schema", "$vocabulary"),
    *("contentEncoding", "contentMediaType", "contentSchema", "default", "definitions", "deprecated", "description"),
    *("examples", "id", "readOnly", "title", "writeOnly"),
}
"""Keywords of any draft that name, describe or define something, so that no value can fail them."""


class SchemaError(ValueError):
    """A schema that nothing can be judged by; the argument says why."""


def validator_of(schema: object) -> Any:
    """A validator of `jsonschema` for a schema.

    Raises:
        SchemaError: If it is no valid schema, names an unknown dialect, has unknown keywords and none that a value can fail,
            refers to what it does not contain, or has a pattern that Python can't read.
    """
    import jsonschema
    from jsonschema.validators import validator_for

    if not isinstance(schema, dict | bool):
        raise SchemaError(f"a schema is an object, true or false, got {type(schema).__name__}")
    cls = validator_for(schema, default=None) if isinstance(schema, dict) and "$schema" in schema else None
    if cls is None and isinstance(schema, dict) and "$schema" in schema:
        raise SchemaError(f"the dialect {schema['$schema']!r} is not known")
    cls = cls or jsonschema.Draft202012Validator
    try:
        cls.check_schema(schema, format_checker=jsonschema.FormatChecker(formats=()))  # patterns are read below
    except jsonschema.SchemaError as error:
        raise SchemaError(f"not a valid schema: {error.message} at {error.json_path}") from error
    if isinstance(schema, dict):
        _check_keywords(schema, cls.VALIDATORS)
    own = copy.deepcopy(schema)
    registry = _inside(own, cls)
    return cls(own, registry=registry, format_checker=_format_checker(jsonschema))


def _check_keywords(schema: dict[str, Any], failing: Container[str]) -> None:
    """Refuse a schema that any value fits because its keywords are misspelt, or because it is no schema at all.

    JSON Schema ignores a keyword that it does not know, so beside one that a value can fail any other may stand.
    """
    unknown = [name for name in schema if name not in _UNFAILING]
    if unknown and not any(name in failing for name in unknown):
        raise SchemaError(
            f"any JSON would fit, since JSON Schema ignores its keys {', '.join(map(repr, unknown[:5]))}; expected a keyword "
            "that a value can fail, such as 'type', or in place of a schema an object with the keys 'schema' and 'expected'"
        )


def _inside(schema: Any, cls: Any) -> Any:
    """The registry of a schema, which never asks the network, after a look at every reference and pattern."""
    from jsonschema_specifications import REGISTRY
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import specification_with

    specification = specification_with(cls.ID_OF(cls.META_SCHEMA))
    resource = specification.create_resource(schema)
    registry = REGISTRY.with_resource(resource.id() or "", resource).crawl()
    pending = [(registry.resolver_with_root(resource), resource)]
    while pending:
        resolver, part = pending.pop()
        if not isinstance(part.contents, dict):
            continue
        for keyword in ("$ref", "$dynamicRef"):
            if isinstance(reference := part.contents.get(keyword), str):
                try:
                    resolver.lookup(reference)
                except (Unresolvable, ValueError) as error:
                    raise SchemaError(
                        f"{keyword} {reference!r} leads to nothing in the schema, and no file or address is opened"
                    ) from error
        _with_own_patterns(part.contents)
        pending += [(resolver.in_subresource(inner), inner) for inner in part.subresources()]
    return registry


def _with_own_patterns(content: dict[str, Any]) -> None:
    """Rewrite the patterns of a subschema, in place."""
    if isinstance(content.get("pattern"), str):
        content["pattern"] = python_pattern(content["pattern"])
    if isinstance(content.get("patternProperties"), dict):
        content["patternProperties"] = {
            python_pattern(pattern): inner for pattern, inner in content["patternProperties"].items()
        }


_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?<(?=[A-Za-z_])|\$|.", re.DOTALL)
_ASCII = {r"\d": "[0-9]", r"\D": "[^0-9]", r"\w": "[A-Za-z0-9_]", r"\W": "[^A-Za-z0-9_]"}
_ASCII_IN_CLASS = {r"\d": "0-9", r"\w": "A-Za-z0-9_"}


def python_pattern(pattern: str) -> str:
    r"""A pattern of ECMA-262 as Python reads it: there `$` is the very end, and `\d` and `\w` are ASCII.

    Raises:
        SchemaError: If Python can't read it.
    """
    pieces = [_piece(match[0]) for match in _PIECE.finditer(pattern)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of signs in sets that Python may read otherwise one day
            re.compile("".join(pieces))
    except (re.error, RecursionError, OverflowError) as error:
        raise SchemaError(f"Python can't read the pattern {pattern!r}: {error}") from error
    return "".join(pieces)


def _piece(piece: str) -> str:
    if piece == "$":
        return r"\Z"
    if piece == "(?<":
        return "(?P<"
    if piece.startswith("[") and len(piece) > 1:
        return re.sub(r"\\.", lambda escape: _ASCII_IN_CLASS.get(escape[0], escape[0]), piece)
    return _ASCII.get(piece, piece)


def _format_checker(jsonschema: Any) -> Any:
    checker = jsonschema.FormatChecker(formats=())
    for name, fits in FORMATS.items():
        checker.checks(name)(_on_texts(fits))
    return checker


def _on_texts(fits: Any) -> Any:
    return lambda value: not isinstance(value, str) or fits(value)
