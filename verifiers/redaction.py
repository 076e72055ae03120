"""Secrets, such as the key of a server, and what records show in place of secrets.

`secret` reads a secret from an environment variable, so that it is not on a command line; `redacted` gives settings without
secrets.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from verifiers.errors import InvalidArgumentError

REDACTED = "<redacted>"
_SECRET_NAME = re.compile(
    r"(^|_)(api_?key|access_?key|private_?key|secret|password|passwd|passphrase|pwd|auth|authorization|credentials?|bearer"
    r"|cookie|(api|auth|access|bearer|refresh|hf)_?token)(_|$)|^token$|_key$"
)
"""Matches names of settings that hold secrets, but not `eos_token`, `max_new_tokens` and the like, which concern text."""
_URL_PASSWORD = re.compile(r"(?<=://)[^\s/@]*:[^\s/@]*(?=@)")
"""Matches the name and password in an address, as in `http://name:password@host`."""
_URL_SECRET = re.compile(r"(?<=[?&])([\w.-]+)=([^\s&#]+)")
"""Matches a parameter in an address, as in `https://host/path?api_key=...`."""
_VARIABLE = re.compile(r"env:([A-Za-z_]\w*)")


class Secret(str):
    """Text of an environment variable; messages and records show the variable's name instead, as `env:NAME`."""

    __slots__ = ("source",)
    source: str

    def __new__(cls, text: str, source: str) -> Secret:
        """Take the text, and the name that is shown instead of it."""
        made = super().__new__(cls, text)
        made.source = source
        return made

    def __reduce__(self) -> tuple[type[Secret], tuple[str, str]]:
        return Secret, (str(self), self.source)

    def __repr__(self) -> str:
        return repr(self.source)


def secret(value: Any) -> Any:
    """Replace every text `env:NAME` in a setting, in lists and mappings too, by the value of the environment variable.

    Raises:
        InvalidArgumentError: If the environment variable is not set.
    """
    if isinstance(value, Mapping):
        return {name: secret(setting) for name, setting in value.items()}
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
    """Settings in the form in which records may hold them.

    The values of secret names and of environment variables are left out, as are passwords and secret parameters in addresses.
    """
    if isinstance(value, Secret):
        return value.source
    if isinstance(value, Mapping):
        return {name: _redacted_setting(name, setting) for name, setting in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(item) for item in value]
    if not isinstance(value, str):
        return value
    return _URL_SECRET.sub(_redacted_parameter, _URL_PASSWORD.sub(REDACTED, value)) if "://" in value else value


def _redacted_parameter(match: re.Match[str]) -> str:
    return f"{match[1]}={REDACTED}" if _is_secret(match[1]) else match[0]


def _is_secret(name: object) -> bool:
    return _SECRET_NAME.search(str(name).lower().replace("-", "_")) is not None


def _redacted_setting(name: object, value: Any) -> Any:
    named = isinstance(value, str) and _VARIABLE.fullmatch(value)
    hidden = _is_secret(name) and value is not None and not isinstance(value, Secret) and not named
    return REDACTED if hidden else redacted(value)
