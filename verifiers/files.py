"""A verifier described in a TOML or JSON file, so that the command line can name one with many settings.

A table with the key `verifier` is a verifier: that key names it, as for `verifiers.make`, and the other keys are its arguments,
which may be such tables in turn. A text `env:NAME` is replaced by the value of that environment variable.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard

from verifiers.errors import InvalidArgumentError
from verifiers.redaction import redacted, secret

_SUFFIXES = (".toml", ".json")
_KEY = "verifier"


def is_verifier_file(spec: object) -> TypeGuard[str]:
    """Whether a verifier specification names a file."""
    return isinstance(spec, str) and spec.endswith(_SUFFIXES)


def read_verifier_file(path: str) -> dict[str, Any]:
    """Read the contents of a verifier file as they are written: secrets remain the names of their variables.

    Raises:
        InvalidArgumentError: If there is no such file, it can't be parsed, or it holds no verifier.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        content = (
            tomllib.loads(text) if path.endswith(".toml") else json.loads(text, object_pairs_hook=_without_repeats)
        )
    except OSError as error:
        raise InvalidArgumentError(f"can't read the verifier file {path}: {error.strerror}") from error
    except ValueError as error:  # from either parser, or the file is not UTF-8
        raise InvalidArgumentError(f"the verifier file {path} can't be parsed: {error}") from error
    if not isinstance(content, dict):
        raise InvalidArgumentError(f"the verifier file {path} must hold a table, got {content!r}")
    _check(content, path, "", is_verifier=True)
    return content


def spec_of_file(path: str) -> tuple[str, dict[str, Any]]:
    """The verifier in a file: its name and its arguments; arguments that are verifiers are such pairs, too.

    Raises:
        InvalidArgumentError: If the file holds no verifier, or an environment variable that it names is not set.
    """
    name, arguments = _pairs(secret(read_verifier_file(path)))
    return name, arguments


def verifier_record(name: str, arguments: Mapping[str, Any]) -> tuple[str, Any]:
    """A verifier's name and arguments as kept in records, without secrets; for a file, the arguments are its contents."""
    return name, redacted(read_verifier_file(name) if is_verifier_file(name) else dict(arguments))


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {repeated!r} occurs twice in one object")
    return content


def _check(value: object, path: str, key: str, *, is_verifier: bool = False) -> None:
    """Check that every `verifier` in a file is a name and not another file, whose contents a record would not show."""
    where = f"{path}: {key}" if key else path
    if isinstance(value, dict):
        if is_verifier and _KEY not in value:
            raise InvalidArgumentError(
                f"{where} must have the key {_KEY!r}, which names the verifier; got {list(value)}"
            )
        name = value.get(_KEY, "exact")
        if not isinstance(name, str) or is_verifier_file(name):
            raise InvalidArgumentError(
                f"{where}: the key {_KEY!r} must be a verifier's name or module:attribute, got {name!r}"
            )
    if isinstance(value, dict | list):
        for name, item in value.items() if isinstance(value, dict) else enumerate(value):
            _check(item, path, f"{key}.{name}" if key else str(name))


def _pairs(value: Any) -> Any:
    if isinstance(value, dict):
        arguments = {name: _pairs(item) for name, item in value.items() if name != _KEY}
        return (value[_KEY], arguments) if _KEY in value else arguments
    return [_pairs(item) for item in value] if isinstance(value, list) else value
