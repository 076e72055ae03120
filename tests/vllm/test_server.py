"""What `ServerEngine` says of servers that are none, or that die; a real one is in test_engine.py."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agents.policies.vllm.server_engine import ServerEngine
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
        pytest.raises(EngineError, match=r"expected JSON, got b'<html>hello'; is the address right"),
    ):
        engine.rpc("checkpoint_shapes")


def test_a_refusal_is_quoted() -> None:
    with (
        answering(b"no such route", status=404) as engine,
        pytest.raises(EngineError, match="answered /collective_rpc with 404: no such route"),
    ):
        engine.rpc("checkpoint_shapes")


@contextmanager
def guarded(key: str) -> Iterator[str]:
    """The address of a server that refuses whoever has no key, as `vllm serve --api-key` does."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            allowed = self.headers.get("Authorization") == f"Bearer {key}"
            body = b'{"results": [1]}' if allowed else b'{"error": "Unauthorized"}'
            self.send_response(200 if allowed else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing is logged."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_key_is_sent_from_the_argument_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    with guarded("sk-1") as address:
        with pytest.raises(EngineError, match=r"requires a key, and got none\. Set VLLM_API_KEY"):
            ServerEngine(address).rpc("request_limits")
        with pytest.raises(EngineError, match="requires a key, and got another"):
            ServerEngine(address, api_key="sk-2").rpc("request_limits")
        assert ServerEngine(address, api_key="sk-1").rpc("request_limits") == [1]
        monkeypatch.setenv("VLLM_API_KEY", "sk-1")
        assert ServerEngine(address).rpc("request_limits") == [1]


def test_the_key_does_not_follow_a_redirection() -> None:
    seen: list[str | None] = []

    class Thief(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization"))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def do_POST(self) -> None:
            self.send_response(302)
            self.send_header("Location", f"http://127.0.0.1:{server.server_port}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing is logged."""

    with http.server.HTTPServer(("127.0.0.1", 0), Thief) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        ServerEngine(f"http://127.0.0.1:{server.server_port}", api_key="sk-1")._post("/sleep", None)
        server.shutdown()
        thread.join()
    assert seen == [None]
