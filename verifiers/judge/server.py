"""Asking a server: several questions at once, again after passing failures, and never past a deadline."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from verifiers.errors import missing_dependency
from verifiers.judge.presets import Route
from verifiers.judge.replies import JudgeReply
from verifiers.redaction import REDACTED, redacted

if TYPE_CHECKING:
    from openai import AsyncOpenAI

MAX_WAIT_S = 8.0
"""Longest pause between two attempts, unless the server asks for another."""
_SHOWN = 300
_TRANSIENT = (408, 409, 425, 429)
_CHAT_LOGPROBS, _COMPLETION_LOGPROBS = 20, 5
"""How many alternatives of a token servers give at most."""

T = TypeVar("T")
Question = str | list[dict[str, str]]
"""A text to complete, or the messages of a chat."""


@dataclass(frozen=True)
class JudgeServer:
    """A server that speaks OpenAI's protocol, and how it is asked; see `JudgeVerifier` for the fields."""

    base_url: str
    model: str
    route: Route
    api_key: str | None
    parameters: Mapping[str, Any]
    """Fields of a request's body besides the model and the question."""
    logprobs: bool
    deadline_s: float
    attempts: int
    backoff_s: float
    concurrency: int

    def ask(self, questions: Sequence[Question]) -> list[tuple[JudgeReply, float]]:
        """Ask all questions; reply i, and the seconds it took, belong to question i.

        Once all attempts of one question fail to connect, the remaining questions are not asked.
        """
        return _run(lambda: self._ask_all(questions))

    async def _ask_all(self, questions: Sequence[Question]) -> list[tuple[JudgeReply, float]]:
        import openai

        # The client wants a key. Without one it would send the variable OPENAI_API_KEY, to whatever server this is.
        client = openai.AsyncOpenAI(
            base_url=self.base_url, api_key=self.api_key or "none", max_retries=0, timeout=self.deadline_s
        )
        batch = _Batch(self, client)
        async with client:
            return await asyncio.gather(*map(batch.reply, questions))


