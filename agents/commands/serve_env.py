"""The command `rlvr serve-env`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console

from agents.commands.common import DEVICE, Device, env_arguments, on_device
from agents.commands.serving import Port, served
from verifiers import AtLeast

if TYPE_CHECKING:
    from fastapi import FastAPI


@dataclass(frozen=True)
class ServeEnv:
    """Serve an environment over HTTP (OpenEnv's protocol, POST /reset, POST /step), to play episodes in text or in tokens."""

    env: str
    """Environment, such as GuessNumber, rlvr/GSM8K-v0, or your own, such as my_envs:MyEnv."""
    split: str | None = None
    """Split of the data set; by default the environment's own."""
    env_args: tuple[str, ...] = ()
    """Arguments of the environment, each as name=value, such as tools=calculator."""
    host: str = "127.0.0.1"
    """Address to listen on; an address that other machines can reach needs --token."""
    port: Port = 8000
    """Port to listen on; 0 takes a free port."""
    token: Annotated[str | None, tyro.conf.arg(metavar="env:NAME")] = None
    """Token that requests must carry, given as env:NAME, where NAME is the environment variable that holds it."""
    max_episodes: Annotated[int, AtLeast(1)] = 1024
    """Maximum number of episodes that are played at once."""
    idle_s: Annotated[float, AtLeast(1)] = 600.0
    """Seconds without a request after which a new episode may replace an episode, and a connection of OpenEnv is closed."""
    device: Device = DEVICE

    @on_device
    def run(self, console: Console) -> int:
        """Serve until interrupted."""
        from agents.adapters.episodes import streams_of

        streams = streams_of(self.env, self.split, None, env_arguments(self.env_args), whole=False)

        def app(token: str | None) -> FastAPI:
            from agents.serving.env_app import create_env_app
            from agents.serving.guard import RequestLimits

            limits = RequestLimits(max_waiting=self.max_episodes)
            return create_env_app(streams, self.env, token=token, limits=limits, idle_s=self.idle_s)

        return served(console, "rlvr serve-env", self.env, app, host=self.host, port=self.port, token=self.token)
