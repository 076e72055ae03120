"""`Endpoint`: completions over HTTP, many at once, with retries and time limits.

A request is repeated where another attempt may help: a lost connection, no answer in time, status 408, 409, 429 or 5xx, or an
answer that is no completion, such as half of a JSON document. A request that still fails is a `RequestFailure`, which says
nothing about the model. What concerns all requests raises `EngineError`: a refused key, an unknown model, a server that can't
be reached.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import queue
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.runs.completions import message_text
from agents.settings.endpoint import EndpointConfig as EndpointConfig, Route as Route
from verifiers import (
    DataError,
    EngineError,
    Message,
    missing_dependency,
    redacted,
)

_ROUTES: dict[str, str] = {"chat": "/chat/completions", "completions": "/completions"}
_REPEATED = frozenset((408, 409, 429))
"""Status codes below 500 that another attempt may not have."""
_CONCERNS_ALL = frozenset((401, 403, 404))
"""Status codes that every request would get: a refused key, an unknown model or address."""
_LONGEST_PAUSE_S = 60.0
_SHOWN = 300
"""Characters of a server's message that an error repeats."""
_MOST_STOPS = 4
"""Stop strings that a request may have; all of them are looked for here."""
_SEEDS = 2**31
"""Seeds of a request are below this, since not every server takes larger ones."""


@dataclass(frozen=True, slots=True)
class TextRequest:
    """A request for one completion."""

    prompt: str | tuple[Message, ...]
    """Messages for the route "chat", text for "completions"."""
    seed: int
    """Seed of the sampling, for servers that take one."""
    max_tokens: int
    stop: tuple[str, ...] = ()
    """Strings that end the completion; one that the server did not stop at is cut off here."""


@dataclass(frozen=True, slots=True)
class TextCompletion:
    """What a server answered."""

    text: str
    tokens: int
    """Number of tokens, as the server counts them; 0 if it does not."""
    truncated: bool
    """Whether the token budget ran out."""


@dataclass(frozen=True, slots=True)
class RequestFailure:
    """A request that got no completion, by its last attempt."""

    cause: str


EndpointResult = TextCompletion | RequestFailure


class Endpoint:
    """Samples whole completions from a server; `evaluate` takes it in place of a policy.

    Args:
        config: Where and how.
        temperature: Temperature of the sampling.

    Raises:
        MissingDependencyError: If `openai` is not installed.
    """

    def __init__(self, config: EndpointConfig, *, temperature: float = 0.0) -> None:
        try:
            self._openai: Any = importlib.import_module("openai")
        except ImportError as error:
            raise missing_dependency("openai", "openai", "engine 'openai'") from error
        self.config = config
        self.temperature = temperature
        self._reached = False

    def complete(self, requests: Sequence[TextRequest]) -> Generator[list[tuple[int, EndpointResult]]]:
        """Ask for completions, and yield answers as they come, all that are there, with the indices of their requests.

        At most twice `concurrency` answers wait for the caller. Closing the iterator ends the open requests.

        Raises:
            EngineError: If the server can't be reached, or refuses what all requests have in common.
        """
        answers: queue.SimpleQueue[tuple[int, EndpointResult] | BaseException] = queue.SimpleQueue()
        loop = asyncio.new_event_loop()
        room = asyncio.Semaphore(2 * self.config.concurrency)
        work = loop.create_task(self._complete_all(requests, room, answers.put))
        thread = threading.Thread(target=_run, args=(loop, work, answers.put), daemon=True, name="endpoint")
        thread.start()
        try:
            taken = 0
            while taken < len(requests):
                chunk = [_raised(answers.get())]
                while not answers.empty():
                    chunk.append(_raised(answers.get()))
                yield chunk
                taken += len(chunk)
                for _ in chunk:
                    _tell(loop, room.release)
        finally:
            _tell(loop, work.cancel)
            thread.join()

    async def _complete_all(
        self,
        requests: Sequence[TextRequest],
        room: asyncio.Semaphore,
        deliver: Callable[[tuple[int, EndpointResult]], None],
    ) -> None:
        config, remaining = self.config, iter(enumerate(requests))
        async with self._openai.AsyncOpenAI(
            base_url=config.base_url, api_key=config.api_key or "none", max_retries=0, timeout=config.timeout_s
        ) as client:

            async def work() -> None:
                for index, request in remaining:
                    await room.acquire()
                    deliver((index, await self._complete(client, request)))

            async with asyncio.TaskGroup() as group:
                for _ in range(min(config.concurrency, len(requests))):
                    group.create_task(work())

    async def _complete(self, client: Any, request: TextRequest) -> EndpointResult:
        """Ask for one completion, as often as it takes."""
        body, cause = self._body(request), ""
        pause: float | None = None
        for attempt in range(self.config.retries + 1):
            if attempt:
                await asyncio.sleep(min(_LONGEST_PAUSE_S, pause or self.config.backoff_s * 2.0 ** (attempt - 1)))
            pause = None
            try:
                async with asyncio.timeout(self.config.timeout_s):
                    said = await client.post(_ROUTES[self.config.route], cast_to=str, body=body)
                self._reached = True
                return read_answer(said, request.stop)
            except self._openai.APIStatusError as error:
                self._reached = True
                cause, pause = self._refusal(error), _wanted_pause(error.response.headers.get("retry-after"))
                if error.status_code < 500 and error.status_code not in _REPEATED:
                    break
            except (self._openai.APITimeoutError, TimeoutError):
                cause = f"no complete answer in {self.config.timeout_s:g} s"
            except self._openai.APIConnectionError as error:
                cause = self._lost(error)
            except DataError as error:
                cause = str(error)
        return RequestFailure(cause)

    def _body(self, request: TextRequest) -> dict[str, Any]:
        if isinstance(request.prompt, str):
            asked: dict[str, Any] = {"prompt": request.prompt}
        else:
            asked = {"messages": [{"role": turn.role, "content": turn.content} for turn in request.prompt]}
        body = {
            "model": self.config.model,
            **asked,
            "temperature": self.temperature,
            "max_tokens": request.max_tokens,
            "seed": request.seed % _SEEDS,
            "stop": list(request.stop[:_MOST_STOPS]) or None,
            **self.config.body,
        }
        return {name: value for name, value in body.items() if value is not None}

    def _refusal(self, error: Any) -> str:
        """What a server's status and message say.

        Raises:
            EngineError: If they concern all requests.
        """
        said = " ".join(error.response.text.split())[:_SHOWN]
        refusal = f"the server answered with status {error.status_code}: {said}"
        if error.status_code in _CONCERNS_ALL:
            raise EngineError(
                f"{refusal}; check the model {self.config.model!r}, the key, and the address {self._address}"
            ) from error
        return refusal

    def _lost(self, error: Any) -> str:
        """Why a connection failed.

        Raises:
            EngineError: If there has never been one.
        """
        cause = error.__cause__ or error
        if not self._reached and "Connect" in type(cause).__name__:
            raise EngineError(f"no server answers at {self._address}: {cause}") from error
        self._reached = True
        return f"the connection failed: {type(cause).__name__}: {cause}"

    @property
    def _address(self) -> str:
        return str(redacted(self.config.base_url))


