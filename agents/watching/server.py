"""The server of the page: its addresses, and access to them.

Only this machine can reach the server, and every address begins with a token, which other users of the machine and pages of
other sites do not know. The server only reads data, and changes none.
"""

from __future__ import annotations

import hmac
import socket
import sys
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from agents.loopback import is_loopback
from agents.runs.files.json_files import to_json
from agents.watching.runs import WatchedRun, curves
from verifiers import InvalidArgumentError, RLVRError

_PAGE = {"page.html": "text/html", "page.css": "text/css", "page.js": "text/javascript"}
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every answer: the page may load its own script and style and send requests to this server, but nothing else."""


class WatchServer(ThreadingHTTPServer):
    """Serves the page of some runs on a listening socket; the path of every address begins with the token."""

    daemon_threads = True

    def __init__(self, listener: socket.socket, runs: Sequence[WatchedRun], token: str) -> None:
        super().__init__(listener.getsockname(), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.token = token
        self._runs = runs
        self._lock = threading.Lock()

    @property
    def address(self) -> str:
        """The page's address."""
        return f"http://{self.server_address[0]!s}:{self.server_address[1]}/{self.token}/"

    def data(self, name: str, query: dict[str, list[str]]) -> bytes:
        """The JSON data at an address; raises InvalidArgumentError for an unknown address or an invalid query."""
        with self._lock:
            for run in self._runs:
                run.read()
            if name == "state":
                return to_json([run.state() for run in self._runs]).encode()
            if name == "curves":
                return to_json(curves(self._runs, query.get("metric", []), max(_number(query, "smooth"), 1))).encode()
            run = self._runs[min(_number(query, "run"), len(self._runs) - 1)]
            if name == "groups":
                return to_json(run.groups(query.get("show", ["all"])[0], _number(query, "first"))).encode()
            if name == "completions":
                return run.completions((_number(query, "step"), _number(query, "group")))
            raise InvalidArgumentError(f"there is no {name!r}")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error, unless the browser has merely disconnected."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _number(query: dict[str, list[str]], name: str) -> int:
    value = query.get(name, ["0"])[0]
    if not (value.isascii() and value.isdecimal() and len(value) < 10):
        raise InvalidArgumentError(f"{name} must be a whole number of at least 0, got {value[:20]!r}")
    return int(value)


class _Handler(BaseHTTPRequestHandler):
    """Handles one connection."""

    server: WatchServer

    def do_GET(self) -> None:
        """Answer or refuse a request; a request that reached this server under another site's name is refused."""
        parts = urlsplit(self.path)
        token, _, name = parts.path.removeprefix("/").partition("/")
        host = urlsplit(f"//{self.headers.get('Host', '')}").hostname
        if not (host and is_loopback(host)) or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._answer(403, "text/plain", b"expected the address with the token that rlvr watch printed\n")
        elif (file := name or "page.html") in _PAGE:
            self._answer(200, _PAGE[file], Path(__file__).with_name(file).read_bytes())
        else:
            try:
                self._answer(200, "application/json", self.server.data(name, parse_qs(parts.query)))
            except (RLVRError, FileNotFoundError) as error:
                self._answer(400, "application/json", to_json({"error": str(error)}).encode())

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{content_type}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: requests come every few seconds, and contain the token."""
