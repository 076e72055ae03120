"""The routes of an environment's service: OpenEnv's protocol over a WebSocket, and plain HTTP with the same fields.

| | |
|---|---|
| `WS /ws` | OpenEnv: answers messages of the type `"reset"`, `"step"` or `"state"` with `"data"`, and ends at `"close"` |
| `POST /reset` | begins an episode |
| `POST /step` | takes a turn: `{"episode_id", "action"}` |
| `GET /state` | progress of an episode: `?episode_id=ID` |
| `GET /health` | name of the environment, version, counts; no token required |

`reset` takes `{"problem", "seed", "form", "episode_id"}`, all optional: the index of a problem, or a seed for drawing a
problem, and the form `"text"` or `"tokens"`. `reset` and `step` answer `{"observation", "reward", "done"}`. The reward belongs
to the action; at the end of the episode, the verifier's score is added. The last observation has `outcome`, `answer` and
`truncated`. If an episode could not be judged, the answer is an error without a reward.

* In the form `text` an action is a turn, `{"text", "calls": [{"name", "arguments"}], "tokens"}`: the model's text, its tool
  calls, and its number of tokens, which counts against the environment's budget. An observation has `messages` (the prompt, or
  the answer to the turn), `new_context` (whether the messages replace everything before them), and at the beginning `tools`.
* In the form `tokens` an action is any number of tokens, `{"token_ids"}`, of the environment's tokenizer. An observation has
  `token_ids` (of the prompt, or of what the environment appends) and `new_context`; `consumed`, the number of tokens that the
  environment took, at most up to the end of the turn; `rewards`, one for each of the consumed tokens; and `legal_ids` if only
  some tokens are legal.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np
from fastapi import FastAPI, WebSocket
from pydantic import BaseModel, Field, ValidationError
from starlette.responses import Response
from starlette.websockets import WebSocketDisconnect

import rlvr_envs
from agents.runs.files.json_files import to_json
from agents.runs.verdicts import error_cause
from agents.serving.app import KnownKeys, first_fault, guarded
from agents.serving.batching import Batcher, OverloadedError
from agents.serving.env_episodes import Action, End, EnvEpisodes, Form, RefusedError, ServedEpisode, View
from agents.serving.guard import RequestLimits, answer, refusal
from verifiers import DataError, InvalidArgumentError, Outcome, Problem, PromptTooLongError, __version__

IDLE_S = 600.0
"""Idle time in seconds after which a WebSocket is closed, and an episode over HTTP may be dropped for a new episode."""


class Reset(KnownKeys):
    """The body of `POST /reset`."""

    problem: int | None = Field(None, ge=0)
    seed: int | None = Field(None, ge=0)
    form: Form = "text"
    episode_id: str | None = Field(None, max_length=255)


class Step(BaseModel):
    """The body of `POST /step`, in which OpenEnv's clients may send further fields."""

    action: Action
    episode_id: str


class Session:
    """The episodes that a client plays, one after the other."""

    def __init__(self, episodes: EnvEpisodes, batcher: Batcher) -> None:
        self._episodes = episodes
        self._batcher = batcher
        self._turn = asyncio.Lock()
        self._episode: ServedEpisode | None = None
        self.id = ""
        self.used = time.monotonic()

    async def reset(self, asked: Reset) -> View:
        """Begin an episode."""
        self._episodes.check(asked.form, asked.problem)
        count = len(self._episodes.streams.dataset)
        index = int(np.random.default_rng(asked.seed).integers(count)) if asked.problem is None else asked.problem
        self.id = asked.episode_id or uuid.uuid4().hex
        async with self._turn:
            self.used = time.monotonic()
            try:
                self._episode = episode = await asyncio.to_thread(self._episodes.start, asked.form, index)
            except (DataError, PromptTooLongError) as error:
                raise RefusedError(422, "invalid_request", str(error)) from error
            told = {"episode_id": self.id, "problem": index, "problem_id": episode.problem.id}
            return {"observation": {**episode.opening(), **told}, "reward": None, "done": False}

    async def step(self, action: Action) -> View:
        """Take a turn, or some of its tokens."""
        async with self._turn:
            self.used = time.monotonic()
            episode = self._episode
            if episode is None or self.over:
                raise RefusedError(409, "no_episode", "no episode is under way: reset first")
            try:
                reward, view = await asyncio.to_thread(episode.take, action)
            except RefusedError:
                raise
            except BaseException as error:
                self._episode = None
                if isinstance(error, InvalidArgumentError):
                    raise RefusedError(503, "verifier_error", str(error)) from error
                raise
            if episode.end is None:
                return {"observation": view, "reward": reward, "done": False}
            score, about = await self._judged(episode.problem, episode.end)
            return {"observation": {**view, **about}, "reward": reward + score, "done": True}

    @property
    def over(self) -> bool:
        """Whether no episode is under way."""
        return self._episode is None or self._episode.end is not None

    def state(self) -> View:
        """The progress of the episode."""
        turns = 0 if self._episode is None else self._episode.turns
        return {"episode_id": self.id, "step_count": turns, "done": self._episode is not None and self.over}

    async def _judged(self, problem: Problem, end: End) -> tuple[float, View]:
        """The score of a finished episode, and further fields of the last observation."""
        verdict = end.error
        if verdict is None and self._episodes.streams.rules.verifier is not None:
            try:
                (verdict,) = await self._batcher.verify([end.completion], [problem])
            except OverloadedError as error:
                raise RefusedError(429, "overloaded", str(error)) from error
        if verdict is None:
            return 0.0, {"truncated": end.truncated}
        if verdict.outcome is Outcome.VERIFIER_ERROR:
            raise RefusedError(503, "verifier_error", f"the episode has no reward: {error_cause(verdict.detail)}")
        return verdict.score, {
            "outcome": verdict.outcome.value,
            "answer": verdict.answer,
            "truncated": end.truncated,
        }


