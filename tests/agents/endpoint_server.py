"""A small server that speaks OpenAI's protocol, and does wrong what it is told to."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]
Reply = tuple[int, bytes, dict[str, str]] | bytes | None
"""Status, content and headers; only the content for status 200; or nothing, where the connection is closed."""


class Server(ThreadingHTTPServer):
    """Answers as `usual` does, unless `script` says otherwise of a request and the number of the attempt."""

    daemon_threads = True

    def __init__(self, usual: Callable[[Body, str], bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.usual = usual
        self.bodies: list[Body] = []
        self.keys: set[str | None] = set()
        self.script: Callable[[Body, int], Reply | str] = lambda body, attempt: "as usual"
        self.attempts: Counter[str] = Counter()
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        body = json.loads(text)
        self.server.bodies.append(body)
        self.server.keys.add(self.headers["Authorization"])
        self.server.attempts[text] += 1
        reply = self.server.script(body, self.server.attempts[text])
        if reply is None:
            return
        if reply in ("hang", "drip"):
            self.stall(drip=reply == "drip")
            return
        reply = self.server.usual(body, self.path) if reply == "as usual" else reply
        assert not isinstance(reply, str)
        status, content, headers = (200, reply, {}) if isinstance(reply, bytes) else reply
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(content)

    def stall(self, *, drip: bool) -> None:
        """Answer nothing, or a byte at a time, until the test is over or the client is gone."""
        if drip:
            self.send_response(200)
            self.send_header("Content-Length", "9999")
            self.end_headers()
        with contextlib.suppress(OSError):
            while not self.server.over.wait(0.02):
                self.wfile.write(b" " if drip else b"")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def chat(text: str | None, finish: str = "stop", *, usage: Any = None, **message: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
    return json.dumps({"choices": [choice], "usage": usage or {"completion_tokens": 3}}).encode()


@contextlib.contextmanager
def running(usual: Callable[[Body, str], bytes]) -> Iterator[Server]:
    """Run a server for a test."""
    with Server(usual) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()