def _run(loop: asyncio.AbstractEventLoop, work: asyncio.Task[None], deliver: Callable[[BaseException], None]) -> None:
    """Run a task to its end, and deliver its error, the first where there are several."""
    try:
        loop.run_until_complete(work)
    except asyncio.CancelledError:
        pass
    except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        deliver(error)
    finally:
        loop.close()


def _raised(answer: tuple[int, EndpointResult] | BaseException) -> tuple[int, EndpointResult]:
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[[], object]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: the work is done
        loop.call_soon_threadsafe(what)


def _wanted_pause(header: str | None) -> float | None:
    """The seconds that a server asks to wait; None where it says none, or names a date."""
    try:
        pause = float(header or "")
    except ValueError:
        return None
    return pause if pause > 0 else None


def read_answer(said: str, stop: Sequence[str]) -> TextCompletion:
    """Read a completion from the text of a response, of either route.

    Raises:
        DataError: If it is no completion, or the server withheld it.
    """
    try:
        content = json.loads(said)
    except ValueError as error:
        raise DataError(f"the server's answer is not JSON: {said[:_SHOWN]!r}") from error
    choices = content.get("choices") if isinstance(content, Mapping) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, Mapping):
        raise DataError(f"the server's answer has no choices: {said[:_SHOWN]!r}")
    finish = choice.get("finish_reason")
    if finish == "content_filter":
        raise DataError("the server withheld the completion (content_filter)")
    text, stopped = _cut(_text_of(choice), stop)
    usage = content.get("usage")
    tokens = usage.get("completion_tokens") if isinstance(usage, Mapping) else None
    return TextCompletion(text, tokens if isinstance(tokens, int) else 0, finish == "length" and not stopped)


def _text_of(choice: Mapping[str, Any]) -> str:
    """The completion of a choice; empty where a model ended without one, and its refusal where it refused."""
    if "message" not in choice:
        if not isinstance(choice.get("text"), str):
            raise DataError(f"the server's answer has neither a message nor a text: {str(choice)[:_SHOWN]!r}")
        return str(choice["text"])
    message = choice["message"]
    if isinstance(message, Mapping) and "content" in message and message["content"] is None:
        return str(message.get("refusal") or "")
    return message_text(choice, "the server's answer")


def _cut(text: str, stop: Sequence[str]) -> tuple[str, bool]:
    """A text up to the first stop string, and whether there is one."""
    ends = [at for string in stop if (at := text.find(string)) >= 0]
    return (text[: min(ends)], True) if ends else (text, False)
