"""The routes of the verifier's service.

| | |
|---|---|
| `POST /verify` | a verdict for each completion, in order |
| `POST /get_reward` | OpenRLHF's remote reward; see `agents.adapters.openrlhf` |
| `GET /health` | name of the verifier, version, counts; no token required |

`/verify` takes `{"items": [{"completion", "reference", "prompt", "id", "metadata"}]}`, of which only `completion` is required.
The answer is `{"verdicts": [{"outcome", "score", "answer", "detail"}]}`. Unknown keys are refused. `/get_reward` ignores
unknown keys, which other releases of OpenRLHF may send.

Errors are `{"error": {"type", "message"}}`:

| status | type | |
|---|---|---|
| 400, 422 | `invalid_request` | the body is not JSON, has an unknown key (400) or another layout; the message names the field |
| 401 | `unauthorized` | the token is missing or wrong |
| 403 | `forbidden` | a web page sends a request to a service without a token |
| 404, 405 | `not_found`, `method_not_allowed` | |
| 408 | `timeout` | the body did not arrive within a minute |
| 413 | `too_large` | the request has more bytes or completions than allowed |
| 415 | `unsupported_media_type` | the body is not declared as JSON |
| 429 | `overloaded` | too many completions are waiting |
| 503 | `verifier_error` | the verifier could not judge at least one completion |

If a completion can't be judged, the whole request fails, so that no client can take the missing score for 0. The answer
contains the error and also the verdicts, with null for a missing score.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, model_validator
from pydantic_core import PydanticCustomError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from agents.adapters import openrlhf
from agents.runs.verdicts import error_cause
from agents.serving.batching import Batcher, OverloadedError
from agents.serving.guard import Guard, RequestLimits, answer, refusal
from verifiers import InvalidArgumentError, Message, Outcome, Problem, Verdict, Verifier, __version__, unknown_name

_UNKNOWN_KEY = "unknown_key"
_KINDS = {404: "not_found", 405: "method_not_allowed"}


class KnownKeys(BaseModel):
    """A JSON object in which an unknown key, which may be a misspelt optional key, is an error."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, content: Any) -> Any:
        for name in content if isinstance(content, dict) else ():
            if name not in cls.model_fields:
                raise PydanticCustomError(
                    _UNKNOWN_KEY, "{said}", {"said": str(unknown_name("key", name, cls.model_fields))}
                )
        return content


class ChatMessage(KnownKeys):
    """One message of a prompt."""

    role: str
    content: str


class Item(KnownKeys):
    """One completion, with its problem."""

    completion: str
    reference: Any = None
    prompt: str | list[ChatMessage] = ""
    id: str = ""
    metadata: dict[str, Any] = Field(default_factory=dict)

    def problem(self) -> Problem:
        """Return the problem in the form that verifiers take."""
        prompt = self.prompt
        asked = (
            prompt if isinstance(prompt, str) else tuple(Message(message.role, message.content) for message in prompt)
        )
        return Problem(self.id, asked, self.reference, self.metadata)


class VerifyRequest(KnownKeys):
    """The body of `POST /verify`."""

    items: list[Item] = Field(min_length=1)


class RewardRequest(BaseModel):
    """The body of `POST /get_reward` that OpenRLHF sends."""

    query: list[str] = Field(min_length=1)
    prompts: list[str]
    labels: list[Any]


