"""Where the service listens, and how it stops."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from verifiers import InvalidArgumentError

STOPPING_S = 30
"""Seconds that requests may take to finish once the service is to stop."""


def listen(host: str, port: int) -> socket.socket:
    """Open the socket of a service; port 0 takes a free one.

    Raises:
        InvalidArgumentError: If the address can't be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise InvalidArgumentError(
            f"can't listen on {host}, port {port}: {error.strerror or error}; choose another with --port"
        ) from error
    # An answer goes out as two packets, head and body, of which the second must not wait until the first is acknowledged.
    # asyncio sees to it only for sockets that name their protocol; connections inherit it from the listener.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def serve(app: FastAPI, listener: socket.socket, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM, which is raised again once the requests at hand are answered.

    Args:
        app: The service.
        listener: Where it listens.
        ready: Called with its address, from which on requests are answered.
    """
    host, port = listener.getsockname()[:2]
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=STOPPING_S)
    ready(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
    uvicorn.Server(config).run(sockets=[listener])
