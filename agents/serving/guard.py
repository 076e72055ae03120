"""Checks every request before its route: the token, the content type, and the size of the body."""

from __future__ import annotations

import asyncio
import hmac
from dataclasses import dataclass

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agents.runs.files.json_files import to_json

OPEN_PATHS = frozenset({"/health"})
"""Paths that need no token."""


@dataclass(frozen=True)
class RequestLimits:
    """Limits on single requests, and on all waiting requests."""

    max_items: int = 1024
    """Maximum number of completions in one request."""
    max_bytes: int = 16 * 2**20
    """Maximum number of bytes in the body of one request."""
    max_waiting: int = 8192
    """Maximum number of completions without a verdict at any time."""
    batch_size: int = 256
    """Maximum number of completions in one batch of the verifier, unless a single request has more."""
    arrive_s: float = 60.0
    """Maximum number of seconds from the head of a request to the end of its body."""


def answer(content: object, status: int = 200) -> Response:
    """Answer a request with JSON."""
    return Response(to_json(content), status, media_type="application/json")


def refusal(status: int, kind: str, message: str, **more: object) -> Response:
    """Answer a request with an error, which has a type for programs and a message for people."""
    return answer({"error": {"type": kind, "message": message}, **more}, status)


class Guard:
    """Refuses invalid requests before they are parsed.

    A body must be declared as JSON. Before a browser lets a page of another origin send JSON, it asks the service. If the
    service has no token, all requests from web pages are refused, since a site can make its own name point to the address of
    this machine.
    """

    def __init__(self, app: ASGIApp, token: str | None, max_bytes: int, arrive_s: float) -> None:
        self._app = app
        self._token = None if token is None else f"Bearer {token}".encode()
        self._max_bytes = max_bytes
        self._arrive_s = arrive_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        headers = dict(scope.get("headers", ()))
        if scope["type"] == "websocket" and (b"origin" in headers or not self._may_ask(scope["path"], headers)):
            # Browsers let any page open a WebSocket, but send the page's origin. A close before the handshake gives status 403.
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._token is None and b"origin" in headers:
            message = "pages of a browser may not ask without a token: give the service one with --token env:NAME"
            await refusal(403, "forbidden", message)(scope, receive, send)
            return
        if not self._may_ask(scope["path"], headers):
            message = "expected the header 'Authorization: Bearer TOKEN' with the token of this service"
            await refusal(401, "unauthorized", message)(scope, receive, send)
            return
        json_body = headers.get(b"content-type", b"").partition(b";")[0].strip().lower() == b"application/json"
        if scope["method"] == "POST" and not json_body:
            message = "expected the header 'Content-Type: application/json'"
            await refusal(415, "unsupported_media_type", message)(scope, receive, send)
            return
        try:
            body = await asyncio.wait_for(self._body(receive), self._arrive_s)
        except TimeoutError:
            message = f"the body did not arrive within {self._arrive_s:g} s: send it at once"
            await _closing(refusal(408, "timeout", message))(scope, receive, send)
            return
        except _LeftError:
            return
        if body is None:
            message = f"the body has more than {self._max_bytes} bytes: send fewer completions at once"
            await _closing(refusal(413, "too_large", message))(scope, receive, send)
            return
        await self._app(scope, _replayed(body, receive), send)

    def _may_ask(self, path: str, headers: dict[bytes, bytes]) -> bool:
        if self._token is None or path in OPEN_PATHS:
            return True
        return hmac.compare_digest(headers.get(b"authorization", b""), self._token)

    async def _body(self, receive: Receive) -> bytes | None:
        """The whole body; None if it is larger than allowed, in which case the rest is not read."""
        body = bytearray()
        while True:
            message = await receive()
            body += message.get("body", b"")
            if len(body) > self._max_bytes:
                return None
            if message["type"] == "http.disconnect":
                raise _LeftError
            if not message.get("more_body", False):
                return bytes(body)


class _LeftError(Exception):
    """Raised if the client disconnects in the middle of a request."""


def _closing(response: Response) -> Response:
    """Make a response close the connection, since more of the request may follow."""
    response.headers["Connection"] = "close"
    return response


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A channel that returns the body that was already read, and then the messages that follow."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
