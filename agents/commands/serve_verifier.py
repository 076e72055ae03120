"""The command `rlvr serve-verifier`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console

import verifiers
from agents.commands.common import DEVICE, Device, on_device, verifier_arguments
from agents.commands.serving import Port, served
from verifiers import AtLeast

if TYPE_CHECKING:
    from fastapi import FastAPI


@dataclass(frozen=True)
class ServeVerifier:
    """Serve a verifier over HTTP: POST /verify, POST /get_reward (OpenRLHF), GET /health."""

    verifier: str = "math"
    """Verifier's name, rewards.py:function, or a file that describes a verifier, such as my_verifier.toml."""
    args: Annotated[tuple[str, ...], tyro.conf.arg(aliases=("--verifier-args",))] = ()
    """Arguments of the verifier, each as name=value."""
    host: str = "127.0.0.1"
    """Address to listen on; an address that other machines can reach needs --token."""
    port: Port = 8000
    """Port to listen on; 0 takes a free port."""
    token: Annotated[str | None, tyro.conf.arg(metavar="env:NAME")] = None
    """Token that requests must carry, given as env:NAME, where NAME is the environment variable that holds it."""
    max_items: Annotated[int, AtLeast(1)] = 1024
    """Maximum number of completions in one request."""
    max_bytes: Annotated[int, AtLeast(1)] = 16777216
    """Maximum number of bytes in one request."""
    max_waiting: Annotated[int, AtLeast(1)] = 8192
    """Maximum number of completions that may wait for a verdict."""
    batch_size: Annotated[int, AtLeast(1)] = 256
    """Maximum number of completions that the verifier judges in one batch."""
    end_of_text: tuple[str, ...] = ()
    """End tokens as text, such as '<|im_end|>', if OpenRLHF's queries end in such tokens."""
    device: Device = DEVICE

    @on_device
    def run(self, console: Console) -> int:
        """Serve until interrupted."""
        verifier = verifiers.make(self.verifier, **verifier_arguments(self.args))

        def app(token: str | None) -> FastAPI:
            from agents.serving.app import create_app
            from agents.serving.guard import RequestLimits

            limits = RequestLimits(self.max_items, self.max_bytes, self.max_waiting, self.batch_size)
            return create_app(verifier, self.verifier, token=token, limits=limits, end_of_text=self.end_of_text)

        return served(
            console, "rlvr serve-verifier", self.verifier, app, host=self.host, port=self.port, token=self.token
        )
