"""`ServerEngine`: a running `vllm serve`, over HTTP; docs/vllm.md lists the options that the server needs."""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from agents.loopback import is_loopback
from agents.policies.vllm.engine import Request, SampledCompletion, Sampling
from agents.policies.vllm.process_engine import RESUME
from agents.policies.vllm.process_main import sampling_parameters
from verifiers import EngineDiedError, EngineError, InvalidArgumentError

_LOGGER = logging.getLogger(__name__)
_AT_ONCE = 512
"""Largest number of concurrent requests; the server queues requests that it has no room for."""
_TIMEOUT_S = 3600.0
_QUOTED = 500
"""Number of bytes of an answer that an error quotes."""
_RETRY_S = 1.0
_RESET_S, _POLL_S = 10.0, 0.05
"""Seconds within which a server has to notice that requests were cancelled, and seconds between two checks of this."""


class ServerEngine:
    """Communicates with a server; see `agents.policies.vllm.engine.Engine`.

    The server is external: closing the engine does not stop it.

    Args:
        address: Address of the server, such as http://localhost:8000.
        api_key: The server's key; None uses the environment variable VLLM_API_KEY, which the server reads too. If that is not
            set, no key is sent.
    """

    def __init__(self, address: str, *, api_key: str | None = None) -> None:
        if not address.startswith(("http://", "https://")):
            raise InvalidArgumentError(
                f"a server's address must begin with http:// or https://, such as http://localhost:8000; got {address!r}"
            )
        self.address = address.rstrip("/")
        self._api_key = os.environ.get("VLLM_API_KEY") if api_key is None else api_key
        self._check_access()
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="vllm-requests")
        self._under_way: set[Future[SampledCompletion]] = set()

    def __str__(self) -> str:
        return f"the vLLM server at {self.address}"

    def _check_access(self) -> None:
        """Check that a server that other machines can reach has a key, and warn of the routes that the key does not protect."""
        if is_loopback(urlsplit(self.address).hostname or ""):
            return
        if not self._api_key:
            raise InvalidArgumentError(
                f"the vLLM server at {self.address} can be reached from other machines, so it needs a key, and none is given: "
                "start it with VLLM_API_KEY, and set the same here; or, safer, let it listen on 127.0.0.1 and use a tunnel, "
                "ssh -L 8000:127.0.0.1:8000 HOST"
            )
        _LOGGER.warning(
            "the vLLM server at %s can be reached from other machines, and its key does not protect the routes for weights: "
            "anyone who can reach it can replace them. A tunnel (ssh -L 8000:127.0.0.1:8000 HOST) avoids this",
            self.address,
        )

    def submit(self, requests: Sequence[Request], sampling: Sampling) -> list[Future[SampledCompletion]]:
        """Begin to sample one completion for each request, each in a connection of its own."""
        parameters = sampling_parameters(sampling)
        return [self._submit(request, parameters, sampling.leaves_out) for request in requests]

    def _submit(self, request: Request, parameters: Mapping[str, Any], leaves_out: bool) -> Future[SampledCompletion]:
        own = {**parameters, "seed": request.seed, "max_tokens": request.max_tokens}
        content = {"token_ids": request.prompt, "sampling_params": own}
        connection, future = self._connection(), Future[SampledCompletion]()
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        future.add_done_callback(partial(_break_off_if_cancelled, connection))
        self._pool.submit(self._complete, future, connection, content, leaves_out)
        return future

    def _complete(
        self, future: Future[SampledCompletion], connection: http.client.HTTPConnection, content: Any, leaves_out: bool
    ) -> None:
        try:
            answer = self._exchange(connection, "/inference/v1/generate", content, future.cancelled)
            choice = answer["choices"][0]
            said = choice["logprobs"]["content"]
            completion = SampledCompletion(choice["token_ids"], [entry["logprob"] for entry in said])
        except Exception as error:  # noqa: BLE001 - raised where the completion is wanted
            if future.set_running_or_notify_cancel():
                future.set_exception(error)
            return
        if future.set_running_or_notify_cancel():
            future.set_result(replace(completion, kept=choice.get("sampling_mask")) if leaves_out else completion)

    def rpc(self, method: str, *arguments: str) -> list[Any]:
        """Call a method of every worker; the arguments must be text."""
        answer = self._post("/collective_rpc", {"method": method, "args": list(arguments)})
        results: list[Any] = answer["results"]
        return results

    def weight_client(self) -> Any:
        """The client for the server's HTTP routes that is part of vLLM."""
        from vllm.distributed.weight_transfer.clients import HTTPVLLMWeightSyncClient

        return HTTPVLLMWeightSyncClient(self.address)

    def reset_prefix_cache(self) -> None:
        """Drop the keys and values of earlier prompts."""
        deadline = time.monotonic() + _RESET_S
        while not self._post("/reset_prefix_cache", None)["success"]:
            if time.monotonic() > deadline:
                raise EngineError("the vLLM server could not reset its prefix cache: other requests are using it")
            time.sleep(_POLL_S)

    def sleep(self) -> None:
        """Free the memory of weights and cache."""
        self._post("/sleep?level=2", None)

    def wake(self, tag: str) -> None:
        """Allocate the memory of `"weights"` or `"kv_cache"` again."""
        self._post(f"/wake_up?tags={tag}", None)

    def wait_until_ready(self, seconds: float) -> None:
        """Wait until the server reports that it is ready.

        Raises:
            EngineDiedError: If the server is not ready within this time.
        """
        deadline = time.monotonic() + seconds
        while True:
            try:
                self._exchange(self._connection(), "/health", None, method="GET")
                return
            except EngineDiedError:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(_RETRY_S)

    def close(self) -> None:
        """Break off the connections."""
        for future in list(self._under_way):
            future.cancel()
        self._pool.shutdown(wait=False)

    def _connection(self) -> http.client.HTTPConnection:
        """A connection that ignores proxies set in the environment, since the engine is local, or reached by a tunnel."""
        address = urlsplit(self.address)
        kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        return kind(address.netloc.rpartition("@")[2], timeout=_TIMEOUT_S)

    def _post(self, path: str, content: Any) -> Any:
        return self._exchange(self._connection(), path, content)

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        path: str,
        content: Any,
        is_cancelled: Callable[[], bool] = lambda: False,
        *,
        method: str = "POST",
    ) -> Any:
        headers = {"Content-Type": "application/json"}
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        try:
            with contextlib.closing(connection):
                connection.connect()
                if is_cancelled():  # the request was cancelled before it had a connection
                    return None
                body = b"" if content is None else json.dumps(content).encode()
                connection.request(method, urlsplit(self.address).path + path, body, headers)
                response = connection.getresponse()
                said = response.read()
        except http.client.HTTPException as error:
            raise EngineDiedError(
                f"the vLLM server at {self.address} broke off its answer to {path} ({error!r}): it probably died; {RESUME}"
            ) from error
        except OSError as error:
            raise EngineDiedError(f"no vLLM server answers at {self.address}{path} ({error}); {RESUME}") from error
        self._check_status(path, response.status, said)
        return self._parsed(path, said) if said else None

    def _check_status(self, path: str, status: int, said: bytes) -> None:
        """Check that a request succeeded; redirections are not followed, so that only this server gets the key."""
        if status == http.HTTPStatus.UNAUTHORIZED:
            raise EngineError(
                f"the vLLM server at {self.address} refused {path}: it requires a key, and got "
                f"{'another' if self._api_key else 'none'}. Set VLLM_API_KEY to the key that the server was started with"
            )
        if status != http.HTTPStatus.OK:
            broke = status >= http.HTTPStatus.INTERNAL_SERVER_ERROR
            raise (EngineDiedError if broke else EngineError)(
                f"the vLLM server at {self.address} answered {path} with {status}: "
                f"{said[:_QUOTED].decode('utf-8', errors='replace')}. Was it started with the options that docs/vllm.md lists? "
                f"{RESUME}"
            )

    def _parsed(self, path: str, body: bytes) -> Any:
        try:
            return json.loads(body)
        except ValueError as error:
            raise EngineError(
                f"{self.address} does not answer {path} like a vLLM server: expected JSON, got {body[:100]!r}; is the address "
                "right?"
            ) from error


def _break_off_if_cancelled(connection: http.client.HTTPConnection, future: Future[SampledCompletion]) -> None:
    """Close the connection of a request that was cancelled, which stops it at the server."""
    connected = connection.sock  # the request's thread may set the attribute to None meanwhile
    if future.cancelled() and connected is not None:
        with contextlib.suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)
