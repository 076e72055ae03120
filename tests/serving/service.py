"""A real server on a free port of this machine, and a client of the standard library."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from fastapi import FastAPI

from agents.loopback import listen
from agents.serving.app import create_app
from agents.serving.server import config
from verifiers import Outcome, Problem, Verdict, from_function


@dataclass
class Client:
    port: int
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})

    def raw(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        with contextlib.closing(connection):
            connection.request(method, path, body, self.headers | headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

    def post(self, path: str, content: object) -> tuple[int, Any]:
        return self.raw("POST", path, json.dumps(content).encode())

    def verify(self, *pairs: tuple[str, object]) -> tuple[int, Any]:
        return self.post("/verify", {"items": [{"completion": left, "reference": right} for left, right in pairs]})


def exactly(completion: str, problem: Problem) -> object:
    """Right where completion and reference are equal, broken where the completion says so."""
    if completion == "break":
        raise ConnectionError("the pool died")
    return completion == problem.reference


class Recording:
    """A batch verifier that keeps its batches, and lets the first wait for `go`."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.entered, self.go = threading.Event(), threading.Event()

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        return self.verify_batch([completion], [problem])[0]

    def verify_batch(self, completions: list[str], problems: list[Problem]) -> list[Verdict]:
        self.batches.append(list(completions))
        self.entered.set()
        self.go.wait()
        return [Verdict.of(Outcome.CORRECT if text == "4" else Outcome.INCORRECT, text) for text in completions]


@contextlib.contextmanager
def running(app: FastAPI) -> Iterator[Client]:
    """Serve an application on a free port."""
    with listen("127.0.0.1", 0) as listener:
        server = uvicorn.Server(config(app))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield Client(listener.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join()


@contextlib.contextmanager
def serving(verifier: Callable[..., object] = exactly, **settings: Any) -> Iterator[Client]:
    made = verifier if isinstance(verifier, Recording) else from_function(verifier)
    with running(create_app(made, "ours", **settings)) as client:
        yield client
