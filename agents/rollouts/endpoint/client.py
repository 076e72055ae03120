"""`Endpoint`: completions over HTTP, many at once, with retries and time limits.

A request is repeated if another attempt may help: a lost connection, no answer in time, status 408, 409, 429 or 5xx, or an
answer that is no completion, such as half of a JSON document. A request that still fails is a `RequestFailure`, which is no
evidence about the model. A fault of all requests raises `EngineError`: a refused key, an unknown model, a server that can't be
reached.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import queue
import threading
from collections.abc import Callable, Coroutine, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from agents.rollouts.endpoint.protocol import chat_message, read_answer
from agents.settings.endpoint import EndpointConfig as EndpointConfig, Route as Route
from rlvr_envs import TextCompletion
from rlvr_envs.dialogue import ToolSchema
from verifiers import DataError, EngineError, Message, missing_dependency, redacted

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
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
    tools: tuple[ToolSchema, ...] = ()
    """The tools that the model may call."""
    counted: bool = False
    """Whether the server has to count tokens, as budgets over several turns need."""


@dataclass(frozen=True, slots=True)
class RequestFailure:
    """A request that got no completion, by its last attempt."""

    cause: str


EndpointResult = TextCompletion | RequestFailure


class Conversation(Protocol):
    """Several requests, each of which follows from the answers to those before it."""

    def request(self) -> TextRequest | None:
        """Give the next request; None if nothing more is to be asked."""
        ...

    def take(self, answer: TextCompletion) -> None:
        """Take the answer, which may take time."""
        ...


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
        self._counted = False

    def complete(self, requests: Sequence[TextRequest]) -> Generator[list[tuple[int, EndpointResult]]]:
        """Ask for completions, and yield answers as they come, all that are there, with the indices of their requests.

        Answers that came before an error are yielded before it is raised.

        At most twice `concurrency` answers wait for the caller. Closing the iterator ends the open requests.

        Raises:
            EngineError: If the server can't be reached, or refuses what all requests have in common.
        """
        yield from self._each(requests, self._complete)

    def converse(self, conversations: Sequence[Conversation]) -> Generator[list[tuple[int, RequestFailure | None]]]:
        """Hold conversations, and yield the indices of those that are over as they end, with what ended them early.

        Otherwise as `complete`.

        Raises:
            EngineError: As for `complete`, or if the server counts no tokens although it has to.
        """
        yield from self._each(conversations, self._converse)

    def _each(
        self, items: Sequence[_Item], work: Callable[[Any, _Item], Coroutine[Any, Any, _Result]]
    ) -> Generator[list[tuple[int, _Result]]]:
        answers: queue.SimpleQueue[tuple[int, _Result] | BaseException] = queue.SimpleQueue()
        loop = asyncio.new_event_loop()
        loop.set_default_executor(ThreadPoolExecutor(self.config.concurrency, thread_name_prefix="conversation"))
        room = asyncio.Semaphore(2 * self.config.concurrency)
        task = loop.create_task(self._work_on_all(items, work, room, answers.put))
        thread = threading.Thread(target=_run, args=(loop, task, answers.put), daemon=True, name="endpoint")
        thread.start()
        try:
            taken = 0
            while taken < len(items):
                chunk, error = _waiting(answers)
                if chunk:
                    yield chunk
                if error is not None:
                    raise error
                taken += len(chunk)
                for _ in chunk:
                    _tell(loop, room.release)
        finally:
            _tell(loop, task.cancel)
            thread.join()

    async def _work_on_all(
        self,
        items: Sequence[_Item],
        work: Callable[[Any, _Item], Coroutine[Any, Any, _Result]],
        room: asyncio.Semaphore,
        deliver: Callable[[tuple[int, _Result]], None],
    ) -> None:
        config, remaining = self.config, iter(enumerate(items))
        async with self._openai.AsyncOpenAI(
            base_url=config.base_url, api_key=config.api_key or "none", max_retries=0, timeout=config.timeout_s
        ) as client:

            async def work_on_some() -> None:
                for index, item in remaining:
                    await room.acquire()
                    deliver((index, await work(client, item)))

            async with asyncio.TaskGroup() as group:
                for _ in range(min(config.concurrency, len(items))):
                    group.create_task(work_on_some())

    async def _converse(self, client: Any, conversation: Conversation) -> RequestFailure | None:
        while (request := conversation.request()) is not None:
            answer = await self._complete(client, request)
            if isinstance(answer, RequestFailure):
                return answer
            await asyncio.to_thread(conversation.take, answer)
        return None

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
                answer = read_answer(said, request.stop)
                if request.counted:
                    self._check_counts(answer)
                return answer
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

    def _check_counts(self, answer: TextCompletion) -> None:
        """Refuse an answer without counts of tokens, or a server that has never given any.

        Raises:
            DataError: If this answer has no counts.
            EngineError: If no answer has ever had counts.
        """
        if answer.prompt_tokens and (answer.tokens or not (answer.text or answer.calls)):
            self._counted = True
            return
        lacks = (
            "counts no tokens (usage.prompt_tokens and usage.completion_tokens), by which the token budgets of episodes of "
            "several turns go"
        )
        if self._counted:
            raise DataError(f"the server's answer {lacks}")
        raise EngineError(f"the server at {self._address} {lacks}: use a server that reports usage")

    def _body(self, request: TextRequest) -> dict[str, Any]:
        if isinstance(request.prompt, str):
            asked: dict[str, Any] = {"prompt": request.prompt}
        else:
            asked = {"messages": list(map(chat_message, request.prompt)), "tools": list(request.tools) or None}
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
        """The failure that a server's status and message describe.

        Raises:
            EngineError: If it concerns all requests.
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
            EngineError: If no connection has ever succeeded.
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
    """Run a task to its end, and deliver its error, the first of several."""
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


def _waiting(
    answers: queue.SimpleQueue[tuple[int, _Result] | BaseException],
) -> tuple[list[tuple[int, _Result]], BaseException | None]:
    """Wait for an answer, and take all that are there, up to an error."""
    chunk: list[tuple[int, _Result]] = []
    while not chunk or not answers.empty():
        answer = answers.get()
        if isinstance(answer, BaseException):
            return chunk, answer
        chunk.append(answer)
    return chunk, None


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[[], object]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: the work is done
        loop.call_soon_threadsafe(what)


def _wanted_pause(header: str | None) -> float | None:
    """The seconds that a server asks to wait; None if it names none, or a date."""
    try:
        pause = float(header or "")
    except ValueError:
        return None
    return pause if pause > 0 else None
