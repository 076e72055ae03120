"""Secrets, such as the key of a server: what records show in their place.

`secret` reads one from an environment variable, so that it stands on no command line; `redacted` is what is written of
settings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from verifiers.errors import InvalidArgumentError

REDACTED = "<redacted>"
_SECRET_NAME = re.compile(
    r"(^|_)(api_?key|access_?key|private_?key|secret|password|passwd|passphrase|pwd|auth|authorization|credentials?"
    r"|(api|auth|access|bearer|refresh|hf)_?token)(_|$)|^token$"
)
"""Names of settings that hold secrets. Not `eos_token`, `max_new_tokens` and the like, which are about text."""
_URL_PASSWORD = re.compile(r"(?<=://)[^\s/@]*:[^\s/@]*(?=@)")
"""Name and password in an address, as in `http://name:password@host`."""
_VARIABLE = re.compile(r"env:([A-Za-z_]\w*)")


class Secret(str):
    """Text of an environment variable; in messages and records it is the variable's name, as `env:NAME`."""

    __slots__ = ("source",)
    source: str

    def __new__(cls, text: str, source: str) -> Secret:
        """Take the text, and what is shown in its place."""
        made = super().__new__(cls, text)
        made.source = source
        return made

    def __reduce__(self) -> tuple[type[Secret], tuple[str, str]]:
        return Secret, (str(self), self.source)

    def __repr__(self) -> str:
        return repr(self.source)


def secret(value: Any) -> Any:
    """Replace every text `env:NAME` in a setting, in lists and mappings too, by what the environment variable holds.

    Raises:
        InvalidArgumentError: If there is no such variable.
    """
    if isinstance(value, Mapping):
        return {name: secret(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(secret, value))
    variable = _VARIABLE.fullmatch(value) if isinstance(value, str) else None
    if variable is None:
        return value
    if variable[1] not in os.environ:
        raise InvalidArgumentError(
            f"{value!r} is the environment variable {variable[1]}, which is not set: export it first"
        )
    return Secret(os.environ[variable[1]], value)


def redacted(value: Any) -> Any:
    """Give settings as records may hold them.

    Left out are the values of secret names, those of environment variables, and passwords in addresses.
    """
    if isinstance(value, Secret):
        return value.source
    if isinstance(value, Mapping):
        return {name: _redacted_setting(name, each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(each) for each in value]
    return _URL_PASSWORD.sub(REDACTED, value) if isinstance(value, str) else value


def _redacted_setting(name: object, value: Any) -> Any:
    plain = str(name).lower().replace("-", "_")
    named = isinstance(value, str) and _VARIABLE.fullmatch(value)
    hidden = _SECRET_NAME.search(plain) and value is not None and not isinstance(value, Secret) and not named
    return REDACTED if hidden else redacted(value)
