"""A stand-in for a Kimina Lean Server, which knows no Lean: what it answers is decided by words in the proof."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[str], Any]


def lean(code: str) -> dict[str, Any]:
    """What Lean's REPL might answer: every proof holds, except where a word in it says otherwise."""
    asked = re.search(r'logInfo "(\S+) term"', code)
    if "bad statement" in code:
        return _response(("error", "unknown identifier 'bad'"))
    if asked is not None:
        proof = re.search(r'`term "((?:[^"\\]|\\.)*)" with', code)
        assert proof is not None
        is_term = not re.search(r"\b(?:theorem|axiom)\b|#eval", proof[1])
        said = (
            ("info", f"{asked[1]} term\n") if is_term else ("error", f"{asked[1]} <input>:1:9: expected end of input")
        )
        return _response(("warning", "declaration uses 'sorry'"), said)
    name = re.findall(r"#print axioms (\S+)", code)[-1]
    if "slow" in code:
        return {"id": "proof", "time": 60.0, "error": "Lean REPL command timed out in 60.0 seconds"}
    if "memory" in code:
        return {"id": "proof", "time": 1.0, "error": "Lean REPL process exceeded memory limit"}
    axioms = "does not depend on any axioms"
    if found := re.search(r"uses\(([^)]*)\)", code):
        axioms = f"depends on axioms: [{found[1]}]"
    messages = [("info", f"'Space.{name}' {axioms}")]
    if traced := re.search(r"trace (.*)", code):
        messages.insert(0, ("info", traced[1]))
    if "wrong" in code:
        messages.append(("error", "unsolved goals"))
    if re.search(r"\bsorry\b", code):
        messages.append(("warning", "declaration uses 'sorry'"))
    return _response(*messages)


def _response(*messages: tuple[str, str]) -> dict[str, Any]:
    place = {"line": 1, "column": 0}
    listed = [{"severity": severity, "pos": place, "endPos": place, "data": data} for severity, data in messages]
    return {"id": "proof", "time": 0.1, "response": {"env": 1, "messages": listed}}


class Server(ThreadingHTTPServer):
    """Answers with `answer(code)`, which gives a result, or a status and a body, and remembers what it was asked."""

    daemon_threads = True

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append({"path": self.path, **asked})
        self.server.headers.append(dict(self.headers))
        answer = self.server.answer(asked["snippets"][0]["code"])
        status, body = answer if isinstance(answer, tuple) else (200, json.dumps({"results": [answer]}).encode())
        with suppress(ConnectionError):  # whoever waits no longer
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Keep quiet."""


@contextmanager
def served(answer: Answer = lean) -> Iterator[Server]:
    """Run a server while a block runs."""
    with Server(answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()


def late(seconds: float) -> Answer:
    """An answer that comes too late."""

    def answer(code: str) -> dict[str, Any]:
        time.sleep(seconds)
        return lean(code)

    return answer