class EnvService:
    """An environment behind limits on requests."""

    def __init__(
        self, streams: rlvr_envs.TokenStreams, name: str, limits: RequestLimits, idle_s: float = IDLE_S
    ) -> None:
        self._episodes = EnvEpisodes(streams)
        self._name = name
        self._idle_s = idle_s
        self._most = limits.max_waiting
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._connected = 0
        verifier = streams.rules.verifier or _no_verdict
        self.batcher = Batcher(verifier, batch_size=limits.batch_size, max_waiting=limits.max_waiting)

    async def reset(self, asked: Reset) -> Response:
        """Answer `POST /reset`."""
        return await self._answered(self._reset(asked))

    async def step(self, asked: Step) -> Response:
        """Answer `POST /step`."""
        return await self._answered(self._step(asked))

    async def state(self, episode_id: str) -> Response:
        """Answer `GET /state`."""
        session = self._sessions.get(episode_id)
        return _unknown(episode_id) if session is None else answer(session.state())

    async def health(self) -> Response:
        """Answer `GET /health`."""
        streams, playing = self._episodes.streams, len(self._sessions) + self._connected
        about = {"environment": self._name, "version": __version__, "problems": len(streams.dataset)}
        counts = {"vocab_size": streams.vocab_size, "episodes": playing, "judged": self.batcher.judged}
        return answer({"status": "healthy", **about, **counts})

    async def connect(self, socket: WebSocket) -> None:
        """Serve a client of OpenEnv until it disconnects."""
        await socket.accept()
        if self._full():
            await socket.send_text(to_json(_error(RefusedError(429, "overloaded", "too many episodes are played"))))
            await socket.close()
            return
        self._connected += 1
        session = Session(self._episodes, self.batcher)
        try:
            with contextlib.suppress(WebSocketDisconnect):
                while (reply := await _reply(session, await self._received(socket))) is not None:
                    await socket.send_text(to_json(reply))
                await socket.close()
        finally:
            self._connected -= 1

    async def _received(self, socket: WebSocket) -> str:
        """The next message as text; empty for a binary message. A client that is silent for too long is disconnected."""
        try:
            message = await asyncio.wait_for(socket.receive(), self._idle_s)
        except TimeoutError:
            said = RefusedError(408, "idle", f"nothing came for {self._idle_s:g} s: connect again for another episode")
            await socket.send_text(to_json(_error(said)))
            return _CLOSE
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1000))
        return message.get("text") or ""

    async def _reset(self, asked: Reset) -> View:
        session = Session(self._episodes, self.batcher)
        self._episodes.check(asked.form, asked.problem)
        asked = asked.model_copy(update={"episode_id": asked.episode_id or uuid.uuid4().hex})
        assert asked.episode_id is not None
        self._sessions.pop(asked.episode_id, None)
        if self._full():
            raise RefusedError(429, "overloaded", f"{self._most} episodes are played: end one, or try again later")
        self._sessions[asked.episode_id] = session  # before the first await, so that other requests count it
        try:
            return await session.reset(asked)
        except BaseException:
            self._forget(asked.episode_id, session)
            raise

    def _forget(self, episode_id: str, session: Session) -> None:
        """Drop an episode, unless another episode has begun under this id in the meantime."""
        if self._sessions.get(episode_id) is session:
            del self._sessions[episode_id]

    async def _step(self, asked: Step) -> View:
        session = self._sessions.get(asked.episode_id)
        if session is None:
            raise RefusedError(404, "not_found", f"no episode {asked.episode_id!r} is under way")
        self._sessions.move_to_end(asked.episode_id)
        try:
            return await session.step(asked.action)
        finally:
            if session.over:
                self._forget(asked.episode_id, session)

    def _full(self) -> bool:
        """Whether no further episode may begin. An idle episode is dropped to make room."""
        if len(self._sessions) + self._connected < self._most:
            return False
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or time.monotonic() - oldest.used < self._idle_s:
            return True
        self._sessions.popitem(last=False)
        return False

    async def _answered(self, work: Any) -> Response:
        try:
            return answer(await work)
        except RefusedError as error:
            return refusal(*error.args)


