"""A server of JSON on this machine, which answers as a test says."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

Answer = tuple[int, bytes] | None
"""Status and body, or None for a connection that is closed without an answer."""


@contextlib.contextmanager
def serving(answer: Callable[[dict[str, Any], Any], Answer]) -> Iterator[str]:
    """Serve `answer(request, headers)` and give the address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            given = answer({"path": self.path, **asked}, self.headers)
            if given is None:
                return
            with contextlib.suppress(OSError):  # of a client that waits no longer
                self.send_response(given[0])
                self.send_header("Content-Length", str(len(given[1])))
                self.end_headers()
                self.wfile.write(given[1])

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
