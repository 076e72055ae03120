"""The routes of a `vllm serve` that `ServerEngine` uses, answered by an engine of torch, with a fault at one call."""

from __future__ import annotations

import contextlib
import http.server
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from agents.policies.vllm.engine import Request
from tests.vllm.doubles import TorchEngine


@dataclass(frozen=True)
class Fault:
    """What goes wrong, once."""

    kind: Literal["dies", "forgets"]
    """Whether the server ends without an answer, or goes back to the weights that it began with."""
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
        self._dead = False

    def answer(self, path: str, content: Any) -> Any:
        """The content of an answer; None for no answer, of a server that is dead."""
        with self._lock:
            call = "generate" if path == "/inference/v1/generate" else content["method"] if content else path
            if call == "begin_weights":
                self._transfers += 1
                self._calls.clear()
            self._calls[call] += 1
            fault = self._fault
            if fault and (self._transfers, call, self._calls[call]) == (fault.transfer, fault.call, fault.number):
                if fault.kind == "dies":
                    self._dead = True
                else:
                    self._engine = TorchEngine(self._model)
            return None if self._dead else self._answer(call, content)

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
def serving(model: Any, fault: Fault | None = None, *, port: int = 0, late: bool = False) -> Iterator[int]:
    """Serve a model, and give the port, which is free again after the block or the server's death.

    Args:
        model: Copied.
        fault: What goes wrong; None for nothing.
        port: The port; 0 for any that is free.
        late: Whether to hold back each answer for some time, so that completions arrive in any order.
    """
    state, drawn = StandIn(model, fault), random.Random(0)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["Content-Length"]))
            answer = state.answer(self.path, json.loads(asked or "null"))
            if answer is None:
                self.server.shutdown()
                self.server.server_close()
                return
            if late:
                time.sleep(drawn.uniform(0, 0.1))
            body = json.dumps(answer).encode()
            with contextlib.suppress(OSError):  # of a request that was cancelled
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing is logged."""

    class Server(http.server.ThreadingHTTPServer):
        request_queue_size = 128  # all requests of a step come at once
        block_on_close = False  # a request's own thread closes it

    with Server(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
