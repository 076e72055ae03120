"""Asking a server over HTTP with the standard library: what can be read of an answer, and what may pass after a while."""

from __future__ import annotations

import http.client
import json
import time
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from verifiers.redaction import REDACTED, redacted

BACK_OFF_S = (0.5, 2.0)
"""Waits before the second and the third try."""
_TEMPORARY = frozenset({408, 425, 429, *range(500, 600)})
"""HTTP statuses of a server that may answer the same question a little later."""
_SHOWN = 300

T = TypeVar("T")


class ServerError(Exception):
    """Why a server gave no answer; `temporary` if it may give one a little later."""

    def __init__(self, reason: str, *, temporary: bool) -> None:
        super().__init__(reason)
        self.temporary = temporary


class _AsItIs(urllib.request.HTTPErrorProcessor):
    """Answers of any status come back as they are; redirections, which would take the key elsewhere, are not followed."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response

    https_response = http_response


class JsonServer:
    """Takes JSON and answers JSON.

    Args:
        url: Where it is asked.
        what: What it is, for messages: `"reward model server"`.
        headers: Sent with every question.
        key: What is kept out of messages, since some servers repeat it.
        timeout_s: Longest wait for an answer in seconds, at each try.
    """

    def __init__(self, url: str, what: str, headers: Mapping[str, str], key: str | None, timeout_s: float) -> None:
        self._url = url
        self._named = f"{what} at {redacted(url)}"
        self._silent = f"no {what} answers at {redacted(url)}"
        self._headers = {"Content-Type": "application/json", **headers}
        self._key = key
        self._timeout_s = timeout_s

    def ask(self, question: object) -> Any:
        """Ask once.

        Raises:
            ServerError: If no answer came that is JSON, with status 200.
        """
        status, body = self._post(json.dumps(question).encode())
        if status != http.HTTPStatus.OK:
            raise ServerError(
                f"the {self._named} answered {status}: {self.clean(body)}", temporary=status in _TEMPORARY
            )
        try:
            return json.loads(body)
        except ValueError as error:
            raise ServerError(
                f"expected JSON from the {self._named}, got {self.clean(body)!r}", temporary=True
            ) from error

    def _post(self, content: bytes) -> tuple[int, bytes]:
        request = urllib.request.Request(self._url, content, dict(self._headers), method="POST")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _AsItIs)
        try:
            with opener.open(request, timeout=self._timeout_s) as response:
                return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise ServerError(f"{self._silent}: {reason!r}", temporary=True) from error

    def clean(self, said: object) -> str:
        """The beginning of a server's message, without the key."""
        text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        return (text.replace(self._key, REDACTED) if self._key else text)[:_SHOWN]


def persistently(ask: Callable[[], T]) -> T:
    """Ask up to three times, with pauses, as long as the failure may pass.

    Raises:
        ServerError: The last failure.
    """
    for wait_s in BACK_OFF_S:
        try:
            return ask()
        except ServerError as failure:
            if not failure.temporary:
                raise
        time.sleep(wait_s)
    try:
        return ask()
    except ServerError as failure:
        if not failure.temporary:
            raise
        raise ServerError(f"{failure} ({len(BACK_OFF_S) + 1} tries)", temporary=True) from failure
