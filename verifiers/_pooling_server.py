"""Client for a reward model that `vllm serve` offers at its `/pooling` endpoint; needs only the standard library."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from verifiers._models import failed
from verifiers._settings import is_number
from verifiers.http import JsonServer, ServerError, persistently
from verifiers.redaction import redacted, secret
from verifiers.types import Outcome, Verdict


class PoolingServer:
    """Scores texts with a sequence classifier that `vllm serve MODEL --runner pooling` serves.

    Texts are sent as tokens, so that the server scores exactly the tokens made here. `use_activation` is false, since vLLM
    would apply a sigmoid to the logit by default. A request is retried twice if the server can't be reached, answers 5xx, 408,
    425 or 429, or sends something other than JSON.

    Args:
        address: Address of the server, such as http://localhost:8000.
        model: The model's name on the server.
        padding: Token that the model's pooling ignores at the end of a text; None if there is none.
        api_key: The server's key, or `env:NAME` to read it from an environment variable; None uses VLLM_API_KEY if it is set.
        timeout_s: Longest wait for an answer at each attempt, in seconds.
        at_once: Maximum number of concurrent requests.

    Raises:
        InvalidArgumentError: If the address is not an HTTP address, the time is not positive, or the environment variable is
            not set.
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
        key = os.environ.get("VLLM_API_KEY") if api_key is None else secret(api_key)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        url = address.rstrip("/") + "/pooling"
        self._server = JsonServer(url, "reward model server", headers, key, timeout_s)
        self._shown = redacted(url)
        self._model = model
        self._padding = padding
        self._at_once = at_once

    def scores(self, texts: Sequence[list[int]]) -> list[Verdict]:
        """Score tokenised texts, each by its own request; a failed request is a `VERIFIER_ERROR` with the cause."""
        with ThreadPoolExecutor(max_workers=max(1, min(self._at_once, len(texts)))) as pool:
            return list(pool.map(self._score, texts))

    def _score(self, tokens: list[int]) -> Verdict:
        try:
            return Verdict(persistently(lambda: self._logit(tokens)), Outcome.SCORED)
        except ServerError as failure:
            return failed(str(failure))

    def _logit(self, tokens: list[int]) -> float:
        # vLLM uses the last token's logit; transformers, which trains the models, uses the last non-padding token's.
        last = max((index for index, token in enumerate(tokens) if token != self._padding), default=0)
        answer = self._server.ask(
            {"model": self._model, "input": [tokens[: last + 1]], "task": "classify", "use_activation": False}
        )
        try:
            (entry,) = answer["data"]
            logits = entry["data"]
        except (TypeError, KeyError, ValueError) as error:
            raise ServerError(
                f"the server at {self._shown} does not answer like vLLM's /pooling: "
                f"{self._server.clean(json.dumps(answer))!r}",
                temporary=False,
            ) from error
        if not isinstance(logits, list) or len(logits) != 1 or not is_number(logits[0]) or math.isinf(logits[0]):
            raise ServerError(
                f"expected one finite logit from the reward model server at {self._shown}, got {logits!r:.100}; "
                "does it serve a sequence classifier with num_labels=1?",
                temporary=False,
            )
        return float(logits[0])
