"""Shared code of the commands that serve over HTTP: the address, the token, and serving until interrupted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from rich.console import Console

import verifiers
from agents.interrupts import sigterm_interrupts
from agents.loopback import is_loopback, listen
from verifiers import Between, InvalidArgumentError, Secret, missing_dependency

if TYPE_CHECKING:
    from fastapi import FastAPI


Port = Annotated[int, Between(0, 65535)]
"""A port to listen on; 0 takes a free port."""


def served(
    console: Console,
    command: str,
    name: str,
    make_app: Callable[[str | None], FastAPI],
    *,
    host: str,
    port: int,
    token: str | None,
) -> int:
    """Serve until interrupted.

    Args:
        console: Console on which the service and its address are printed.
        command: The command, for a message that names a missing package.
        name: Name of the service.
        make_app: Makes the service, given the token that requests must carry.
        host: Address to listen on.
        port: Port to listen on.
        token: The token in the form env:NAME, as it was given.

    Returns:
        The exit code.
    """
    secret = _token(token)
    try:
        from agents.serving.server import serve
    except ModuleNotFoundError as error:
        raise missing_dependency(error.name or "fastapi", "server", command) from error
    if secret is None and not is_loopback(host):
        raise InvalidArgumentError(
            f"--host {host} can be reached from elsewhere, which needs a token: export one, and name its variable with --token "
            "env:NAME"
        )
    app = make_app(secret)

    def ready(address: str) -> None:
        console.print(f"serving {name} at {address}")

    with sigterm_interrupts(), listen(host, port) as listener:
        serve(app, listener, ready)
    return 0


def _token(setting: str | None) -> str | None:
    """The token in the environment variable that a setting names."""
    value = verifiers.secret(setting)
    if value is not None and not isinstance(value, Secret):
        raise InvalidArgumentError("--token names an environment variable, as env:NAME: a command line is no secret")
    if value == "":
        raise InvalidArgumentError(f"the token in {setting} is empty")
    return None if value is None else str(value)