def _unknown(episode_id: str) -> Response:
    return refusal(404, "not_found", f"no episode {episode_id!r} is under way")


def _no_verdict(completion: str, problem: object) -> Any:
    raise AssertionError("an environment without a verifier is not judged")


async def _reply(session: Session, text: str) -> View | None:
    """The answer to a message of OpenEnv's client; None if the client closes the connection."""
    try:
        kind, data = _read(text)
        if kind == "close":
            return None
        if kind == "state":
            return {"type": "state", "data": session.state()}
        if isinstance(data, Reset):
            return {"type": "observation", "data": await session.reset(data)}
        assert isinstance(data, Action)
        return {"type": "observation", "data": await session.step(data)}
    except RefusedError as error:
        return _error(error)


def _read(text: str) -> tuple[str, Reset | Action | None]:
    """The type and the content of a message of OpenEnv's client."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, "invalid_json", f"expected a message in JSON: {error}") from error
    kind = str(message.get("type")) if isinstance(message, dict) else "no object"
    if kind not in _KINDS:
        raise RefusedError(
            400, "unknown_type", f"expected a message with a type among {', '.join(_KINDS)}, got {kind!r}"
        )
    model = _KINDS[kind]
    try:
        return kind, None if model is None else model.model_validate(message.get("data") or {})
    except ValidationError as error:
        raise RefusedError(422, "invalid_request", first_fault(error.errors())[1]) from error


_KINDS: Mapping[str, type[Reset] | type[Action] | None] = {"reset": Reset, "step": Action, "state": None, "close": None}
_CLOSE = '{"type": "close"}'
_CODES = {
    "overloaded": "CAPACITY_REACHED",
    "invalid_request": "VALIDATION_ERROR",
    "invalid_json": "INVALID_JSON",
    "unknown_type": "UNKNOWN_TYPE",
}
"""OpenEnv's error codes; all other errors are `EXECUTION_ERROR`."""


def _error(error: RefusedError) -> View:
    _, kind, message = error.args
    return {"type": "error", "data": {"message": message, "code": _CODES.get(kind, "EXECUTION_ERROR")}}


def create_env_app(
    streams: rlvr_envs.TokenStreams,
    name: str,
    *,
    token: str | None = None,
    limits: RequestLimits | None = None,
    idle_s: float = IDLE_S,
) -> FastAPI:
    """Build the service as an ASGI application.

    Args:
        streams: The environment.
        name: The environment's name in `/health`.
        token: The token that requests must carry; None accepts requests without a token.
        limits: Limits on requests; `max_waiting` is the maximum number of episodes at once.
        idle_s: Idle time in seconds after which a WebSocket is closed, and an episode over HTTP may be dropped for a new
            episode.
    """
    limits = limits or RequestLimits()
    service = EnvService(streams, name, limits, idle_s)
    app = guarded("rlvr serve-env", service.batcher, token=token, limits=limits)
    app.add_api_route("/reset", service.reset, methods=["POST"])
    app.add_api_route("/step", service.step, methods=["POST"])
    app.add_api_route("/state", service.state, methods=["GET"])
    app.add_api_route("/health", service.health, methods=["GET"])
    app.add_api_websocket_route("/ws", service.connect)
    return app
