"""A reward model behind the `/pooling` endpoint of `vllm serve`, asked over HTTP with the standard library."""

from __future__ import annotations

import http.client
import json
import math
import os
import time
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from verifiers._models import failed
from verifiers._settings import is_number
from verifiers.errors import InvalidArgumentError
from verifiers.redaction import REDACTED, redacted, secret
from verifiers.types import Outcome, Verdict

_BACK_OFF_S = (0.5, 2.0)
"""Waits before the second and the third try."""
_TEMPORARY = frozenset({408, 425, 429, *range(500, 600)})
"""HTTP statuses of a server that may answer the same question a little later."""


class _FailedScore(Exception):
    """Why the server gave no score; `temporary` if it may give one a little later."""

    def __init__(self, reason: str, *, temporary: bool) -> None:
        super().__init__(reason)
        self.temporary = temporary


class _AsItIs(urllib.request.HTTPErrorProcessor):
    """Answers of any status come back as they are; redirections, which would take the key elsewhere, are not followed."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response

    https_response = http_response


class PoolingServer:
    """Scores texts with a sequence classifier that `vllm serve MODEL --runner pooling` serves.

    A text is sent as tokens, so that the server scores what was tokenised here, and `use_activation` is false, since vLLM would
    apply a sigmoid to the logit by default. A request is retried twice if the server can't be reached, answers 5xx, 408, 425 or
    429, or sends something other than JSON.

    Args:
        address: Address of the server, such as http://localhost:8000.
        model: The name under which the server has the model.
        padding: Token that the model's pooling skips where texts end in it; None if it skips none.
        api_key: The server's key, or `env:NAME` for that of an environment variable; None uses VLLM_API_KEY if it is set.
        timeout_s: Longest wait for an answer in seconds, at each try.
        at_once: Most requests at a time.

    Raises:
        InvalidArgumentError: If the address is no HTTP address, the time is not positive, or there is no such variable.
    """

    def __init__(
        self,
        address: str,
        model: str,
        *,
        padding: int | None,
        api_key: str | None,
        timeout_s: float,
        at_once: int,
    ) -> None:
        if not str(address).startswith(("http://", "https://")):
            raise InvalidArgumentError(
                f"a server's address must begin with http:// or https://, such as http://localhost:8000; got {address!r}"
            )
        if not is_number(timeout_s) or not 0 < timeout_s < math.inf:
            raise InvalidArgumentError(f"timeout_s must be a positive number of seconds, got {timeout_s!r}")
        self._url = address.rstrip("/") + "/pooling"
        self._shown = redacted(self._url)
        self._model = model
        self._padding = padding
        self._api_key: str | None = os.environ.get("VLLM_API_KEY") if api_key is None else secret(api_key)
        self._timeout_s = timeout_s
        self._at_once = at_once

    def scores(self, texts: Sequence[list[int]]) -> list[Verdict]:
        """Score texts of tokens, each by a request of its own; one that fails is a `VERIFIER_ERROR` with the cause."""
        with ThreadPoolExecutor(max_workers=max(1, min(self._at_once, len(texts)))) as pool:
            return list(pool.map(self._score, texts))

    def _score(self, tokens: list[int]) -> Verdict:
        tries = len(_BACK_OFF_S) + 1
        for attempt in range(1, tries + 1):
            try:
                return Verdict(self._logit(tokens), Outcome.SCORED)
            except _FailedScore as failure:
                if not failure.temporary or attempt == tries:
                    said = f"{failure} ({attempt} tries)" if failure.temporary else str(failure)
                    return failed(said)
                time.sleep(_BACK_OFF_S[attempt - 1])
        raise AssertionError("the last try returns")

    def _logit(self, tokens: list[int]) -> float:
        # vLLM takes the last token's logit; transformers, with which models are trained, that of the last that is no padding.
        last = max((index for index, token in enumerate(tokens) if token != self._padding), default=0)
        asked = {"model": self._model, "input": [tokens[: last + 1]], "task": "classify", "use_activation": False}
        body = self._post(json.dumps(asked).encode())
        try:
            answer: Any = json.loads(body)
        except ValueError as error:
            raise _FailedScore(
                f"expected JSON from the reward model server at {self._shown}, got {self._clean(body)!r}",
                temporary=True,
            ) from error
        try:
            (entry,) = answer["data"]
            logits = entry["data"]
        except (TypeError, KeyError, ValueError) as error:
            raise _FailedScore(
                f"the server at {self._shown} does not answer like vLLM's /pooling: {self._clean(body)!r}",
                temporary=False,
            ) from error
        if not isinstance(logits, list) or len(logits) != 1 or not is_number(logits[0]) or math.isinf(logits[0]):
            raise _FailedScore(
                f"expected one finite logit from the reward model server at {self._shown}, got {logits!r:.100}; "
                "does it serve a sequence classifier with num_labels=1?",
                temporary=False,
            )
        return float(logits[0])

    def _post(self, content: bytes) -> bytes:
        request = urllib.request.Request(self._url, content, {"Content-Type": "application/json"}, method="POST")
        if self._api_key:
            request.add_header("Authorization", f"Bearer {self._api_key}")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _AsItIs)
        try:
            with opener.open(request, timeout=self._timeout_s) as response:
                status: int = response.status
                body: bytes = response.read()
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise _FailedScore(
                f"no reward model server answers at {self._shown}: {reason!r}", temporary=True
            ) from error
        if status != http.HTTPStatus.OK:
            raise _FailedScore(
                f"the reward model server at {self._shown} answered {status}: {self._clean(body)}",
                temporary=status in _TEMPORARY,
            )
        return body

    def _clean(self, body: bytes) -> str:
        """The beginning of an answer for a message, without the key, which some servers repeat."""
        said = body.decode("utf-8", errors="replace")
        return (said.replace(self._api_key, REDACTED) if self._api_key else said)[:300]
