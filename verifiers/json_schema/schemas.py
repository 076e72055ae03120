"""Checks schemas before use, converts their patterns for Python, and keeps references inside the schema."""

from __future__ import annotations

import copy
from collections.abc import Container, Iterator
from fractions import Fraction
from typing import Any

from verifiers.json_schema.formats import FORMATS
from verifiers.json_schema.patterns import PatternError, python_pattern

_UNFAILING = {
    *("$anchor", "$comment", "$defs", "$dynamicAnchor", "$id", "$recursiveAnchor", "$schema", "$vocabulary"),
    *("contentEncoding", "contentMediaType", "contentSchema", "default", "definitions", "deprecated", "description"),
    *("examples", "id", "readOnly", "title", "writeOnly"),
}
"""Keywords of any draft that only name, describe or define something, so that no value can fail them."""


class SchemaError(ValueError):
    """A schema that can't judge any value; the argument says why."""


def validator_of(schema: object) -> Any:
    """A validator of `jsonschema` for a schema.

    Raises:
        SchemaError: If the schema is not valid, names an unknown dialect, has unknown keywords but no keyword that a value can
            fail, has a reference to something outside it, or has a pattern that can't be read.
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
    """Refuse a schema that any value fits because its keywords are misspelt, or because it is not a schema at all.

    JSON Schema ignores unknown keywords, so they are allowed if there is also a keyword that a value can fail.
    """
    unknown = [name for name in schema if name not in _UNFAILING]
    if unknown and not any(name in failing for name in unknown):
        raise SchemaError(
            f"any JSON would fit, since JSON Schema ignores its keys {', '.join(map(repr, unknown[:5]))}; expected a keyword "
            "that a value can fail, such as 'type', or in place of a schema an object with the keys 'schema' and 'expected'"
        )


def _inside(schema: Any, cls: Any) -> Any:
    """The registry for a schema, which never uses the network; all references and patterns of the schema are checked."""
    from jsonschema_specifications import REGISTRY
    from referencing import Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import specification_with

    specification = specification_with(cls.ID_OF(cls.META_SCHEMA))
    resource = specification.create_resource(schema)
    registry = REGISTRY.with_resource(resource.id() or "", resource).crawl()
    pending = [(registry.resolver_with_root(resource), resource)]
    unread = {id(content) for content in _objects(schema)}
    while pending:
        resolver, part = pending.pop()
        if id(part.contents) not in unread:  # not an object, already seen, or one of the dialects' own schemas
            continue
        unread.remove(id(part.contents))
        for keyword in ("$ref", "$dynamicRef"):
            if isinstance(reference := part.contents.get(keyword), str):
                try:
                    target = resolver.lookup(reference)
                except (Unresolvable, ValueError) as error:
                    raise SchemaError(
                        f"{keyword} {reference!r} leads to nothing in the schema, and no file or address is opened"
                    ) from error
                # The target may be under a key that is not a keyword, where no subschema is looked for.
                pending.append((target.resolver, Resource.from_contents(target.contents, specification)))
        _with_own_values(part.contents)
        pending += [(resolver.in_subresource(inner), inner) for inner in part.subresources()]
    return registry


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(inner)


def _with_own_values(content: dict[str, Any]) -> None:
    """Rewrite the patterns and divisors of a subschema, in place."""
    try:
        if isinstance(content.get("pattern"), str):
            content["pattern"] = python_pattern(content["pattern"])
        if isinstance(content.get("patternProperties"), dict):
            content["patternProperties"] = {
                python_pattern(pattern): inner for pattern, inner in content["patternProperties"].items()
            }
    except PatternError as error:
        raise SchemaError(str(error)) from error
    for keyword in ("multipleOf", "divisibleBy"):
        divisor: object = content.get(keyword)
        if isinstance(divisor, int | float):
            content[keyword] = _Multiple(divisor)


class _Multiple:
    """A value of `multipleOf` that divides numbers exactly, as decimals.

    The float 0.3 counts as 3/10, a multiple of 0.1. `jsonschema` divides floats inexactly, but takes the remainder of other
    types.
    """

    def __init__(self, value: float) -> None:
        self._value = value

    def __rmod__(self, number: float) -> Fraction:
        return _as_written(number) % _as_written(self._value)

    def __repr__(self) -> str:
        return repr(self._value)


def _as_written(number: Any) -> Fraction:
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


def _format_checker(jsonschema: Any) -> Any:
    checker = jsonschema.FormatChecker(formats=())
    for name, fits in FORMATS.items():
        checker.checks(name)(_on_texts(fits))
    return checker


def _on_texts(fits: Any) -> Any:
    return lambda value: not isinstance(value, str) or fits(value)
