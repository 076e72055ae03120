"""What `ServerEngine` says of servers that are none, or that die; a real one is in test_engine.py."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agents.policies.vllm_server import ServerEngine
from verifiers import EngineError


@contextmanager
def answering(body: bytes, *, promised: int | None = None, status: int = 200) -> Iterator[ServerEngine]:
    """A server that answers everything with a body of which it promised another length."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) if promised is None else promised))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing is logged."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield ServerEngine(f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
        thread.join()


def test_the_results_of_a_call_are_read() -> None:
    with answering(b'{"results": [{"named_tokens": 1024}]}') as engine:
        assert engine.rpc("request_limits") == [{"named_tokens": 1024}]


def test_an_answer_that_breaks_off_says_that_the_server_died_and_what_to_do() -> None:
    with (
        answering(b'{"results": [', promised=1000) as engine,
        pytest.raises(EngineError, match=r"broke off its answer to /collective_rpc .*resume the run"),
    ):
        engine.rpc("checkpoint_shapes")


def test_what_is_no_json_is_quoted() -> None:
    with (
        answering(b"<html>hello") as engine,
        pytest.raises(EngineError, match=r"JSON was expected, and b'<html>hello' came; is the address right"),
    ):
        engine.rpc("checkpoint_shapes")


def test_a_refusal_is_quoted() -> None:
    with (
        answering(b"no such route", status=404) as engine,
        pytest.raises(EngineError, match="answered /collective_rpc with 404: no such route"),
    ):
        engine.rpc("checkpoint_shapes")
