"""`ServerEngine`: a running `vllm serve`, over HTTP; docs/vllm.md lists the options that the server needs."""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from agents.policies.vllm.engine import Request, SampledCompletion, Sampling
from agents.policies.vllm.process_engine import RESUME
from agents.policies.vllm.process_main import sampling_parameters
from verifiers import EngineError, InvalidArgumentError

_AT_ONCE = 512
"""Largest number of concurrent requests; the server queues what it has no room for."""
_TIMEOUT_S = 3600.0


class ServerEngine:
    """Communicates with a server; see `agents.policies.vllm.engine.Engine`.

    The server is external: closing the engine does not stop it.

    Args:
        address: Address of the server, such as http://localhost:8000.
        api_key: The server's key; None uses the environment variable VLLM_API_KEY, which the server reads too, and no key if
            it is not set.

    Raises:
        InvalidArgumentError: If the address is not an HTTP address.
    """

    def __init__(self, address: str, *, api_key: str | None = None) -> None:
        if not address.startswith(("http://", "https://")):
            raise InvalidArgumentError(
                f"a server's address must begin with http:// or https://, such as http://localhost:8000; got {address!r}"
            )
        self.address = address.rstrip("/")
        self._api_key = os.environ.get("VLLM_API_KEY") if api_key is None else api_key
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy for a local engine

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[SampledCompletion]:
        """Sample one completion for each request, concurrently."""
        parameters = sampling_parameters(sampling)
        ask = partial(self._complete, parameters=parameters, leaves_out=sampling.leaves_out)
        with ThreadPoolExecutor(max_workers=min(_AT_ONCE, max(1, len(requests)))) as pool:
            return list(pool.map(ask, requests))

    def _complete(self, request: Request, *, parameters: dict[str, Any], leaves_out: bool) -> SampledCompletion:
        own = {**parameters, "seed": request.seed, "max_tokens": request.max_tokens}
        answer = self._post("/inference/v1/generate", {"token_ids": request.prompt, "sampling_params": own})
        choice = answer["choices"][0]
        said = choice["logprobs"]["content"]
        completion = SampledCompletion(choice["token_ids"], [entry["logprob"] for entry in said])
        return replace(completion, kept=choice.get("sampling_mask")) if leaves_out else completion

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
        if not self._post("/reset_prefix_cache", None)["success"]:
            raise EngineError("the vLLM server could not reset its prefix cache: other requests are using it")

    def sleep(self) -> None:
        """Free the memory of weights and cache."""
        self._post("/sleep?level=2", None)

    def wake(self, tag: str) -> None:
        """Allocate the memory of `"weights"` or `"kv_cache"` again."""
        self._post(f"/wake_up?tags={tag}", None)

    def close(self) -> None:
        """Do nothing, since each call has its own connection."""

    def _post(self, path: str, content: Any) -> Any:
        request = urllib.request.Request(
            self.address + path,
            data=b"" if content is None else json.dumps(content).encode(),
            headers={"Content-Type": "application/json"},
            method="POST",
        )
        if self._api_key:
            request.add_unredirected_header(
                "Authorization", f"Bearer {self._api_key}"
            )  # goes nowhere but to this server
        try:
            with self._opener.open(request, timeout=_TIMEOUT_S) as response:
                body = response.read()
        except urllib.error.HTTPError as error:
            said = error.read().decode("utf-8", errors="replace")[:500]
            if error.code == http.HTTPStatus.UNAUTHORIZED:
                raise EngineError(
                    f"the vLLM server at {self.address} refused {path}: it requires a key, and got "
                    f"{'another' if self._api_key else 'none'}. Set VLLM_API_KEY to the key that the server was started with"
                ) from error
            raise EngineError(
                f"the vLLM server at {self.address} answered {path} with {error.code}: {said}. Was it started with the options "
                f"that docs/vllm.md lists? {RESUME}"
            ) from error
        except http.client.HTTPException as error:
            raise EngineError(
                f"the vLLM server at {self.address} broke off its answer to {path} ({error!r}): it probably died; {RESUME}"
            ) from error
        except OSError as error:
            raise EngineError(f"no vLLM server answers at {self.address}{path} ({error}); {RESUME}") from error
        return self._parsed(path, body) if body else None

    def _parsed(self, path: str, body: bytes) -> Any:
        try:
            return json.loads(body)
        except ValueError as error:
            raise EngineError(
                f"{self.address} does not answer {path} like a vLLM server: expected JSON, got {body[:100]!r}; is the address "
                "right?"
            ) from error
