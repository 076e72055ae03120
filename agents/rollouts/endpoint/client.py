"""`Endpoint`: completions over HTTP, many at once, with retries and time limits.

A request is repeated if another attempt may help: a lost connection, no answer in time, status 408, 409, 425, 429 or 5xx, or an
answer that is not a completion, such as half of a JSON document. A request that still fails yields a `RequestFailure`, which
says nothing about the model. A fault that affects all requests raises `EngineError`: a refused key, an unknown model, a server
that can't be reached.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
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
from verifiers import DataError, EngineError, Message
from verifiers.http import OpenAIServer, ServerError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_CONCERNS_ALL = frozenset((401, 403, 404))
"""Status codes that every request would get: a refused key, an unknown model or address."""
_MOST_STOPS = 4
"""Maximum number of stop strings in a request; this client itself looks for all stop strings in the answer."""
_SEEDS = 2**31
"""Seeds of requests are below this number, since not every server accepts larger seeds."""


@dataclass(frozen=True, slots=True)
class TextRequest:
    """A request for one completion."""

    prompt: str | tuple[Message, ...]
    """Messages for the route "chat", text for "completions"."""
    seed: int
    """Seed of the sampling, for servers that take one."""
    max_tokens: int
    stop: tuple[str, ...] = ()
    """Strings that end the completion. If the server does not stop at one of them, this client cuts the completion there."""
    tools: tuple[ToolSchema, ...] = ()
    """The tools that the model may call."""
    counted: bool = False
    """Whether the server has to report the number of tokens, which a budget over several turns needs."""


@dataclass(frozen=True, slots=True)
class RequestFailure:
    """The failure of a request's last attempt."""

    cause: str


EndpointResult = TextCompletion | RequestFailure


class Conversation(Protocol):
    """Several requests, each of which depends on the answers to earlier requests."""

    def request(self) -> TextRequest | None:
        """Give the next request; None if nothing more is to be asked."""

    def take(self, answer: TextCompletion) -> None:
        """Process the answer, which may take time."""


class Endpoint:
    """Samples whole completions from a server; `evaluate` accepts it in place of a policy.

    Args:
        config: Address of the server, and settings of the requests.
        temperature: Temperature of the sampling.

    Raises:
        MissingDependencyError: If `openai` is not installed.
    """

    def __init__(self, config: EndpointConfig, *, temperature: float = 0.0) -> None:
        self.config = config
        self._server = OpenAIServer(
            config.base_url,
            config.api_key,
            config.retries + 1,
            config.backoff_s,
            timeout_s=config.timeout_s,
            purpose="engine 'openai'",
        )
        self.temperature = temperature
        self._reached = False
        self._counted = False
        self._shows_tools = False

    def complete(self, requests: Sequence[TextRequest]) -> Generator[list[tuple[int, EndpointResult]]]:
        """Ask for completions, and yield lists of the answers that have arrived, with the indices of their requests.

        Answers that came before an error are yielded before it is raised.

        At most twice `concurrency` answers wait for the caller. Closing the iterator ends the open requests.

        Raises:
            EngineError: If the server can't be reached, or refuses what all requests have in common.
        """
        yield from self._each(requests, self._complete)

    def converse(self, conversations: Sequence[Conversation]) -> Generator[list[tuple[int, RequestFailure | None]]]:
        """Hold conversations; as each one ends, yield its index and the failure that ended it early, or None.

        In all other respects this is like `complete`.

        Raises:
            EngineError: As for `complete`, if the server counts no tokens although it has to, or if it drops the tools.
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
        remaining = iter(enumerate(items))
        async with self._server.client() as client:

            async def work_on_some() -> None:
                for index, item in remaining:
                    await room.acquire()
                    deliver((index, await work(client, item)))

            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.config.concurrency, len(items))):
                    group.create_task(work_on_some())

    async def _converse(self, client: Any, conversation: Conversation) -> RequestFailure | None:
        while (request := conversation.request()) is not None:
            answer = await self._complete(client, request)
            if isinstance(answer, RequestFailure):
                return answer
            if request.tools and not self._shows_tools:
                await self._check_tools(client, request, answer)
            await asyncio.to_thread(conversation.take, answer)
        return None

    async def _check_tools(self, client: Any, request: TextRequest, answer: TextCompletion) -> None:
        """Find out from the first answer whether the model is shown the tools; if it called none, by one more request.

        A server whose chat template has no tools drops them, which only the length of its prompt reveals.

        Raises:
            EngineError: If the server's prompt has as many tokens without the tools.
        """
        self._shows_tools = True
        if answer.calls or not answer.prompt_tokens:
            return
        bare = await self._complete(client, dataclasses.replace(request, tools=(), max_tokens=1))
        if isinstance(bare, TextCompletion) and bare.prompt_tokens and bare.prompt_tokens >= answer.prompt_tokens:
            raise EngineError(
                f"the server at {self._server.address} does not show the tools to the model: its prompt has "
                f"{answer.prompt_tokens} tokens with and {bare.prompt_tokens} without them. Start it with a tool parser and a "
                "template that has tools, or describe the tools in the messages: tools=text in --engine-args"
            )

    async def _complete(self, client: Any, request: TextRequest) -> EndpointResult:
        """Ask for one completion, with retries."""

        def read(said: str) -> TextCompletion:
            self._reached = True
            try:
                answer = read_answer(said, request.stop)
                if request.counted:
                    self._check_counts(answer)
            except DataError as error:
                raise ServerError(str(error), temporary=True) from error
            return answer

        try:
            return await self._server.ask(client, self.config.route, self._body(request), read, self._check_all)
        except ServerError as failure:
            return RequestFailure(str(failure))

    def _check_all(self, failure: ServerError) -> None:
        """Raise an error if a failure concerns all requests; ignore any other failure.

        Raises:
            EngineError: If the failure concerns all requests: a refused key, an unknown model, or a server that was never
                reached.
        """
        if failure.status in _CONCERNS_ALL:
            raise EngineError(
                f"{failure}; check the model {self.config.model!r}, the key, and the address {self._server.address}"
            ) from failure
        if failure.connected is False and not self._reached:
            raise EngineError(f"no server answers at {self._server.address}: {failure}") from failure
        self._reached |= bool(failure.connected)

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
        raise EngineError(f"the server at {self._server.address} {lacks}: use a server that reports usage")

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


def _run(loop: asyncio.AbstractEventLoop, work: asyncio.Task[None], deliver: Callable[[BaseException], None]) -> None:
    """Run a task to its end, and deliver its error, or the first of its errors."""
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
    """Wait for an answer, and take all answers that have arrived before the first error."""
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