class Service:
    """A verifier behind limits on requests."""

    def __init__(self, verifier: Verifier, limits: RequestLimits, end_of_text: Sequence[str]) -> None:
        self.batcher = Batcher(verifier, batch_size=limits.batch_size, max_waiting=limits.max_waiting)
        self._max_items = limits.max_items
        self._end_of_text = end_of_text

    async def verify(self, request: VerifyRequest) -> Response:
        """Answer `POST /verify`."""
        completions = [item.completion for item in request.items]
        verdicts = await self._judged(completions, [item.problem() for item in request.items])
        return verdicts if isinstance(verdicts, Response) else answer({"verdicts": list(map(_as_json, verdicts))})

    async def get_reward(self, request: RewardRequest) -> Response:
        """Answer `POST /get_reward`."""
        try:
            completions = openrlhf.completions_of(request.query, request.prompts, self._end_of_text)
            problems = openrlhf.problems_of(request.prompts, request.labels)
        except InvalidArgumentError as error:
            return refusal(422, "invalid_request", str(error))
        verdicts = await self._judged(completions, problems)
        return verdicts if isinstance(verdicts, Response) else answer(openrlhf.reply(verdicts))

    async def _judged(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict] | Response:
        """A verdict for each completion, or a refusal if any is a `VERIFIER_ERROR` or there are too many completions."""
        if len(completions) > self._max_items:
            message = f"one request may have at most {self._max_items} completions, got {len(completions)}"
            return refusal(413, "too_large", message)
        try:
            verdicts = await self.batcher.verify(completions, problems)
        except OverloadedError as error:
            return refusal(429, "overloaded", str(error))
        errored = [number for number, verdict in enumerate(verdicts) if verdict.outcome is Outcome.VERIFIER_ERROR]
        if not errored:
            return verdicts
        cause = error_cause(verdicts[errored[0]].detail)
        message = (
            f"the verifier could not judge {len(errored)} of {len(verdicts)} completions; item {errored[0]}: {cause}"
        )
        return refusal(503, "verifier_error", message, verdicts=list(map(_as_json, verdicts)))


def _as_json(verdict: Verdict) -> dict[str, object]:
    return {
        "outcome": verdict.outcome.value,
        "score": None if verdict.outcome is Outcome.VERIFIER_ERROR else verdict.score,
        "answer": verdict.answer,
        "detail": verdict.detail,
    }


def create_app(
    verifier: Verifier,
    name: str,
    *,
    token: str | None = None,
    limits: RequestLimits | None = None,
    end_of_text: Sequence[str] = (),
) -> FastAPI:
    """Build the service as an ASGI application.

    Args:
        verifier: The verifier that judges.
        name: The verifier's name in `/health`.
        token: The token that requests must carry; None accepts requests without a token.
        limits: Limits on requests.
        end_of_text: End tokens as text, if OpenRLHF's queries end with such tokens.
    """
    limits = limits or RequestLimits()
    service = Service(verifier, limits, end_of_text)

    async def health() -> Response:
        batcher = service.batcher
        counts = {"judged": batcher.judged, "verifier_errors": batcher.verifier_errors, "waiting": batcher.waiting}
        return answer({"status": "ok", "verifier": name, "version": __version__, **counts})

    app = guarded("rlvr serve-verifier", service.batcher, token=token, limits=limits)
    app.add_api_route("/verify", service.verify, methods=["POST"])
    app.add_api_route("/get_reward", service.get_reward, methods=["POST"])
    app.add_api_route("/health", health, methods=["GET"])
    return app


def guarded(title: str, batcher: Batcher, *, token: str | None, limits: RequestLimits) -> FastAPI:
    """An application without routes, but with a guard, and with errors as in the module's table.

    The batcher runs while the application runs.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        batches = asyncio.create_task(batcher.run())
        yield
        batches.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await batches

    app = FastAPI(title=title, version=__version__, lifespan=lifespan)
    app.add_middleware(Guard, token=token, max_bytes=limits.max_bytes, arrive_s=limits.arrive_s)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    return app


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    unknown, message = first_fault(error.errors())
    return refusal(400 if unknown else 422, "invalid_request", message)


def first_fault(errors: Sequence[Any]) -> tuple[bool, str]:
    """The first fault that pydantic finds: whether it is an unknown key, and its message."""
    unknown = [fault for fault in errors if fault["type"] == _UNKNOWN_KEY]
    first = (unknown or errors)[0]  # the message leaves the input out, which may be long
    location = ".".join(map(str, first["loc"]))
    return bool(unknown), f"{location}: {first['msg']}"


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind = _KINDS.get(error.status_code, "invalid_request")
    return refusal(error.status_code, kind, f"{request.method} {request.url.path}: {error.detail}")
