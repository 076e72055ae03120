"""Queries a judge: asks several questions concurrently, and keeps to a deadline."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from verifiers.http import OpenAIServer, Route, ServerError
from verifiers.judge.replies import JudgeReply

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_CHAT_LOGPROBS, _COMPLETION_LOGPROBS = 20, 5
"""Maximum number of alternatives of a token that servers return, for chats and for completions."""

T = TypeVar("T")
Question = str | list[dict[str, str]]
"""A text to complete, or the messages of a chat."""


@dataclass(frozen=True)
class JudgeServer:
    """A server, and the settings with which it is asked; `JudgeVerifier` describes the fields."""

    server: OpenAIServer
    model: str
    route: Route
    parameters: Mapping[str, Any]
    """Fields of a request's body besides the model and the question."""
    logprobs: bool
    deadline_s: float
    concurrency: int

    def ask(self, questions: Sequence[Question]) -> list[tuple[JudgeReply, float]]:
        """Ask all questions; item i holds the reply to question i and the seconds it took.

        Once all attempts of one question fail to connect, the remaining questions are not asked.
        """
        return _run(lambda: self._ask_all(questions))

    async def _ask_all(self, questions: Sequence[Question]) -> list[tuple[JudgeReply, float]]:
        async with self.server.client() as client:
            batch = _Batch(self, client)
            return await asyncio.gather(*map(batch.reply, questions))

    def body(self, question: Question) -> dict[str, Any]:
        """The body of a request."""
        if isinstance(question, str):
            asked: dict[str, Any] = {"prompt": question}
            logprobs: dict[str, Any] = {"logprobs": _COMPLETION_LOGPROBS}
        else:
            asked = {"messages": question}
            logprobs = {"logprobs": True, "top_logprobs": _CHAT_LOGPROBS}
        return {"model": self.model, **asked, **self.parameters, **(logprobs if self.logprobs else {})}

    def read(self, said: str) -> JudgeReply:
        """The reply in the text of an answer.

        Raises:
            ServerError: If the answer holds no reply.
        """
        try:
            return self._reply(json.loads(said))
        except (AttributeError, TypeError, IndexError, KeyError, ValueError, RecursionError) as error:
            raise ServerError(
                f"expected an answer in the form of OpenAI's protocol, got {self.server.clean(said)!r}; is the address right?",
                temporary=True,
            ) from error

    def _reply(self, answer: Mapping[str, Any]) -> JudgeReply:
        choice = answer["choices"][0]
        text = choice["message"]["content"] if self.route == "chat" else choice["text"]
        if not isinstance(text, str):
            raise TypeError("a refusal, or a call of a tool")
        tokens = (answer.get("usage") or {}).get("total_tokens") or 0
        reply = JudgeReply(text, is_cut_off=choice.get("finish_reason") == "length", tokens=int(tokens))
        if not self.logprobs or choice.get("logprobs") is None:
            return reply
        if self.route == "chat":
            first = choice["logprobs"]["content"][0]["top_logprobs"]
            return replace(reply, first_token=_summed((entry["token"], float(entry["logprob"])) for entry in first))
        return replace(reply, first_token=dict(choice["logprobs"]["top_logprobs"][0]))


class _Batch:
    """The questions of one call of `JudgeServer.ask`."""

    def __init__(self, judge: JudgeServer, client: AsyncOpenAI) -> None:
        self._judge = judge
        self._client = client
        self._room = asyncio.Semaphore(judge.concurrency)
        self._unreachable: JudgeReply | None = None

    async def reply(self, question: Question) -> tuple[JudgeReply, float]:
        async with self._room:
            if self._unreachable is not None:
                return self._unreachable, 0.0
            began = time.monotonic()
            return await self._persistent(question), time.monotonic() - began

    async def _persistent(self, question: Question) -> JudgeReply:
        """Ask until there is a reply or a refusal, or until the attempts or the time run out."""
        judge, failures = self._judge, list[ServerError]()
        address = judge.server.address
        try:
            async with asyncio.timeout(judge.deadline_s):
                return await judge.server.ask(
                    self._client, judge.route, judge.body(question), judge.read, failures.append
                )
        except TimeoutError:
            before = f", after: {failures[-1]}" if failures else ""
            return JudgeReply(error=f"no reply from {address} within {judge.deadline_s:g} s{before}")
        except ServerError as failure:
            if not failure.temporary:
                return JudgeReply(error=str(failure))
            last = JudgeReply(error=f"{len(failures)} attempts at {address} failed, the last with {failure}")
            if all(one.connected is False for one in failures):
                self._unreachable = last
            return last


def _summed(pairs: Any) -> dict[str, float]:
    """Log-probabilities by token text; two tokens may have the same text."""
    logprobs: dict[str, float] = {}
    for token, logprob in pairs:
        known = logprobs.get(token, -math.inf)
        logprobs[token] = max(known, logprob) + math.log1p(math.exp(-abs(known - logprob)))
    return logprobs


def _run(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end, even if the caller is in a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(start())
    with ThreadPoolExecutor(1, thread_name_prefix="judge") as thread:
        return thread.submit(lambda: asyncio.run(start())).result()
