"""The socket of the service, and its start and stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

STOPPING_S = 30
"""Maximum number of seconds for unfinished requests after a signal to stop."""
HEAD_S = 60.0
"""Maximum number of seconds for the head of a request, from the connection or from the head's first byte."""


class PromptProtocol(H11Protocol):
    """The HTTP protocol; also closes a connection if the head of a request does not arrive within `HEAD_S`."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # uvicorn's own signature
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Process bytes, and begin to wait for the rest of a head."""
        super().data_received(data)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        self._stop_waiting()

    def _wait(self) -> None:
        answering = not getattr(self.cycle, "response_complete", True)  # there is no cycle before the first request
        upgraded = self.transport.get_protocol() is not self
        if answering or upgraded or self.transport.is_closing():
            self._stop_waiting()
        elif self._waiting is None:
            self._waiting = self.loop.call_later(HEAD_S, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


def serve(app: FastAPI, listener: socket.socket, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM, which is raised again once the current requests are answered."""
    host, port = listener.getsockname()[:2]
    ready(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
    uvicorn.Server(config(app)).run(sockets=[listener])


def config(app: FastAPI) -> uvicorn.Config:
    """The server's settings."""
    return uvicorn.Config(
        app, http=PromptProtocol, log_level="warning", access_log=False, timeout_graceful_shutdown=STOPPING_S
    )
