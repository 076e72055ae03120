"""Asks servers over HTTP, reads their answers, and tells temporary failures from permanent ones.

A `JsonServer` is asked with the standard library. An `OpenAIServer`, which speaks OpenAI's protocol, is asked many questions at
once, with the package `openai`.
"""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import math
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from verifiers.errors import missing_dependency
from verifiers.redaction import REDACTED, redacted

if TYPE_CHECKING:
    from openai import AsyncOpenAI

BACK_OFF_S = (0.5, 2.0)
"""Pauses in seconds before the second and the third attempt of a `JsonServer`."""
MAX_PAUSE_S = 60.0
"""Longest pause in seconds before an `OpenAIServer` is asked again."""
Route = Literal["chat", "completions"]
_ROUTES: dict[Route, str] = {"chat": "/chat/completions", "completions": "/completions"}
_TEMPORARY = frozenset({408, 409, 425, 429, *range(500, 600)})
"""HTTP statuses of a server that may answer the same question later."""
_SHOWN = 300

T = TypeVar("T")


class ServerError(Exception):
    """The reason why a server gave no answer.

    Args:
        reason: The reason in words.
        temporary: Whether the server may give an answer a little later.
        status: The HTTP status of the server's answer, if there was one.
        pause_s: The seconds that the server asks to wait, if it does.
        connected: Whether a connection was made, which fails if nothing listens at the port; None if unknown.
    """

    def __init__(
        self,
        reason: str,
        *,
        temporary: bool,
        status: int | None = None,
        pause_s: float | None = None,
        connected: bool | None = None,
    ) -> None:
        super().__init__(reason)
        self.temporary, self.status, self.pause_s, self.connected = temporary, status, pause_s, connected


class _AsItIs(urllib.request.HTTPErrorProcessor):
    """Returns answers of any status unchanged; redirections, which would send the key to another server, are not followed."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response

    https_response = http_response


class JsonServer:
    """A server that takes JSON and answers with JSON.

    Args:
        url: The URL to which questions are sent.
        what: The kind of server, for messages: `"reward model server"`.
        headers: HTTP headers sent with every question.
        key: The server's key, which is removed from messages, since some servers repeat it.
        timeout_s: Longest wait for an answer at each attempt, in seconds.
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
            ServerError: If no JSON answer with status 200 came.
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
        return _clean(said.decode(errors="replace") if isinstance(said, bytes) else str(said), self._key)


def _clean(text: str, key: str | None) -> str:
    return (text.replace(key, REDACTED) if key else text)[:_SHOWN]


def persistently(ask: Callable[[], T]) -> T:
    """Ask up to three times, with pauses, as long as the failures are temporary.

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


@dataclass(frozen=True)
class OpenAIServer:
    """A server that speaks OpenAI's protocol, and how often and how long to try it.

    Raises:
        MissingDependencyError: If the package `openai` is not installed.
    """

    base_url: str
    api_key: str | None
    attempts: int
    """Maximum number of times that a question is asked if the failures are temporary."""
    backoff_s: float
    """Pause in seconds before the second attempt, doubled for each further attempt, unless the server names another pause."""
    timeout_s: float | None
    """Longest time of an attempt in seconds; None for no limit."""
    purpose: str
    """The feature that needs the package `openai`, for the error message."""

    def __post_init__(self) -> None:
        try:
            import openai  # noqa: F401
        except ImportError as error:
            raise missing_dependency("openai", "openai", self.purpose) from error

    @property
    def address(self) -> str:
        """The address without secrets."""
        return str(redacted(self.base_url))

    def client(self) -> AsyncOpenAI:
        """A client for `ask`; use it with `async with`, which closes it."""
        import openai

        # The client wants a key. Without one it would send the variable OPENAI_API_KEY to this server, whatever it is.
        return openai.AsyncOpenAI(
            base_url=self.base_url, api_key=self.api_key or "none", max_retries=0, timeout=self.timeout_s
        )

    async def ask(
        self,
        client: AsyncOpenAI,
        route: Route,
        body: Mapping[str, Any],
        read: Callable[[str], T],
        on_failure: Callable[[ServerError], object],
    ) -> T:
        """Ask one question, and repeat it as long as the failures are temporary.

        Args:
            client: The client.
            route: The kind of question.
            body: Body of the request.
            read: Reads the text of an answer, or raises a `ServerError`.
            on_failure: Called with every failure; an exception that it raises ends the attempts.

        Raises:
            ServerError: The last failure.
        """
        for attempt in itertools.count(1):
            try:
                return read(await self._said(client, route, body))
            except ServerError as failure:
                on_failure(failure)
                if not failure.temporary or attempt == self.attempts:
                    raise
                pause_s = failure.pause_s or self.backoff_s * 2.0 ** (attempt - 1)
            await asyncio.sleep(min(MAX_PAUSE_S, pause_s))
        raise AssertionError

    async def _said(self, client: AsyncOpenAI, route: Route, body: Mapping[str, Any]) -> str:
        import openai

        try:
            async with asyncio.timeout(self.timeout_s):
                return await client.post(_ROUTES[route], cast_to=str, body=body)
        except openai.APIStatusError as error:
            status = error.status_code
            raise ServerError(
                f"status {status}: {self.clean(error.response.text)}",
                temporary=status in _TEMPORARY,
                status=status,
                connected=True,
                pause_s=_seconds(error.response.headers.get("retry-after")),
            ) from error
        except (openai.APITimeoutError, TimeoutError) as error:
            if self.timeout_s is None:  # the caller's deadline
                raise
            raise ServerError(f"no complete answer in {self.timeout_s:g} s", temporary=True) from error
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            name = type(cause).__name__
            raise ServerError(
                f"{'no connection' if 'Connect' in name else 'the connection failed'}: {name}: {self.clean(cause)}",
                temporary=True,
                connected="Connect" not in name,
            ) from error
        except (openai.OpenAIError, ValueError, TypeError) as error:  # such as a text that UTF-8 can't hold
            raise ServerError(f"the question can't be sent: {self.clean(error)}", temporary=False) from error

    def clean(self, said: object) -> str:
        """The beginning of a server's message, without the key, which some servers repeat when they refuse it."""
        return _clean(" ".join(str(said).split()), self.api_key)


def _seconds(header: str | None) -> float | None:
    """The seconds that a server asks to wait; None if the header is missing or is a date."""
    try:
        seconds = float(header or "")
    except ValueError:
        return None
    return seconds if 0 < seconds < math.inf else None
