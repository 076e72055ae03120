"""What `ServerEngine` says of servers that are none, or that die; a real one is in test_engine.py."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from agents.policies.vllm.engine import Request, SampledCompletion, Sampling
from agents.policies.vllm.server_engine import ServerEngine
from tests.json_server import serving
from verifiers import EngineDiedError, EngineError, InvalidArgumentError


@contextmanager
def answering(body: bytes, *, promised: int | None = None, status: int = 200) -> Iterator[ServerEngine]:
    """A server that answers everything with a body of which it promised another length."""
    headers = {} if promised is None else {"Content-Length": str(promised)}
    with serving(lambda request, _: (status, body, headers, 0.0)) as address:
        yield ServerEngine(address)


def test_the_results_of_a_call_are_read() -> None:
    with answering(b'{"results": [{"named_tokens": 1024}]}') as engine:
        assert engine.rpc("request_limits") == [{"named_tokens": 1024}]


@pytest.mark.parametrize(("limits", "kept"), [({}, None), ({"top_k": 3}, [[1, 2]])])
def test_a_completion_says_what_was_kept_where_tokens_were_left_out(limits: dict[str, int], kept: object) -> None:
    choice = b'{"token_ids": [1], "logprobs": {"content": [{"logprob": -0.5}]}, "sampling_mask": [[1, 2]]}'
    with answering(b'{"choices": [' + choice + b"]}") as engine:
        (future,) = engine.submit([Request([1], 0, 1)], Sampling(1.0, (), **limits))
        assert future.result(60) == SampledCompletion([1], [-0.5], kept)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"body": b'{"results": [', "promised": 1000}, r"broke off its answer to /collective_rpc .*resume the run"),
        ({"body": b"<html>hello"}, r"expected JSON, got b'<html>hello'; is the address right"),
        ({"body": b"no such route", "status": 404}, "answered /collective_rpc with 404: no such route"),
        # To follow it would give the key away.
        ({"body": b"", "status": 302}, "answered /collective_rpc.* with 302"),
    ],
)
def test_what_is_no_answer_is_quoted(answer: dict[str, Any], message: str) -> None:
    with answering(**answer) as engine, pytest.raises(EngineError, match=message):
        engine.rpc("checkpoint_shapes")


def guarded(request: object, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """Refuses whoever has no key, as `vllm serve --api-key` does."""
    key = headers.get("Authorization")
    return (200, b'{"results": [1]}') if key == "Bearer sk-1" else (401, b'{"error": "Unauthorized"}')


def test_the_key_is_sent_from_the_argument_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    with serving(guarded) as address:
        with pytest.raises(EngineError, match=r"requires a key, and got none\. Set VLLM_API_KEY"):
            ServerEngine(address).rpc("request_limits")
        with pytest.raises(EngineError, match="requires a key, and got another"):
            ServerEngine(address, api_key="sk-2").rpc("request_limits")
        assert ServerEngine(address, api_key="sk-1").rpc("request_limits") == [1]
        monkeypatch.setenv("VLLM_API_KEY", "sk-1")
        assert ServerEngine(address).rpc("request_limits") == [1]


def test_a_server_that_others_can_reach_needs_a_key(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    for address in ("http://10.0.0.7:8000", "https://gpu.example.org", "http://localhost.example.org:8000"):
        with pytest.raises(InvalidArgumentError, match=r"can be reached from other machines, so it needs a key"):
            ServerEngine(address)
        ServerEngine(address, api_key="sk-1")
        assert "does not protect the routes for weights" in caplog.text
        caplog.clear()
    for address in ("http://127.0.0.1:8000", "http://localhost", "http://[::1]:8000"):
        ServerEngine(address)
    assert not caplog.records


def test_a_request_that_is_cancelled_breaks_off_its_connection() -> None:
    """Which is how a server learns that nobody waits for the completion."""
    broken_off = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        engine = ServerEngine(f"http://127.0.0.1:{listener.getsockname()[1]}")
        (future,) = engine.submit([Request([1], 0, 1)], Sampling(1.0, ()))
        connection, _ = listener.accept()
        with connection:

            def read_on() -> None:
                while connection.recv(2**16):
                    pass
                broken_off.set()

            reader = threading.Thread(target=read_on)
            reader.start()
            assert future.cancel()
            assert broken_off.wait(60)
            reader.join()
        engine.close()


def test_a_server_that_breaks_off_while_it_samples_has_died() -> None:
    with answering(b'{"choices": [', promised=1000) as engine:
        (future,) = engine.submit([Request([1], 0, 1)], Sampling(1.0, ()))
        with pytest.raises(EngineDiedError, match="broke off its answer to /inference/v1/generate"):
            future.result()
    with pytest.raises(EngineDiedError, match="no vLLM server answers"):
        engine.rpc("checkpoint_shapes")


def test_a_server_that_does_not_answer_in_time_counts_as_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.policies.vllm.server_engine._TIMEOUT_S", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as listener:  # which accepts nothing
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(EngineDiedError, match=f"no vLLM server answers at {address}/collective_rpc .*timed out"):
            ServerEngine(address).rpc("checkpoint_shapes")


def test_a_server_that_comes_back_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ServerEngine("http://127.0.0.1:9")
    answers: list[Exception | None] = [EngineDiedError("refused"), EngineDiedError("503"), None]
    asked: list[str] = []

    def exchange(connection: object, path: str, content: object, *, method: str) -> None:
        asked.append(f"{method} {path}")
        answer = answers.pop(0)
        if answer is not None:
            raise answer

    monkeypatch.setattr(engine, "_exchange", exchange)
    monkeypatch.setattr("agents.policies.vllm.server_engine._RETRY_S", 0.0)
    engine.wait_until_ready(60)
    assert asked == ["GET /health"] * 3
    answers.append(EngineDiedError("refused"))
    with pytest.raises(EngineDiedError, match="refused"):
        engine.wait_until_ready(0)
