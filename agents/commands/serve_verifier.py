"""`rlvr serve-verifier`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro
from rich.console import Console

import verifiers
from agents.commands.common import DEVICE, check_at_least, on_device, verifier_arguments
from agents.interrupts import sigterm_interrupts
from agents.loopback import is_loopback, listen
from verifiers import InvalidArgumentError, Secret, missing_dependency


@dataclass(frozen=True)
class ServeVerifier:
    """Serve a verifier over HTTP: POST /verify, POST /get_reward (OpenRLHF), GET /health."""

    verifier: str = "math"
    """Verifier's name, rewards.py:function, or a file that describes one, my_verifier.toml."""
    args: Annotated[tuple[str, ...], tyro.conf.arg(aliases=("--verifier-args",))] = ()
    """Arguments of the verifier, each as name=value."""
    host: str = "127.0.0.1"
    """Address to listen on; one that other machines can reach needs --token."""
    port: int = 8000
    """Port to listen on; 0 takes a free one."""
    token: Annotated[str | None, tyro.conf.arg(metavar="env:NAME")] = None
    """Token that requests must carry, given as env:NAME, the environment variable that holds it."""
    max_items: int = 1024
    """Maximum number of completions in one request."""
    max_bytes: int = 16777216
    """Maximum number of bytes in one request."""
    max_waiting: int = 8192
    """Maximum number of completions that may wait for a verdict."""
    batch_size: int = 256
    """Maximum number of completions that the verifier judges in one batch."""
    end_of_text: tuple[str, ...] = ()
    """End tokens as text, such as '<|im_end|>', where OpenRLHF's queries end in them."""
    device: str = DEVICE
    """Device for models: cpu, cuda, xpu, mps, or one of several, such as cuda:1; "auto" is the device in the variable
    RLVR_DEVICE, or else the first available one of cuda, xpu and mps."""

    def __post_init__(self) -> None:
        check_at_least(
            1,
            max_items=self.max_items,
            max_bytes=self.max_bytes,
            max_waiting=self.max_waiting,
            batch_size=self.batch_size,
        )
        check_at_least(0, port=self.port)
        if self.port > 65535:
            raise InvalidArgumentError(f"--port must be at most 65535, got {self.port}")

    @on_device
    def run(self, console: Console) -> int:
        """Serve until interrupted."""
        token = _token(self.token)
        try:
            from agents.serving.app import create_app
            from agents.serving.guard import RequestLimits
            from agents.serving.server import serve
        except ModuleNotFoundError as error:
            raise missing_dependency(error.name or "fastapi", "server", "rlvr serve-verifier") from error
        if token is None and not is_loopback(self.host):
            raise InvalidArgumentError(
                f"--host {self.host} can be reached from elsewhere, which needs a token: export one, and name its variable "
                "with --token env:NAME"
            )
        verifier = verifiers.make(self.verifier, **verifier_arguments(self.args))
        limits = RequestLimits(self.max_items, self.max_bytes, self.max_waiting, self.batch_size)
        app = create_app(verifier, self.verifier, token=token, limits=limits, end_of_text=self.end_of_text)

        def ready(address: str) -> None:
            console.print(f"serving {self.verifier} at {address}", markup=False, highlight=False, soft_wrap=True)

        with sigterm_interrupts(), listen(self.host, self.port) as listener:
            serve(app, listener, ready)
        return 0


def _token(setting: str | None) -> str | None:
    """The token that a setting names.

    Raises:
        InvalidArgumentError: If it is written out, where every user of the machine can read it, or empty.
    """
    value = verifiers.secret(setting)
    if value is not None and not isinstance(value, Secret):
        raise InvalidArgumentError("--token names an environment variable, as env:NAME: a command line is no secret")
    if value == "":
        raise InvalidArgumentError(f"the token in {setting} is empty")
    return None if value is None else str(value)
