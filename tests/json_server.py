"""A server of JSON on this machine, which answers as a test says."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

Answer = tuple[int, bytes] | tuple[int, bytes, dict[str, str], float] | None
"""Status and body, also with headers and seconds of pause after each 10 bytes; None for a connection that is closed without an
answer."""


@contextlib.contextmanager
def serving(answer: Callable[[dict[str, Any], Any], Answer]) -> Iterator[str]:
    """Serve `answer(request, headers)` and give the address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            given = answer({"path": self.path, **asked}, self.headers)
            if given is None:
                return
            status, body, headers, pause_s = (*given, {}, 0.0) if len(given) == 2 else given
            with contextlib.suppress(OSError):  # of a client that waits no longer
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                for start in range(0, len(body), 10):
                    self.wfile.write(body[start : start + 10])
                    time.sleep(pause_s)

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
