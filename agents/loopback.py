"""Sockets of services, and a check whether only this machine can reach an address."""

from __future__ import annotations

import ipaddress
import socket

from verifiers import InvalidArgumentError


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, which may resolve to anything
        return False


def listen(host: str, port: int) -> socket.socket:
    """Open the socket of a service; port 0 chooses a free port.

    Raises:
        InvalidArgumentError: If the address or the port is not available.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise InvalidArgumentError(
            f"can't listen on {host}, port {port}: {error.strerror or error}; choose another with --port"
        ) from error
    # An answer goes out as two packets, head and body; the second must not wait until the first is acknowledged.
    # asyncio disables that delay only for sockets that name their protocol; connections inherit it from the listener.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