class _Batch:
    """The questions of one call."""

    def __init__(self, server: JudgeServer, client: AsyncOpenAI) -> None:
        self._server = server
        # The client imports a route when it is first looked at, which no question's deadline should pay for.
        self._route: Any = client.chat.completions if server.route == "chat" else client.completions
        self._room = asyncio.Semaphore(server.concurrency)
        self._unreachable: JudgeReply | None = None

    async def reply(self, question: Question) -> tuple[JudgeReply, float]:
        async with self._room:
            if self._unreachable is not None:
                return self._unreachable, 0.0
            began = time.monotonic()
            failures: list[_Failure] = []
            try:
                async with asyncio.timeout(self._server.deadline_s):
                    reply = await self._persistent(question, failures)
            except TimeoutError:
                before = f", after: {failures[-1].cause}" if failures else ""
                reply = JudgeReply(error=f"no reply from {self._address} within {self._server.deadline_s:g} s{before}")
            return reply, time.monotonic() - began

    @property
    def _address(self) -> str:
        return str(redacted(self._server.base_url))

    async def _persistent(self, question: Question, failures: list[_Failure]) -> JudgeReply:
        """Try until there is a reply, a refusal, or no attempt left."""
        for attempt in range(self._server.attempts):
            if attempt:
                await asyncio.sleep(failures[-1].wait_s or min(MAX_WAIT_S, self._server.backoff_s * 2 ** (attempt - 1)))
            result = await self._once(question)
            if isinstance(result, JudgeReply):
                return result
            failures.append(result)
            if result.is_final:
                return JudgeReply(error=result.cause)
        last = JudgeReply(
            error=f"{len(failures)} attempts at {self._address} failed, the last with {failures[-1].cause}"
        )
        if all(failure.is_unconnected for failure in failures):
            self._unreachable = last
        return last

    async def _once(self, question: Question) -> JudgeReply | _Failure:
        import openai

        try:
            answer = await self._create(question)
        except openai.APIStatusError as error:
            transient = error.status_code >= 500 or error.status_code in _TRANSIENT
            cause = f"status {error.status_code}: {self._shown(error.response.text)}"
            return _Failure(cause, is_final=not transient, wait_s=_retry_after(error.response.headers))
        except openai.APITimeoutError:
            raise TimeoutError from None
        except openai.APIConnectionError as error:
            return _Failure(
                f"no connection: {self._shown(error.__cause__ or error)}", is_unconnected=_is_refused(error)
            )
        except (openai.OpenAIError, ValueError) as error:  # the latter if the body is not JSON
            return _Failure(f"no readable answer: {type(error).__name__}: {self._shown(error)}")
        try:
            return self._read(answer)
        except (AttributeError, TypeError, IndexError, KeyError, ValueError):
            return _Failure(
                f"expected an answer in the form of OpenAI's protocol, got {self._shown(answer)!r}; is the address right?"
            )

    async def _create(self, question: Question) -> Any:
        server = self._server
        body: dict[str, Any] = dict(server.parameters)
        if isinstance(question, str):
            body |= {"logprobs": _COMPLETION_LOGPROBS} if server.logprobs else {}
            return await self._route.create(model=server.model, prompt=question, extra_body=body)
        body |= {"logprobs": True, "top_logprobs": _CHAT_LOGPROBS} if server.logprobs else {}
        messages: Any = question
        return await self._route.create(model=server.model, messages=messages, extra_body=body)

    def _read(self, answer: Any) -> JudgeReply:
        """A reply, from whatever the client made of the answer: it does not check what servers send."""
        choice = answer.choices[0]
        is_chat = self._server.route == "chat"
        text = choice.message.content if is_chat else choice.text
        if not isinstance(text, str):
            raise TypeError("a refusal, or a call of a tool")
        usage = getattr(answer, "usage", None)
        reply = JudgeReply(
            text, is_cut_off=choice.finish_reason == "length", tokens=int(getattr(usage, "total_tokens", None) or 0)
        )
        if not self._server.logprobs or choice.logprobs is None:
            return reply
        if is_chat:
            first = choice.logprobs.content[0].top_logprobs
            return replace(reply, first_token=_summed((entry.token, float(entry.logprob)) for entry in first))
        return replace(reply, first_token=dict(choice.logprobs.top_logprobs[0]))

    def _shown(self, said: object) -> str:
        """The beginning of a server's message, without the key, which some servers repeat in their refusals."""
        text = " ".join(str(said).split())
        return (text.replace(self._server.api_key, REDACTED) if self._server.api_key else text)[:_SHOWN]


@dataclass(frozen=True)
class _Failure:
    cause: str
    is_final: bool = False
    """Whether another attempt would fail as well."""
    is_unconnected: bool = False
    wait_s: float | None = None
    """How long the server asks to wait."""


def _summed(pairs: Any) -> dict[str, float]:
    """Log-probabilities by token text; two tokens may have one text."""
    logprobs: dict[str, float] = {}
    for token, logprob in pairs:
        known = logprobs.get(token, -math.inf)
        logprobs[token] = max(known, logprob) + math.log1p(math.exp(-abs(known - logprob)))
    return logprobs


def _retry_after(headers: Mapping[str, str]) -> float | None:
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:  # missing, or a date
        return None
    return seconds if 0 < seconds < math.inf else None


def _is_refused(error: BaseException) -> bool:
    """Whether not even a connection was made, as where nothing listens at the port."""
    return type(error.__cause__).__name__ == "ConnectError"


def _run(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end, also for a caller who is in a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(start())
    with ThreadPoolExecutor(1, thread_name_prefix="judge") as thread:
        return thread.submit(lambda: asyncio.run(start())).result()


def require_openai() -> None:
    """Check that the client is installed.

    Raises:
        MissingDependencyError: If it is not.
    """
    try:
        import openai  # noqa: F401
    except ImportError as error:
        raise missing_dependency("openai", "openai", "the judge") from error
