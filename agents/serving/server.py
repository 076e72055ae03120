"""The service's socket, and how it stops."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

STOPPING_S = 30
"""Seconds that requests may take to finish once the service is to stop."""


def serve(app: FastAPI, listener: socket.socket, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM, which is raised again once the requests at hand are answered.

    Args:
        app: The service.
        listener: The socket that it listens on.
        ready: Called with its address as soon as requests are answered.
    """
    host, port = listener.getsockname()[:2]
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=STOPPING_S)
    ready(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
    uvicorn.Server(config).run(sockets=[listener])
