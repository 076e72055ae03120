"""A verifier over HTTP: verdicts, refusals, and that a verifier which breaks is never a score."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from agents.serving.guard import Guard, RequestLimits
from tests.serving.service import Client, Recording, serving
from verifiers import Message, Problem


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with serving(limits=RequestLimits(max_items=3, max_bytes=2000)) as started:
        yield started


def test_verdicts_come_in_order(client: Client) -> None:
    status, content = client.verify(("4", "4"), ("5", "4"), ("four", "four"))
    assert status == 200
    assert [verdict["outcome"] for verdict in content["verdicts"]] == ["correct", "incorrect", "correct"]
    assert [verdict["score"] for verdict in content["verdicts"]] == [1.0, 0.0, 1.0]


def test_one_that_can_not_be_judged_fails_the_request_and_says_why(client: Client) -> None:
    status, content = client.verify(("4", "4"), ("break", "4"))
    assert status == 503
    assert content["error"] == {
        "type": "verifier_error",
        "message": "the verifier could not judge 1 of 2 completions; item 1: ConnectionError: the pool died",
    }
    assert [verdict["score"] for verdict in content["verdicts"]] == [1.0, None]
    assert client.verify(("4", "4"))[0] == 200  # the service goes on


def test_the_problem_arrives_whole() -> None:
    seen: list[Problem] = []
    with serving(lambda completion, problem: bool(seen.append(problem))) as client:
        item = {
            "completion": "é\ud800",
            "reference": {"tests": [1, None]},
            "prompt": [{"role": "user", "content": "2+2?"}],
            "id": "p1",
            "metadata": {"level": 3},
        }
        assert client.post("/verify", {"items": [item]})[0] == 200
    assert seen == [Problem("p1", (Message("user", "2+2?"),), {"tests": [1, None]}, {"level": 3})]


def test_health_counts(client: Client) -> None:
    before = client.raw("GET", "/health")[1]
    client.verify(("break", "4"), ("4", "4"))
    status, after = client.raw("GET", "/health")
    assert (status, after["status"], after["verifier"], after["waiting"]) == (200, "ok", "ours", 0)
    assert after["judged"] - before["judged"] == 2
    assert after["verifier_errors"] - before["verifier_errors"] == 1


@pytest.mark.parametrize(
    ("body", "status", "kind", "said"),
    [
        (b"{", 422, "invalid_request", "JSON"),
        (b'{"items": []}', 422, "invalid_request", "body.items"),
        (b'{"items": [{"completion": 4}]}', 422, "invalid_request", "body.items.0.completion"),
        (b'{"items": [{"reference": "4"}]}', 422, "invalid_request", "body.items.0.completion"),
        (b'{"item": []}', 400, "invalid_request", "body: unknown key 'item'. Did you mean 'items'?"),
        (
            b'{"items": [{"completion": "", "refrence": ""}]}',
            400,
            "invalid_request",
            "Did you mean 'reference'? Known: ",
        ),
        (b'{"items": [{"completion": "", "prompt": [{"text": ""}]}]}', 400, "invalid_request", "Known: content, role."),
        (b'{"items": [%s]}' % b",".join([b'{"completion": ""}'] * 4), 413, "too_large", "at most 3 completions, got 4"),
        (b'{"items": [{"completion": "%s"}]}' % (b"x" * 2000), 413, "too_large", "2000 bytes"),
    ],
)
def test_a_body_that_does_not_fit_is_refused(client: Client, body: bytes, status: int, kind: str, said: str) -> None:
    status_code, content = client.raw("POST", "/verify", body)
    assert (status_code, content["error"]["type"]) == (status, kind)
    assert said in content["error"]["message"]


def test_a_body_that_nests_too_deeply_is_refused(client: Client) -> None:
    status, content = client.raw("POST", "/verify", b"[" * 1900)
    assert status in (400, 422)  # not read, or read and unfinished: versions of Python have other limits
    assert content["error"]["type"] == "invalid_request"


def test_what_no_route_takes_is_refused_alike(client: Client) -> None:
    assert client.raw("GET", "/nowhere")[1]["error"]["type"] == "not_found"
    assert client.raw("GET", "/verify")[1]["error"]["type"] == "method_not_allowed"
    status, content = client.raw("POST", "/verify", b"{}", **{"Content-Type": "text/plain"})
    assert (status, content["error"]["type"]) == (415, "unsupported_media_type")


def test_a_token_is_asked_for() -> None:
    with serving(token="sesame") as client:
        status, content = client.verify(("4", "4"))
        assert (status, content["error"]["type"]) == (401, "unauthorized")
        for wrong in ("Bearer sesam", "sesame", "Bearer sesame ", "Bearer \xe9"):
            client.headers["Authorization"] = wrong
            assert client.verify(("4", "4"))[0] == 401 or wrong.strip() == "Bearer sesame"
        client.headers["Authorization"] = "Bearer sesame"
        assert client.verify(("4", "4"))[0] == 200
        del client.headers["Authorization"]
        assert client.raw("GET", "/health")[0] == 200


def test_requests_that_wait_are_judged_together_up_to_the_batch_size() -> None:
    verifier = Recording()
    answers: dict[str, tuple[int, object]] = {}
    with serving(verifier, limits=RequestLimits(batch_size=2, max_waiting=4)) as client:

        def ask(text: str) -> threading.Thread:
            thread = threading.Thread(target=lambda: answers.update({text: client.verify((text, None))}))
            thread.start()
            return thread

        threads = [ask("4")]
        verifier.entered.wait()  # the first is with the verifier, and the others gather
        threads += [ask(text) for text in ("5", "6", "7")]
        while client.raw("GET", "/health")[1]["waiting"] < 4:
            pass
        status, content = client.verify(("8", None))
        assert (status, content["error"]["type"]) == (429, "overloaded")
        verifier.go.set()
        for thread in threads:
            thread.join()
        assert client.verify(("4", None))[0] == 200  # there is room again
    assert [len(batch) for batch in verifier.batches] == [1, 2, 1, 1]
    for text, (status, content) in answers.items():
        assert status == 200
        assert content["verdicts"][0]["answer"] == text  # each has its own verdict


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        ("", ""),
        ("POST /verify HT", ""),
        ("POST /verify HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{", "408"),
        ("GET /health HTTP/1.1\r\nHost: here\r\n\r\nGET /hea", "200"),
    ],
)
def test_a_request_that_does_not_arrive_is_dropped(sent: str, answered: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.serving.server.HEAD_S", 0.2)
    with serving(limits=RequestLimits(arrive_s=0.2)) as client:
        with socket.create_connection(("127.0.0.1", client.port), timeout=60) as connection:
            connection.sendall(sent.encode())
            received = b"".join(iter(lambda: connection.recv(4096), b""))  # until the service closes it
        assert received.decode().split(" ")[1:2] == ([answered] if answered else [])
        assert client.verify(("4", "4"))[0] == 200


def test_half_a_request_is_not_taken_for_a_whole_one() -> None:
    """A body that would be a request by itself, of a client that has promised more and leaves."""
    events = iter([{"type": "http.request", "body": b"{}", "more_body": True}, {"type": "http.disconnect"}])
    reached: list[object] = []

    async def receive() -> Any:
        return next(events)

    async def app(scope: object, receive: object, send: object) -> None:
        reached.append(scope)

    async def send(message: object) -> None:
        reached.append(message)

    head = {"type": "http", "method": "POST", "path": "/reset", "headers": [(b"content-type", b"application/json")]}
    asyncio.run(Guard(app, None, 100, 60.0)(head, receive, send))
    assert not reached


def test_requests_that_arrive_in_time_are_answered_however_long_that_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.serving.server.HEAD_S", 0.2)
    with serving(lambda completion, problem: not time.sleep(0.5), limits=RequestLimits(arrive_s=0.2)) as client:
        assert client.verify(("4", "4"))[0] == 200


def test_openrlhf_gets_its_layout() -> None:
    with serving(end_of_text=["<|im_end|>"]) as client:
        status, content = client.post(
            "/get_reward", {"query": ["2+2=4<|im_end|>", "1+1=3"], "prompts": ["2+2=", "1+1="], "labels": ["4", "2"]}
        )
        assert status == 200
        assert content == {"rewards": [1.0, 0.0], "scores": [1.0, 0.0], "extra_logs": {"answered": [1.0, 1.0]}}
        later = {"query": ["2+2=4"], "prompts": ["2+2="], "labels": ["4"], "new": 1}
        assert client.post("/get_reward", later)[0] == 200
        failing = {"query": ["2+2=break"], "prompts": ["2+2="], "labels": ["4"]}
        assert client.post("/get_reward", failing)[0] == 503
        cut = {"query": ["+2=4"], "prompts": ["2+2="], "labels": ["4"]}
        status, content = client.post("/get_reward", cut)
        assert (status, content["error"]["type"]) == (422, "invalid_request")
        assert "does not begin with its prompt" in content["error"]["message"]
        assert client.post("/get_reward", cut | {"labels": []})[0] == 422
