"""The routes of a `vllm serve` that `ServerEngine` uses, answered by an engine of torch, with a fault at one call."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from agents.policies.vllm.engine import Request
from tests.vllm.doubles import TorchEngine


@dataclass(frozen=True)
class Fault:
    """What goes wrong, once."""

    kind: Literal["dies", "fails", "forgets"]
    """Whether the server ends without an answer, answers that its engine died, or goes back to the weights it began with."""
    transfer: int
    """Number of the transfer of weights during or after which this happens, from 1."""
    call: str
    """The method of workers, or "generate"."""
    number: int
    """Number of that call since the transfer began, from 1."""


class StandIn:
    """A server's state, and its answers.

    Args:
        model: Copied.
        fault: What goes wrong; None for nothing.
    """

    def __init__(self, model: Any, fault: Fault | None) -> None:
        self._model, self._fault = model, fault
        self._engine = TorchEngine(model)
        self._lock = threading.Lock()
        self._transfers = 0
        self._calls: Counter[str] = Counter()
        self.dead = threading.Event()

    def answer(self, path: str, content: Any) -> tuple[int, Any] | None:
        """Status and content of an answer; None for none, of a server that is dead."""
        with self._lock:
            call = "generate" if path == "/inference/v1/generate" else content["method"] if content else path
            if call == "begin_weights":
                self._transfers += 1
                self._calls.clear()
            self._calls[call] += 1
            fault = self._fault
            if fault and (self._transfers, call, self._calls[call]) == (fault.transfer, fault.call, fault.number):
                if fault.kind == "fails":
                    return 500, {"error": "EngineCore died"}
                if fault.kind == "dies":
                    self.dead.set()
                else:
                    self._engine = TorchEngine(self._model)
            return None if self.dead.is_set() else (200, self._answer(call, content))

    def _answer(self, call: str, content: Any) -> Any:
        if call == "/reset_prefix_cache":
            self._engine.reset_prefix_cache()
            return {"success": True}
        if call != "generate":
            return {"results": self._engine.rpc(call, *content["args"])}
        parameters = content["sampling_params"]
        request = Request(content["token_ids"], parameters["seed"], parameters["max_tokens"])
        completion = self._engine._complete(request, parameters, leaves_out=False)
        said = [{"logprob": logprob} for logprob in completion.logprobs]
        return {"choices": [{"token_ids": completion.tokens, "logprobs": {"content": said}}]}


@contextlib.contextmanager
def serving(model: Any, fault: Fault | None = None, *, port: int = 0) -> Iterator[int]:
    """Serve a model, and give the port, which is free again after the block or the server's death."""
    state = StandIn(model, fault)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["Content-Length"]))
            answer = state.answer(self.path, json.loads(asked or "null"))
            if answer is None:
                self.server.socket.close()
                return
            status, content = answer
            body = json.dumps(content).encode()
            with contextlib.suppress(OSError):  # of a request that was cancelled
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing is logged."""

    class Server(http.server.ThreadingHTTPServer):
        request_queue_size = 128  # all requests of a step come at once

    def serve(server: Server) -> None:
        with contextlib.suppress(ValueError):  # of the socket, which death has closed
            server.serve_forever(0.01)

    with Server(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
